// Retry-After and Date of an answer, each on a line of its own.
#include "fuzz.h"
#include "holdfast/policy/retry.h"
#include "policy/http_date.h"

using namespace holdfast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto lines = fuzz::parts_of(fuzz::text_of(data, size), '\n');
  const std::string_view date = lines.size() > 1 ? lines[1] : std::string_view{};
  for (const Instant now : {Instant{0}, Instant{1'788'955'200'200}, kEndOfTime}) {
    const auto wait = retry_after_wait(lines[0], date, now);
    if (wait) HOLDS(wait->count() > 0 && *wait <= kLongestDuration);
    const auto at = parse_http_date(lines[0], now);
    if (at) HOLDS(*at <= kEndOfTime);
  }
  return 0;
}
