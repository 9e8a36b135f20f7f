#include "holdfast/engine/latencies.h"

#include "unit/engine/engine_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

constexpr const char* kAuto = R"(
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    deadline: {auto: {percentile: 95, floor: 50ms, ceiling: 8s}}
    tools:
      read: {effect: read, request: {method: GET, path: /read}}
      plain: {effect: write, request: {method: POST, path: /plain}}
      keyed: {effect: write, request: {method: POST, path: /keyed}, key: {header: Idempotency-Key}}
      fixed: {effect: read, deadline: 3s, request: {method: GET, path: /fixed}}
      noted:
        request: {method: POST, path: /noted}
        check: {tool: read, found: {pointer: /n, not: 0}}
)";

Evidence timed_out(Phase phase = Phase::tx_all) {
  Evidence e;
  e.phase = phase;
  e.failure = Failure::timeout;
  e.bytes_sent = phase < Phase::tx_part ? 0 : 80;
  return e;
}

Evidence status(int code) {
  Evidence e = good();
  e.http_status = code;
  return e;
}

/// A one-step run of `tool`, answered after `took`.
void once(Life& life, const std::string& tool, Duration took, Evidence evidence = good()) {
  const std::size_t before = life.transport.calls.size();
  REQUIRE(life.submit({tool}).has_value());
  REQUIRE(life.transport.calls.size() == before + 1);
  life.clock.at = life.clock.at + took;
  life.answer(life.transport.calls.back(), std::move(evidence));
}

/// `runs` of them at once, answered together.
void many(Life& life, int runs, const std::string& tool, Duration took) {
  for (; runs > 0; runs -= 100) {
    const std::size_t before = life.transport.calls.size();
    for (int i = 0; i < std::min(runs, 100); ++i)
      life.engine->submit(life.plan(R"({"steps":[{"id":"a","server":"api","tool":")" + tool + "\"}]}"), [](auto) {});
    (void)life.engine->turn();
    life.clock.at = life.clock.at + took;
    for (std::size_t i = before; i < life.transport.calls.size(); ++i)
      life.engine->finished(life.transport.calls[i].id, good());
    (void)life.engine->turn();
  }
}

engine::LatencySummary seen(const Life& life, const std::string& tool) {
  return life.engine->latencies().summary("api", tool, Kind::read, life.clock.now());
}

Duration allowed(Life& life, const std::string& tool) {
  once(life, tool, Duration{1});
  const tools::Call& call = life.transport.calls.back();
  return call.deadline - (life.clock.now() - Duration{1});
}

}  // namespace

TEST_CASE("what the tool did is measured; what says nothing about it is not") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  CHECK(seen(life, "read").samples == 0);
  once(life, "read", Duration{200});
  CHECK(seen(life, "read").samples == 1);
  CHECK(seen(life, "read").p99.value.count() == Approx(200).epsilon(0.02));
  once(life, "plain", Duration{700}, timed_out());
  CHECK(seen(life, "plain").samples == 1);
  CHECK(seen(life, "plain").timeouts == 1);
  CHECK(seen(life, "plain").p50.at_least);
  CHECK(seen(life, "plain").p50.value.count() == Approx(8'000).epsilon(0.02));
  once(life, "plain", Duration{5}, timed_out(Phase::tcp));
  once(life, "plain", Duration{5}, status(500));
  once(life, "plain", Duration{5}, status(404));
  once(life, "plain", Duration{5}, lost());
  CHECK(seen(life, "plain").samples == 1);
  CHECK(life.engine->latencies().tools().size() == 2);
}

TEST_CASE("a call cut short by its run's deadline says nothing about the tool") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  life.engine->submit(life.plan(R"({"deadline":"3s","steps":[{"id":"a","server":"api","tool":"read"}]})"), [](auto) {});
  (void)life.engine->turn();
  clock.at = clock.at + Duration{3'000};
  life.answer(life.transport.calls.back(), timed_out());
  CHECK(seen(life, "read").samples == 0);
}

TEST_CASE("a check is a call of the tool that it asks") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  once(life, "noted", Duration{20}, lost());
  REQUIRE(life.transport.calls.back().kind == AttemptKind::check);
  clock.at = clock.at + Duration{40};
  life.answer(life.transport.calls.back(), good("{\"n\":1}"));
  CHECK(seen(life, "read").samples == 1);
  CHECK(seen(life, "noted").samples == 0);
}

TEST_CASE("a sized deadline is the ceiling until there are enough samples, then follows them") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  const ToolPolicy& policy = life.catalog->find("api", "read")->policy;
  many(life, 199, "read", Duration{200});
  CHECK(allowed(life, "read") == Duration{8'000});
  CHECK_FALSE(life.engine->latencies().in_force(policy).measured);
  const Duration sized = allowed(life, "read");
  CHECK(sized.count() == Approx(300).epsilon(0.02));
  CHECK(life.engine->latencies().in_force(policy).measured);
  CHECK(life.engine->latencies().in_force(policy).deadline == sized);
  CHECK(allowed(life, "fixed") == Duration{3'000});
  CHECK(allowed(life, "keyed") == Duration{8'000});

  // Slower at once, faster slowly.
  many(life, 200, "read", Duration{1'000});
  CHECK(allowed(life, "read").count() == Approx(1'500).epsilon(0.02));
  many(life, 8'000, "read", Duration{1});
  CHECK(allowed(life, "read").count() > 1'400);
}

TEST_CASE("a step's own deadline shortens a sized one, and never lengthens it") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  many(life, 201, "read", Duration{200});
  for (const auto& [own, right] : {std::pair{"5s", 300}, {"100ms", 100}}) {
    life.engine->submit(life.plan(std::string(R"({"steps":[{"id":"a","server":"api","tool":"read","deadline":")") + own + "\"}]}"), [](auto) {});
    (void)life.engine->turn();
    CHECK((life.transport.calls.back().deadline - clock.now()).count() == Approx(right).epsilon(0.02));
    life.answer(life.transport.calls.back(), good());
  }
}

TEST_CASE("a plain write is not started when less than half of its sized deadline is left") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, kAuto);
  const auto starts = [&] {
    const std::size_t before = life.transport.calls.size();
    life.engine->submit(life.plan(R"({"deadline":"1s","steps":[{"id":"a","server":"api","tool":"plain"}]})"), [](auto) {});
    (void)life.engine->turn();
    return life.transport.calls.size() > before;
  };
  CHECK_FALSE(starts());  // the ceiling of 8 s
  many(life, 1'000, "plain", Duration{100});
  CHECK(starts());  // twice 150 ms
}

TEST_CASE("samples are stored with a batch that is committed anyway, every ten seconds at most, and outlive a restart") {
  Folder folder;
  HandClock clock;
  const auto stored = [](Life& life) {
    const auto open = life.opened.ledger->load_open();
    REQUIRE(open);
    std::uint64_t samples = 0;
    for (const auto& row : open->latencies) samples += LatencySketch::parse(row.slice.samples)->samples();
    return samples;
  };
  Duration sized{};
  {
    Life life(folder.path, clock, 100, kAuto);
    const int commits = life.metrics.commits;
    for (int i = 0; i < 9; ++i) once(life, "read", Duration{1'000});
    CHECK(stored(life) == 0);
    CHECK(life.metrics.commits == commits + 18);
    once(life, "read", Duration{1'001});
    CHECK(stored(life) == 10);
    CHECK(life.metrics.commits == commits + 20);
    (void)life.engine->turn();
    CHECK(life.metrics.commits == commits + 20);
    many(life, 250, "read", Duration{100});
    sized = allowed(life, "read");
    clock.at = clock.at + Duration{10'000};
    once(life, "read", Duration{100});
    CHECK(stored(life) == 261);  // with the submission's commit; the answer's is not due yet
    clock.at = clock.at + Duration{10'000};
    REQUIRE(life.submit({"fixed"}).has_value());
    CHECK(stored(life) == 262);
  }
  Life life(folder.path, clock, 100, kAuto);
  CHECK(seen(life, "read").samples == 262);
  CHECK(life.engine->latencies().in_force(life.catalog->find("api", "read")->policy).deadline == sized);
  CHECK(allowed(life, "read") == sized);
}

TEST_CASE("a batch that could not be stored gives its samples again") {
  Folder folder;
  HandClock clock;
  {
    Life life(folder.path, clock, 100, kAuto);
    REQUIRE(life.submit({"read"}).has_value());
    clock.at = clock.at + Duration{11'000};
    life.ledger->full = true;
    life.answer(life.transport.calls.back(), good());
    life.ledger->full = false;
    clock.at = clock.at + Duration{5'000};
    (void)life.engine->turn();
  }
  Life life(folder.path, clock, 100, kAuto);
  CHECK(seen(life, "read").samples == 1);
}

TEST_CASE("a drain stores what was measured last") {
  Folder folder;
  HandClock clock;
  {
    Life life(folder.path, clock, 100, kAuto);
    once(life, "read", Duration{20});
    once(life, "keyed", Duration{30});
    REQUIRE(life.engine->start());
    life.engine->drain();
  }
  Life life(folder.path, clock, 100, kAuto);
  CHECK(seen(life, "read").samples == 1);
  CHECK(seen(life, "keyed").samples == 1);
}

TEST_CASE("tool names without end do not grow what is remembered") {
  engine::Latencies latencies;
  ToolPolicy policy;
  policy.server = "mcp";
  for (int i = 0; i < 6'000; ++i) {
    policy.tool = "t" + std::to_string(i);
    latencies.add(policy, Sample::answered, Duration{1}, Instant{1'800'000'000'000});
  }
  CHECK(latencies.tools().size() == 4'096);
  policy.sized.emplace();
  CHECK(latencies.deadline(policy, Instant{1'800'000'000'000}) == policy.sized->ceiling);
}
