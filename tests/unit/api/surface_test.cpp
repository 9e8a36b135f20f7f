// Both listeners in memory, fed with what the fuzzers begin with and with what they have found.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/surface.h"

using holdfast::testing::Surface;

namespace {

std::vector<std::pair<std::string, std::string>> corpus() {
  std::vector<std::pair<std::string, std::string>> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(HOLDFAST_SOURCE_DIR "/tests/fuzz/corpus/http_surface")) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::ranges::sort(inputs);
  return inputs;
}

int status_of(const Surface::Answer& answer) {
  return std::atoi(answer.bytes.substr(9, 3).c_str());
}

}  // namespace

TEST_CASE("the surface keeps its promises over the fuzzers' corpus, which reaches every route") {
  Surface surface;
  for (const auto& [name, requests] : corpus()) {
    INFO(name);
    CHECK(surface.broken_promise(requests) == "");
  }
  for (const auto listener : {Surface::Listener::client, Surface::Listener::admin}) {
    CHECK(surface.reached(listener).size() > 8);
    for (const auto& [route, statuses] : surface.reached(listener)) {
      INFO((listener == Surface::Listener::client ? "client: " : "admin: ") << route);
      CHECK(std::ranges::any_of(statuses, [](int status) { return status >= 200 && status < 300; }));
    }
  }
}

TEST_CASE("the surface in memory answers like the server, and begins anew each time") {
  Surface surface;
  const std::string cancel = "POST /v1/runs/run_$2/cancel HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer $c\r\n\r\n";
  const std::string look = "GET /v1/runs/run_$2 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer $c\r\n\r\n";
  const auto before = surface.serve(Surface::Listener::client, look);
  const auto both = surface.serve(Surface::Listener::client, cancel + look);
  REQUIRE(before.size() == 1);
  REQUIRE(both.size() == 2);
  CHECK(status_of(both[0]) == 200);
  CHECK(before[0].bytes.find("\"status\":\"cancelled\"") == std::string::npos);
  CHECK(both[1].bytes.find("\"status\":\"cancelled\"") != std::string::npos);
  const auto again = surface.serve(Surface::Listener::client, look);
  REQUIRE(again.size() == 1);
  CHECK(again[0].bytes == before[0].bytes);
}

TEST_CASE("the surface refuses who has no token, and who has another listener's") {
  Surface surface;
  const auto nobody = surface.serve(Surface::Listener::client, "GET /v1/runs HTTP/1.1\r\nHost: h\r\n\r\n");
  REQUIRE(nobody.size() == 1);
  CHECK(status_of(nobody[0]) == 401);
  const auto client = surface.serve(Surface::Listener::admin, "GET /v1/runs HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer $c\r\n\r\n");
  REQUIRE(client.size() == 1);
  CHECK(status_of(client[0]) == 403);
}
