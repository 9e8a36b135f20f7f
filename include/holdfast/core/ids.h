#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/core/random.h"
#include "holdfast/core/time.h"

namespace holdfast {

/// Makes run ids: `run_` and 26 characters of Crockford base32 (48 bits of time, 80 random bits), ascending
/// within a process also inside one millisecond, there by a random step: whoever knows an id can't tell the one before or
/// after it. Not thread-safe.
class RunIds {
 public:
  explicit RunIds(Random& random) : random_(random) {}
  /// `now` may go back: the id still sorts after the one before.
  [[nodiscard]] std::string next(Instant now);

 private:
  void draw(std::int64_t ms);
  [[nodiscard]] bool climb();  // false: past the last id of this millisecond

  Random& random_;
  std::int64_t last_ms_ = -1;
  std::uint64_t high_ = 0;  // upper 16 of the 80 random bits
  std::uint64_t low_ = 0;   // lower 64
};

/// True for `run_` and 26 characters of the alphabet; says nothing about existence.
[[nodiscard]] bool is_run_id(std::string_view text);

/// The id of a step's write: `wr_` + the run's 26 characters + `_` + the step's index in decimal. It names
/// its run, so no index is needed to find it.
[[nodiscard]] std::string write_id(std::string_view run_id, std::size_t step_index);
struct WriteRef {
  std::string run_id;
  std::size_t step_index;
};
/// nullopt when `text` is no write id.
[[nodiscard]] std::optional<WriteRef> parse_write_id(std::string_view text);

/// Step ids, server and tool names: `[A-Za-z0-9_.-]{1,128}` (contract, section 8).
[[nodiscard]] bool is_name(std::string_view text);
/// Targets: 1 to 1,024 bytes of valid UTF-8 without control characters.
[[nodiscard]] bool is_target(std::string_view text);
/// Keys, of a submission or of a step: 1 to 255 printable ASCII characters, not all blanks.
[[nodiscard]] bool is_key(std::string_view text);

}  // namespace holdfast
