#include <algorithm>
#include <tuple>

#include "ledger/sqlite/pending_entries.h"

namespace holdfast::ledger::sqlite {
namespace {

using namespace entries;

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

}  // namespace holdfast::ledger::sqlite
