#include "api/render.h"

#include <catch2/catch.hpp>

using namespace holdfast;

namespace {

constexpr Instant kNow{1'796'000'010'000};

run::Run example() {
  run::Run run;
  run.id = "run_01M8N30BJBAJEHS3KS1CSNG9W1";
  run.name = "nightly";
  run.status = run::RunStatus::waiting;
  run.wait = {run::WaitFor::backoff, kNow + Duration{1'500}};
  run.created_at = kNow - Duration{10'000};
  run.started_at = run.created_at;
  run.deadline = kNow + Duration{50'000};
  run.labels = R"({"team":"ops"})";
  run::Step step;
  step.spec.id = "note";
  step.spec.server = "crm";
  step.spec.tool = "post";
  step.target = "ticket/42";
  step.status = run::StepStatus::waiting;
  step.wait = run.wait;
  step.attempts = 1;
  step.write = run::Write{.key = "hf1_x", .state = run::WriteState::dispatched};
  run.steps.push_back(step);
  return run;
}

}  // namespace

TEST_CASE("a run is rendered with every field of the contract, in full") {
  CHECK(
      api::run_json(example(), kNow) ==
      R"({"id":"run_01M8N30BJBAJEHS3KS1CSNG9W1","name":"nightly","owner":null,"mode":"plan","status":"waiting","reason":null,)"
      R"("detail":null,"waiting":{"for":"backoff","until":"2026-11-30T00:53:31.500Z"},"settled":false,"needs":null,)"
      R"("created_at":"2026-11-30T00:53:20.000Z","started_at":"2026-11-30T00:53:20.000Z","finished_at":null,)"
      R"("deadline":"2026-11-30T00:54:20.000Z","remaining_ms":50000,"retry_budget":{"limit":20,"spent":0},"labels":{"team":"ops"},)"
      R"("warnings":[],"steps":[{"id":"note","server":"crm","tool":"post","effect":"write","target":"ticket/42","status":"waiting",)"
      R"("reason":null,"detail":null,"advice":null,"attempts":1,"max_attempts":3,)"
      R"("waiting":{"for":"backoff","until":"2026-11-30T00:53:31.500Z"},"attempt_age_ms":null,"result":null,"degraded":false,)"
      R"("write":{"id":"wr_01M8N30BJBAJEHS3KS1CSNG9W1_0","key":"hf1_x","state":"dispatched"}}],"result":null,)"
      R"("urls":{"self":"/v1/runs/run_01M8N30BJBAJEHS3KS1CSNG9W1","events":"/v1/runs/run_01M8N30BJBAJEHS3KS1CSNG9W1/events",)"
      R"("attempts":"/v1/runs/run_01M8N30BJBAJEHS3KS1CSNG9W1/attempts","cancel":"/v1/runs/run_01M8N30BJBAJEHS3KS1CSNG9W1/cancel"}})");
}

TEST_CASE("results pass through digit for digit") {
  run::Run run = example();
  run.result = R"({"n": 12345678901234567890, "x": 1.10})";
  CHECK(api::run_json(run, kNow).find(R"("result":{"n": 12345678901234567890, "x": 1.10},"urls")") !=
        std::string::npos);
}

TEST_CASE("only an unknown run, or one that waits for a person, needs a human") {
  run::Run run = example();
  const auto needs = [&run] {
    return api::run_json(run, kNow).find(R"("needs":"human")") != std::string::npos;
  };
  CHECK_FALSE(needs());
  run.wait = {run::WaitFor::human, std::nullopt};
  CHECK(needs());
  run.wait = {run::WaitFor::client, std::nullopt};
  CHECK_FALSE(needs());
  run.status = run::RunStatus::unknown;
  CHECK(needs());
}

TEST_CASE("the time left is never negative, and a stale wait is not shown") {
  run::Run run = example();
  run.status = run::RunStatus::failed;
  run.steps[0].status = run::StepStatus::failed;
  const std::string text = api::run_json(run, run.deadline + Duration{1});
  CHECK(text.find(R"("remaining_ms":0)") != std::string::npos);
  CHECK(text.find("backoff") == std::string::npos);
}

TEST_CASE("an attempt in flight has an age and no verdict, an answered one its numbers") {
  run::Run run = example();
  run::Attempt attempt;
  attempt.n = 2;
  attempt.started_at = kNow - Duration{700};
  attempt.deadline = Duration{3000};
  const auto text = [&] {
    std::string out;
    json::Writer w(out);
    api::render_attempt(w, run, attempt, kNow);
    return out;
  };
  CHECK(
      text() ==
      R"({"id":"at_01M8N30BJBAJEHS3KS1CSNG9W1_0_2","step":"note","n":2,"started_at":"2026-11-30T00:53:29.300Z","deadline_ms":3000,)"
      R"("waited_ms":700,"kind":"call","delivery":"in_flight","phase":"local","verdict":null,"class":null,"late":false,)"
      R"("http_status":null,"rpc_code":null,"detail":null,"bytes_sent":0,"bytes_received":0})");
  attempt.finished_at = attempt.started_at + Duration{40};
  attempt.delivery = Delivery::answered;
  attempt.verdict = Verdict::refused;
  attempt.klass = AttemptClass::rpc_error;
  attempt.rpc_code = -32602;
  const std::string answered = text();
  CHECK(answered.find(R"("waited_ms":40)") != std::string::npos);
  CHECK(answered.find(R"("verdict":"refused","class":"rpc_error")") != std::string::npos);
  CHECK(answered.find(R"("rpc_code":-32602)") != std::string::npos);
}

TEST_CASE("an unknown write shows its doubt, what was sent and what has been decided") {
  tools::Config config;
  const tools::Catalog catalog(config);
  ledger::UnknownEntry entry;
  entry.run_id = "run_01M8N30BJBAJEHS3KS1CSNG9W1";
  entry.step = 3;
  entry.state = example().steps[0];
  entry.state.status = run::StepStatus::unknown;
  entry.state.reason = Reason::timed_out;
  entry.state.write->state = run::WriteState::unknown;
  entry.state.write->unknown_since = kNow - Duration{4000};
  entry.state.write->open = true;
  run::Attempt sent, never;
  sent.step = never.step = 3;
  sent.n = 1, sent.delivery = Delivery::maybe_sent, sent.phase = Phase::tx_all, sent.bytes_sent = 210;
  never.n = 2, never.delivery = Delivery::not_sent, never.phase = Phase::tcp;
  entry.attempts = {sent, never};
  const auto text = [&] {
    std::string out;
    json::Writer w(out);
    api::render_unknown(w, entry, catalog, kNow);
    return out;
  };
  const std::string open = text();
  CHECK(open.find(R"("id":"wr_01M8N30BJBAJEHS3KS1CSNG9W1_3")") != std::string::npos);
  CHECK(open.find(R"("reason":"timed_out")") != std::string::npos);
  CHECK(open.find(R"("age_ms":4000)") != std::string::npos);
  CHECK(open.find(R"("phase":"tx_all","bytes_sent":210)") != std::string::npos);
  CHECK(open.find(R"("open":true,"resolution":null)") != std::string::npos);
  CHECK(json::parse(open).has_value());
  entry.state.write->resolution = run::Resolution::landed;
  entry.state.write->resolved_by = "ops";
  entry.state.write->resolution_note = "seen";
  CHECK(text().find(R"("resolution":{"verdict":"landed","by":"ops","note":"seen","at":null})") !=
        std::string::npos);
}
