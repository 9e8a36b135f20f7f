// A reader of events whose socket is full, on a real connection.
#include "unit/http/raw_client.h"
#include "unit/http/test_server.h"
#include "world.h"

using namespace holdfast;

namespace {

constexpr std::int64_t kEvents = 4'000;

void record_events(World& world) {
  world.run().status = run::RunStatus::succeeded;
  world.run().last_event = kEvents;
  for (std::int64_t seq = 1; seq <= kEvents; ++seq) {
    run::Event event;
    event.seq = seq;
    event.type = "step.waiting";
    event.data = R"({"why":")" + std::string(2'000, 'x') + R"("})";
    world.reader.recorded.push_back(event);
  }
}

/// The numbers of the events that arrived whole.
std::vector<std::int64_t> whole_events(const std::string& received) {
  std::vector<std::int64_t> seqs;
  for (std::size_t at = received.find("id: "); at != std::string::npos; at = received.find("\nid: ", at + 1)) {
    if (received.find("\n\n", at + 1) == std::string::npos) break;
    seqs.push_back(std::stoll(received.substr(received.find("id: ", at) + 4, 20)));
  }
  return seqs;
}

std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(to - from + 1));
  std::iota(out.begin(), out.end(), from);
  return out;
}

}  // namespace

TEST_CASE("a reader of events that takes none is cut off, sees that it was, and misses nothing when it comes back") {
  World world;
  const SystemClock clock;
  world.clock.at = clock.now();
  record_events(world);
  const auto server = http::make_server(clock, {.name = "test", .listen = "127.0.0.1:0", .connections = 1, .write_time = Duration{200}});
  api::add_health_routes(*server, world.service);
  api::add_event_routes(*server, world.service, http::Access::client);
  const auto address = server->listen();
  REQUIRE(address.has_value());
  const std::string stream = "GET /v1/runs/" + kRun + "/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n";
  const std::string end = "\r\n0\r\n\r\n";

  http::RawClient slow(*address);
  slow.send(stream + "\r\n");
  REQUIRE(slow.receives("id: 1\n"));
  REQUIRE(http::eventually([&] {  // there is room for one
    http::RawClient next(*address);
    next.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    return http::status_of(next.answer()) == 200;
  }));
  CHECK_FALSE(slow.receives(end));
  const auto seen = whole_events(slow.buffer());
  REQUIRE(seen.size() > 0);
  REQUIRE(seen.back() < kEvents);
  CHECK(seen == numbers(1, seen.back()));

  http::RawClient again(*address);
  again.send(stream + "Last-Event-ID: " + std::to_string(seen.back()) + "\r\n\r\n");
  CHECK(again.receives(end));
  CHECK(whole_events(again.buffer()) == numbers(seen.back() + 1, kEvents));
}
