// Settled runs leave when their retention is over, and nothing else does.
#include <sqlite3.h>

#include "unit/engine/engine_support.h"

using namespace holdfast;
using namespace holdfast::testing;

namespace {

std::string with_retention(const std::string& span) {
  return "retention: " + span + "\n" + kConfig;
}

/// What SQLite itself finds in the file.
std::string look(const std::filesystem::path& folder, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open_v2((folder / "holdfast.db").c_str(), &db, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK);
  std::string out;
  sqlite3_exec(
      db, sql.c_str(),
      [](void* to, int columns, char** values, char**) {
        for (int i = 0; i < columns; ++i) *static_cast<std::string*>(to) += std::string(i ? "|" : "") + values[i];
        *static_cast<std::string*>(to) += '\n';
        return 0;
      },
      &out, nullptr);
  sqlite3_close(db);
  return out;
}

std::string run_of(Life& life, const std::string& tool, std::optional<Evidence> evidence = good(),
                   const std::string& key = {}) {
  const auto submitted = life.submit({tool}, key);
  REQUIRE(submitted.has_value());
  REQUIRE(submitted->has_value());
  const std::string id = (*submitted)->run_id;
  if (evidence) life.answer(life.transport.calls.back(), std::move(*evidence));
  return id;
}

/// Turns until the walk has come to its end.
void walk(Life& life) {
  for (int i = 0; i < 50; ++i) {
    (void)life.engine->turn();
    life.clock.at = life.clock.at + Duration{100};
  }
}

bool is_there(Life& life, const std::string& id) {
  const auto found = life.opened.reader->run(id);
  REQUIRE(found);
  return found->has_value();
}

}  // namespace

TEST_CASE("a settled run leaves with everything that belongs to it once its retention is over", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, with_retention("2d"));
  const std::string old = run_of(life, "plain", good(), "night-1");
  clock.at = clock.at + Duration{3'600'000};
  const std::string newer = run_of(life, "read");
  clock.at = clock.at + Duration{2 * 86'400'000 - 3'600'000 - 1'000};
  walk(life);
  CHECK(is_there(life, old));

  clock.at = clock.at + Duration{2 * 3'600'000};
  walk(life);
  CHECK_FALSE(is_there(life, old));
  CHECK(is_there(life, newer));  // also because it is the newest: its number is where counting goes on
  CHECK(life.observer.pruned == std::vector<std::string>{old});
  CHECK(look(folder.path, "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM packed_runs), (SELECT count(*) FROM steps),"
                          " (SELECT count(*) FROM writes), (SELECT count(*) FROM attempts), (SELECT count(*) FROM events)") == "1|1|0|0|0|0\n");
  const auto again = life.submit({"plain"}, "night-1");
  REQUIRE(again.has_value());
  REQUIRE(again->has_value());
  CHECK_FALSE((*again)->replayed);
}

TEST_CASE("without a retention nothing leaves", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock);
  const std::string old = run_of(life, "read");
  (void)run_of(life, "read");
  clock.at = clock.at + Duration{1'000LL * 86'400'000};
  walk(life);
  CHECK(is_there(life, old));
}

TEST_CASE("what is unknown or open stays, whatever its age", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, with_retention("1h"));
  const std::string in_doubt = run_of(life, "plain", lost());
  const std::string settled = run_of(life, "read");
  const std::string newest = run_of(life, "read");
  REQUIRE(life.stored(in_doubt).status == run::RunStatus::unknown);
  clock.at = clock.at + Duration{30LL * 86'400'000};
  walk(life);
  CHECK(is_there(life, in_doubt));
  CHECK_FALSE(is_there(life, settled));
  std::optional<Result<void>> answer;
  life.engine->resolve(write_id(in_doubt, 0), {.verdict = run::Resolution::abandon, .note = "nobody can tell", .who = "ops"},
                       [&](Result<void> r) { answer = std::move(r); });
  (void)life.engine->turn();
  REQUIRE(answer.has_value());
  REQUIRE(answer->has_value());
  clock.at = clock.at + Duration{30'000};
  walk(life);
  CHECK(is_there(life, in_doubt));  // it has ended only now
  clock.at = clock.at + Duration{2 * 3'600'000};
  walk(life);
  CHECK_FALSE(is_there(life, in_doubt));
  CHECK(is_there(life, newest));
}

TEST_CASE("a run whose key the tool still knows stays until the key has expired", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, with_retention("1h"));  // the tool's keys are good for 24 h
  const std::string keyed = run_of(life, "keyed");
  const std::string read = run_of(life, "read");
  (void)run_of(life, "read");
  clock.at = clock.at + Duration{5 * 3'600'000};
  walk(life);
  CHECK(is_there(life, keyed));
  CHECK_FALSE(is_there(life, read));
  clock.at = clock.at + Duration{20 * 3'600'000};
  walk(life);
  CHECK_FALSE(is_there(life, keyed));
}

TEST_CASE("the retention of a key counts from the last time it was sent", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 100, with_retention("1h"));
  Evidence lost;  // it may never have reached the tool, and the repeat is what the tool knows
  lost.failure = Failure::connection_lost;
  lost.phase = Phase::tx_all;
  const std::string keyed = run_of(life, "keyed", lost);
  clock.at = clock.at + Duration{10 * 60'000};
  (void)life.engine->turn();
  REQUIRE(life.transport.calls.size() == 2);
  life.answer(life.transport.calls.back(), good());
  (void)run_of(life, "read");
  clock.at = clock.at + Duration{24 * 3'600'000 - 5 * 60'000};
  walk(life);
  CHECK(is_there(life, keyed));
  clock.at = clock.at + Duration{2 * 3'600'000};
  walk(life);
  CHECK_FALSE(is_there(life, keyed));
}

TEST_CASE("many old runs leave in slices, and a full disk only puts it off", "[prune]") {
  Folder folder;
  HandClock clock;
  Life life(folder.path, clock, 2'000, with_retention("1h"));
  for (int i = 0; i < 501; ++i) (void)run_of(life, "read");
  clock.at = clock.at + Duration{10 * 3'600'000};
  life.ledger->full = true;
  (void)life.engine->turn();
  CHECK(life.observer.pruned.empty());
  life.ledger->full = false;
  clock.at = clock.at + Duration{5'000};
  std::size_t before = life.observer.pruned.size(), largest = 0;
  for (int i = 0; i < 100 && life.observer.pruned.size() < 500; ++i) {
    (void)life.engine->turn();
    largest = std::max(largest, life.observer.pruned.size() - before);
    before = life.observer.pruned.size();
    clock.at = clock.at + Duration{100};
  }
  CHECK(life.observer.pruned.size() == 500);
  CHECK(largest == 200);
}
