#include "ledger/sqlite/reader.h"

#include <algorithm>
#include <limits>

#include "holdfast/core/json.h"
#include "ledger/sqlite/load.h"
#include "ledger/sqlite/rows.h"
#include "ledger/sqlite/writer.h"

namespace holdfast::ledger::sqlite {
namespace {

constexpr std::uint32_t kAttemptsShown = 1'000;  // of one unknown write, its checks included

/// Compared in their unescaped form, as the submission's reader does.
bool has_labels(const std::string& labels, const std::vector<std::pair<std::string, std::string>>& wanted) {
  if (wanted.empty()) return true;
  const Result<json::Value> all = json::parse(labels);
  if (!all) return false;
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
    const json::Value* value = all->find(label.first);
    return value && value->is(json::Kind::string) && value->text() == label.second;
  });
}

/// The statement that walks the fewest rows for this filter.
const std::string& list_sql(const RunFilter& filter) {
  if (!filter.status) return sql().list_any;
  switch (*filter.status) {
    case run::RunStatus::succeeded:
      return sql().list_any;
    case run::RunStatus::failed:
    case run::RunStatus::cancelled:
      return sql().list_ended_badly;
    default:
      return sql().list_unsettled;
  }
}

std::vector<run::Attempt> attempts_of_step(Connection& connection, std::int64_t run_seq, std::uint32_t step) {
  std::vector<run::Attempt> out;
  Statement& rows = connection.statement(sql().attempts_of_step).add(run_seq, step, kAttemptsShown);
  const Reset reset(rows);
  while (rows.row()) take_attempt(rows, run_seq, out.emplace_back());
  return out;
}

/// nullopt when there is no such step.
std::optional<UnknownEntry> load_entry(Connection& connection, std::int64_t run_seq, std::uint32_t step) {
  static const std::string text = "SELECT id, name, owner FROM runs WHERE seq = ?";
  std::optional<run::Step> state = load_step(connection, run_seq, step);
  if (!state) return std::nullopt;
  UnknownEntry entry;
  entry.run_seq = run_seq;
  entry.step = step;
  entry.state = std::move(*state);
  entry.attempts = attempts_of_step(connection, run_seq, step);
  if (!entry.attempts.empty() && entry.attempts.back().delivery == Delivery::in_flight) {
    const run::Attempt& last = entry.attempts.back();
    entry.state.in_flight = true;
    entry.state.in_flight_n = last.n;
    entry.state.in_flight_kind = last.kind;
    entry.state.sent_at = last.started_at;
  }
  Statement& rows = connection.statement(text).add(run_seq);
  const Reset reset(rows);
  if (rows.row()) rows.take(entry.run_id, entry.run_name, entry.owner);
  return entry;
}

bool once_unknown(const std::optional<run::Write>& write) {
  return write && (write->open || write->unknown_since || write->resolution != run::Resolution::none);
}

}  // namespace

SqliteReader::SqliteReader(std::string path, std::uint32_t connections, const Tuning& tuning, SqliteLedger& ledger)
    : path_(std::move(path)), tuning_(tuning), ledger_(ledger), may_open_(std::max<std::uint32_t>(connections, 1)) {}

std::unique_ptr<Connection> SqliteReader::acquire() {
  {
    std::unique_lock lock(mutex_);
    free_one_.wait(lock, [this] { return !free_.empty() || may_open_ > 0; });
    if (!free_.empty()) {
      std::unique_ptr<Connection> connection = std::move(free_.back());
      free_.pop_back();
      return connection;
    }
    --may_open_;
  }
  try {
    return std::make_unique<Connection>(path_, Role::reader, tuning_.reader_cache_kib, tuning_.vfs);
  } catch (...) {
    give_back(nullptr);
    throw;
  }
}

/// A null pointer gives back the right to open one.
void SqliteReader::give_back(std::unique_ptr<Connection> connection) {
  {
    const std::lock_guard lock(mutex_);
    if (connection)
      free_.push_back(std::move(connection));
    else
      ++may_open_;
  }
  free_one_.notify_one();
}

/// A connection on which anything failed is closed, not reused.
template <class F>
auto SqliteReader::on_connection(F&& use) -> Result<decltype(use(std::declval<Connection&>()))> {
  std::unique_ptr<Connection> connection;
  try {
    connection = acquire();
    auto value = use(*connection);
    give_back(std::move(connection));
    return value;
  } catch (const SQLite::Exception& failure) {
    Error error = to_error(path_, failure, connection ? connection->handle() : nullptr);
    if (connection) {
      connection.reset();
      give_back(nullptr);
    }
    return std::unexpected(std::move(error));
  }
}

/// Where what is pending can't be brought into the tables: on the writer's connection.
template <class F>
auto SqliteReader::inside(const Error& not_shown, F&& read) -> Result<decltype(read(std::declval<Connection&>()))> {
  std::optional<decltype(read(std::declval<Connection&>()))> value;
  if (!ledger_.look([&](Connection& writers) { value = read(writers); })) return std::unexpected(not_shown);
  return std::move(*value);
}

/// Runs `read` inside one read transaction, once what it looks for is in the tables.
template <class F>
auto SqliteReader::reading(const Result<void>& shown, F&& read) -> Result<decltype(read(std::declval<Connection&>()))> {
  if (!shown) return inside(shown.error(), read);
  return on_connection([&](Connection& connection) {
    const Snapshot snapshot(connection);
    return read(connection);
  });
}

/// The transaction begins before anything else is committed. One listing at a time waits for the writer with a connection in its hand: a slow sync
/// leaves the others to who does not have to wait for it.
template <class F>
auto SqliteReader::listing(F&& read) -> Result<decltype(read(std::declval<Connection&>()))> {
  std::unique_lock turn(listing_);
  Result<void> shown;
  auto value = on_connection([&](Connection& connection) {
    std::optional<Snapshot> snapshot;
    shown = ledger_.show_all([&] { snapshot.emplace(connection).begin_now(); });
    turn.unlock();
    return shown ? std::optional(read(connection)) : std::nullopt;
  });
  if (!value) return std::unexpected(std::move(value.error()));
  if (!shown) return inside(shown.error(), read);
  return std::move(**value);
}

Result<std::optional<run::Run>> SqliteReader::run(std::string_view run_id) {
  if (std::optional<PendingRun> young = ledger_.young(run_id)) return to_run(std::move(*young));
  return reading(ledger_.show(run_id), [&](Connection& connection) { return load_run(connection, run_id); });
}

Result<std::vector<run::Run>> SqliteReader::runs(const RunFilter& filter) {
  return listing([&](Connection& connection) {
    std::vector<run::Run> out;
    const std::int64_t before =
        filter.before_seq > 0 ? filter.before_seq : std::numeric_limits<std::int64_t>::max();
    Statement& rows =
        connection.statement(list_sql(filter)).add(before, filter.owner, filter.name, filter.status);
    const Reset reset(rows);
    while (out.size() < filter.limit && rows.row()) {
      run::Run run;
      take_run(rows, run);
      if (!has_labels(run.labels, filter.labels)) continue;
      load_listed_steps(connection, run);
      out.push_back(std::move(run));
    }
    return out;
  });
}

Result<std::vector<run::Attempt>> SqliteReader::attempts(std::int64_t run_seq, std::int64_t after_row,
                                                         std::uint32_t limit) {
  if (std::optional<PendingRun> young = ledger_.young(run_seq)) return to_attempts(std::move(*young), after_row, limit);
  return reading(ledger_.show(run_seq), [&](Connection& connection) {
    return load_attempts(connection, run_seq, after_row, limit);
  });
}

Result<std::vector<run::Event>> SqliteReader::events(std::int64_t run_seq, std::int64_t after,
                                                     std::uint32_t limit) {
  if (std::optional<PendingRun> young = ledger_.young(run_seq)) return to_events(std::move(*young), after, limit);
  return reading(ledger_.show(run_seq), [&](Connection& connection) {
    return load_events(connection, run_seq, after, limit);
  });
}

Result<std::vector<UnknownEntry>> SqliteReader::unknowns(const UnknownFilter& filter) {
  return listing([&](Connection& connection) {
    std::vector<UnknownEntry> out;
    Statement& rows = connection.statement(filter.open_only ? sql().open_unknowns : sql().all_unknowns);
    const bool from_start = filter.after_since_ms == 0 && filter.after_run_seq == 0;
    rows.add(from_start ? std::numeric_limits<std::int64_t>::min() : filter.after_since_ms,
             filter.after_run_seq, filter.after_step, filter.server, filter.tool, filter.limit);
    const Reset reset(rows);
    while (rows.row()) {
      std::int64_t run_seq = 0;
      std::uint32_t step = 0;
      rows.take(run_seq, step);
      std::optional<UnknownEntry> entry = load_entry(connection, run_seq, step);
      if (entry) out.push_back(std::move(*entry));
    }
    return out;
  });
}

Result<std::optional<UnknownEntry>> SqliteReader::unknown(std::string_view run_id, std::uint32_t step) {
  return reading(ledger_.show(run_id), [&](Connection& connection) {
    const std::int64_t run_seq = run_seq_of(connection, run_id);
    std::optional<UnknownEntry> entry;
    if (run_seq > 0) entry = load_entry(connection, run_seq, step);
    if (entry && !once_unknown(entry->state.write)) entry.reset();
    return entry;
  });
}

Result<std::vector<AuditEntry>> SqliteReader::audit(std::int64_t before_seq, std::uint32_t limit) {
  return reading({}, [&](Connection& connection) {
    std::vector<AuditEntry> out;
    const std::int64_t before = before_seq > 0 ? before_seq : std::numeric_limits<std::int64_t>::max();
    Statement& rows = connection.statement(sql().audit).add(before, limit);
    const Reset reset(rows);
    while (rows.row()) {
      AuditEntry& entry = out.emplace_back();
      rows.take(entry.seq, entry.at, entry.who, entry.action, entry.subject, entry.why, entry.data);
    }
    return out;
  });
}

Result<std::vector<Breaker>> SqliteReader::breakers() {
  return reading({}, [](Connection& connection) { return load_breakers(connection); });
}

}  // namespace holdfast::ledger::sqlite
