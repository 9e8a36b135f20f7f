#include "ledger/sqlite/load.h"
#include "ledger/sqlite/pending_entries.h"

namespace holdfast::ledger::sqlite {

using namespace entries;

PendingRun decode_children(std::string_view record) {
  Pending one;
  one.absorb(record);
  require(one.runs_.size() == 1);
  return std::move(one.runs_.begin()->second);
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

PendingRun& Pending::at(std::int64_t seq) {
  const auto [place, fresh] = runs_.try_emplace(seq);
  if (fresh) {
    place->second.run = no_run();
    place->second.run.seq = seq;
    bytes_ += sizeof(PendingRun);
  }
  return place->second;
}

}  // namespace holdfast::ledger::sqlite
