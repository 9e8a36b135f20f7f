#include <catch2/catch.hpp>

#include "tools/mcp/sse.h"

namespace holdfast::tools::mcp {
namespace {

struct Seen {
  std::vector<std::string> events;
  std::string last_id;
  std::optional<std::int64_t> retry_ms;
  std::string unfinished;
};

Seen read(std::initializer_list<std::string_view> pieces) {
  SseParser parser(1000);
  Seen seen;
  for (std::string_view piece : pieces) {
    parser.feed(piece, [&](const SseEvent& event) {
      seen.events.push_back(event.name + "|" + event.data);
      return true;
    });
  }
  seen.last_id = parser.last_id();
  seen.retry_ms = parser.retry_ms();
  seen.unfinished = parser.unfinished();
  return seen;
}

struct Row {
  std::string_view stream;
  std::vector<std::string> events;
  std::string last_id;
  std::optional<std::int64_t> retry_ms;
  std::string unfinished;
};

TEST_CASE("SSE streams mean the same wherever they are split") {
  const std::vector<Row> rows = {
      {"data: a\n\n", {"|a"}, "", {}, ""},
      {"data: a\r\n\r\ndata:b\r\r", {"|a", "|b"}, "", {}, ""},
      {": comment\n\n: another\n\n", {}, "", {}, ""},
      {"event: message\nid: 7\ndata: a\ndata: b\n\n", {"message|a\nb"}, "7", {}, ""},
      {"id: ev-1\ndata: \n\n", {"|"}, "ev-1", {}, ""},
      {"id: ev-1\ndata: x\n", {}, "", {}, "x"},
      {"data: half", {}, "", {}, "half"},
      {"id: one\n\nid: two\ndata: x", {"|"}, "one", {}, "x"},
      {"retry: 250\ndata\n\n", {"|"}, "", 250, ""},
      {"retry: soon\ndata: x\nunknown: y\n\n", {"|x"}, "", {}, ""},
      {"\xEF\xBB\xBF"
       "data: x\n\n",
       {"|x"},
       "",
       {},
       ""},
      {"id: a\ndata: 1\n\nid:\ndata: 2\n\n", {"|1", "|2"}, "", {}, ""},
  };
  for (const Row& row : rows) {
    for (std::size_t split = 0; split <= row.stream.size(); ++split) {
      INFO(row.stream << " split at " << split);
      const Seen seen = read({row.stream.substr(0, split), row.stream.substr(split)});
      REQUIRE(seen.events == row.events);
      REQUIRE(seen.last_id == row.last_id);
      REQUIRE(seen.retry_ms == row.retry_ms);
      REQUIRE(seen.unfinished == row.unfinished);
    }
  }
}

TEST_CASE("an SSE line or event over the bound stops the stream") {
  const auto ignore = [](const SseEvent&) { return true; };
  SseParser line(10);
  REQUIRE(line.feed("data: 1234", ignore));
  REQUIRE_FALSE(line.feed("5", ignore));
  REQUIRE(line.over_limit());
  REQUIRE_FALSE(line.feed("\n\n", ignore));

  SseParser event(12);
  REQUIRE(event.feed("data: 12345\n", ignore));
  REQUIRE_FALSE(event.feed("data: 123456\ndata: 7\n\n", ignore));
  REQUIRE(event.over_limit());
}

TEST_CASE("a receiver that has enough ends the SSE stream") {
  SseParser parser(100);
  int seen = 0;
  REQUIRE_FALSE(parser.feed("data: 1\n\ndata: 2\n\n", [&](const SseEvent&) { return ++seen < 1; }));
  REQUIRE(seen == 1);
  REQUIRE_FALSE(parser.over_limit());
}

TEST_CASE("a resumed SSE stream forgets the unfinished event and keeps the id") {
  SseParser parser(100);
  std::vector<std::string> data;
  const auto keep = [&](const SseEvent& event) {
    data.push_back(event.data);
    return true;
  };
  parser.feed("id: 1\ndata: a\n\ndata: lost", keep);
  parser.restart();
  parser.feed("data: b\n\n", keep);
  REQUIRE(data == std::vector<std::string>{"a", "b"});
  REQUIRE(parser.last_id() == "1");
}

}  // namespace
}  // namespace holdfast::tools::mcp
