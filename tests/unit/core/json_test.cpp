#include "holdfast/core/json.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <chrono>

using namespace holdfast;

namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

Error error_of(std::string_view text, const json::Limits& limits = {}) {
  const auto parsed = json::parse(text, limits);
  REQUIRE_FALSE(parsed);
  return parsed.error();
}

std::string canonical(std::string_view text) {
  const auto parsed = json::parse(text);
  REQUIRE(parsed);
  return json::canonical(*parsed);
}

}  // namespace

TEST_CASE("every kind of value is read and its exact text kept") {
  const std::string text =
      R"( {"n" : null, "t":true,"f":false, "i":12, "x":-0.50e+7, "s":"a\u00e9", "l":[1, [ ]], "o":{ "a" : 1 }} )";
  const auto root = json::parse(text);
  REQUIRE(root);
  REQUIRE(root->is(json::Kind::object));
  CHECK(root->raw == text.substr(1, text.size() - 2));
  CHECK(root->find("n")->is(json::Kind::null));
  CHECK(root->find("t")->is_true());
  CHECK(root->find("f")->is(json::Kind::boolean));
  CHECK_FALSE(root->find("f")->is_true());
  CHECK(root->find("x")->raw == "-0.50e+7");
  CHECK(root->find("s")->raw == "\"a\\u00e9\"");
  CHECK(root->find("s")->text() == "a\u00e9");
  CHECK(root->find("l")->raw == "[1, [ ]]");
  CHECK(root->find("l")->items.at(1).items.empty());
  CHECK(root->find("o")->raw == "{ \"a\" : 1 }");
  CHECK(root->find("nope") == nullptr);
  CHECK(root->find("l")->find("a") == nullptr);
}

TEST_CASE("a parsed value can be moved and copied: its views point into the text") {
  const std::string text = R"({"a":{"b":[1,2,3]}})";
  auto root = json::parse(text);
  REQUIRE(root);
  const json::Value copy = *root;
  const json::Value moved = std::move(*root);
  CHECK(json::at(copy, "/a/b/2")->raw == "3");
  CHECK(json::at(moved, "/a/b/2")->raw == "3");
}

TEST_CASE("any JSON value is a text") {
  for (const std::string text :
       {"null", "true", "false", "0", "-0", "0.0", "1E5", "1e-5", "\"\"", "[]", "{}", " \t\r\n1 \t\r\n"}) {
    CAPTURE(text);
    CHECK(json::parse(text));
  }
}

TEST_CASE("what is no JSON is refused with the place") {
  struct Case {
    std::string text;
    std::string pointer;
  };
  const auto c = GENERATE(
      Case{"", ""}, Case{" ", ""}, Case{"{", ""}, Case{"}", ""}, Case{"[", "/0"}, Case{"[1", ""},
      Case{"[1,", "/1"}, Case{"[1,]", "/1"}, Case{"[,1]", "/0"}, Case{"[1 2]", ""}, Case{"{}x", ""},
      Case{"1 2", ""}, Case{"{\"a\"}", ""}, Case{"{\"a\":}", "/a"}, Case{"{\"a\":1,}", ""}, Case{"{a:1}", ""},
      Case{"{'a':1}", ""}, Case{"{\"a\":1 \"b\":2}", ""}, Case{"{1:2}", ""}, Case{"nul", ""},
      Case{"nullx", ""}, Case{"True", ""}, Case{"NaN", ""}, Case{"Infinity", ""}, Case{"-", ""},
      Case{"+1", ""}, Case{"01", ""}, Case{"-01", ""}, Case{"1.", ""}, Case{".5", ""}, Case{"1e", ""},
      Case{"1e+", ""}, Case{"0x10", ""}, Case{"1_000", ""}, Case{"\"", ""}, Case{"\"a", ""}, Case{"\"\\", ""},
      Case{"\"\\x\"", ""}, Case{"\"\\u12\"", ""}, Case{"\"\\u12g4\"", ""}, Case{"\"\n\"", ""},
      Case{"\"\t\"", ""}, Case{std::string("\"\0\"", 3), ""}, Case{std::string("\0", 1), ""},
      Case{"\xef\xbb\xbf{}", ""}, Case{"/* c */1", ""}, Case{"[1]//", ""},
      Case{"{\"a\":[{\"b/c~d\":tru}]}", "/a/0/b~1c~0d"}, Case{"[[],[[],[x]]]", "/1/1/0"});
  CAPTURE(c.text);
  const Error error = error_of(c.text);
  CHECK(error.code == "bad_json");
  CHECK(error.pointer == c.pointer);
  CHECK_FALSE(error.message.empty());
}

TEST_CASE("invalid UTF-8 is refused wherever it stands") {
  const std::string bytes =
      GENERATE("\xff", "\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\xaf", "\xe0\x9f\xbf", "\xed\xa0\x80",
               "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82",
               "\xf0\x9f\x8e", "\xc3(", "\xe2(\xa1");
  CHECK(error_of("{\"a\":[\"x" + bytes + "\"]}").pointer == "/a/0");
  CHECK(error_of("{\"b\":{\"" + bytes + "\":1}}").pointer == "/b");
  CHECK_FALSE(json::is_utf8(bytes));
}

TEST_CASE("all of UTF-8 passes") {
  for (const std::string text : {"\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                                 "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    const std::string quoted = "\"" + text + "\"";
    const auto parsed = json::parse(quoted);
    REQUIRE(parsed);
    CHECK(parsed->text() == text);
    CHECK(json::is_utf8(text));
  }
}

TEST_CASE("escapes are read and lone surrogates refused") {
  const std::string text = R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\uD83C\uDFAB\u0000")";
  const auto parsed = json::parse(text);
  REQUIRE(parsed);
  CHECK(parsed->text() == std::string("\"\\/\b\f\n\r\tA\u00e9\u20ac\U0001F3AB\0", 19));
  for (const std::string bad : {R"("\ud83c")", R"("\udfab")", R"("\ud83cx")", R"("\ud83c\n")",
                                R"("\ud83c\ud83c")", R"("\ud83c\u0041")", R"("\ud83c\u")", R"("\ud83c\)"}) {
    CAPTURE(bad);
    const std::string list = "[" + bad + "]";
    CHECK(error_of(list).pointer == "/0");
  }
}

TEST_CASE("a duplicate member name is refused, however it is written and however many there are") {
  CHECK(error_of(R"({"a":1,"b":{"x":1,"x":1}})").pointer == "/b/x");
  CHECK(error_of(R"({"a":1,"\u0061":2})").pointer == "/a");
  std::string many = "{";
  for (int i = 0; i < 1'000; ++i) many += "\"m" + std::to_string(i) + "\":0,";
  CHECK(json::parse(many + "\"x\":0}"));
  const Error error = error_of(many + "\"m500\":0}");
  CHECK(error.code == "bad_json");
  CHECK(error.pointer == "/m500");
  CHECK(json::parse(R"({"a":{"a":1},"A":2,"":3," ":4})"));
}

TEST_CASE("depth is limited exactly, and far beyond it nothing recurses") {
  CHECK(json::parse(nested(64)));
  const Error error = error_of(nested(65));
  CHECK(error.code == "too_deep");
  CHECK(error.pointer.size() == 2 * 64);
  CHECK(error.message.find("64") != std::string::npos);
  CHECK(error_of(std::string(1'000'000, '[')).code == "too_deep");
  CHECK(error_of(std::string(1'000'000, '['), {.depth = 1'000'000'000}).code == "too_deep");
  CHECK(error_of("[]", {.depth = 0}).code == "too_deep");
  CHECK(json::parse("1", {.depth = 0}));
  CHECK(json::parse("[[],[],{\"a\":[]}]", {.depth = 3}));
}

TEST_CASE("the number of values is limited") {
  CHECK(json::parse("[1,2,3]", {.nodes = 4}));
  const Error error = error_of("[1,2,3]", {.nodes = 3});
  CHECK(error.code == "too_large");
  CHECK(error.pointer == "/2");
}

TEST_CASE("integers are those that are written so and fit") {
  const auto integer = [](std::string_view text) { return json::parse(text)->integer(); };
  CHECK(integer("0") == 0);
  CHECK(integer("-12") == -12);
  CHECK(integer("9223372036854775807") == INT64_MAX);
  CHECK(integer("-9223372036854775808") == INT64_MIN);
  for (const char* text : {"9223372036854775808", "1.0", "1e3", "\"1\"", "true", "null", "[]"})
    CHECK_FALSE(integer(text));
}

TEST_CASE("pointers") {
  const std::string text = R"({"a":[10,{"b":20}],"":{"":30},"x/y":40,"m~n":50,"~1":60,"0":70})";
  const auto root = json::parse(text);
  REQUIRE(root);
  const auto raw = [&](std::string_view pointer) {
    const auto* value = json::at(*root, pointer);
    return value ? std::string(value->raw) : std::string("nowhere");
  };
  CHECK(raw("") == text);
  CHECK(raw("/a/0") == "10");
  CHECK(raw("/a/1/b") == "20");
  CHECK(raw("//") == "30");
  CHECK(raw("/x~1y") == "40");
  CHECK(raw("/m~0n") == "50");
  CHECK(raw("/~01") == "60");
  CHECK(raw("/0") == "70");
  for (const char* pointer : {"a", "/b", "/a/2", "/a/-", "/a/-1", "/a/01", "/a/00", "/a/ 0", "/a/+0", "/a/",
                              "/a/1/b/", "/a/0/x", "/~", "/m~n", "/~2", "/a/99999999999999999999"}) {
    CAPTURE(pointer);
    CHECK(raw(pointer) == "nowhere");
  }
  for (const char* pointer : {"", "/", "/a", "//", "/~0~1", "/a b"}) CHECK(json::is_pointer(pointer));
  for (const char* pointer : {"a", "a/b", "/~", "/~2", "/a~"}) CHECK_FALSE(json::is_pointer(pointer));
  CHECK(json::escape_token("a/b~c") == "a~1b~0c");
}

TEST_CASE("equal JSON has one canonical form") {
  const std::string base = R"({"name":"case","steps":[{"n":1,"l":[1,2],"m":"x"}]})";
  const std::string same =
      GENERATE(R"({"steps":[{"\u006d":"x","l":[1,2],"n":1}],"name":"case"})",
               " { \"name\" :\t\"c\\u0061se\" , \"steps\":[ {\"n\":1,\"l\":[1, 2],\"m\":\"x\"} ]\n}");
  CHECK(canonical(same) == canonical(base));
  CHECK(canonical(base) == R"({"name":"case","steps":[{"l":[1,2],"m":"x","n":1}]})");
}

TEST_CASE("different JSON has different canonical forms") {
  struct Pair {
    const char *a, *b;
  };
  const auto c = GENERATE(
      Pair{"1", "1.0"}, Pair{"1", "\"1\""}, Pair{"[1,2]", "[2,1]"}, Pair{"0", "-0"}, Pair{"1e2", "1E2"},
      Pair{"null", "\"null\""}, Pair{"{}", "[]"}, Pair{R"({"a":null})", "{}"}, Pair{R"("a\\n")", R"("a\n")"},
      Pair{R"({"a":1,"b":2})", R"({"a":2,"b":1})"}, Pair{"\"Caf\u00e9\"", "\"Cafe\u0301\""});
  CAPTURE(c.a, c.b);
  CHECK(canonical(c.a) != canonical(c.b));
}

TEST_CASE("canonical strings are unescaped and escaped again in one way") {
  CHECK(canonical(R"("\/\u0041\u000a\u001f\u00e9\"\\")") == "\"/A\\n\\u001f\u00e9\\\"\\\\\"");
  CHECK(canonical("\"/A\\n\\u001F\\u00E9\\u0022\\u005C\"") ==
        canonical(R"("\/\u0041\u000a\u001f\u00e9\"\\")"));
}

TEST_CASE("a quoted string reads back as itself") {
  REQUIRE(rc::check([](const std::string& bytes) {
    std::string ascii = bytes;
    for (char& c : ascii) c = static_cast<char>(c & 0x7F);
    const std::string quoted = json::quote(ascii);
    const auto parsed = json::parse(quoted);
    RC_ASSERT(parsed.has_value());
    RC_ASSERT(parsed->text() == ascii);
  }));
  CHECK(json::quote("a\xff\xe2\x82z") == "\"a\uFFFD\uFFFD\uFFFDz\"");
  CHECK(json::quote("\u20ac\x7f") == "\"\u20ac\x7f\"");
}

TEST_CASE("no bytes crash the parser, and what it accepts has a stable canonical form") {
  REQUIRE(rc::check([] {
    static const std::string alphabet = "{}[]\",:\\u0123456789abcdefDd8.eE+- \ntrufalsn\xc3\xa9\xff";
    const auto picks =
        *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, alphabet.size()));
    std::string text;
    for (const auto pick : picks) text += alphabet[pick];
    const auto parsed = json::parse(text);
    if (!parsed) return;
    const std::string once = json::canonical(*parsed);
    const auto again = json::parse(once);
    RC_ASSERT(again.has_value());
    RC_ASSERT(json::canonical(*again) == once);
  }));
}

TEST_CASE("large documents take time in proportion to their size") {
  const auto once = [](int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i)
      text += (i > 0 ? ",\"m" : "\"m") + std::to_string(i) + "\":[1,\"x\",{\"a\":null}]";
    text += "}";
    const auto start = std::chrono::steady_clock::now();
    const auto parsed = json::parse(text);
    REQUIRE(parsed);
    CHECK(json::canonical(*parsed).size() == text.size());
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  };
  // The quickest of three: the machine may be busy with something else in between.
  const auto milliseconds = [&](int count) { return std::min({once(count), once(count), once(count)}); };
  CHECK(milliseconds(40'000) <
        std::max(milliseconds(2'000), 0.5) * 20 * 8);  // a quadratic step would be 400 times as slow
}

TEST_CASE("the writer puts the commas") {
  std::string out;
  json::Writer writer(out);
  writer.begin_object();
  writer.field("s", "a\"b");
  writer.field("i", -5);
  writer.field("b", true);
  writer.null_field("n");
  writer.text_or_null("e", "");
  writer.raw_or_null("r", "{\"x\":1.50}");
  writer.name("l");
  writer.begin_array();
  writer.integer(1);
  writer.begin_object();
  writer.end_object();
  writer.begin_array();
  writer.end_array();
  writer.end_array();
  writer.field("z", "last");
  writer.end_object();
  CHECK(out == R"({"s":"a\"b","i":-5,"b":true,"n":null,"e":null,"r":{"x":1.50},"l":[1,{},[]],"z":"last"})");
  CHECK(json::parse(out));
}
