#include "power_cut/oracles.h"

#include <sqlite3.h>

#include "power_cut/allocations.h"

namespace holdfast::sweep {

namespace {

/// The database through a connection of its own.
class Look {
 public:
  explicit Look(const std::string& vfs) {
    const int code = sqlite3_open_v2(sim::kDatabase, &db_, SQLITE_OPEN_READONLY, vfs.c_str());
    if (code != SQLITE_OK) FAIL("the database can't be looked at: " << sqlite3_errmsg(db_));
  }
  ~Look() { sqlite3_close(db_); }
  Look(const Look&) = delete;
  Look& operator=(const Look&) = delete;

  std::vector<std::vector<std::string>> rows(const std::string& sql) const {
    std::vector<std::vector<std::string>> out;
    const auto take = [](void* to, int count, char** values, char**) {
      auto& row = static_cast<std::vector<std::vector<std::string>>*>(to)->emplace_back();
      for (int i = 0; i < count; ++i) row.emplace_back(values[i] ? values[i] : "");
      return 0;
    };
    if (sqlite3_exec(db_, sql.c_str(), take, &out, nullptr) != SQLITE_OK) FAIL(sql << ": " << sqlite3_errmsg(db_));
    return out;
  }
  std::string one(const std::string& sql) const {
    const auto all = rows(sql);
    return all.empty() ? "" : all.front().front();
  }
  long number(const std::string& sql) const { return std::stol("0" + one(sql)); }

 private:
  sqlite3* db_ = nullptr;
};

void holds(bool condition, const std::string& what) {
  if (!condition) FAIL(what);
}

void sound(const Look& db) {
  holds(db.one("PRAGMA integrity_check") == "ok", "integrity check: " + db.one("PRAGMA integrity_check"));
  holds(db.rows("PRAGMA foreign_key_check").empty(), "a row refers to one that is not there");
  holds(db.rows("SELECT r.id FROM runs r WHERE r.mode = 'plan' AND NOT EXISTS (SELECT 1 FROM steps s WHERE s.run_seq = r.seq)").empty(),
        "a run without its steps");
  holds(db.rows("SELECT r.id FROM runs r WHERE r.last_event <> (SELECT count(*) FROM events e WHERE e.run_seq = r.seq) OR r.last_event <> "
                "coalesce((SELECT max(seq) FROM events e WHERE e.run_seq = r.seq), 0)").empty(),
        "events with a gap");
  holds(db.rows("SELECT s.id FROM steps s WHERE s.attempt_rows <> (SELECT count(*) FROM attempts a WHERE a.run_seq = s.run_seq AND a.step = s.step)").empty(),
        "a step that does not know its rows");
  holds(db.rows("SELECT r.id FROM runs r WHERE r.settled <> (SELECT count(*) FROM events e WHERE e.run_seq = r.seq AND e.type = 'run.settled')").empty(),
        "a settled run without its one event");
}

/// Only what is old enough and has ended may be gone.
bool may_be_deleted(const World& world, const std::string& key) {
  return world.retention && !world.doubted.contains(key) && world.clock.at - world.since.at(key) >= *world.retention;
}

void promises(const World& world, const Look& db) {
  for (const auto& [key, id] : world.runs) {
    const std::string found = db.one("SELECT id FROM runs WHERE submit_key = '" + key + "'");
    holds(found == id || (found.empty() && may_be_deleted(world, key)), "lost run: " + key);
  }
  for (const std::string& id : world.cancelled)
    holds(db.number("SELECT cancel_requested OR settled FROM runs WHERE id = '" + id + "'") == 1, "lost cancel: " + id);
  for (const std::string& id : world.finished) holds(db.number("SELECT settled FROM runs WHERE id = '" + id + "'") == 1, "lost finish: " + id);
  for (const std::string& place : world.steps)
    holds(db.number("SELECT count(*) FROM runs r JOIN steps s ON s.run_seq = r.seq WHERE r.submit_key || '/' || s.id = '" + place + "'") == 1,
          "lost step: " + place);
  for (const std::string& write : world.verdicts) holds(db.number("SELECT count(*) FROM audit WHERE subject = '" + write + "'") > 0, "lost verdict: " + write);
}

void sends(const World& world, const Look& db) {
  for (const auto& [marker, seen] : world.hits) {
    if (marker == kShared || (world.retention && db.one("SELECT id FROM runs WHERE submit_key = '" + marker.substr(0, marker.find('/')) + "'").empty())) continue;
    const std::string where = " FROM runs r JOIN steps s ON s.run_seq = r.seq JOIN attempts a ON a.run_seq = r.seq AND a.step = s.step WHERE r.submit_key "
                              "|| '/' || s.id = '" + marker + "' AND a.delivery <> 'not_sent' AND a.kind = ";
    for (const auto& [kind, name] : {std::pair{AttemptKind::call, "'call'"}, std::pair{AttemptKind::check, "'check'"}}) {
      const auto count = std::ranges::count(seen, kind, &Hit::kind);
      holds(count <= db.number("SELECT count(*)" + where + name), "more requests than rows: " + marker);
    }
    const auto calls = std::ranges::count(seen, AttemptKind::call, &Hit::kind);
    const long orders = db.number("SELECT count(*) FROM audit x JOIN runs r JOIN steps s ON s.run_seq = r.seq WHERE x.action = 'resolve.not_landed' AND r.submit_key "
                                  "|| '/' || s.id = '" + marker + "' AND x.subject = 'wr_' || substr(r.id, 5) || '_' || s.step");
    const long harmless = db.number("SELECT count(*)" + where + "'call' AND a.verdict = 'refused'");
    const std::string& tool = seen.front().tool;
    if (tool == "plain" || tool == "checked") holds(calls <= 1 + orders + harmless, "a write was sent again: " + marker);
    for (const Hit& hit : seen)
      if (hit.tool == "keyed") holds(hit.key == seen.front().key && hit.body == seen.front().body && !hit.key.empty(), "another key or body: " + marker);
  }
}

}  // namespace

void check(World& world) {
  const Allocations::Own own;
  const Look db(world.vfs.name());
  sound(db);
  promises(world, db);
  sends(world, db);
}

void check_send(World& world, const std::string& marker) {
  if (marker == kShared) return;  // whose row is it?
  const Allocations::Own own;
  for (const sim::Fate fate : {sim::Fate::dropped, sim::Fate::torn}) {
    const auto found = world.disk.after_power_cut(7, sim::every(fate));
    sim::Vfs vfs(*found);
    const auto opened = sim::open_ledger(vfs, world.tuning);
    if (!opened) FAIL("after a power cut at a send: " << opened.error().message);
    const Look db(vfs.name());
    const auto rows = db.number("SELECT count(*) FROM runs r JOIN steps s ON s.run_seq = r.seq JOIN attempts a ON a.run_seq = r.seq AND a.step = s.step "
                                "WHERE r.submit_key || '/' || s.id = '" + marker + "' AND a.delivery <> 'not_sent'");
    holds(static_cast<long>(world.hits.at(marker).size()) <= rows, "a send whose row does not survive a power cut: " + marker);
  }
}

}  // namespace holdfast::sweep
