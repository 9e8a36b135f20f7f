#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config_reader.h"

namespace holdfast::tools::config {

using Environment = std::function<const char*(const std::string&)>;

/// Replaces `${env:NAME}` in every text of the tree (`$${env:NAME}` is left alone). Each variable's value and
/// each whole text that holds one is added to `secrets`. A variable that is not set is a problem that names
/// it, never its neighbours' values.
void expand_environment(Node& node, const std::string& pointer, const Environment& env, Problems& problems,
                        std::vector<std::string>& secrets);

/// Longest first, each once, so that a whole value is replaced before a part of it.
void order_secrets(std::vector<std::string>& secrets);

}  // namespace holdfast::tools::config
