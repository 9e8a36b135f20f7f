// unit_ledger "[.bench]" prints what the writer carries: the rows of one-step runs, in batches as a busy
// engine makes them.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>

#include "support.h"

namespace holdfast::ledger {
namespace {

using namespace test;

constexpr std::array<std::string_view, 6> kTypes{"run.submitted", "step.dispatched", "step.settled",
                                                 "write.settled", "run.waiting",     "run.settled"};

void add_event(Batch& batch, run::Run& run, std::size_t type) {
  run.last_event += 1;
  batch.events.emplace_back(&run, run::Event{.seq = run.last_event,
                                             .at = run.created_at,
                                             .type = kTypes[type],
                                             .step = "s0",
                                             .data = R"({"attempt":1})"});
}

run::Attempt attempt_of(const run::Run& run) {
  return {.step = 0,
          .n = 1,
          .started_at = run.created_at,
          .deadline = Duration{3'000},
          .delivery = Delivery::in_flight};
}

void add_submit(Batch& batch, run::Run& run) {
  run.submit_key = "key-" + run.id;
  batch.new_runs.push_back(&run);
  add_event(batch, run, 0);
}

void add_dispatch(Batch& batch, run::Run& run) {
  run.status = run::RunStatus::running;
  run.steps[0].status = run::StepStatus::running;
  run.steps[0].write = run::Write{.key = "hf1_abcdefghijklmnopqrstuvwxyz234567abcdefgh",
                                  .state = run::WriteState::dispatched,
                                  .request = {"POST /charges", run.steps[0].spec.args}};
  batch.runs.push_back(&run);
  batch.steps.push_back({&run, 0});
  batch.attempts.emplace_back(&run, attempt_of(run));
  add_event(batch, run, 1);
  add_event(batch, run, 4);
}

void add_settle(Batch& batch, run::Run& run) {
  run.status = run::RunStatus::succeeded;
  run.result = run.steps[0].result =
      R"({"content":[{"type":"text","text":"created"}],"structuredContent":{"id":42}})";
  run.steps[0].status = run::StepStatus::succeeded;
  run.steps[0].write->state = run::WriteState::landed;
  batch.runs.push_back(&run);
  batch.steps.push_back({&run, 0});
  run::Attempt attempt = attempt_of(run);
  attempt.delivery = Delivery::answered;
  attempt.verdict = Verdict::ok;
  batch.attempts.emplace_back(&run, attempt);
  for (const std::size_t type : {2u, 3u, 5u}) add_event(batch, run, type);
}

/// Each turn submits a group, dispatches the group before and settles the one before that, as one commit.
double runs_per_second(std::uint64_t runs, std::uint64_t group) {
  const Folder folder;
  Opened db = open_or_fail(folder.database());
  std::vector<std::vector<run::Run>> groups(3);
  const auto start = std::chrono::steady_clock::now();
  Batch batch;
  for (std::uint64_t turn = 0; turn < runs / group; ++turn) {
    std::vector<run::Run>& fresh = groups[turn % 3];
    fresh.clear();
    for (std::uint64_t i = 0; i < group; ++i) fresh.push_back(small_run(turn * group + i + 1));
    batch.clear();
    for (run::Run& run : fresh) add_submit(batch, run);
    if (turn >= 1)
      for (run::Run& run : groups[(turn - 1) % 3]) add_dispatch(batch, run);
    if (turn >= 2)
      for (run::Run& run : groups[(turn - 2) % 3]) add_settle(batch, run);
    commit_or_fail(*db.ledger, batch);
    db.ledger->checkpoint_if_due();
  }
  return static_cast<double>(runs) /
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("one-step runs per second", "[.bench]") {
  for (const std::uint64_t group : {1u, 10u, 50u, 200u}) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const std::uint64_t runs = group == 1 ? 2'000 : 20'000;
    const double rate = runs_per_second(runs, group);
    getrusage(RUSAGE_SELF, &after);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    const double cpu = seconds(after.ru_utime) + seconds(after.ru_stime) - seconds(before.ru_utime) -
                       seconds(before.ru_stime);
    std::printf("group %4llu: %8.0f runs/s, %6.1f us of processor per run, peak memory %ld KiB\n",
                static_cast<unsigned long long>(group), rate, cpu * 1e6 / static_cast<double>(runs),
                after.ru_maxrss);
  }
}

}  // namespace holdfast::ledger
