// A run at rest is bytes: what is made of them again is the same run, in each of its members.
#include <catch2/catch.hpp>
#include <rapidcheck.h>

#include <stdexcept>

#include "run/packed.h"

using namespace holdfast;

namespace {

/// Any value, also ones that no run has; now and then what it is in a new run.
template <class T>
void fill(T& value);

template <class T>
void fill_one(T& value) {
  if constexpr (run::Compound<T>) {
    std::apply([](auto&... member) { (fill(member), ...); }, members(value));
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(*rc::gen::inRange(0, 6));
  } else {
    value = *rc::gen::arbitrary<T>();
  }
}
void fill_one(Instant& value) { value.ms = *rc::gen::arbitrary<std::int64_t>(); }
void fill_one(Duration& value) { value = Duration{*rc::gen::arbitrary<std::int64_t>()}; }
template <class T>
void fill_one(std::optional<T>& value) { fill_one(value.emplace()); }
template <class T>
void fill_one(std::vector<T>& values) {
  values.resize(*rc::gen::inRange<std::size_t>(0, 4));
  for (T& value : values) fill(value);
}
template <class T>
void fill(T& value) {
  if (run::Compound<T> || *rc::gen::inRange(0, 3) != 0) fill_one(value);
}

run::Run again(const run::Run& run, std::size_t* size = nullptr) {
  run::Packer packer;
  packer.put(run);
  const std::string bytes = packer.take();
  if (size != nullptr) *size = bytes.size();
  run::Unpacker unpacker(bytes);
  run::Run made;
  unpacker.get(made);
  if (!unpacker.at_end()) throw std::logic_error("bytes are left over");
  return made;
}

}  // namespace

TEST_CASE("a run made of its bytes has every member that it had") {
  CHECK(rc::check("packed and unpacked", [] {
    run::Run run;
    fill(run);
    RC_ASSERT(again(run) == run);
  }));
}

TEST_CASE("a new run is its texts and little more") {
  run::Run run;
  run.id = std::string(30, 'r');
  run.steps.resize(3);
  std::size_t size = 0;
  CHECK(again(run, &size) == run);
  CHECK(size < 30 + 10);
}
