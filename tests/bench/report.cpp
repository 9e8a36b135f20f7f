#include "report.h"

#include <algorithm>
#include <cstdio>

namespace holdfast::bench {
namespace {

template <class Part, class Member>
auto sorted(const std::vector<Part>& parts, Member member) {
  std::vector<std::remove_cvref_t<decltype(parts.front().*member)>> values;
  for (const Part& part : parts) values.push_back(part.*member);
  std::ranges::sort(values);
  return values;
}

template <class Part, class Member>
auto median(const std::vector<Part>& parts, Member member) {
  const auto values = sorted(parts, member);
  return values[values.size() / 2];
}

}  // namespace

void report(const Row& row, const std::vector<Sample>& samples) {
  std::uint64_t errors = 0;
  for (const Sample& s : samples) errors += s.errors;
  const std::vector<double> rates = sorted(samples, &Sample::runs_per_second);
  std::printf(
      "{\"subject\":\"%s\",\"tool\":\"%s\",\"steps\":%d,\"concurrency\":%zu,\"repetitions\":%zu,\"runs\":%llu,"
      "\"errors\":%llu,\"runs_per_second\":%.1f,\"runs_per_second_min\":%.1f,\"runs_per_second_max\":%.1f,",
      row.subject.c_str(), row.tool.c_str(), row.steps, row.concurrency, samples.size(),
      static_cast<unsigned long long>(median(samples, &Sample::runs)), static_cast<unsigned long long>(errors),
      median(samples, &Sample::runs_per_second), rates.front(), rates.back());
  std::printf(
      "\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"cpu_ms_per_run\":%.3f,\"rss_mib\":%.1f,\"memory_mib\":%.1f,\"disk_bytes_per_run\":%.0f,"
      "\"written_bytes_per_run\":%.0f,",
      median(samples, &Sample::p50_ms), median(samples, &Sample::p99_ms), median(samples, &Sample::cpu_ms_per_run),
      median(samples, &Sample::rss_mib), median(samples, &Sample::memory_mib), median(samples, &Sample::disk_bytes_per_run),
      median(samples, &Sample::written_bytes_per_run));
  const double commits = median(samples, &Sample::commits_per_run);
  if (commits < 0) std::puts("\"commits_per_run\":null}");
  if (commits >= 0) std::printf("\"commits_per_run\":%.3f}\n", commits);
  std::fflush(stdout);
}

void report(const std::vector<Floor>& floors) {
  std::printf(
      "{\"subject\":\"floor\",\"repetitions\":%zu,\"fdatasync_append_ms\":%.3f,\"fdatasync_overwrite_ms\":%.3f,"
      "\"fsync_append_ms\":%.3f,\"sqlite_commits_per_second\":%.0f,\"sqlite_100_rows_per_second\":%.0f,"
      "\"http_requests_per_second\":%.0f}\n",
      floors.size(), median(floors, &Floor::fdatasync_append_ms), median(floors, &Floor::fdatasync_overwrite_ms),
      median(floors, &Floor::fsync_append_ms), median(floors, &Floor::sqlite_commits_per_second),
      median(floors, &Floor::sqlite_100_rows_per_second), median(floors, &Floor::http_requests_per_second));
  std::fflush(stdout);
}

}  // namespace holdfast::bench
