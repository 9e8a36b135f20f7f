#pragma once
// What the parts of the machine share.
#include "holdfast/run/machine.h"

namespace holdfast::run {

[[nodiscard]] bool terminal(StepStatus status);
/// A failure that stops the run: of a step with on_failure stop, an abandoned write, or the run's own
/// deadline.
[[nodiscard]] bool stops_run(const Step& step);
/// stops_run() where the run is a plan; an open run goes on after every failure but an abandoned write.
[[nodiscard]] bool stops(const Run& run, const Step& step);
[[nodiscard]] bool in_doubt(const Step& step);

/// The step's last word: status, reason, detail, advice, its event; a write's state where one is given.
void settle_step(Turn& turn, std::uint32_t step, StepStatus status, Reason reason, std::string detail,
                 std::optional<Instant> when = std::nullopt);
/// The one sentence for this step's tool; `when` is named where the reason asks for waiting.
[[nodiscard]] std::string advice_of(const Step& step, Reason reason, std::optional<Instant> when);
void succeed(Turn& turn, std::uint32_t step, std::string result);
void settle_write(Turn& turn, std::uint32_t step, WriteState state, std::string_view by);
/// The result of a succeeded plan: what `result` of the submission names, else the last step's.
[[nodiscard]] std::string plan_result(const Run& run);
void wait_until(Turn& turn, std::uint32_t step, WaitFor what, Instant until);

/// Fills the attempt's row in from what was seen and judged.
void record(Attempt& attempt, const Evidence& evidence, const Judgement& judgement, Instant now);
/// The write happened: no doubt is left.
void land(Step& step, Write& write);
/// Again after a wait, as attempts, budget and time allow; else the step ends with the reason why not.
void try_again(Turn& turn, std::uint32_t step, const ToolPolicy& policy, WaitFor what, Duration wait,
               const std::string& last);

/// Data of events.
[[nodiscard]] std::string status_data(std::string_view status, Reason reason);
[[nodiscard]] std::string wait_data(const Wait& wait);

}  // namespace holdfast::run
