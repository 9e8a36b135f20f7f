// docs/policy.md shows the failure table to users: the same rows, in the same order, with the same words.
#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/policy/classify.h"

using namespace holdfast;

namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The cells of a markdown table's line; none for any other line, the heading or the rule below it.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  if (!line.starts_with("| ") || line.starts_with("| row ")) return out;
  std::size_t at = 1;
  for (auto bar = line.find('|', at); bar != line.npos; bar = line.find('|', at)) {
    out.emplace_back(trim(std::string_view(line).substr(at, bar - at)));
    at = bar + 1;
  }
  return out;
}

std::vector<std::vector<std::string>> documented_rows() {
  std::ifstream in(std::string(HOLDFAST_SOURCE_DIR) + "/docs/policy.md");
  REQUIRE(in.good());
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    if (auto row = cells(line); row.size() == 10) rows.push_back(std::move(row));
  }
  return rows;
}

std::string strikes(const Strikes& s) {
  std::string out;
  for (const auto& [set, name] : {std::pair{s.server, "server"}, {s.tool, "tool"}, {s.gate, "gate"}}) {
    if (set) out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

std::string reasons(const Row& row) {
  std::string out(word(row.failure));
  if (row.doubt != Reason::none && row.doubt != row.failure)
    out += (out.empty() ? "" : ", ") + std::string(word(row.doubt));
  return out;
}

}  // namespace

TEST_CASE("docs/policy.md is the table") {
  const auto documented = documented_rows();
  const auto rows = failure_table();
  REQUIRE(documented.size() == rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    const std::vector<std::string> want{std::string(row.id),
                                        std::string(row.observed),
                                        std::string(word(row.verdict)),
                                        std::string(word(row.read)),
                                        std::string(word(row.keyed)),
                                        std::string(word(row.checkable)),
                                        std::string(word(row.plain)),
                                        strikes(row.strikes),
                                        std::string(word(row.klass)),
                                        reasons(row)};
    CHECK(documented[i] == want);
  }
}
