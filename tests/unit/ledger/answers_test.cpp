// Cached answers: the last one for each call, within bounds, after a restart too.
#include "support.h"

namespace holdfast::ledger {
namespace {

using namespace test;

CachedAnswer answer(const std::string& arguments, std::string result, std::int64_t at = 1'000) {
  return {"fx", "rates", arguments, Instant{at}, std::move(result)};
}

void put(Ledger& ledger, std::vector<CachedAnswer> answers) {
  Batch batch;
  batch.answers = std::move(answers);
  REQUIRE_FALSE(batch.empty());
  commit_or_fail(ledger, batch);
}

std::string kept(Ledger& ledger, const std::string& arguments) {
  const auto found = value_of(ledger.find_answer("fx", "rates", arguments));
  return found ? found->result : "-";
}

std::string rows(const Folder& folder) {
  return Outsider(folder.database()).text("SELECT count(*), coalesce(sum(bytes), 0) FROM cached_answers");
}

}  // namespace

TEST_CASE("the newest answer to a call replaces the one before it and outlives the process") {
  const Folder folder;
  {
    Opened db = open_or_fail(folder.database());
    put(*db.ledger, {answer("a", "1"), answer("b", "2"), answer("a", "\"three\"", 2'000)});
    CHECK(kept(*db.ledger, "a") == "\"three\"");
  }
  Opened db = open_or_fail(folder.database());
  const auto found = value_of(db.ledger->find_answer("fx", "rates", "a"));
  REQUIRE(found);
  CHECK(found->at == Instant{2'000});
  CHECK(found->result == "\"three\"");
  CHECK(kept(*db.ledger, "b") == "2");
  CHECK(kept(*db.ledger, "c") == "-");
  CHECK_FALSE(value_of(db.ledger->find_answer("fx", "other", "a")));
  CHECK_FALSE(value_of(db.ledger->find_answer("other", "rates", "a")));
  CHECK(rows(folder) == "2|8\n");
}

TEST_CASE("the oldest answer goes first, by count and by bytes") {
  const Folder folder;
  {
    Opened db = open_or_fail(folder.database(), {.max_answers = 3, .max_answer_bytes = 1'000});
    put(*db.ledger, {answer("a", "1"), answer("b", "2"), answer("c", "3")});
    put(*db.ledger, {answer("a", "11")});  // now the newest
    put(*db.ledger, {answer("d", "4")});
    CHECK(kept(*db.ledger, "b") == "-");
    CHECK(kept(*db.ledger, "a") == "11");
    CHECK(rows(folder) == "3|4\n");
  }
  // Bounds hold for what an earlier life has left.
  Opened db = open_or_fail(folder.database(), {.max_answers = 100, .max_answer_bytes = 7});
  put(*db.ledger, {answer("e", "55555")});
  CHECK(kept(*db.ledger, "c") == "-");
  CHECK(kept(*db.ledger, "a") == "-");
  CHECK(kept(*db.ledger, "d") == "4");
  CHECK(kept(*db.ledger, "e") == "55555");
  CHECK(rows(folder) == "2|6\n");
  put(*db.ledger, {answer("f", "666666666")});  // over the bound by itself
  CHECK(rows(folder) == "0|0\n");
}

TEST_CASE("a commit that failed has not counted its answers") {
  const Folder folder;
  Opened db = open_or_fail(folder.database(), {.max_pages = 60, .max_answers = 2});
  put(*db.ledger, {answer("a", "1")});
  Batch batch;
  batch.answers = {answer("b", "2"), answer("c", "\"" + std::string(400'000, 'x') + "\"")};
  REQUIRE_FALSE(db.ledger->commit(batch));
  CHECK(kept(*db.ledger, "a") == "1");
  put(*db.ledger, {answer("b", "2")});
  CHECK(kept(*db.ledger, "a") == "1");
  CHECK(rows(folder) == "2|2\n");
}

}  // namespace holdfast::ledger
