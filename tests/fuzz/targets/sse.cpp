// Server-sent events: the same events however the stream is cut.
#include "fuzz.h"
#include "tools/mcp/sse.h"

using namespace holdfast;

namespace {

struct Seen {
  std::string events, last_id;
  bool over = false;
  friend bool operator==(const Seen&, const Seen&) = default;
};

Seen read(std::string_view stream, std::size_t piece) {
  tools::mcp::SseParser parser(4096);
  Seen seen;
  while (!stream.empty()) {
    const std::string_view next = stream.substr(0, piece);
    stream.remove_prefix(next.size());
    const bool goes_on = parser.feed(next, [&](const tools::mcp::SseEvent& event) {
      seen.events += event.name + "\x1f" + event.data + "\x1e";
      return true;
    });
    if (!goes_on) break;
  }
  seen.over = parser.over_limit();
  if (!seen.over) seen.last_id = parser.last_id();
  HOLDS(parser.unfinished().size() <= 2 * 4096 + 2);
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view stream = fuzz::text_of(data, size);
  const Seen whole = read(stream, stream.size() + 1);
  HOLDS(read(stream, 1) == whole);
  HOLDS(read(stream, 7) == whole);
  return 0;
}
