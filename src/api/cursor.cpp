#include "api/cursor.h"

#include <charconv>

#include "api/base64url.h"

namespace holdfast::api {
namespace {

constexpr std::size_t kLongestCursor = 128;

std::unexpected<Error> bad_cursor() {
  return std::unexpected(
      Error{"bad_cursor", "this cursor was not made by this list; take next_cursor of a page as it is", ""});
}

}  // namespace

std::string make_cursor(char list, const std::vector<std::int64_t>& numbers) {
  std::string text(1, list);
  for (const std::int64_t number : numbers) text += '.' + std::to_string(number);
  return base64url(text);
}

Result<std::vector<std::int64_t>> read_cursor(char list, std::size_t count, std::string_view cursor) {
  if (cursor.size() > kLongestCursor) return bad_cursor();
  const auto text = from_base64url(cursor);
  if (!text || text->empty() || text->front() != list) return bad_cursor();
  std::vector<std::int64_t> numbers;
  const char* at = text->data() + 1;
  const char* const end = text->data() + text->size();
  while (at != end && numbers.size() <= count) {
    std::int64_t number = 0;
    if (*at != '.') return bad_cursor();
    const auto [next, error] = std::from_chars(at + 1, end, number);
    if (error != std::errc{}) return bad_cursor();
    numbers.push_back(number);
    at = next;
  }
  if (numbers.size() != count || at != end) return bad_cursor();
  return numbers;
}

}  // namespace holdfast::api
