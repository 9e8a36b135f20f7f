// The same engine, ledger and handlers behind plain cpp-httplib: plain_front FOLDER THREADS. Prints the client's address; ends
// with its standard input.
#include <cstdio>
#include <iostream>

#include "api/engine_commands.h"
#include "api/hub.h"
#include "api/metrics.h"
#include "api/routes.h"
#include "holdfast/engine/engine.h"
#include "holdfast/ledger/ledger.h"
#include "plain_server.h"
#include "tools/dispatcher.h"

using namespace holdfast;

namespace {

/// No tool is ever called here.
struct Nowhere final : tools::CallSink {
  void finished(tools::CallId, Evidence) override {}
  void late(tools::CallId, Evidence) override {}
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const SystemClock clock;
  auto opened = ledger::open_sqlite({.path = std::string(argv[1]) + "/holdfast.db"});
  if (!opened) return 1;
  tools::Catalog catalog{tools::Config{}};
  Nowhere nowhere;
  const auto http_client = tools::make_curl_client(clock);
  const auto transport = tools::make_dispatcher(clock, catalog, *http_client, nowhere);
  api::Hub hub;
  api::MetricsRegistry metrics(clock);
  const auto random = system_random();
  engine::Engine engine(clock, *random, *opened->ledger, catalog, *transport, hub, metrics, {});
  api::EngineCommands commands(engine, *opened->ledger);
  const api::Service service{clock, commands, *opened->reader, hub.known(), hub.large(), catalog, metrics, engine.latencies()};
  const auto server = bench::make_plain_server(clock, std::stoul(argv[2]));
  hub.attach(*server, *server);
  api::add_client_listener(*server, service);
  const auto address = server->listen();
  if (!address || !engine.start()) return 1;
  std::cout << *address << std::endl;
  while (std::getchar() != EOF) {
  }
  engine.drain();
  server->stop();
  transport->stop();
  http_client->stop();
  return 0;
}
