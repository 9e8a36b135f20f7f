#include <algorithm>
#include <array>
#include <utility>

#include "holdfast/run/run.h"

namespace holdfast::run {
namespace {

template <class E>
struct Spelling {
  E value;
  std::string_view text;
};

constexpr std::array<Spelling<Mode>, 2> kMode{{{Mode::plan, "plan"}, {Mode::open, "open"}}};
constexpr std::array<Spelling<RunStatus>, 7> kRunStatus{{
    {RunStatus::queued, "queued"},
    {RunStatus::running, "running"},
    {RunStatus::waiting, "waiting"},
    {RunStatus::unknown, "unknown"},
    {RunStatus::succeeded, "succeeded"},
    {RunStatus::failed, "failed"},
    {RunStatus::cancelled, "cancelled"},
}};
constexpr std::array<Spelling<StepStatus>, 8> kStepStatus{{
    {StepStatus::pending, "pending"},
    {StepStatus::running, "running"},
    {StepStatus::waiting, "waiting"},
    {StepStatus::succeeded, "succeeded"},
    {StepStatus::failed, "failed"},
    {StepStatus::unknown, "unknown"},
    {StepStatus::skipped, "skipped"},
    {StepStatus::cancelled, "cancelled"},
}};
constexpr std::array<Spelling<WriteState>, 5> kWriteState{{
    {WriteState::intended, "intended"},
    {WriteState::dispatched, "dispatched"},
    {WriteState::landed, "landed"},
    {WriteState::not_landed, "not_landed"},
    {WriteState::unknown, "unknown"},
}};
constexpr std::array<Spelling<WaitFor>, 9> kWaitFor{{
    {WaitFor::none, ""},
    {WaitFor::backoff, "backoff"},
    {WaitFor::retry_after, "retry_after"},
    {WaitFor::circuit, "circuit"},
    {WaitFor::rate_gate, "rate_gate"},
    {WaitFor::slot, "slot"},
    {WaitFor::storage, "storage"},
    {WaitFor::human, "human"},
    {WaitFor::client, "client"},
}};
constexpr std::array<Spelling<OnFailure>, 2> kOnFailure{
    {{OnFailure::stop, "stop"}, {OnFailure::proceed, "continue"}}};
constexpr std::array<Spelling<OnCircuitOpen>, 2> kOnCircuitOpen{
    {{OnCircuitOpen::wait, "wait"}, {OnCircuitOpen::fail, "fail"}}};
constexpr std::array<Spelling<Resolution>, 5> kResolution{{
    {Resolution::none, ""},
    {Resolution::landed, "landed"},
    {Resolution::not_landed, "not_landed"},
    {Resolution::abandon, "abandon"},
    {Resolution::evidence, "evidence"},
}};

template <class E>
constexpr const auto& spellings() {
  if constexpr (std::is_same_v<E, Mode>)
    return kMode;
  else if constexpr (std::is_same_v<E, RunStatus>)
    return kRunStatus;
  else if constexpr (std::is_same_v<E, StepStatus>)
    return kStepStatus;
  else if constexpr (std::is_same_v<E, WriteState>)
    return kWriteState;
  else if constexpr (std::is_same_v<E, WaitFor>)
    return kWaitFor;
  else if constexpr (std::is_same_v<E, OnFailure>)
    return kOnFailure;
  else if constexpr (std::is_same_v<E, OnCircuitOpen>)
    return kOnCircuitOpen;
  else
    return kResolution;
}

template <class E>
constexpr bool in_order() {
  const auto& table = spellings<E>();
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::size_t>(std::to_underlying(table[i].value)) != i) return false;
  }
  return true;
}
// word() reads the tables by position.
static_assert(in_order<Mode>() && in_order<RunStatus>() && in_order<StepStatus>() && in_order<WriteState>());
static_assert(in_order<WaitFor>() && in_order<OnFailure>() && in_order<OnCircuitOpen>() &&
              in_order<Resolution>());

template <class E>
std::string_view spelled(E value) {
  return spellings<E>().at(static_cast<std::size_t>(std::to_underlying(value))).text;
}

}  // namespace

std::string_view word(Mode value) {
  return spelled(value);
}
std::string_view word(RunStatus value) {
  return spelled(value);
}
std::string_view word(StepStatus value) {
  return spelled(value);
}
std::string_view word(WriteState value) {
  return spelled(value);
}
std::string_view word(WaitFor value) {
  return spelled(value);
}
std::string_view word(OnFailure value) {
  return spelled(value);
}
std::string_view word(OnCircuitOpen value) {
  return spelled(value);
}
std::string_view word(Resolution value) {
  return spelled(value);
}

template <class E>
std::optional<E> from_word(std::string_view text) {
  const auto& table = spellings<E>();
  const auto found = std::ranges::find(table, text, &Spelling<E>::text);
  if (found == table.end()) return std::nullopt;
  return found->value;
}

template std::optional<Mode> from_word<Mode>(std::string_view);
template std::optional<RunStatus> from_word<RunStatus>(std::string_view);
template std::optional<StepStatus> from_word<StepStatus>(std::string_view);
template std::optional<WriteState> from_word<WriteState>(std::string_view);
template std::optional<WaitFor> from_word<WaitFor>(std::string_view);
template std::optional<OnFailure> from_word<OnFailure>(std::string_view);
template std::optional<OnCircuitOpen> from_word<OnCircuitOpen>(std::string_view);
template std::optional<Resolution> from_word<Resolution>(std::string_view);

}  // namespace holdfast::run
