#include "holdfast/run/plan.h"

#include <catch2/catch.hpp>

#include "holdfast/core/intent_key.h"
#include "unit/run/plan_support.h"

using namespace holdfast;
using namespace holdfast::run;

namespace {

struct Refusal {
  std::string text;
  std::string pointer;
};

/// A plan of one good step with these members in front.
std::string with(const std::string& members) {
  return "{" + members + R"(,"steps":[{"id":"w","server":"api","tool":"w"}]})";
}
/// A plan of one step: the members of a good one, and these.
std::string step_with(const std::string& members) {
  return R"({"steps":[{"id":"w","server":"api","tool":"w",)" + members + "}]}";
}

}  // namespace

TEST_CASE("a full submission becomes a run with everything in its place") {
  const std::string text =
      R"({"name": "nightly-triage", "deadline": "2h", "retry_budget": 7, "labels": {"team": "ops", "a": ""}, "mode": "plan",
    "steps": [{"id": "find", "server": "api", "tool": "look", "args": {"q": "open"}},
              {"id": "note", "server": "api", "tool": "w", "target": "ticket/42", "args": {"text": "found ${find/n}"}, "after": ["find"],
               "deadline": "5s", "max_attempts": 2, "on_failure": "continue", "on_circuit_open": "fail", "key": "mine-1"}],
    "result": "${find/n}"})";
  const Run run = planned(text);
  CHECK(run.id.empty());
  CHECK(run.seq == 0);
  CHECK(run.status == RunStatus::queued);
  CHECK(run.name == "nightly-triage");
  CHECK(run.mode == Mode::plan);
  CHECK(run.created_at == kNow);
  CHECK(run.deadline == kNow + Duration{7'200'000});
  CHECK(run.retry_limit == 7);
  CHECK(run.labels == R"({"a":"","team":"ops"})");
  CHECK(run.warnings == "[]");
  CHECK(run.result_template == R"("${find/n}")");
  CHECK(run.submit_digest == sha256_hex(json::canonical(*json::parse(text))));
  REQUIRE(run.steps.size() == 2);
  CHECK(run.steps[0].effect == Effect::read);
  CHECK(run.steps[0].target == "api/look");
  CHECK(run.steps[0].spec.target.empty());
  CHECK(run.steps[0].spec.args == R"({"q": "open"})");
  CHECK(run.steps[0].max_attempts == 5);
  CHECK_FALSE(run.steps[0].spec.max_attempts);
  CHECK_FALSE(run.steps[0].spec.deadline);
  const StepSpec& note = run.steps[1].spec;
  CHECK(run.steps[1].effect == Effect::write);
  CHECK(run.steps[1].target == "ticket/42");
  CHECK(run.steps[1].max_attempts == 2);
  CHECK(note.after == std::vector<std::uint32_t>{0});
  CHECK(note.deadline == Duration{5'000});
  CHECK(note.on_failure == OnFailure::proceed);
  CHECK(note.on_circuit_open == OnCircuitOpen::fail);
  CHECK(note.key == "mine-1");
  CHECK(note.digest.empty());
}

TEST_CASE("what is not said has the documented default") {
  const Run run = planned(R"({"steps":[{"id":"w","server":"api","tool":"w"}]})");
  CHECK(run.name.empty());
  CHECK(run.deadline == kNow + Duration{900'000});
  CHECK(run.retry_limit == 20);
  CHECK(run.labels == "{}");
  CHECK(run.result_template.empty());
  CHECK(run.steps[0].spec.args == "{}");
  CHECK(run.steps[0].spec.on_failure == OnFailure::stop);
  CHECK(run.steps[0].spec.on_circuit_open == OnCircuitOpen::wait);
  CHECK(run.steps[0].max_attempts == 3);
}

TEST_CASE("the order of steps") {
  using Steps = std::vector<std::uint32_t>;
  const Run run = planned(R"({"steps":[
    {"id":"a","server":"api","tool":"w"},
    {"id":"b","server":"api","tool":"w"},
    {"id":"c","server":"api","tool":"w","after":[]},
    {"id":"d","server":"api","tool":"w","after":["c","a","c"]},
    {"id":"e","server":"api","tool":"w","after":[],"args":{"x":"${c/v}","y":["${a/v} ${c}"]}},
    {"id":"f","server":"api","tool":"w","args":{"x":"${a}","lit":"$${zzz}"}},
    {"id":"g","server":"api","tool":"w","after":[],"args":{"x":"${h}"}},
    {"id":"h","server":"api","tool":"w","after":[]}]})");
  CHECK(run.steps[0].spec.after == Steps{});
  CHECK(run.steps[1].spec.after == Steps{0});
  CHECK(run.steps[2].spec.after == Steps{});
  CHECK(run.steps[3].spec.after == Steps{0, 2});
  CHECK(run.steps[4].spec.after == Steps{0, 2});
  CHECK(run.steps[5].spec.after == Steps{0, 4});
  CHECK(run.steps[6].spec.after == Steps{7});
}

TEST_CASE("a bad submission is refused with the place") {
  const auto c = GENERATE(
      Refusal{"[]", ""}, Refusal{"null", ""}, Refusal{"{}", ""}, Refusal{R"({"steps":[]})", "/steps"},
      Refusal{R"({"steps":{}})", "/steps"}, Refusal{R"({"steps":[1]})", "/steps/0"},
      Refusal{with(R"("nmae":"x")"), "/nmae"}, Refusal{with(R"("a/b~":"x")"), "/a~1b~0"},
      Refusal{with(R"("name":5)"), "/name"}, Refusal{with(R"("name":null)"), "/name"},
      Refusal{with(R"("name":"a\u0000b")"), "/name"},
      Refusal{with("\"name\":\"" + std::string(257, 'x') + "\""), "/name"},
      Refusal{with(R"("mode":"wild")"), "/mode"}, Refusal{with(R"("mode":"")"), "/mode"},
      Refusal{with(R"("mode":1)"), "/mode"}, Refusal{with(R"("retry_budget":-1)"), "/retry_budget"},
      Refusal{with(R"("retry_budget":1.0)"), "/retry_budget"},
      Refusal{with(R"("retry_budget":"3")"), "/retry_budget"},
      Refusal{with(R"("retry_budget":1e3)"), "/retry_budget"}, Refusal{with(R"("labels":[])"), "/labels"},
      Refusal{with(R"("labels":{"a":1})"), "/labels/a"}, Refusal{with(R"("labels":{"":"x"})"), "/labels/"},
      Refusal{with(R"("labels":{"a\n":"x"})"), "/labels/a\n"},
      Refusal{with("\"labels\":{\"" + std::string(65, 'k') + "\":\"\"}"), "/labels/" + std::string(65, 'k')},
      Refusal{with("\"labels\":{\"k\":\"" + std::string(257, 'v') + "\"}"), "/labels/k"},
      Refusal{with(R"("result":"${nope}")"), "/result"},
      Refusal{with(R"("result":{"a":["${w}","${nope/x}"]})"), "/result/a/1"},
      Refusal{with(R"("result":"${w")"), "/result"},
      Refusal{R"({"mode":"open","steps":[],"result":1})", "/result"},
      Refusal{R"({"mode":"open","steps":null})", "/steps"});
  CAPTURE(c.text);
  const Error error = refused(c.text);
  CHECK(error.code == "bad_submission");
  CHECK(error.pointer == c.pointer);
  CHECK_FALSE(error.message.empty());
}

TEST_CASE("a bad step is refused with the place") {
  const auto c = GENERATE(
      Refusal{R"("tardet":"x")", "/tardet"}, Refusal{R"("after":["nope"])", "/after/0"},
      Refusal{R"("after":["w"])", "/after/0"}, Refusal{R"("after":"w")", "/after"},
      Refusal{R"("after":[1])", "/after/0"}, Refusal{R"("after":null)", "/after"},
      Refusal{R"("target":"")", "/target"}, Refusal{R"("target":"a\nb")", "/target"},
      Refusal{R"("target":"a\u0000")", "/target"}, Refusal{R"("target":7)", "/target"},
      Refusal{"\"target\":\"" + std::string(1025, 'x') + "\"", "/target"}, Refusal{R"("args":7)", "/args"},
      Refusal{R"("args":[])", "/args"}, Refusal{R"("args":null)", "/args"},
      Refusal{R"("args":"${w}")", "/args"}, Refusal{R"("args":{"x":"${nope/a}"})", "/args/x"},
      Refusal{R"("args":{"x":"${w}"})", "/args/x"},
      Refusal{R"("args":{"x":[{"y/z":"a ${nope}"}]})", "/args/x/0/y~1z"},
      Refusal{R"("args":{"x":"${"})", "/args/x"}, Refusal{R"("args":{"x":"echo ${HOME}"})", "/args/x"},
      Refusal{R"("deadline":"0s")", "/deadline"}, Refusal{R"("deadline":-1)", "/deadline"},
      Refusal{R"("deadline":0)", "/deadline"}, Refusal{R"("deadline":1.5)", "/deadline"},
      Refusal{R"("deadline":"10")", "/deadline"},
      Refusal{R"("deadline":"2100-01-01T00:00:00Z")", "/deadline"},
      Refusal{R"("max_attempts":0)", "/max_attempts"}, Refusal{R"("max_attempts":"3")", "/max_attempts"},
      Refusal{R"("max_attempts":2.0)", "/max_attempts"}, Refusal{R"("on_failure":"maybe")", "/on_failure"},
      Refusal{R"("on_failure":"proceed")", "/on_failure"}, Refusal{R"("on_failure":true)", "/on_failure"},
      Refusal{R"("on_circuit_open":"")", "/on_circuit_open"}, Refusal{R"("key":"")", "/key"},
      Refusal{R"("key":"a\r\nX: 1")", "/key"}, Refusal{R"("key":"a\u0000")", "/key"},
      Refusal{R"("key":1)", "/key"});
  CAPTURE(c.text);
  const Error error = refused(step_with(c.text));
  CHECK(error.code == "bad_submission");
  CHECK(error.pointer == "/steps/0" + c.pointer);
  // The same step, posted to an open run, has the same place relative to the step.
  const std::string step = R"({"id":"w","server":"api","tool":"w",)" + c.text + "}";
  const auto value = json::parse(step);
  const auto posted = plan_step(*value, planned(R"({"mode":"open"})"), context());
  REQUIRE_FALSE(posted);
  CHECK(posted.error().pointer == c.pointer);
}

TEST_CASE("ids, servers and tools of a step") {
  const auto c = GENERATE(
      Refusal{R"({"server":"api","tool":"w"})", "/steps/0"}, Refusal{R"({"id":"w","tool":"w"})", "/steps/0"},
      Refusal{R"({"id":"w","server":"api"})", "/steps/0"},
      Refusal{R"({"id":"","server":"api","tool":"w"})", "/steps/0/id"},
      Refusal{R"({"id":"a/b","server":"api","tool":"w"})", "/steps/0/id"},
      Refusal{R"({"id":5,"server":"api","tool":"w"})", "/steps/0/id"},
      Refusal{R"({"id":"a\u0000","server":"api","tool":"w"})", "/steps/0/id"},
      Refusal{"{\"id\":\"" + std::string(129, 'a') + "\",\"server\":\"api\",\"tool\":\"w\"}", "/steps/0/id"},
      Refusal{R"({"id":"w","server":"nope","tool":"w"})", "/steps/0/server"},
      Refusal{R"({"id":"w","server":"api","tool":"W"})", "/steps/0/tool"},
      Refusal{R"({"id":"w","server":"api","tool":"nope"})", "/steps/0/tool"},
      Refusal{R"({"id":"w","server":"Api","tool":"w"})", "/steps/0/server"});
  CAPTURE(c.text);
  const Error error = refused("{\"steps\":[" + c.text + "]}");
  CHECK(error.code == "bad_submission");
  CHECK(error.pointer == c.pointer);
  CHECK(refused(R"({"steps":[{"id":"w","server":"api","tool":"w"},{"id":"w","server":"api","tool":"w"}]})")
            .pointer == "/steps/1/id");
}

TEST_CASE("an unknown member is told the nearest known one") {
  CHECK(refused(with(R"("nmae":"x")")).message.find("\"name\"") != std::string::npos);
  CHECK(refused(with(R"("retry_bugdet":1)")).message.find("\"retry_budget\"") != std::string::npos);
  CHECK(refused(with(R"("label":{})")).message.find("\"labels\"") != std::string::npos);
  CHECK(refused(step_with(R"("tardet":"x")")).message.find("\"target\"") != std::string::npos);
  CHECK(refused(step_with(R"("maxAttempts":1)")).message.find("\"max_attempts\"") != std::string::npos);
  CHECK(refused(with("\"" + std::string(100'000, 'q') + "\":1")).message.size() < 300);
}

TEST_CASE("steps that wait for each other are refused at one of them") {
  const auto cycle = [](const std::string& steps) { return refused("{\"steps\":[" + steps + "]}"); };
  const Error two = cycle(
      R"({"id":"a","server":"api","tool":"w","after":["b"]},{"id":"b","server":"api","tool":"w","after":["a"]})");
  CHECK(two.pointer == "/steps/0");
  CHECK(two.message.find("\"a\" waits for \"b\" waits for \"a\"") != std::string::npos);
  const Error mixed =
      cycle(R"({"id":"x","server":"api","tool":"w"},{"id":"a","server":"api","tool":"w","args":{"v":"${c}"}},
    {"id":"b","server":"api","tool":"w"},{"id":"c","server":"api","tool":"w"},{"id":"z","server":"api","tool":"w"})");
  CHECK(mixed.pointer == "/steps/1");
  CHECK(mixed.message.find("\"x\"") == std::string::npos);
  CHECK(mixed.message.find("\"z\"") == std::string::npos);
  // A default order makes a reference to the next step a circle too.
  CHECK(
      cycle(
          R"({"id":"a","server":"api","tool":"w","args":{"v":"${b}"}},{"id":"b","server":"api","tool":"w"})")
          .pointer == "/steps/0");
  // Step 0 only waits for the circle.
  const Error behind = cycle(
      R"({"id":"a","server":"api","tool":"w","after":["b"]},{"id":"b","server":"api","tool":"w","after":["c"]},{"id":"c","server":"api","tool":"w","after":["b"]})");
  CHECK(behind.pointer != "/steps/0");
}

TEST_CASE("large plans are read in proportion and up to the limit") {
  std::string steps;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = std::to_string(i);
    steps += (i > 0 ? ",{\"id\":\"" : "{\"id\":\"") + id + R"(","server":"api","tool":"w","args":{"x":")" +
             (i > 0 ? "${" + std::to_string(i / 2) + "}" : "") + "\"}}";
  }
  CHECK(planned("{\"steps\":[" + steps + "]}").steps.size() == 10'000);
  CHECK(refused("{\"steps\":[" + steps + R"(,{"id":"x","server":"api","tool":"w"}]})").pointer == "/steps");
}

TEST_CASE("a circle through ten thousand steps is found without recursion") {
  std::string steps;
  for (int i = 0; i < 10'000; ++i)
    steps += (i > 0 ? ",{\"id\":\"" : "{\"id\":\"") + std::to_string(i) +
             R"(","server":"api","tool":"w","after":[")" + std::to_string((i + 1) % 10'000) + "\"]}";
  const Error error = refused("{\"steps\":[" + steps + "]}");
  CHECK(error.pointer == "/steps/0");
  CHECK(error.message.size() < 400);
}

TEST_CASE("path arguments that are not there are refused, references count as there") {
  const Error none = refused(R"({"steps":[{"id":"c","server":"api","tool":"charge"}]})");
  CHECK(none.code == "bad_arguments");
  CHECK(none.pointer == "/steps/0/args/customer");
  const Error other = refused(R"({"steps":[{"id":"c","server":"api","tool":"charge","args":{"amount":1}}]})");
  CHECK(other.code == "bad_arguments");
  CHECK(
      planned(
          R"({"steps":[{"id":"a","server":"api","tool":"look"},{"id":"c","server":"api","tool":"charge","args":{"customer":"${a/id}"}}]})")
          .steps.size() == 2);
}

TEST_CASE("a step's target is known where no argument decides it") {
  const auto target = [](const std::string& tool, const std::string& rest = "") {
    return planned(R"({"steps":[{"id":"a","server":"api","tool":")" + tool + "\"" + rest + "}]}")
        .steps[0]
        .target;
  };
  CHECK(target("w") == "api/w");
  CHECK(target("w", R"(,"target":"x y")") == "x y");
  CHECK(target("w", R"(,"target":"ticket/${a}")") == "ticket/${a}");
  CHECK(target("fixed") == "the ${one}");
  CHECK(target("templated", R"(,"args":{"project":"P-1"})").empty());
  CHECK(target("templated", R"(,"target":"mine")") == "mine");
}
