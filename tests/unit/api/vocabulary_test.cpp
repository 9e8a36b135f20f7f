// Code, schema/openapi.yaml and docs/ name the same words, reasons, metrics and error codes: what only one of them has is a fault.
#include <yaml-cpp/yaml.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>

#include "holdfast/policy/words.h"
#include "holdfast/run/run.h"

using namespace holdfast;

namespace {

using Words = std::set<std::string>;

const std::filesystem::path kRoot = HOLDFAST_SOURCE_DIR;

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  REQUIRE_FALSE(out.str().empty());
  return out.str();
}

Words matches(const std::string& text, const std::string& pattern) {
  const std::regex sought(pattern);
  Words found;
  for (std::sregex_iterator it(text.begin(), text.end(), sought), end; it != end; ++it) found.insert((*it)[1]);
  return found;
}

/// Every word of an enumeration up to `last`; the empty one stands for none.
template <class E>
Words words(E last) {
  Words out;
  for (int i = 0; i <= static_cast<int>(last); ++i) out.insert(std::string(word(static_cast<E>(i))));
  out.erase("");
  return out;
}

/// The `enum` of the schema at `place`, a path below components/schemas such as "Step/properties/status".
Words in_schema(const std::string& place) {
  static const YAML::Node api = YAML::LoadFile((kRoot / "schema" / "openapi.yaml").string());
  YAML::Node at = YAML::Clone(api["components"]["schemas"]);
  std::istringstream parts(place);
  for (std::string part; std::getline(parts, part, '/');)
    at.reset(at.IsSequence() ? at[static_cast<std::size_t>(std::stoi(part))] : at[part]);
  INFO(place);
  REQUIRE(at["enum"].IsSequence());
  Words out;
  for (const auto& item : at["enum"])
    if (!item.IsNull()) out.insert(item.as<std::string>());
  return out;
}

/// The words in backticks of the row of docs/api.md that starts with `row`.
Words in_docs(const std::string& row) {
  static const std::string page = text_of(kRoot / "docs" / "api.md");
  const std::size_t begin = page.find("\n| " + row + " | ");
  INFO(row);
  REQUIRE(begin != std::string::npos);
  const std::size_t cell = page.find(" | ", begin + 3);
  return matches(page.substr(cell, page.find('\n', cell) - cell), "`([^`]+)`");
}

void same(const Words& code, const std::string& place, const std::string& row) {
  INFO(place << ", " << row);
  CHECK(in_schema(place) == code);
  CHECK(in_docs(row) == code);
}

Words sources(const std::vector<const char*>& folders, const std::string& pattern) {
  Words found;
  for (const char* folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "src" / folder))
      if (entry.path().extension() == ".cpp") found.merge(matches(text_of(entry.path()), pattern));
  return found;
}

}  // namespace

TEST_CASE("code, schema and documents spell the same words", "[vocabulary]") {
  same(words(run::Mode::open), "Run/properties/mode", "run `mode`");
  same(words(run::RunStatus::cancelled), "RunStatus", "run `status`");
  same(words(run::StepStatus::cancelled), "Step/properties/status", "step `status`");
  same(words(run::WaitFor::client), "Waiting/oneOf/1/properties/for", "`waiting.for`");
  same(words(run::WriteState::unknown), "Step/properties/write/oneOf/1/properties/state", "write `state`");
  same(words(AttemptKind::probe), "Attempt/properties/kind", "attempt `kind`");
  same(words(Delivery::answered), "Attempt/properties/delivery", "attempt `delivery`");
  same(words(Verdict::landed), "Attempt/properties/verdict", "attempt `verdict`");
  same(words(AttemptClass::crashed), "Attempt/properties/class", "attempt `class`");
  same(words(Phase::parsed), "Attempt/properties/phase", "attempt `phase`");
  CHECK(in_schema("Unknown/properties/state") == words(run::WriteState::unknown));
  CHECK(in_schema("Step/properties/effect") == words(Effect::write));
  CHECK(in_schema("Tool/properties/kind") == words(Kind::plain));
  CHECK(in_schema("StepSubmission/properties/on_failure") == words(run::OnFailure::proceed));
  CHECK(in_schema("StepSubmission/properties/on_circuit_open") == words(run::OnCircuitOpen::fail));
  CHECK(in_schema("Breaker/properties/state") == in_docs("breaker `state`"));
}

TEST_CASE("every event type that is written is in the schema and the documents", "[vocabulary]") {
  same(sources({"run", "engine"}, R"#("((?:run|step|write|attempt)\.[a-z_]+)")#"), "Event/properties/type", "event `type`");
}

TEST_CASE("every reason has a row, and no row is of another", "[vocabulary]") {
  const Words code = words(Reason::deadline_in_flight);
  CHECK(in_schema("Reason") == code);
  const std::string page = text_of(kRoot / "docs" / "api.md");
  CHECK(matches(page.substr(page.find("\n## Reasons")), R"(\n\| `([a-z_]+)` \|)") == code);
}

TEST_CASE("every metric is in the schema and the documents", "[vocabulary]") {
  const Words code = matches(text_of(kRoot / "src" / "api" / "metrics.cpp"), R"#("(holdfast_[a-z_]+)")#");
  REQUIRE(code.contains("holdfast_wal_bytes"));
  const YAML::Node api = YAML::LoadFile((kRoot / "schema" / "openapi.yaml").string());
  Words schema;
  for (const auto& name : api["paths"]["/metrics"]["get"]["x-metrics"]) schema.insert(name.as<std::string>());
  CHECK(schema == code);
  CHECK(matches(text_of(kRoot / "docs" / "operations.md"), "(holdfast_[a-z]+_[a-z_]+)") == code);
}

TEST_CASE("every error code is written somewhere, has a page, and is in the schema", "[vocabulary]") {
  Words pages;
  for (const auto& entry : std::filesystem::directory_iterator(kRoot / "docs" / "errors"))
    if (entry.path().filename() != "README.md") pages.insert(entry.path().stem().string());
  CHECK(in_schema("Problem/properties/code") == pages);
  const Words written = sources({"api", "http", "run", "engine", "ledger", "core", "tools"}, R"#("([a-z]+_?[a-z_]*)")#");
  for (const std::string& code : pages) {
    INFO(code);
    CHECK(written.contains(code));
  }
}

namespace {

/// The quoted words in every list that `pattern` finds in its first group.
Words listed(const std::vector<const char*>& folders, const std::string& pattern) {
  Words out;
  for (const std::string& list : sources(folders, pattern)) out.merge(matches(list, R"#("([^"]+)")#"));
  return out;
}

YAML::Node resolved(const YAML::Node& api, const YAML::Node& node) {
  if (!node["$ref"]) return node;
  std::istringstream parts(node["$ref"].as<std::string>().substr(2));
  YAML::Node at = YAML::Clone(api);
  for (std::string part; std::getline(parts, part, '/');) at.reset(at[part]);
  return at;
}

void collect_members(const YAML::Node& api, const YAML::Node& schema, Words& out) {
  const YAML::Node at = resolved(api, schema);
  for (const char* choice : {"oneOf", "anyOf", "allOf"})
    for (const auto& part : at[choice]) collect_members(api, part, out);
  for (const auto& member : at["properties"]) {
    out.insert(member.first.as<std::string>());
    if (member.first.as<std::string>() == "steps") collect_members(api, member.second["items"], out);
  }
}

}  // namespace

TEST_CASE("what requests may hold is in the code and in the schema", "[vocabulary]") {
  const YAML::Node api = YAML::LoadFile((kRoot / "schema" / "openapi.yaml").string());
  Words members, queries;
  for (const auto& path : api["paths"]) {
    for (const auto& operation : path.second) {
      if (!operation.second.IsMap()) continue;
      if (operation.second["requestBody"])
        collect_members(api, resolved(api, operation.second["requestBody"])["content"]["application/json"]["schema"], members);
      for (const auto& parameter : operation.second["parameters"])
        if (const YAML::Node at = resolved(api, parameter); at["in"].as<std::string>() == "query") queries.insert(at["name"].as<std::string>());
    }
  }
  Words code = listed({"api"}, R"#(check_members\([^{}]*, \{([^}]*)\})#");
  code.merge(listed({"run"}, R"#(k(?:Step)?Members\{([^}]*)\})#"));
  REQUIRE(code.contains("on_circuit_open"));
  REQUIRE(code.contains("verdict"));
  CHECK(members == code);
  CHECK(queries == listed({"api"}, R"#(check_query\([a-z]+, \{([^}]*)\})#"));
}

TEST_CASE("every field of the configuration's schema is in its page", "[vocabulary]") {
  Words fields;
  const std::function<void(const YAML::Node&)> collect = [&](const YAML::Node& at) {
    if (at.IsSequence())
      for (const auto& part : at) collect(part);
    if (!at.IsMap()) return;
    for (const auto& member : at) {
      collect(member.second);
      if (member.first.as<std::string>() == "properties")
        for (const auto& field : member.second) fields.insert(field.first.as<std::string>());
    }
  };
  collect(YAML::LoadFile((kRoot / "schema" / "config.schema.json").string()));
  REQUIRE(fields.contains("shutdown_grace"));
  const std::string page = text_of(kRoot / "docs" / "configuration.md");
  for (const std::string& field : fields) {
    INFO(field);
    CHECK(std::regex_search(page, std::regex("(^|[^a-z0-9_])" + field + "([:`,.{ ]|$)")));
  }
}
