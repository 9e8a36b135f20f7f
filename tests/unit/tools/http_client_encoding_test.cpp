// An encoded body is whole when its encoding says so, not when the connection's framing does.
#include <catch2/catch.hpp>

#include <string>

#include "http_client_fixture.h"
#include "tools/http_client_encoding.h"


using namespace holdfast;
using namespace holdfast::tools;
using namespace holdfast::tools::testing;

namespace {

constexpr int kGzip = 15 + 16, kZlib = 15, kBare = -15;  // zlib's window bits

std::string packed(const std::string& text, int bits) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(text.size() + 1024, '\0');
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct Decoded {
  bool readable = true, whole = false;
  std::string text;
};

Decoded decoded(std::string_view name, std::string_view bytes, std::size_t piece) {
  BodyDecoder decoder(name);
  Decoded out;
  for (; out.readable && !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
    out.readable = decoder.decode(bytes.substr(0, piece), [&](std::string_view made) {
      out.text += made;
      return true;
    });
  out.whole = decoder.whole();
  return out;
}

/// As much as one turn of the decoder makes, so that an end can fall on its edge.
std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += std::to_string(text.size() * 7919);
  text.resize(size);
  return text;
}

}  // namespace

TEST_CASE("a body in each encoding that is offered is read, in pieces of any size") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{16 * 1024}, std::size_t{100'000}})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, std::size_t{1 << 20}})
      for (const auto& [name, bits] : {std::pair("gzip", kGzip), {"X-GZip", kGzip}, {"deflate", kZlib}, {" Deflate", kBare}}) {
        INFO(name << ", " << size << " bytes in pieces of " << piece);
        const std::string text = text_of(size);
        const Decoded out = decoded(name, packed(text, bits), piece);
        CHECK(out.readable);
        CHECK(out.whole);
        CHECK(out.text == text);
      }
}

TEST_CASE("an encoded body that ends before its encoding does is not whole, wherever it is cut") {
  for (const auto& [name, bits] : {std::pair("gzip", kGzip), {"deflate", kZlib}, {"deflate", kBare}}) {
    const std::string all = packed(text_of(300), bits);
    for (std::size_t left = 1; left < all.size(); ++left) {
      INFO(name << ", " << left << " of " << all.size() << " bytes");
      CHECK_FALSE(decoded(name, all.substr(0, left), 64).whole);
    }
    CHECK(decoded(name, "", 64).whole);  // an answer without a body
  }
}

TEST_CASE("what is in no offered encoding is not readable") {
  const std::string text = packed("{}", kGzip);
  std::string wrong_sum = text;
  wrong_sum[wrong_sum.size() - 6] ^= 1;
  CHECK_FALSE(decoded("gzip", wrong_sum, 64).readable);
  CHECK_FALSE(decoded("gzip", "{\"a\":1}", 64).readable);
  CHECK_FALSE(decoded("gzip", text + "more", 64).readable);
  CHECK_FALSE(decoded("deflate", packed("{}", kZlib) + "more", 64).readable);
  for (const char* name : {"br", "zstd", "gzip, gzip"}) CHECK_FALSE(decoded(name, text, 64).readable);
  const Decoded two = decoded("gzip", text + text, 64);  // members of one stream
  CHECK(two.readable);
  CHECK(two.whole);
  CHECK(two.text == "{}{}");
}

TEST_CASE("an answer whose encoding is cut inside whole framing could not be decoded") {
  const std::string all = packed(R"({"ok":true})", kGzip);
  std::string body = all;
  std::string fields = "Content-Encoding: gzip\r\n";
  Failure expected = Failure::body_unreadable;
  SECTION("the trailer is missing") { body.resize(all.size() - 8); }
  SECTION("half of the header") { body.resize(5); }
  SECTION("nothing is missing") { expected = Failure::none; }
  SECTION("no body at all") {
    body.clear();
    expected = Failure::none;
  }
  SECTION("an encoding that nobody asked for") { fields = "Content-Encoding: br\r\n"; }
  SECTION("no encoding, by name") {
    fields = "Content-Encoding: identity\r\n";
    expected = Failure::none;
  }
  RawServer server([&](Peer& peer, int) {
    peer.request();
    peer.write(ok(body, fields));
  });
  Client client;
  const HttpOutcome outcome = client.run(client.post(server.url()));
  CHECK(outcome.failure == expected);
  CHECK(outcome.status == 200);
  if (expected == Failure::none && body == all && fields.find("gzip") != std::string::npos) CHECK(outcome.body == R"({"ok":true})");
}
