// Words of the API that are no JSON: ids, names, keys, durations, instants.
#include "fuzz.h"
#include "holdfast/core/ids.h"
#include "holdfast/core/intent_key.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (is_run_id(text)) HOLDS(text.size() == 30);
  if (const auto ref = parse_write_id(text)) {
    HOLDS(is_run_id(ref->run_id));
    HOLDS(write_id(ref->run_id, ref->step_index) == text);
  }
  if (is_name(text)) HOLDS(is_key(text) && is_target(text));
  if (is_key(text)) HOLDS(text.find('\n') == std::string_view::npos && text.size() <= 255);
  (void)intent_key(text, text.substr(text.size() / 2), text);
  if (const auto duration = parse_duration(text)) {
    HOLDS(duration->count() >= 0 && *duration <= kLongestDuration);
    const auto again = parse_duration(format_duration(*duration));
    HOLDS(again && *again == *duration);
  }
  if (const auto at = parse_rfc3339(text)) {
    HOLDS(*at <= kEndOfTime);
    const auto again = parse_rfc3339(format_rfc3339(*at));
    HOLDS(again && *again == *at);
  }
  return 0;
}
