// The texts of a record: each comes back, however alike they look, and none of them makes it slow.
#include "ledger/sqlite/record.h"

#include "any.h"

namespace holdfast::ledger::sqlite {
namespace {

std::vector<std::string> written_and_read(const std::vector<std::string>& texts, std::size_t& bytes) {
  RecordWriter writer;
  for (const std::string& text : texts) writer.text(text);
  const std::string record = writer.take();
  bytes = record.size();
  RecordReader reader(record);
  std::vector<std::string> read;
  while (!reader.at_end()) read.emplace_back(reader.text());
  return read;
}

}  // namespace

TEST_CASE("texts of a record come back, the known ones, the repeated ones and those that look alike") {
  std::vector<std::string> texts{"", "{}", "plan", "attempt.late_answer", "x", "plam", "run.submittee"};
  for (int i = 0; i < 500; ++i) texts.push_back("text " + std::to_string(i));
  // The same length, beginning, middle and end.
  for (int i = 0; i < 500; ++i) texts.push_back("beginning " + std::to_string(100'000 + i) + " the middle of it, and the same end of all");
  const std::vector<std::string> once = texts;
  texts.insert(texts.end(), once.begin(), once.end());
  std::size_t bytes = 0;
  CHECK(written_and_read(texts, bytes) == texts);
}

TEST_CASE("a text that comes again costs a number") {
  std::vector<std::string> texts;
  for (int i = 0; i < 1'000; ++i) texts.push_back(std::string(100, 'x') + std::to_string(i));
  std::size_t once = 0, thrice = 0;
  CHECK(written_and_read(texts, once) == texts);
  const std::vector<std::string> copy = texts;
  for (int i = 0; i < 2; ++i) texts.insert(texts.end(), copy.begin(), copy.end());
  CHECK(written_and_read(texts, thrice) == texts);
  CHECK(thrice - once <= 2 * 3 * copy.size());
}

TEST_CASE("a hundred thousand texts that look alike are written as fast as others") {
  std::vector<std::string> alike, others;
  for (int i = 0; i < 100'000; ++i) {
    alike.push_back("beginning " + std::to_string(1'000'000 + i) + " the middle of it, and the same end of all");
    others.push_back(std::to_string(1'000'000 + i) + " beginning, the middle of it, and the same end");
  }
  const auto seconds_of = [](const std::vector<std::string>& texts) {
    std::size_t bytes = 0;
    const auto start = std::chrono::steady_clock::now();
    CHECK(written_and_read(texts, bytes) == texts);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Looking at all that went before would take minutes.
  CHECK(seconds_of(alike) < 100 * seconds_of(others) + 1);
}

}  // namespace holdfast::ledger::sqlite
