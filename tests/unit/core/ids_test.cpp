#include "holdfast/core/ids.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <set>

using namespace holdfast;

namespace {

/// Always the same bits.
class FixedRandom final : public Random {
 public:
  explicit FixedRandom(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t next() override { return bits_; }

 private:
  std::uint64_t bits_;
};

}  // namespace

TEST_CASE("a run id is run_ and 26 characters that hold time and randomness") {
  FixedRandom zeros{0};
  CHECK(RunIds(zeros).next(Instant{0}) == "run_00000000000000000000000000");
  CHECK(RunIds(zeros).next(Instant{(std::int64_t{1} << 48) - 1}) == "run_7ZZZZZZZZZ0000000000000000");
  FixedRandom ones{~std::uint64_t{0}};
  CHECK(RunIds(ones).next(Instant{0}) == "run_0000000000ZZZZZZZZZZZZZZZZ");
  CHECK(RunIds(ones).next(Instant{32}) == "run_0000000010ZZZZZZZZZZZZZZZZ");
}

TEST_CASE("run ids ascend inside a millisecond, across them and when time stands still or goes back") {
  const auto random = seeded_random(7);
  RunIds ids(*random);
  std::string last;
  std::set<std::string> all;
  for (int i = 0; i < 5'000; ++i) {
    const std::string id = ids.next(Instant{1'796'000'000'000 + (i % 7 == 0 ? -50 : i / 10)});
    REQUIRE(is_run_id(id));
    REQUIRE(id > last);
    all.insert(id);
    last = id;
  }
  CHECK(all.size() == 5'000);
}

TEST_CASE("run ids ascend also when the random bits of a millisecond are used up") {
  FixedRandom ones{~std::uint64_t{0}};
  RunIds ids(ones);
  const std::string first = ids.next(Instant{5});
  const std::string second = ids.next(Instant{5});
  CHECK(second > first);
  CHECK(second == "run_0000000006ZZZZZZZZZZZZZZZZ");
  CHECK(ids.next(Instant{6}) == "run_0000000007ZZZZZZZZZZZZZZZZ");
}

TEST_CASE("an id does not tell the next one of its millisecond") {
  const auto random = seeded_random(11);
  RunIds ids(*random);
  const auto low_60_bits = [](const std::string& id) {
    std::uint64_t value = 0;
    for (const char c : id.substr(id.size() - 12))
      value = value << 5 | std::string_view("0123456789ABCDEFGHJKMNPQRSTVWXYZ").find(c);
    return value;
  };
  std::set<std::uint64_t> steps;
  std::uint64_t last = low_60_bits(ids.next(Instant{5}));
  for (int i = 0; i < 1'000; ++i) {
    const std::uint64_t next = low_60_bits(ids.next(Instant{5}));
    steps.insert((next - last) >> 20);  // 1,000 steps by chance: no two are nearly alike
    last = next;
  }
  CHECK(steps.size() == 1'000);
}

TEST_CASE("an instant outside the 48 bits still gives an id") {
  FixedRandom zeros{0};
  CHECK(RunIds(zeros).next(Instant{-1}) == "run_00000000000000000000000000");
  CHECK(is_run_id(RunIds(zeros).next(Instant{INT64_MAX})));
}

TEST_CASE("what is no run id") {
  const std::string text = GENERATE(
      "", "run_", "00000000000000000000000000", "run_0000000000000000000000000",
      "run_000000000000000000000000000", "RUN_00000000000000000000000000", "run_0000000000000000000000000I",
      "run_0000000000000000000000000L", "run_0000000000000000000000000O", "run_0000000000000000000000000U",
      "run_0000000000000000000000000a", "run_80000000000000000000000000", "run_0000000000000000000000000/");
  CAPTURE(text);
  CHECK_FALSE(is_run_id(text));
}

TEST_CASE("a write id names its run and step") {
  const std::string run = "run_01JDXW0000ABCDEFGHJKMNPQRS";
  CHECK(write_id(run, 0) == "wr_01JDXW0000ABCDEFGHJKMNPQRS_0");
  for (const std::size_t index : {0UL, 1UL, 10UL, 9'999UL, 999'999'999UL}) {
    const auto ref = parse_write_id(write_id(run, index));
    REQUIRE(ref);
    CHECK(ref->run_id == run);
    CHECK(ref->step_index == index);
  }
}

TEST_CASE("what is no write id") {
  const std::string text =
      GENERATE("", "wr_", "wr_01JDXW0000ABCDEFGHJKMNPQRS", "wr_01JDXW0000ABCDEFGHJKMNPQRS_",
               "wr_01JDXW0000ABCDEFGHJKMNPQRS_00", "wr_01JDXW0000ABCDEFGHJKMNPQRS_-1",
               "wr_01JDXW0000ABCDEFGHJKMNPQRS_1x", "wr_01JDXW0000ABCDEFGHJKMNPQRS_1 ",
               "wr_01JDXW0000ABCDEFGHJKMNPQRS_1000000000", "wr_01JDXW0000ABCDEFGHJKMNPQRS-0",
               "wr_01JDXW0000ABCDEFGHJKMNPQRu_0", "run_01JDXW0000ABCDEFGHJKMNPQRS_0",
               "wr_run_01JDXW0000ABCDEFGHJKMNPQRS_0");
  CAPTURE(text);
  CHECK_FALSE(parse_write_id(text));
}

TEST_CASE("names") {
  for (const std::string text : {"a", "A.b-c_9", "-", "."}) CHECK(is_name(text));
  CHECK(is_name(std::string(128, 'a')));
  CHECK_FALSE(is_name(std::string(129, 'a')));
  for (const std::string text : {"", "a/b", "a b", "\u00e9", "a\n", "${a}"}) CHECK_FALSE(is_name(text));
  CHECK_FALSE(is_name(std::string_view("a\0", 2)));
}

TEST_CASE("targets") {
  for (const std::string text :
       {"ticket/42", " x ", "Caf\u00e9", "Cafe\u0301", "\u65e5\u672c", "\U0001F3AB", "\u00a0"})
    CHECK(is_target(text));
  CHECK(is_target(std::string(1'024, 'x')));
  CHECK_FALSE(is_target(std::string(1'025, 'x')));
  for (const std::string text : {"", "a\nb", "\t", "a\x7f", "\xc2\x80", "\xc2\x9f", "\xff", "\xc0\xaf",
                                 "\xed\xa0\x80", "\xe2\x82", "\xf4\x90\x80\x80"})
    CHECK_FALSE(is_target(text));
  CHECK_FALSE(is_target(std::string_view("a\0b", 3)));
}

TEST_CASE("keys") {
  for (const std::string text : {"k", "a b", " a", "~!@#%20"}) CHECK(is_key(text));
  CHECK(is_key(std::string(255, 'k')));
  CHECK_FALSE(is_key(std::string(256, 'k')));
  for (const std::string text : {"", " ", "   ", "a\r\nX: 1", "\t", "\x7f", "\u0130"})
    CHECK_FALSE(is_key(text));
  CHECK_FALSE(is_key(std::string_view("a\0", 2)));
}

TEST_CASE("a seeded generator repeats, another seed differs") {
  const auto a = seeded_random(1), b = seeded_random(1), c = seeded_random(2);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto value = a->next();
    REQUIRE(value == b->next());
    differs |= value != c->next();
  }
  CHECK(differs);
}

TEST_CASE("a bounded draw stays in its bounds and reaches both ends") {
  const auto random = seeded_random(3);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(random->up_to(4));
  CHECK(seen == std::set<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(random->up_to(0) == 0);
  CHECK(random->up_to(-1) == 0);
}

TEST_CASE("two generators of the system never agree") {
  const auto a = system_random(), b = system_random();
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 200; ++i) seen.insert({a->next(), b->next()});
  CHECK(seen.size() == 400);
}
