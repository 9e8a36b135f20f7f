#pragma once
#include <expected>
#include <string>

namespace holdfast {

/// What can go wrong in normal life. `code` is a stable lower-case word of the API (`bad_arguments`),
/// `message` one sentence that names what is wrong and what would be right, `pointer` the JSON pointer to the
/// place at fault (empty where there is none).
struct Error {
  std::string code;
  std::string message;
  std::string pointer;
};

template <class T>
using Result = std::expected<T, Error>;

}  // namespace holdfast
