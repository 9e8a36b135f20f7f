#include "holdfast/run/references.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>

#include "holdfast/core/json.h"

using namespace holdfast;
using namespace holdfast::run;

namespace {

constexpr std::string_view kResult =
    R"({"n":3,"f":1.50,"s":"t\u00e9xt \"q\"","b":true,"z":null,"l":[1,{"x":"y"}],"o":{"a/b":1,"c~d":2},"":5,"big":123456789012345678901234567890})";

/// Knows one step, `a`, with kResult.
std::optional<std::string> lookup(std::string_view name, std::string_view pointer) {
  if (name != "a") return std::nullopt;
  static const auto root = json::parse(kResult);
  const auto* value = json::at(*root, pointer);
  if (value == nullptr) return std::nullopt;
  return std::string(value->raw);
}

std::string resolved(std::string_view text) {
  const auto out = resolve(text, lookup);
  REQUIRE(out);
  return *out;
}

}  // namespace

TEST_CASE("a reference alone in a string keeps its JSON type, digit for digit") {
  CHECK(resolved(R"("${a/n}")") == "3");
  CHECK(resolved(R"("${a/f}")") == "1.50");
  CHECK(resolved(R"("${a/big}")") == "123456789012345678901234567890");
  CHECK(resolved(R"("${a/s}")") == R"("t\u00e9xt \"q\"")");
  CHECK(resolved(R"("${a/b}")") == "true");
  CHECK(resolved(R"("${a/z}")") == "null");
  CHECK(resolved(R"("${a/l}")") == R"([1,{"x":"y"}])");
  CHECK(resolved(R"("${a/o/a~1b}")") == "1");
  CHECK(resolved(R"("${a/o/c~0d}")") == "2");
  CHECK(resolved(R"("${a/}")") == "5");
  CHECK(resolved(R"("${a}")") == kResult);
}

TEST_CASE("a reference inside a longer string becomes text") {
  CHECK(resolved(R"("found ${a/n} of ${a/s}, ${a/b} ${a/f}")") ==
        "\"found 3 of t\u00e9xt \\\"q\\\", true 1.50\"");
  CHECK(resolved(R"("${a/n}${a/n}")") == R"("33")");
  CHECK(resolved(R"(" ${a/l}")") == R"(" [1,{\"x\":\"y\"}]")");
  CHECK(resolved(R"("${a/l/1/x}!")") == R"("y!")");
  CHECK(resolved(R"("\ud83c\udfab ${a/n}")") == "\"\U0001F3AB 3\"");
}

TEST_CASE("a doubled dollar is a literal, and what comes out is not read again") {
  CHECK(resolved(R"("$${a/n}")") == R"("${a/n}")");
  CHECK(resolved(R"("$${a/n} costs $5 $")") == R"("${a/n} costs $5 $")");
  CHECK(resolved(R"("$$${a/n}")") == R"("$${a/n}")");
  CHECK(resolved(R"("${a/n}$${a/n}")") == R"("3${a/n}")");
  CHECK(resolved(R"("$${")") == R"("${")");
  CHECK(resolved(R"("$ { $5 {a} }")") == R"("$ { $5 {a} }")");
  const auto twice =
      resolve(R"("x${a}")", [](auto, auto) { return std::optional<std::string>(R"("${b}")"); });
  CHECK(*twice == R"("x${b}")");
}

TEST_CASE("everything around a reference stays byte for byte") {
  CHECK(resolved(R"({ "k" : [ 1.10, "\u0041\/", "${a/n}" ] , "${a/n}":-0 })") ==
        R"({ "k" : [ 1.10, "\u0041\/", 3 ] , "${a/n}":-0 })");
  CHECK(resolved(R"({"a":"x"})") == R"({"a":"x"})");
  CHECK(resolved("  [1E5 ]\n") == "  [1E5 ]\n");
}

TEST_CASE("a reference may be written with escapes, as any string may") {
  CHECK(resolved(R"("\u0024{a\u002Fn}")") == "3");
  CHECK(resolved(R"("\u0024\u0024{a}")") == R"("${a}")");
}

TEST_CASE("a reference that leads nowhere names itself and its place") {
  for (const std::string text :
       {"${a/nope}", "${a/l/2}", "${a/l/-1}", "x ${a/l/01} y", "${a/l/0/x}", "${b}", "${a/l/-}"}) {
    CAPTURE(text);
    const auto out = resolve(R"({"y":"${a/l}","x":[0,")" + text + R"("]})", lookup);
    REQUIRE_FALSE(out);
    CHECK(out.error().code == "bad_reference");
    CHECK(out.error().pointer == "/x/1");
    CHECK(out.error().message.find(text.substr(text.find('$'), 4)) != std::string::npos);
  }
}

TEST_CASE("what is no reference is refused with its place") {
  for (const std::string text : {"${", "${}", "${a", "a ${ b}", "${a b}", "${/n}", "${a/~}", "${a/~2}",
                                 "${a}${", "${\u00e9}", "${${a}}"}) {
    CAPTURE(text);
    const auto found = references(R"({"k/":[")" + text + R"("]})");
    REQUIRE_FALSE(found);
    CHECK(found.error().code == "bad_reference");
    CHECK(found.error().pointer == "/k~1/0");
    CHECK_FALSE(resolve("[\"" + text + "\"]", lookup));
  }
}

TEST_CASE("references are listed in order with their places") {
  const auto found =
      references(R"({"x":"${a/b/0} and ${c}","l":[1,["$${no}","${a}"]],"${z}":{"m~/":"${d.e-f_/}"}})");
  REQUIRE(found);
  REQUIRE(found->size() == 4);
  const auto is = [&](std::size_t i, std::string_view step, std::string_view pointer,
                      std::string_view place) {
    CHECK((*found)[i].step == step);
    CHECK((*found)[i].pointer == pointer);
    CHECK((*found)[i].place == place);
  };
  is(0, "a", "/b/0", "/x");
  is(1, "c", "", "/x");
  is(2, "a", "", "/l/1/1");
  is(3, "d.e-f_", "/", "/${z}/m~0~1");
}

TEST_CASE("the text that references make is bounded") {
  const std::string large = "\"" + std::string(1 << 20, 'x') + "\"";
  std::string text = "[";
  for (int i = 0; i < 100; ++i) text += i > 0 ? ",\"${a}\"" : "\"${a}\"";
  text += "]";
  const auto out = resolve(text, [&](auto, auto) { return std::optional<std::string>(large); });
  REQUIRE_FALSE(out);
  CHECK(out.error().code == "bad_reference");
  std::string many = "\"";
  for (int i = 0; i < 10'001; ++i) many += "${a}";
  CHECK_FALSE(references(many + "\""));
}

TEST_CASE("resolving gives JSON again, whatever is around the references") {
  REQUIRE(rc::check([](const std::vector<std::uint8_t>& choices) {
    static const std::vector<std::string> parts{"${a/n}", "${a/s}", "$${",  "$",       "{",    "}",
                                                "x",      "${a}",   "\\\"", "\\u0024", "{a/l}"};
    std::string text = "[\"";
    for (const auto choice : choices) text += parts[choice % parts.size()];
    text += "\"]";
    const auto out = resolve(text, lookup);
    if (!out) {
      RC_ASSERT(out.error().code == "bad_reference");
      return;
    }
    RC_ASSERT(json::parse(*out).has_value());
    RC_ASSERT(references(text).has_value());
  }));
}
