#include "holdfast/core/intent_key.h"

#include <catch2/catch.hpp>

using namespace holdfast;

namespace {

constexpr std::string_view kRun = "run_01JDXW0000ABCDEFGHJKMNPQRS";

}  // namespace

// The expected values come from other tools than the code under test:
//   key() { for p in "$@"; do printf %016x $(printf %s "$p" | wc -c) | xxd -r -p; printf %s "$p"; done |
//           openssl dgst -sha256 -binary | base32 -w0 | tr A-Z a-z | cut -c1-40 | sed s/^/hf1_/; }
//   key run_01JDXW0000ABCDEFGHJKMNPQRS note ticket/42
TEST_CASE("the intent key of known intents") {
  CHECK(intent_key(kRun, "note", "ticket/42") == "hf1_yb3iwixqcv6uv2htqapj5f555mmgn3dsrvww56u3");
  CHECK(intent_key("", "", "") == "hf1_twii5t5wwjln56futj6fattmrcoewdsb7zwohyay");
  CHECK(intent_key(kRun, "s", "Caf\u00e9") == "hf1_jjs5lp7w2ixelhpteugkd4nz5yxbknwst55wtfc2");
  CHECK(intent_key(kRun, "s", "Cafe\u0301") == "hf1_xv3mkj3cvqxclqpeqlaphq76huzdwdnfeidpqr2a");
  CHECK(intent_key(kRun, "a", " x ") == "hf1_k3ogtgh4roezbwx65cm5xvqnl66ezecrylem27cz");
  CHECK(intent_key(kRun, "a", "X") == "hf1_cetnmetksomn5k46hmq5m2hag63jckt7ozcalupp");
  CHECK(intent_key("run_0", "s", std::string(1'024, 'x')) == "hf1_wvkx4i4nsqayssftkodm6iauek7ayfrz766ytpy3");
  CHECK(intent_key(kRun, "e", "\u65e5\u672c\u8a9e/\u8ab2\u984c \U0001F3AB") ==
        "hf1_k52aqa7c76gz2ltkn73ous34wfywdypqmfosunwj");
}

TEST_CASE("parts that run together to the same text have different keys") {
  CHECK(intent_key("ab", "c", "d") == "hf1_ibylxikbytzqf23qsviyxc75d2hgw66u63nolrwx");
  CHECK(intent_key("a", "bc", "d") == "hf1_l5l5fdp5bsqzuibeuxd6tfiiyxchtlnmi7maebbl");
  CHECK(intent_key("a", "b", "cd") != intent_key("a", "bc", "d"));
}

TEST_CASE("SHA-256 in hexadecimal") {
  // printf %s abc | sha256sum
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string_view("\0", 1)) ==
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}
