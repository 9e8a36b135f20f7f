// The server process: every part made, joined and taken down in the right order.
#include <mimalloc.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <future>
#include <ostream>
#include <thread>

#include "api/auth.h"
#include "api/engine_commands.h"
#include "api/hub.h"
#include "api/metrics.h"
#include "api/routes.h"
#include "cli/command_line.h"
#include "cli/idle_memory.h"
#include "cli/log.h"
#include "cli/reload.h"
#include "cli/signals.h"
#include "cli/transports.h"
#include "core/crash_point.h"
#include "holdfast/engine/engine.h"
#include "holdfast/ledger/ledger.h"
#include "http/server.h"
#include "tools/dispatcher.h"

#pragma weak mi_option_set

namespace holdfast::cli {
namespace {

constexpr Duration kDiscovery{3'000};

/// Large results come and go. Left to itself the allocator keeps their memory for a while, and forgets it when nothing else happens: it gives it
/// back at once. Not in builds that have another allocator (docs/decisions/0030).
void return_large_blocks() {
  if (mi_option_set == nullptr) return;
  mi_option_set(mi_option_decommit_delay, 0);
  mi_option_set(mi_option_segment_decommit_delay, 0);
}

/// Each reader at work may hold a row of the largest result: more of them than there are processors cost memory and no time.
std::uint32_t readers() {
  return std::clamp(std::thread::hardware_concurrency(), 2U, 4U);
}

int fail(std::ostream& err, const Error& error, int code) {
  err << "holdfast: " << error.message << std::endl;
  return code;
}

http::Options listener(const tools::Config& config, const api::TokenTable& tokens, std::string name, std::string listen) {
  http::Options options;
  options.name = std::move(name);
  options.listen = std::move(listen);
  options.body_bytes = config.limits.body_bytes;
  options.socket_mode = config.socket_mode;
  options.connections = config.limits.connections;
  options.connections_per_address = config.limits.connections_per_address;
  options.authenticate = tokens.authenticate();
  return options;
}

/// The running parts, declared in the order in which each needs the ones above it; they are taken down in
/// reverse.
struct Process {
  Process(tools::Config config, ledger::Opened opened)
      : clock(opened.newest),
        ledger(std::move(opened)),
        catalog(std::move(config)),
        tokens(catalog.config().tokens),
        http_client(tools::make_curl_client(clock)),
        transport(tools::make_dispatcher(clock, catalog, *http_client, relay)),
        metrics(clock),
        random(system_random()),
        engine(clock, *random, *ledger.ledger, catalog, *transport, hub, metrics, engine_options()),
        commands(engine, *ledger.ledger),
        service{clock, commands, *ledger.reader, hub.known(), hub.large(), catalog, metrics, engine.latencies()},
        client(http::make_server(clock, listener(catalog.config(), tokens, "client", catalog.config().listen))),
        admin(http::make_server(clock, listener(catalog.config(), tokens, "admin", catalog.config().admin_listen))) {
    relay.attach(engine);
    hub.attach(*client, *admin);
    api::add_client_listener(*client, service);
    api::add_admin_listener(*admin, service);
  }

  engine::Options engine_options() const {
    engine::Options options;
    options.shutdown_grace = catalog.config().shutdown_grace;
    return options;
  }

  SystemClock clock;
  ledger::Opened ledger;
  tools::Catalog catalog;
  api::TokenTable tokens;
  SinkRelay relay;
  std::unique_ptr<tools::HttpClient> http_client;
  std::unique_ptr<tools::Dispatcher> transport;
  api::Hub hub;
  api::MetricsRegistry metrics;
  std::unique_ptr<Random> random;
  engine::Engine engine;
  api::EngineCommands commands;
  api::Service service;
  std::unique_ptr<http::Server> client, admin;
};

/// Binds before the engine starts, so that a port in use is found out before any call is made.
Result<std::string> start(Process& process) {
  process.transport->discover_trusted(kDiscovery);
  const auto client = process.client->listen();
  if (!client) return std::unexpected(client.error());
  const auto admin = process.admin->listen();
  if (!admin) return std::unexpected(admin.error());
  if (const auto started = process.engine.start(); !started) return std::unexpected(started.error());
  // The first client is answered as fast as the second: a reader's connection is open and its statements are ready.
  if (const auto warm = process.ledger.reader->run("run_00000000000000000000000000"); !warm)
    return std::unexpected(warm.error());
  return "holdfast ready client=" + *client + " admin=" + *admin;
}

/// Writes in flight finish within the grace while long polls are still answered; then everything ends.
void stop(Process& process) {
  process.client->stop_accepting();
  process.admin->stop_accepting();
  process.engine.drain();
  process.client->stop();
  process.admin->stop();
  process.transport->stop();
  process.http_client->stop();
}

/// A reload is an operator's act like any other, whether it took place or not.
void note_reload(Process& process, std::string data) {
  process.engine.note({.who = "operator", .action = "reload", .subject = "configuration", .why = "SIGHUP", .data = std::move(data)},
                      [](const Result<void>& noted) {
                        if (!noted) spdlog::error("a reload is missing in the audit log: {}", noted.error().message);
                      });
}

void refuse_reload(Process& process, const std::string& why) {
  spdlog::error("not reloaded, the configuration in force stays: {}", why);
  note_reload(process, refused_reload(why));
}

/// Reads the configuration again and puts it in force between two decisions of the engine: runs and calls in flight go on.
/// A file with a mistake changes nothing.
void reload(Process& process, const std::string& path, const Io& io) {
  auto read = tools::load_config(path, io.env);
  if (!read) return refuse_reload(process, read.error().message);
  Reloaded next = reloaded(process.catalog.config(), std::move(*read));
  add_log_secrets(next.config.secrets);
  const std::size_t servers = next.config.servers.size(), tokens = next.config.tokens.size();
  std::string what = what_changed(process.catalog.config(), next);
  std::promise<Result<void>> exchanged;
  process.engine.between_events([&] {
    auto done = process.catalog.replace(std::move(next.config));
    if (done) {
      process.tokens.replace(process.catalog.config().tokens);
      process.transport->reconfigure();
    }
    exchanged.set_value(std::move(done));
  });
  if (const auto done = exchanged.get_future().get(); !done) return refuse_reload(process, done.error().message);
  note_reload(process, std::move(what));
  for (const std::string& field : next.unchanged) spdlog::warn("`{}` has changed and is not reloaded: restart the server", field);
  spdlog::info("configuration reloaded: {} servers, {} tokens", servers, tokens);
  process.transport->discover_trusted(kDiscovery);
}

/// A kill point is armed only by who asks for it twice: by the variable, and by the flag that production never has.
Result<void> arm(bool allowed, const Io& io) {
  const char* wanted = io.env("HOLDFAST_CRASH_AT");
  if (wanted == nullptr) return {};
  if (allowed) return arm_crash_point(wanted);
  return std::unexpected(Error{"bad_crash_point",
                               "HOLDFAST_CRASH_AT is set, and would kill this process at the named point; it is for tests: unset it, or pass "
                               "--allow-crash-points",
                               {}});
}

struct ServeOptions {
  std::string config;
  bool allow_crash_points = false;
};

int serve(const ServeOptions& options, const Io& io) {
  return_large_blocks();
  if (const auto armed = arm(options.allow_crash_points, io); !armed) return fail(io.err, armed.error(), kBadInput);
  hold_signals();
  raise_descriptor_limit();
  umask(S_IRWXG | S_IRWXO);
  auto config = tools::load_config(options.config, io.env);
  if (!config) return fail(io.err, config.error(), kBadInput);
  start_log(config->secrets);
  auto opened = ledger::open_sqlite(ledger::Options{.path = config->database, .readers = readers()});
  if (!opened) return fail(io.err, opened.error(), kFailed);
  if (const Instant wall = SystemClock().now(); wall < opened->newest)
    spdlog::warn("the wall clock reads {}, earlier than what the ledger has seen of its open runs: time goes on from {}",
                 format_rfc3339(wall), format_rfc3339(opened->newest));
  Process process(std::move(*config), std::move(*opened));
  const auto ready = start(process);
  if (!ready) {
    stop(process);
    return fail(io.err, ready.error(), kFailed);
  }
  io.out << *ready << std::endl;
  IdleMemory memory;
  memory.look();
  wait_for_stop([&] { reload(process, options.config, io); }, [&] { memory.look(); });
  spdlog::info("stopping");
  stop(process);
  return kOk;
}

}  // namespace

void add_serve(CLI::App& app, Commands& commands) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App& command = *app.add_subcommand("serve", "Run the server");
  command.add_option("--config", options->config, "the configuration")->required()->option_text("FILE");
  command.add_flag("--allow-crash-points", options->allow_crash_points, "for tests: let HOLDFAST_CRASH_AT=POINT:N kill the process");
  command.callback(
      [options, &commands] { commands.action = [options, &commands] { return serve(*options, commands.io); }; });
}

}  // namespace holdfast::cli
