#include <catch2/catch.hpp>

#include "tools/mcp/codec.h"

namespace holdfast::tools::mcp {
namespace {

Evidence answer_of(std::string_view text) {
  const Result<Message> message = read_message(text, 64);
  return message ? read_answer(*message) : unreadable_answer(message.error());
}

TEST_CASE("arguments pass through byte for byte, the key travels in _meta") {
  const CallParts call{7, "note", R"({"n":1.50,"t":"\u0041"})", "vendor/key", "hf1_x"};
  REQUIRE(
      call_message(Era::legacy, call) ==
      R"({"jsonrpc":"2.0","method":"tools/call","id":7,"params":{"name":"note","arguments":{"n":1.50,"t":"\u0041"},)"
      R"("_meta":{"vendor/key":"hf1_x"}}})");
  REQUIRE(call_message(Era::legacy, {8, "note", "", "", ""}) ==
          R"({"jsonrpc":"2.0","method":"tools/call","id":8,"params":{"name":"note","arguments":{}}})");
}

TEST_CASE("an awkward _meta name stays one JSON member") {
  const std::string text = call_message(Era::modern, {1, "t", "{}", "a\"b", "k"});
  const Result<json::Value> root = json::parse(text);
  REQUIRE(root.has_value());
  const json::Value* meta = json::at(*root, "/params/_meta");
  REQUIRE(meta != nullptr);
  REQUIRE(meta->find("a\"b")->text() == "k");
  REQUIRE(meta->find("io.modelcontextprotocol/protocolVersion")->text() == "2026-07-28");
}

TEST_CASE("every modern request carries its _meta, and every message is JSON") {
  for (const std::string& text :
       {discover_message(1), list_message(Era::modern, 2, "c"),
        call_message(Era::modern, {3, "t", "{}", "", ""}), cancelled_message(Era::modern, 4, "why")}) {
    const Result<json::Value> root = json::parse(text);
    REQUIRE(root.has_value());
    const json::Value* meta = json::at(*root, "/params/_meta");
    REQUIRE(meta != nullptr);
    REQUIRE(meta->find("io.modelcontextprotocol/clientCapabilities") != nullptr);
  }
  for (const std::string& text :
       {initialize_message(1), initialized_message(), list_message(Era::legacy, 2, ""),
        cancelled_message(Era::legacy, 4, "why"), reply_message("\"s\"", "ping"),
        reply_message("5", "sampling/createMessage")}) {
    REQUIRE(json::parse(text).has_value());
    REQUIRE(text.find("_meta") == std::string::npos);
  }
}

TEST_CASE("an empty cursor is a cursor") {
  REQUIRE(list_message(Era::legacy, 1, "").find(R"("cursor":"")") != std::string::npos);
  REQUIRE(list_message(Era::legacy, 1, std::nullopt).find("cursor") == std::string::npos);
}

TEST_CASE("every shape of answer has one reading") {
  struct Row {
    std::string_view body;
    Answer answer;
    Failure failure;
    std::string text;
  };
  const std::vector<Row> rows = {
      {R"("result":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":false})",
       Answer::result, Failure::none, "a\nb"},
      {R"("result":{})", Answer::result, Failure::none, ""},
      {R"("result":{"resultType":"complete"})", Answer::result, Failure::none, ""},
      {R"("result":{"isError":true,"content":[{"type":"text","text":"no"}]})", Answer::tool_error,
       Failure::none, "no"},
      {R"("result":{"is_error":true})", Answer::tool_error, Failure::none, ""},
      {R"("result":{"isError":false,"is_error":true})", Answer::tool_error, Failure::none, ""},
      {R"("result":{"isError":"true"})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{"isError":1})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{"isError":null})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":null)", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":[])", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{"resultType":"surprise"})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{"resultType":1})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{"resultType":"task","task":{"taskId":"1"}})", Answer::none, Failure::malformed_rpc, ""},
      {R"("result":{},"error":{"code":1,"message":"x"})", Answer::none, Failure::malformed_rpc, ""},
      {R"("other":1)", Answer::none, Failure::malformed_rpc, ""},
      {R"("error":{"code":-32602,"message":"bad"})", Answer::rpc_error, Failure::none, "bad"},
      {R"("error":{"code":"x","message":"bad"})", Answer::none, Failure::malformed_rpc, ""},
      {R"("error":null)", Answer::none, Failure::malformed_rpc, ""},
      {R"("id":2,"result":{})", Answer::none, Failure::malformed_rpc, ""},
      {R"("method":"x","result":{})", Answer::none, Failure::malformed_rpc, ""},
  };
  for (const Row& row : rows) {
    INFO(row.body);
    const Evidence e = answer_of(R"({"jsonrpc":"2.0","id":1,)" + std::string(row.body) + "}");
    CHECK(e.phase == Phase::parsed);
    CHECK(e.answer == row.answer);
    CHECK(e.failure == row.failure);
    CHECK(e.text == row.text);
    CHECK(e.over_mcp);
  }
}

TEST_CASE("the result is kept as received, and the error's code") {
  REQUIRE(answer_of(R"({"id":1,"result":{ "n":1.0 ,"x":"\u00e9"}})").result == R"({ "n":1.0 ,"x":"\u00e9"})");
  REQUIRE(answer_of(R"({"id":1,"error":{"code":-32601,"message":"m"}})").rpc_code == -32601);
}

TEST_CASE("nesting over the limit is too large, not malformed") {
  const std::string deep = R"({"id":1,"result":{"d":)" + std::string(100, '[') + std::string(100, ']') + "}}";
  REQUIRE(answer_of(deep).failure == Failure::too_large);
  REQUIRE(answer_of(R"({"id":1,"result":{"d":)").failure == Failure::malformed_rpc);
}

TEST_CASE("the id of a cut message is found at the top level only") {
  REQUIRE(peek_id(R"({"jsonrpc":"2.0","id":12,"result":{"x)") == 12);
  REQUIRE(peek_id(R"({"result":{"id":3,"s":"\"id\":4"},"id": 5})") == 5);
  REQUIRE(peek_id(R"({"result":{"id":3})") == std::nullopt);
  REQUIRE(peek_id(R"({"x":"id","id":"12"})") == std::nullopt);
  REQUIRE(peek_id(R"({"id":1)") == std::nullopt);
  REQUIRE(peek_id("noise") == std::nullopt);
}

TEST_CASE("text is cut between characters") {
  REQUIRE(clip("abc", 2) == "ab");
  REQUIRE(clip("a\xC3\xA9", 2) == "a");
  REQUIRE(clip("a\xC3\xA9", 3) == "a\xC3\xA9");
}

}  // namespace
}  // namespace holdfast::tools::mcp
