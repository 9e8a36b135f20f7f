#include "holdfast/policy/words.h"

#include <array>
#include <cstddef>
#include <utility>

namespace holdfast {
namespace {

using namespace std::string_view_literals;

// One array per enumeration, in the order of its members: the position is the value.
template <class E>
inline constexpr int kWords = 0;

template <>
inline constexpr std::array kWords<Effect>{"read"sv, "write"sv};

template <>
inline constexpr std::array kWords<Kind>{"read"sv, "keyed"sv, "checkable"sv, "plain"sv};

template <>
inline constexpr std::array kWords<Phase>{
    "local"sv,  "dns"sv,          "tcp"sv,     "proxy"sv,        "tls"sv,    "tx0"sv,   "tx_part"sv,
    "tx_all"sv, "rx_part_head"sv, "rx_head"sv, "rx_part_body"sv, "rx_all"sv, "parsed"sv};

template <>
inline constexpr std::array kWords<AttemptKind>{"call"sv, "check"sv, "fallback"sv, "probe"sv};

template <>
inline constexpr std::array kWords<Delivery>{"in_flight"sv, "not_sent"sv, "maybe_sent"sv, "answered"sv};

template <>
inline constexpr std::array kWords<Verdict>{""sv,        "ok"sv,        "not_sent"sv,
                                            "refused"sv, "ambiguous"sv, "landed"sv};

template <>
inline constexpr std::array kWords<AttemptClass>{
    ""sv,           "ok"sv,        "dns"sv,       "connect"sv,   "tls"sv,      "reset"sv,
    "timeout"sv,    "http_4xx"sv,  "http_429"sv,  "http_5xx"sv,  "redirect"sv, "rpc_error"sv,
    "tool_error"sv, "malformed"sv, "too_large"sv, "cancelled"sv, "crashed"sv};

template <>
inline constexpr std::array kWords<Reason>{""sv,
                                           "tool_refused"sv,
                                           "tool_error"sv,
                                           "tool_not_found"sv,
                                           "unreachable"sv,
                                           "bad_reference"sv,
                                           "bad_arguments"sv,
                                           "attempts_exhausted"sv,
                                           "retry_budget_exhausted"sv,
                                           "no_time_left"sv,
                                           "deadline_exceeded"sv,
                                           "rate_limited"sv,
                                           "circuit_open"sv,
                                           "malformed_answer"sv,
                                           "result_too_large"sv,
                                           "result_lost"sv,
                                           "crash_loop"sv,
                                           "cancelled"sv,
                                           "abandoned"sv,
                                           "step_failed"sv,
                                           "timed_out"sv,
                                           "connection_lost"sv,
                                           "server_error"sv,
                                           "ambiguous_answer"sv,
                                           "crashed"sv,
                                           "key_expired"sv,
                                           "cancelled_in_flight"sv,
                                           "deadline_in_flight"sv};

static_assert(kWords<Effect>.size() == std::to_underlying(Effect::write) + 1);
static_assert(kWords<Kind>.size() == std::to_underlying(Kind::plain) + 1);
static_assert(kWords<Phase>.size() == std::to_underlying(Phase::parsed) + 1);
static_assert(kWords<AttemptKind>.size() == std::to_underlying(AttemptKind::probe) + 1);
static_assert(kWords<Delivery>.size() == std::to_underlying(Delivery::answered) + 1);
static_assert(kWords<Verdict>.size() == std::to_underlying(Verdict::landed) + 1);
static_assert(kWords<AttemptClass>.size() == std::to_underlying(AttemptClass::crashed) + 1);
static_assert(kWords<Reason>.size() == std::to_underlying(Reason::deadline_in_flight) + 1);

template <class E>
std::string_view word_of(E value) {
  const auto index = static_cast<std::size_t>(std::to_underlying(value));
  return index < kWords<E>.size() ? kWords<E>[index] : std::string_view{};
}

}  // namespace

std::string_view word(Effect value) {
  return word_of(value);
}
std::string_view word(Kind value) {
  return word_of(value);
}
std::string_view word(Phase value) {
  return word_of(value);
}
std::string_view word(AttemptKind value) {
  return word_of(value);
}
std::string_view word(Delivery value) {
  return word_of(value);
}
std::string_view word(Verdict value) {
  return word_of(value);
}
std::string_view word(AttemptClass value) {
  return word_of(value);
}
std::string_view word(Reason value) {
  return word_of(value);
}

template <class E>
std::optional<E> from_word(std::string_view text) {
  for (std::size_t i = 0; i < kWords<E>.size(); ++i) {
    if (kWords<E>[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

template std::optional<Effect> from_word<Effect>(std::string_view);
template std::optional<Kind> from_word<Kind>(std::string_view);
template std::optional<Phase> from_word<Phase>(std::string_view);
template std::optional<AttemptKind> from_word<AttemptKind>(std::string_view);
template std::optional<Delivery> from_word<Delivery>(std::string_view);
template std::optional<Verdict> from_word<Verdict>(std::string_view);
template std::optional<AttemptClass> from_word<AttemptClass>(std::string_view);
template std::optional<Reason> from_word<Reason>(std::string_view);

}  // namespace holdfast
