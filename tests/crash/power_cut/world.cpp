#include "power_cut/world.h"

#include "power_cut/allocations.h"

namespace holdfast::sweep {

namespace {

constexpr const char* kConfig = R"(
defaults: {deadline: 3s, max_attempts: 3, backoff: {base: 100ms, cap: 1s}, run_deadline: 15m}
servers:
  api:
    http: {base_url: "http://127.0.0.1:9"}
    breaker: {consecutive_failures: 2, cooldown: 1s, max_cooldown: 2s}
    tools:
      read: {effect: read, request: {method: POST, path: /read}}
      plain: {request: {method: POST, path: /plain}, linger: 10s}
      keyed: {request: {method: POST, path: /keyed}, key: {header: Idempotency-Key}}
      checked:
        request: {method: POST, path: /checked}
        check: {tool: find, args: {m: "${args/m}"}, found: {pointer: /total, not: 0}, settle: 1s, for: 1h}
      find: {effect: read, request: {method: POST, path: /find}}
      cached: {effect: read, request: {method: POST, path: /cached}, fallback: {cached: {max_age: 1h}}}
)";

tools::Config config(std::optional<Duration> retention) {
  static const tools::Config loaded = [] {
    const testing::Folder folder;
    std::ofstream(folder.path / "c.yaml") << kConfig;
    auto read = tools::load_config((folder.path / "c.yaml").string(), [](const std::string&) -> const char* { return nullptr; });
    if (!read) throw std::runtime_error(read.error().message);
    return *read;
  }();
  tools::Config config = loaded;
  config.retention = retention;
  return config;
}

std::string marker_in(const std::string& body) {
  const std::size_t begin = body.find("\"m\":\"");
  return begin == std::string::npos ? "" : body.substr(begin + 5, body.find('"', begin + 5) - begin - 5);
}

}  // namespace

struct World::Life {
  Life(World& world, ledger::Opened from)
      : opened(std::move(from)),
        ledger(*opened.ledger, world),
        catalog(config(world.retention)),
        transport(world),
        random(seeded_random(static_cast<std::uint64_t>(++world.lives))),
        engine(world.clock, *random, ledger, catalog, transport, observer, metrics, engine::Options{100, Duration{1'000}}) {}
  ledger::Opened opened;
  Mortal ledger;
  tools::Catalog catalog;
  Tools transport;
  testing::NoObserver observer;
  testing::NoMetrics metrics;
  std::unique_ptr<Random> random;
  engine::Engine engine;
};

void Tools::start(tools::Call call) {
  const std::string marker = marker_in(call.request.body);
  world_.hits[marker].push_back({call.tool, call.key, call.request.head + call.request.body, call.kind});
  world_.outstanding.push_back({call.id, marker, call.tool});
  if (world_.at_send) world_.at_send(marker);
}

void Tools::cancel(tools::CallId id) {
  Evidence evidence = lost();
  evidence.failure = Failure::cancelled;
  const auto it = std::ranges::find(world_.outstanding, id, &Outstanding::id);
  if (it == world_.outstanding.end()) return;
  it->tool = "cancelled";
}

Result<ledger::Committed> Mortal::commit(ledger::Batch& batch) {
  auto done = ForwardingLedger::commit(batch);
  if (!done) return done;
  // Named one by one, so that this does not compile when there is a kind that nobody thought of.
  const auto& [new_runs, new_steps, runs, steps, attempts, events, breakers, gates, answers, audit, latencies, prune, probe, adopt] = batch;
  const auto seen = [&](const char* name, bool any) {
    if (any) world_.kinds.insert(name);
  };
  seen("new_runs", !new_runs.empty());
  seen("new_steps", !new_steps.empty());
  seen("runs", !runs.empty());
  seen("steps", !steps.empty());
  seen("attempts", !attempts.empty());
  seen("events", !events.empty());
  seen("breakers", !breakers.empty());
  seen("gates", !gates.empty());
  seen("answers", !answers.empty());
  seen("audit", !audit.empty());
  seen("latencies", !latencies.empty());
  seen("prune", !prune.empty());
  seen("probe", probe);
  seen("adopt", adopt);
  return done;
}

void Mortal::answered(const Error* error) {
  if (!world_.disk.running() || (error != nullptr && error->code == "storage_broken")) throw Died{};
}

void Mortal::checkpoint_if_due() {
  inner_.checkpoint_if_due();
  answered(nullptr);
}

World::World(Beginning beginning, ledger::sqlite::Tuning tuned, std::optional<Duration> kept)
    : disk(1), vfs(disk), tuning(std::move(tuned)), retention(kept), runs(std::move(beginning.runs)) {
  vfs.seed_sqlite(1);
  if (!beginning.image.empty()) disk.put(sim::kDatabase, std::move(beginning.image));
  for (const auto& [key, id] : runs) since[key] = clock.at;
}

World::~World() = default;

void World::shut() {
  life_.reset();
}

void World::turn() {
  (void)life_->engine.turn();
  // Calls that were cancelled end at once.
  for (std::size_t i = 0; i < outstanding.size(); ++i) {
    if (outstanding[i].tool != "cancelled") continue;
    Evidence evidence = lost();
    evidence.failure = Failure::cancelled;
    life_->engine.finished(outstanding[i].id, evidence);
    outstanding.erase(outstanding.begin() + static_cast<std::ptrdiff_t>(i));
    (void)life_->engine.turn();
    i = static_cast<std::size_t>(-1);
  }
}

void World::start() {
  for (int tries = 0; tries < 8; ++tries) {
    outstanding.clear();
    life_.reset();
    if (!disk.running()) {
      disk.boot();
      if (cut_again) disk.inject({sim::Fault::Kind::power_cut, disk.operations() + *std::exchange(cut_again, std::nullopt)});
    }
    if (tries == 4) disk.mend();
    auto opened = sim::open_ledger(vfs, tuning);
    if (!opened) continue;
    try {
      life_ = std::make_unique<Life>(*this, std::move(*opened));
      if (life_->engine.load()) return;
    } catch (const Died&) {
    }
  }
  FAIL("the ledger can't be opened any more");
}

void World::carry_out(const std::function<void(World&)>& action) {
  for (int tries = 0; tries < 8; ++tries) try {
      if (!life_) start();
      return action(*this);
    } catch (const Died&) {
      life_.reset();
    }
  FAIL("an action never comes to its end");
}

/// Asks until there is an answer that is no trouble with the storage; after a while the disk is mended.
template <class T, class Post>
Result<T> World::insist(Post post) {
  std::optional<Result<T>> answer;
  for (int tries = 0; tries < 12; ++tries) {
    answer.reset();
    post([&](Result<T> result) { answer = std::move(result); });
    for (int turns = 0; turns < 4 && !answer; ++turns) {
      turn();
      if (!answer) clock.at = clock.at + Duration{500};
    }
    if (answer && (*answer || !answer->error().code.starts_with("storage"))) return std::move(*answer);
    if (tries == 4) disk.mend();
    clock.at = clock.at + Duration{700};
  }
  FAIL("no answer: " << (answer ? answer->error().message : "none"));
  return std::unexpected(Error{});
}

void World::submit(const std::string& key, const std::string& body) {
  run::PlanContext context;
  context.find_tool = [&](std::string_view s, std::string_view t) -> const ToolPolicy* {
    const auto* tool = life_->catalog.find(s, t);
    return tool ? &tool->policy : nullptr;
  };
  context.server_exists = [&](std::string_view s) { return life_->catalog.server(s) != nullptr; };
  context.now = clock.now();
  const auto document = json::parse(body);
  REQUIRE(document);
  const auto planned = run::plan(*document, context);
  if (!planned) FAIL(planned.error().message);
  const auto done = insist<engine::Submitted>([&](auto answer) {
    run::Run run = *planned;
    run.submit_key = key;
    life_->engine.submit(std::move(run), std::move(answer));
  });
  if (!done) FAIL(done.error().message);
  const auto [known, fresh] = runs.emplace(key, done->run_id);
  since.emplace(key, clock.at);
  if (!fresh && known->second != done->run_id) FAIL("one key, two runs");
}

void World::step(const std::string& run, const std::string& id) {
  const auto done = insist<engine::StepAdded>([&](auto answer) {
    const auto bind = [&, id](const run::Run&) -> Result<run::PostedStep> {
      run::Step fresh;
      fresh.spec.id = id;
      fresh.spec.server = "api";
      fresh.spec.tool = "plain";
      fresh.spec.args = R"({"m":")" + run + "/" + id + R"("})";
      fresh.spec.digest = id;
      fresh.target = "api/plain";
      return run::PostedStep{std::move(fresh), {}};
    };
    life_->engine.add_step(runs.at(run), "", id, id, bind, std::move(answer));
  });
  if (!done) FAIL(done.error().message);
  steps.insert(run + "/" + id);
}

void World::finish(const std::string& run) {
  const auto done = insist<void>([&](auto answer) {
    life_->engine.finish(runs.at(run), "", run::RunStatus::succeeded, "1", "", "digest", std::move(answer));
  });
  if (done) finished.insert(runs.at(run));  // an unknown write, after a crash, stands in its way
}

void World::cancel(const std::string& run) {
  const auto done = insist<void>([&](auto answer) { life_->engine.cancel(runs.at(run), "", "me", "enough", std::move(answer)); });
  if (!done) FAIL(done.error().message);
  cancelled.insert(runs.at(run));
}

void World::resolve(const std::string& run, std::size_t index, run::Resolution verdict) {
  const std::string write = write_id(runs.at(run), index);
  const auto done = insist<void>([&](auto answer) { life_->engine.resolve(write, {verdict, "", "seen", "me", std::nullopt}, std::move(answer)); });
  if (done) doubted.erase(run);
  if (done) verdicts.insert(write);  // where it was settled otherwise by now, the answer says so
}

void World::force(bool open) {
  const auto done = insist<Breaker>([&](auto answer) { life_->engine.force_breaker("api", "plain", open, "me", "trial", std::nullopt, std::move(answer)); });
  if (!done) FAIL(done.error().message);
}

void World::answer(const std::string& marker, const Evidence& evidence) {
  turn();
  const auto it = std::ranges::find(outstanding, marker, &Outstanding::marker);
  if (it == outstanding.end()) return;
  last_answered = it->id;
  if (it->tool == "plain" && evidence.failure == Failure::connection_lost) doubted.insert(marker.substr(0, marker.find('/')));
  life_->engine.finished(it->id, evidence);
  outstanding.erase(it);
  turn();
}

void World::late(const std::string&) {
  life_->engine.late(last_answered, good());
  turn();
}

void World::sleep(Duration span) {
  const Instant end = clock.at + span;
  while (clock.at < end) {
    clock.at = std::min(end, clock.at + Duration{250});
    turn();
  }
}

void World::kill() {
  life_.reset();
  disk.kill();
  start();
}

bool World::all_settled() {
  const Allocations::Own own;
  const auto found = life_->opened.reader->runs({.limit = 200});
  REQUIRE(found);
  return std::ranges::all_of(*found, &run::Run::settled);
}

std::vector<ledger::UnknownEntry> World::unknowns() {
  const Allocations::Own own;
  auto found = life_->opened.reader->unknowns({});
  REQUIRE(found);
  return std::move(*found);
}

void World::heal() {
  disk.mend();
  for (int i = 0; i < 400; ++i) {
    carry_out([](World& world) {
      world.turn();
      while (!world.outstanding.empty()) {
        const Outstanding call = world.outstanding.front();
        const bool landed = std::ranges::any_of(world.hits[call.marker], [](const Hit& hit) { return hit.kind == AttemptKind::call; });
        world.answer(call.marker, good(call.tool == "find" ? (landed ? R"({"total":1})" : R"({"total":0})") : R"({"ok":true})"));
      }
    });
    if (all_settled()) return;
    for (const ledger::UnknownEntry& entry : unknowns()) {
      runs.emplace(entry.run_name, entry.run_id);  // of a backup, nobody has submitted it in this world
      const bool seen = !hits[entry.run_name + "/" + entry.state.spec.id].empty();
      carry_out([&](World& world) { world.resolve(entry.run_name, entry.step, seen ? run::Resolution::landed : run::Resolution::not_landed); });
    }
    clock.at = clock.at + Duration{i < 20 ? 500 : 30'000};
  }
  FAIL("a run does not come to its end");
}

Evidence good(std::string result) {
  return testing::good(std::move(result));
}
Evidence lost() {
  return testing::lost();
}
Evidence status(int status, std::string retry_after) {
  Evidence e = testing::good("{}");
  e.http_status = status;
  e.retry_after = std::move(retry_after);
  return e;
}

}  // namespace holdfast::sweep
