#include "api/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <map>

namespace holdfast::api {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

/// Tool names of unnamed MCP tools come from submissions: beyond this many, they share the label "other".
constexpr std::size_t kMostTools = 2000;
constexpr std::string_view kOther = "other";

const Histogram::BucketBoundaries kCallSeconds{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
                                               2.5,   5,    10,    30,   60,  120,  300};
const Histogram::BucketBoundaries kCommitSeconds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                 0.05,   0.1,   0.25,   0.5,   1,    2.5};
const Histogram::BucketBoundaries kBatchSize{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000};

Family<Counter>& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}
Family<Gauge>& gauge_family(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}
Family<Histogram>& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

double age_seconds(std::optional<Instant> since, Instant now) {
  if (!since) return 0;
  return static_cast<double>(std::max<std::int64_t>(0, (now - *since).count())) / 1000.0;
}

double circuit_value(BreakerState state) {
  switch (state) {
    case BreakerState::closed:
      return 0;
    case BreakerState::half_open:
      return 1;
    case BreakerState::open:
      return 2;
  }
  return 0;
}

}  // namespace

struct MetricsRegistry::Impl {
  explicit Impl(const Clock& c) : clock(c) {
    for (const char* status : {"succeeded", "failed", "cancelled"}) runs_total.Add({{"status", status}});
    open_runs = {&runs_open.Add({{"status", "queued"}}), &runs_open.Add({{"status", "running"}}),
                 &runs_open.Add({{"status", "waiting"}}), &runs_open.Add({{"status", "unknown"}})};
  }

  const Clock& clock;
  prometheus::Registry registry;

  /// What is counted of each call. The series are looked up once.
  struct Tool {
    prometheus::Labels labels;
    Histogram* seconds = nullptr;
    Counter* timeouts = nullptr;
    std::map<AttemptClass, Counter*> attempts;
  };
  std::map<std::string, std::map<std::string, Tool, std::less<>>, std::less<>> tools;  // engine thread only
  std::size_t tool_count = 0;

  Family<Counter>& runs_total =
      counters(registry, "holdfast_runs_total", "Runs settled since the start, by final status");
  Family<Gauge>& runs_open =
      gauge_family(registry, "holdfast_runs_open", "Runs that are not settled, by status");
  Family<Counter>& attempts = counters(registry, "holdfast_attempts_total", "Attempts finished, by class");
  Family<Counter>& tool_timeouts =
      counters(registry, "holdfast_tool_timeouts_total", "Attempts that ran into their deadline");
  Family<Histogram>& call_seconds = histograms(registry, "holdfast_call_seconds", "Duration of attempts");
  Family<Counter>& circuit_open = counters(registry, "holdfast_circuit_open_total",
                                           "Times that a circuit opened; tool is empty for a server's");
  Family<Gauge>& circuit_state =
      gauge_family(registry, "holdfast_circuit_state", "0 closed, 1 half open, 2 open");
  Gauge& unknown_writes =
      gauge_family(registry, "holdfast_unknown_writes", "Writes that wait for evidence or a person").Add({});
  Gauge& oldest_unknown =
      gauge_family(registry, "holdfast_oldest_unknown_seconds", "Age of the oldest open unknown write")
          .Add({});
  Gauge& oldest_attempt =
      gauge_family(registry, "holdfast_oldest_attempt_seconds", "Age of the oldest attempt in flight")
          .Add({});
  Gauge& last_progress =
      gauge_family(registry, "holdfast_last_progress_seconds", "Time since anything was last recorded")
          .Add({});
  Family<Counter>& retries =
      counters(registry, "holdfast_retries_total", "Repeated sends, by what went wrong before");
  Counter& budget_exhausted =
      counters(registry, "holdfast_retry_budget_exhausted_total", "Steps stopped by their run's retry budget")
          .Add({});
  Counter& late_answers =
      counters(registry, "holdfast_late_answers_total", "Answers that came after the attempt was given up")
          .Add({});
  Family<Counter>& fallbacks = counters(registry, "holdfast_fallbacks_total", "Steps answered by a fallback");
  Histogram& commit_seconds =
      histograms(registry, "holdfast_ledger_commit_seconds", "Duration of durable commits")
          .Add({}, kCommitSeconds);
  Histogram& batch_size =
      histograms(registry, "holdfast_ledger_batch_size", "Events decided per commit").Add({}, kBatchSize);
  Gauge& wal_bytes = gauge_family(registry, "holdfast_wal_bytes", "Size of the write-ahead log").Add({});
  std::array<Gauge*, 4> open_runs{};

  std::mutex instants_mutex;
  std::optional<Instant> oldest_unknown_at, oldest_attempt_at, progress_at;

  Tool& tool_of(std::string_view server, std::string_view tool) {
    auto of = tools.find(server);
    if (of == tools.end()) of = tools.emplace(server, std::map<std::string, Tool, std::less<>>{}).first;
    if (const auto found = of->second.find(tool); found != of->second.end()) return found->second;
    if (tool_count >= kMostTools && tool != kOther) return tool_of(server, kOther);
    ++tool_count;
    Tool& made = of->second[std::string(tool)];
    made.labels = {{"server", std::string(server)}, {"tool", std::string(tool)}};
    return made;
  }
};

MetricsRegistry::MetricsRegistry(const Clock& clock) : impl_(std::make_unique<Impl>(clock)) {}
MetricsRegistry::~MetricsRegistry() = default;

void MetricsRegistry::attempt_finished(std::string_view server, std::string_view tool, AttemptClass klass,
                                       double seconds, bool timed_out) {
  Impl::Tool& of = impl_->tool_of(server, tool);
  if (of.seconds == nullptr) {
    of.seconds = &impl_->call_seconds.Add(of.labels, kCallSeconds);
    of.timeouts = &impl_->tool_timeouts.Add(of.labels);
  }
  of.seconds->Observe(seconds);
  if (timed_out) of.timeouts->Increment();
  Counter*& count = of.attempts[klass];
  if (count == nullptr) {
    prometheus::Labels labels = of.labels;
    labels.emplace("class", std::string(word(klass)));
    count = &impl_->attempts.Add(labels);
  }
  count->Increment();
}

void MetricsRegistry::run_settled(run::RunStatus status) {
  impl_->runs_total.Add({{"status", std::string(run::word(status))}}).Increment();
}

void MetricsRegistry::retried(Reason or_none, std::string_view reason) {
  impl_->retries.Add({{"reason", std::string(reason.empty() ? word(or_none) : reason)}}).Increment();
}

void MetricsRegistry::retry_budget_exhausted() {
  impl_->budget_exhausted.Increment();
}
void MetricsRegistry::late_answer() {
  impl_->late_answers.Increment();
}

void MetricsRegistry::fallback(std::string_view server, std::string_view tool) {
  impl_->fallbacks.Add(impl_->tool_of(server, tool).labels).Increment();
}

void MetricsRegistry::circuit(std::string_view server, std::string_view tool, BreakerState state,
                              bool opened) {
  const prometheus::Labels& labels = impl_->tool_of(server, tool).labels;
  Counter& opened_total = impl_->circuit_open.Add(labels);
  if (opened) opened_total.Increment();
  impl_->circuit_state.Add(labels).Set(circuit_value(state));
}

void MetricsRegistry::committed(double seconds, std::size_t events) {
  impl_->commit_seconds.Observe(seconds);
  impl_->batch_size.Observe(static_cast<double>(events));
}

void MetricsRegistry::gauges(const engine::RunsByStatus& open, std::uint64_t unknown_writes,
                             std::optional<Instant> oldest_unknown, std::optional<Instant> oldest_attempt,
                             Instant last_progress, std::uint64_t wal_bytes) {
  const std::array counts{open.queued, open.running, open.waiting, open.unknown};
  for (std::size_t i = 0; i < counts.size(); ++i) impl_->open_runs[i]->Set(static_cast<double>(counts[i]));
  impl_->unknown_writes.Set(static_cast<double>(unknown_writes));
  impl_->wal_bytes.Set(static_cast<double>(wal_bytes));
  const std::scoped_lock lock(impl_->instants_mutex);
  impl_->oldest_unknown_at = oldest_unknown;
  impl_->oldest_attempt_at = oldest_attempt;
  impl_->progress_at = last_progress;
}

std::string MetricsRegistry::text() {
  const Instant now = impl_->clock.now();
  {
    const std::scoped_lock lock(impl_->instants_mutex);
    impl_->oldest_unknown.Set(age_seconds(impl_->oldest_unknown_at, now));
    impl_->oldest_attempt.Set(age_seconds(impl_->oldest_attempt_at, now));
    impl_->last_progress.Set(age_seconds(impl_->progress_at, now));
  }
  return prometheus::TextSerializer{}.Serialize(impl_->registry.Collect());
}

}  // namespace holdfast::api
