#pragma once
// `${step}` and `${step/json/pointer}` in arguments (contract, section 3).
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::run {

struct Reference {
  std::string step;
  std::string pointer;  // "" for the whole result
  std::string place;    // JSON pointer to the string inside the template that holds it
};

/// Every reference in a JSON text, in order. Error `bad_reference` for `${` without `}` or with an empty or
/// malformed name. `$${` is no reference.
[[nodiscard]] Result<std::vector<Reference>> references(std::string_view json_text);

/// The text with every reference replaced. `lookup` gives the JSON text that a name and pointer lead to,
/// nullopt where they lead nowhere: error `bad_reference` naming reference and place. Alone in a string a
/// reference keeps its JSON type (the text is put in digit for digit); inside a longer string a string is put
/// in unescaped, anything else as its JSON text. `$${` becomes `${`. Member names are left alone.
using Lookup = std::function<std::optional<std::string>(std::string_view name, std::string_view pointer)>;
[[nodiscard]] Result<std::string> resolve(std::string_view json_text, const Lookup& lookup);

}  // namespace holdfast::run
