#include "ledger/sqlite/pending.h"

#include <algorithm>
#include <tuple>

#include "ledger/sqlite/load.h"
#include "ledger/sqlite/record.h"

namespace holdfast::ledger::sqlite {
namespace {

enum class Entry : std::uint8_t { new_run = 1, run, new_step, step, attempt, event };

constexpr auto kRunFixed = [](auto& row, auto&& f) { run_fixed(row, f); };
constexpr auto kRunState = [](auto& row, auto&& f) { run_state(row, f); };
constexpr auto kStepFixed = [](auto& row, auto&& f) { step_fixed(row, f); };
constexpr auto kStepState = [](auto& row, auto&& f) { step_state(row, f); };
constexpr auto kWriteState = [](auto& row, auto&& f) { write_state(row, f); };
constexpr auto kAttemptState = [](auto& row, auto&& f) { attempt_state(row, f); };

template <class Row, class... List>
Row zeroed(List... lists) {
  Row row;
  (lists(row, Zero{}), ...);
  return row;
}

const run::Run& no_run() {
  static const run::Run row = zeroed<run::Run>(kRunFixed, kRunState);
  return row;
}
const run::Step& no_step() {
  static const run::Step row = zeroed<run::Step>(kStepFixed, kStepState);
  return row;
}
const run::Write& no_write() {
  static const run::Write row = zeroed<run::Write>(kWriteState);
  return row;
}
const run::Attempt& no_attempt() {
  static const run::Attempt row = zeroed<run::Attempt>(kAttemptState);
  return row;
}

void require(bool holds) {
  if (!holds) throw SQLite::Exception("ledger and memory disagree: no such step", SQLITE_CORRUPT);
}

std::string key_of(std::string_view owner, std::string_view key) {
  std::string both(owner);
  both += '\0';
  return both += key;
}

/// Writes the entries of one record.
class Entries {
 public:
  void run(const run::Run& run) {
    head(Entry::new_run, run.seq);
    out_.changes(no_run(), run, kRunFixed);
    out_.changes(no_run(), run, kRunState);
    for (std::uint32_t i = 0; i < run.steps.size(); ++i) new_step(run.seq, i, run.steps[i]);
  }
  void children(const PendingRun& of) {
    for (std::uint32_t i = 0; i < of.run.steps.size(); ++i) new_step(of.run.seq, i, of.run.steps[i]);
    rows(of);
  }
  void rows(const PendingRun& of) {
    for (const PendingAttempt& row : of.attempts) attempt(of.run.seq, row.attempt, row.begun_after, nullptr);
    for (const run::Event& row : of.events) event(of.run.seq, row);
  }
  void run_change(const run::Run& run, const PendingRun* known) {
    head(Entry::run, run.seq);
    out_.changes(known && known->image != Image::none ? known->run : no_run(), run, kRunState);
  }
  void new_step(std::int64_t seq, std::uint32_t index, const run::Step& step) {
    head(Entry::new_step, seq, index);
    out_.changes(no_step(), step, kStepFixed);
    state(no_step(), step);
  }
  void step_change(std::int64_t seq, std::uint32_t index, const run::Step& step, const run::Step* known) {
    head(Entry::step, seq, index);
    state(known ? *known : no_step(), step);
  }
  void attempt(std::int64_t seq, const run::Attempt& attempt, std::int64_t begun_after, const run::Attempt* known) {
    head(Entry::attempt, seq, attempt.step);
    out_.number(attempt.n);
    out_.whole(begun_after);
    out_.changes(known ? *known : no_attempt(), attempt, kAttemptState);
  }
  void event(std::int64_t seq, const run::Event& event) {
    head(Entry::event, seq);
    out_.whole(event.seq);
    out_.put(event.at);
    out_.text(event.type);
    out_.text(event.step);
    out_.text(event.data);
  }
  [[nodiscard]] std::string take() { return any_ ? out_.take() : std::string(); }

 private:
  void head(Entry kind, std::int64_t seq) {
    any_ = true;
    out_.number(static_cast<std::uint64_t>(kind));
    out_.whole(seq - seq_);
    seq_ = seq;
  }
  void head(Entry kind, std::int64_t seq, std::uint32_t step) {
    head(kind, seq);
    out_.number(step);
  }
  void state(const run::Step& before, const run::Step& now) {
    out_.changes(before, now, kStepState);
    out_.number(now.write ? 1 : 0);
    if (now.write) out_.changes(before.write ? *before.write : no_write(), *now.write, kWriteState);
  }

  RecordWriter out_;
  std::int64_t seq_ = 0;
  bool any_ = false;
};

const run::Step* known_step(const PendingRun* known, std::uint32_t index) {
  return known && index < known->steps.size() && known->steps[index] != Image::none ? &known->run.steps[index] : nullptr;
}

template <class Run>
auto* known_attempt(Run* known, std::uint32_t step, std::uint32_t n) {
  decltype(known->attempts.data()) none = nullptr;
  if (!known) return none;
  for (auto& row : known->attempts)
    if (row.attempt.n == n && row.attempt.step == step) return &row;
  return none;
}

}  // namespace

/// Rows of a new run hold its newest state already, so that changes of it in the same batch have nothing to add.
std::string Pending::encode(const Batch& batch) const {
  Entries out;
  std::int64_t first = 0, last = -1;
  if (!batch.new_runs.empty()) first = batch.new_runs.front()->seq, last = batch.new_runs.back()->seq;
  const auto is_new = [&](const run::Run* run) { return run->seq >= first && run->seq <= last; };
  const auto step_of = [](const Batch::StepOf& of) -> const run::Step& {
    require(of.step < of.run->steps.size());
    return of.run->steps[of.step];
  };
  for (const run::Run* run : batch.new_runs) out.run(*run);
  for (const Batch::StepOf& of : batch.new_steps)
    if (!is_new(of.run)) out.new_step(of.run->seq, of.step, step_of(of));
  for (const run::Run* run : batch.runs)
    if (!is_new(run)) out.run_change(*run, find(run->seq));
  for (const Batch::StepOf& of : batch.steps) {
    if (is_new(of.run)) continue;
    const bool added = std::ranges::any_of(batch.new_steps, [&](const Batch::StepOf& a) { return a.run == of.run && a.step == of.step; });
    if (!added) out.step_change(of.run->seq, of.step, step_of(of), known_step(find(of.run->seq), of.step));
  }
  std::map<std::tuple<std::int64_t, std::uint32_t, std::uint32_t>, const run::Attempt*> before;  // one may come again in the same batch
  for (const auto& [run, attempt] : batch.attempts) {
    require(attempt.step < run->steps.size());
    const run::Attempt*& known = before[{run->seq, attempt.step, attempt.n}];
    if (const PendingAttempt* row = known ? nullptr : known_attempt(find(run->seq), attempt.step, attempt.n)) known = &row->attempt;
    out.attempt(run->seq, attempt, run->last_event, known);
    known = &attempt;
  }
  for (const auto& [run, event] : batch.events) out.event(run->seq, event);
  return out.take();
}

std::string Pending::encode(const std::vector<std::int64_t>& seqs) const {
  Entries out;
  for (const std::int64_t seq : seqs) {
    const PendingRun& known = runs_.at(seq);
    out.run(known.run);
    out.rows(known);
  }
  return out.take();
}

std::string encode_children(const PendingRun& of) {
  Entries out;
  out.children(of);
  return out.take();
}

PendingRun decode_children(std::string_view record) {
  Pending one;
  one.absorb(record);
  require(one.runs_.size() == 1);
  return std::move(one.runs_.begin()->second);
}

run::Run to_run(PendingRun whole) {
  run::Run& run = whole.run;
  if (run.settled()) return std::move(run);
  if (!whole.events.empty()) run.last_event = std::max(run.last_event, whole.events.back().seq);
  for (const PendingAttempt& row : whole.attempts)
    if (row.attempt.delivery == Delivery::in_flight && row.attempt.step < run.steps.size()) mark_in_flight(run.steps[row.attempt.step], row.attempt);
  return std::move(run);
}

std::vector<run::Attempt> to_attempts(PendingRun whole, std::int64_t after_row, std::uint32_t limit) {
  std::ranges::sort(whole.attempts, {}, [](const PendingAttempt& row) {
    return std::tuple(row.begun_after, row.attempt.started_at, row.attempt.step, row.attempt.n);
  });
  std::vector<run::Attempt> out;
  for (auto row = static_cast<std::size_t>(std::max<std::int64_t>(after_row, 0)); row < whole.attempts.size() && out.size() < limit; ++row)
    out.push_back(std::move(whole.attempts[row].attempt));
  return out;
}

std::vector<run::Event> to_events(PendingRun whole, std::int64_t after, std::uint32_t limit) {
  std::vector<run::Event> out;
  for (run::Event& event : whole.events)  // they are in order
    if (event.seq > after && out.size() < limit) out.push_back(std::move(event));
  return out;
}

std::optional<run::Attempt> to_attempt(PendingRun whole, std::uint32_t step, std::uint32_t n) {
  if (PendingAttempt* row = known_attempt(&whole, step, n)) return std::move(row->attempt);
  return std::nullopt;
}

void Pending::absorb(std::string_view bytes) {
  RecordReader record(bytes);
  take(record);
  bytes_ += record.text_bytes();
}

void Pending::take(RecordReader& record) {
  std::int64_t seq = 0;
  const auto step_at = [&](PendingRun& of) -> std::pair<run::Step&, Image&> {
    const std::uint64_t index = record.number();
    require(index < (std::uint64_t{1} << 20));
    for (std::uint64_t i = of.run.steps.size(); i <= index; ++i) {
      of.run.steps.push_back(no_step());
      bytes_ += sizeof(run::Step);
    }
    of.steps.resize(of.run.steps.size());
    return {of.run.steps[index], of.steps[index]};
  };
  const auto state = [&](run::Step& step) {
    record.changes(step, kStepState);
    if (record.number() == 0) return;
    if (!step.write) step.write = no_write();
    record.changes(*step.write, kWriteState);
  };
  while (!record.at_end()) {
    const auto kind = static_cast<Entry>(record.number());
    seq += record.whole();
    PendingRun& of = at(seq);
    switch (kind) {
      case Entry::new_run:
        record.changes(of.run, kRunFixed);
        record.changes(of.run, kRunState);
        of.image = Image::fresh;
        ids_.emplace(of.run.id, seq);
        if (!of.run.submit_key.empty())
          submissions_.emplace(key_of(of.run.owner, of.run.submit_key), Ledger::Submission{of.run.id, of.run.submit_digest});
        break;
      case Entry::run:
        record.changes(of.run, kRunState);
        if (of.image == Image::none) of.image = Image::changed;
        break;
      case Entry::new_step: {
        auto [step, image] = step_at(of);
        record.changes(step, kStepFixed);
        state(step);
        image = Image::fresh;
        break;
      }
      case Entry::step: {
        auto [step, image] = step_at(of);
        state(step);
        if (image == Image::none) image = Image::changed;
        break;
      }
      case Entry::attempt: {
        const auto step = as_member<std::uint32_t>(static_cast<std::int64_t>(record.number()));
        const auto n = as_member<std::uint32_t>(static_cast<std::int64_t>(record.number()));
        const std::int64_t begun_after = record.whole();
        PendingAttempt* row = known_attempt(&of, step, n);
        if (!row) {
          row = &of.attempts.emplace_back(no_attempt(), begun_after);
          bytes_ += sizeof(PendingAttempt);
        }
        row->attempt.run_seq = seq;
        row->attempt.step = step;
        row->attempt.n = n;
        record.changes(row->attempt, kAttemptState);
        break;
      }
      case Entry::event: {
        run::Event& event = of.events.emplace_back();
        bytes_ += sizeof(run::Event);
        event.run_seq = seq;
        event.seq = record.whole();
        record.get(event.at);
        event.type = event_type(record.text());
        event.step = record.text();
        event.data = record.text();
        break;
      }
      default:
        throw SQLite::Exception("an entry of a record that this version does not know", SQLITE_CORRUPT);
    }
  }
}

void Pending::keep_only(std::string_view record) {
  clear();
  if (record.empty()) return;
  absorb(record);
  for (auto& [seq, of] : runs_) of.carried = true;
}

void Pending::clear() {
  runs_.clear();
  submissions_.clear();
  ids_.clear();
  bytes_ = 0;
}

PendingRun& Pending::at(std::int64_t seq) {
  const auto [place, fresh] = runs_.try_emplace(seq);
  if (fresh) {
    place->second.run = no_run();
    place->second.run.seq = seq;
    bytes_ += sizeof(PendingRun);
  }
  return place->second;
}

const PendingRun* Pending::find(std::int64_t seq) const {
  const auto place = runs_.find(seq);
  return place == runs_.end() ? nullptr : &place->second;
}

const PendingRun* Pending::whole(std::int64_t seq) const {
  const PendingRun* found = find(seq);
  return found && found->image == Image::fresh ? found : nullptr;
}

const PendingRun* Pending::whole(std::string_view run_id) const {
  const auto place = ids_.find(std::string(run_id));
  return place == ids_.end() ? nullptr : find(place->second);
}

const Ledger::Submission* Pending::submission(std::string_view owner, std::string_view key) const {
  const auto place = submissions_.find(key_of(owner, key));
  return place == submissions_.end() ? nullptr : &place->second;
}

}  // namespace holdfast::ledger::sqlite
