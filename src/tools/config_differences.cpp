// What a reload changed, for the audit log.
#include <sstream>

#include "holdfast/tools/config.h"

namespace holdfast::tools {
namespace {

constexpr std::size_t kMostNames = 200;

using Fields = std::map<std::string, std::string>;
using Subjects = std::map<std::string, Fields>;  // servers, tools, and the sections of the file

/// From the lines `subject  field  value` of describe().
Subjects subjects_of(const Config& config) {
  Subjects subjects;
  std::istringstream lines(describe(config));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t field = line.find("  ");
    const std::size_t value = line.find("  ", field + 2);
    const std::string subject = line.substr(0, field);
    if (subject != "auth") subjects[subject][line.substr(field + 2, value - field - 2)] = line.substr(value);
  }
  return subjects;
}

std::string name_of(const std::string& subject, const std::string& field) {
  return subject == "holdfast" ? field : subject + "." + field;
}

/// Calls `both(name, before, after)` for the names that both maps have, and adds those that one has.
template <class Map, class Both>
void compare(const Map& before, const Map& after, const std::string& prefix, std::vector<std::string>& out, Both&& both) {
  for (const auto& [name, was] : before) {
    const auto is = after.find(name);
    if (is == after.end()) {
      out.push_back(prefix + name + " removed");
    } else {
      both(name, was, is->second);
    }
  }
  for (const auto& [name, is] : after) {
    if (!before.contains(name)) out.push_back(prefix + name + " added");
  }
}

std::map<std::string, std::pair<Token::Scope, std::string>> tokens_of(const Config& config) {
  std::map<std::string, std::pair<Token::Scope, std::string>> tokens;
  for (const Token& token : config.tokens) tokens[token.name] = {token.scope, token.sha256};
  return tokens;
}

/// Values that describe() hides: a header or variable has the same name and another value.
void compare_hidden(const Config& before, const Config& after, std::vector<std::string>& out) {
  for (const auto& [name, server] : before.servers) {
    const auto now = after.servers.find(name);
    if (now == after.servers.end()) continue;
    for (const auto& [list, was, is] : {std::tuple{".headers.", &server.headers, &now->second.headers},
                                        {".mcp.env.", &server.environment, &now->second.environment}}) {
      const std::map<std::string, std::string> old(was->begin(), was->end());
      for (const auto& [key, value] : *is) {
        if (const auto found = old.find(key); found != old.end() && found->second != value) out.push_back(name + list + key);
      }
    }
  }
}

}  // namespace

std::vector<std::string> differences(const Config& before, const Config& after) {
  std::vector<std::string> out;
  compare(subjects_of(before), subjects_of(after), "", out,
          [&](const std::string& subject, const Fields& was, const Fields& is) {
            compare(was, is, subject + ".", out, [&](const std::string& field, const std::string& old, const std::string& now) {
              if (old != now) out.push_back(name_of(subject, field));
            });
          });
  compare(tokens_of(before), tokens_of(after), "auth.tokens.", out, [&](const std::string& name, const auto& was, const auto& is) {
    if (was != is) out.push_back("auth.tokens." + name);
  });
  compare_hidden(before, after, out);
  if (out.size() > kMostNames) {
    const std::size_t more = out.size() - kMostNames;
    out.resize(kMostNames);
    out.push_back("and " + std::to_string(more) + " more");
  }
  return out;
}

}  // namespace holdfast::tools
