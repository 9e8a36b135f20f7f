// A run and its rows as text.
#include "sim/portrait.h"

namespace holdfast::sim {

namespace {

void append(std::string& out, const std::optional<Instant>& at) {
  out += at ? std::to_string(at->ms) : "-";
  out += ' ';
}

template <class E>
void append_word(std::string& out, E value) {
  out += run::word(value);
  out += ' ';
}

void portrait(std::string& out, const run::Step& step) {
  out += "\n  " + step.spec.id + ' ' + step.target + ' ';
  append_word(out, step.status);
  out += std::string(holdfast::word(step.reason)) + " [" + step.detail + "] " + std::to_string(step.attempts) + '/' +
         std::to_string(step.rows) + " wait ";
  append_word(out, step.wait.what);
  append(out, step.wait.until);
  out += step.result + (step.degraded ? " degraded" : "") + " doubt " + std::string(holdfast::word(step.doubt)) +
         (step.hinted_wait_used ? " hinted" : "") + (step.session_repaired ? " repaired" : "") +
         (step.ordered ? " ordered" : "") + " once[" + step.once_rows + "] checks " +
         std::to_string(step.checks) + ' ';
  append(out, step.next_check);
  out += "crashes " + std::to_string(step.crashes);
  if (!step.write) return;
  const run::Write& write = *step.write;
  out += " write ";
  append_word(out, write.state);
  out += write.key + ' ' + write.request.head + ' ' + write.request.body + (write.open ? " open " : " ") +
         (write.keyed ? "keyed " : "");
  append(out, write.first_sent_at);
  append(out, write.last_sent_at);
  append(out, write.unknown_since);
  append_word(out, write.resolution);
  out += write.resolved_by;
}

}  // namespace

std::string portrait(const run::Run& run) {
  std::string out = run.id + ' ' + run.name + ' ';
  append_word(out, run.status);
  out += std::string(holdfast::word(run.reason)) + " [" + run.detail + "] spent " + std::to_string(run.retry_spent) +
         '/' + std::to_string(run.retry_limit) + " wait ";
  append_word(out, run.wait.what);
  append(out, run.wait.until);
  append(out, run.started_at);
  append(out, run.finished_at);
  out += "deadline " + std::to_string(run.deadline.ms) + ' ' + run.result +
         (run.cancel_requested ? " cancel " + run.cancel_reason : "") + " events " +
         std::to_string(run.last_event);
  for (const run::Step& step : run.steps) portrait(out, step);
  return out;
}

std::string portrait(const run::Attempt& a) {
  std::string out = "attempt " + std::to_string(a.step) + '/' + std::to_string(a.n) + ' ' +
                    std::string(word(a.kind)) + ' ' + std::string(word(a.delivery)) + ' ' +
                    std::string(word(a.phase)) + ' ' + std::string(word(a.verdict)) + ' ' +
                    std::string(word(a.klass)) + ' ' + a.row + (a.counted ? " counted" : "") +
                    (a.late ? " late" : "") + " status " + std::to_string(a.http_status) + ' ' +
                    std::to_string(a.started_at.ms) + '+' + std::to_string(a.deadline.count()) + ' ';
  append(out, a.finished_at);
  return out;
}

}  // namespace holdfast::sim
