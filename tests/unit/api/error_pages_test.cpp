#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "world.h"

using namespace holdfast;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

/// Codes as the layers that answer requests write them: `Error{"code"`, `refuse(404, "code"`, `refused("code"` and
/// `fault("code"`.
std::set<std::string> codes_in_sources() {
  const std::regex written(R"#((?:Error\{|refuse\(\d+, |fault\(|refused\()"([a-z_]+)")#");
  std::set<std::string> codes;
  for (const char* layer : {"api", "http", "run", "engine"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(HOLDFAST_SOURCE_DIR) / "src" / layer)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), written), end; it != end; ++it)
        codes.insert((*it)[1]);
    }
  }
  return codes;
}

}  // namespace

TEST_CASE("every error code has a page, and the index names it") {
  const auto folder = std::filesystem::path(HOLDFAST_SOURCE_DIR) / "docs" / "errors";
  const std::string index = text_of(folder / "README.md");
  const auto codes = codes_in_sources();
  REQUIRE(codes.contains("run_not_found"));
  REQUIRE(codes.contains("unauthorized"));
  for (const std::string& code : codes) {
    INFO(code);
    CHECK(std::filesystem::exists(folder / (code + ".md")));
    CHECK(index.find("[" + code + "]") != std::string::npos);
  }
}

TEST_CASE("every page is served, to anybody, where the type of a problem leads") {
  World world;
  CHECK(world.server.served.at("GET /errors/{}") == http::Access::open);
  std::size_t pages = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(HOLDFAST_SOURCE_DIR) / "docs" / "errors")) {
    if (entry.path().filename() == "README.md") continue;
    const std::string code = entry.path().stem().string();
    INFO(code);
    CHECK(says(http::problem(400, {code, "", ""}), "\"type\":\"/errors/" + code + "\""));
    const auto response = world.answer("GET", "/errors/{code}", world.request({{"code", code}}));
    CHECK(response.status == 200);
    CHECK(response.content_type == "text/markdown; charset=utf-8");
    CHECK(response.headers == std::vector<std::pair<std::string, std::string>>{{"Cache-Control", "public, max-age=86400"}});
    CHECK(response.body == text_of(entry.path()));
    ++pages;
  }
  CHECK(pages > 50);
  for (const std::string code : {"none", "README", "../errors/internal", "internal.md"}) {
    const auto response = world.answer("GET", "/errors/{code}", world.request({{"code", code}}));
    CHECK(response.status == 404);
    CHECK(response.content_type == "application/problem+json");
    CHECK(says(response, "\"code\":\"not_found\""));
  }
}
