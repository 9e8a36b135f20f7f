#include "cli/run_view.h"

#include <charconv>
#include <ostream>
#include <thread>

#include "cli/table.h"
#include "holdfast/core/time.h"

namespace holdfast::cli {
namespace {

std::int64_t number_of(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find(name);
  return value ? value->integer().value_or(0) : 0;
}

std::string joined(std::initializer_list<std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

std::string waiting_text(const json::Value& object) {
  const json::Value* waiting = object.find("waiting");
  if (!waiting || !waiting->is(json::Kind::object)) return {};
  const std::string until = short_time(text_of(*waiting, "until"));
  return "waits for " + text_of(*waiting, "for") + (until.empty() ? "" : " until " + until);
}

std::string attempt_text(const json::Value& attempt) {
  const std::string status = text_of(attempt, "http_status");
  const std::string verdict = text_of(attempt, "verdict");
  std::string out = short_time(text_of(attempt, "started_at")) + "  " + text_of(attempt, "kind") + " " +
                    text_of(attempt, "n") + "  ";
  out += verdict.empty() ? "in flight" : verdict;
  const std::string what = joined(
      {text_of(attempt, "class"), status.empty() ? "" : "HTTP " + status, text_of(attempt, "detail")}, ", ");
  out += " after " + spoken(number_of(attempt, "waited_ms"));
  if (!what.empty() && what != verdict) out += "  (" + shown(what, 160) + ")";
  if (text_of(attempt, "late") == "true") out += "  late answer on record";
  return out;
}

void print_step(std::ostream& out, const json::Value& step, const std::vector<const json::Value*>& attempts) {
  const std::string id = text_of(step, "id");
  out << "  " << shown(id) << "  " << text_of(step, "status");
  const std::string why =
      joined({text_of(step, "reason"), text_of(step, "detail"), waiting_text(step)}, ", ");
  if (!why.empty()) out << "  (" << shown(why, 300) << ")";
  out << "\n      " << shown(text_of(step, "server") + "/" + text_of(step, "tool"), 260) << "  "
      << text_of(step, "effect") << "  target " << shown(text_of(step, "target"), 120) << "  attempts "
      << text_of(step, "attempts") << " of " << text_of(step, "max_attempts") << '\n';
  if (const json::Value* write = step.find("write"); write && write->is(json::Kind::object)) {
    out << "      write " << text_of(*write, "id") << "  " << text_of(*write, "state") << '\n';
  }
  for (const json::Value* attempt : attempts) {
    if (text_of(*attempt, "step") == id) out << "      " << attempt_text(*attempt) << '\n';
  }
  if (const std::string advice = text_of(step, "advice"); !advice.empty())
    out << "      " << shown(advice, 400) << '\n';
}

}  // namespace

bool at_rest(const json::Value& run) {
  return text_of(run, "settled") == "true" || text_of(run, "status") == "unknown";
}

void print_outcome(std::ostream& out, const json::Value& run) {
  out << text_of(run, "id") << "  " << text_of(run, "status");
  const std::string why = joined({text_of(run, "reason"), text_of(run, "detail"), waiting_text(run)}, ", ");
  if (!why.empty()) out << "  (" << shown(why, 400) << ")";
  out << '\n';
  if (text_of(run, "needs") == "human") out << "A person has to decide: see `holdfast unknowns`.\n";
  const json::Value* warnings = run.find("warnings");
  if (!warnings) return;
  for (const json::Value& warning : warnings->items) out << "warning: " << shown(warning.text(), 400) << '\n';
}

void print_run(std::ostream& out, const json::Value& run, const std::vector<const json::Value*>& attempts) {
  print_outcome(out, run);
  const json::Value* budget = run.find("retry_budget");
  Table table({"NAME", "OWNER", "CREATED", "STARTED", "FINISHED", "DEADLINE", "RETRIES"});
  table.row({text_of(run, "name"), text_of(run, "owner"), short_time(text_of(run, "created_at")),
             short_time(text_of(run, "started_at")), short_time(text_of(run, "finished_at")),
             short_time(text_of(run, "deadline")),
             budget ? text_of(*budget, "spent") + " of " + text_of(*budget, "limit") : ""});
  table.print(out);
  if (const json::Value* steps = run.find("steps")) {
    for (const json::Value& step : steps->items) print_step(out, step, attempts);
  }
  if (const std::string result = text_of(run, "result"); !result.empty())
    out << "result: " << shown(result, 2000) << '\n';
}

std::string event_line(const json::Value& event) {
  const std::string type = text_of(event, "type");
  const auto dot = type.find('.');
  std::string what = dot == std::string::npos ? type : type.substr(dot + 1);
  std::ranges::replace(what, '_', ' ');
  const std::string step = text_of(event, "step");
  std::string out = short_time(text_of(event, "at")) + "  " + (step.empty() ? "run" : shown(step)) + "  ";
  out += type == "write.unknown" ? "write is unknown" : type == "write.settled" ? "write settled" : what;
  const json::Value* data = event.find("data");
  if (!data) return out;
  std::string rest;
  for (const json::Member& member : data->members) {
    const std::string value = text_of(*data, member.name);
    if (value.empty() || member.value.is(json::Kind::object) || member.value.is(json::Kind::array)) continue;
    std::string label = member.name;
    std::ranges::replace(label, '_', ' ');
    rest += (rest.empty() ? "" : ", ") + label + " " + value;
  }
  if (!rest.empty()) out += "  (" + shown(rest, 200) + ")";
  return out;
}

Result<std::optional<std::int64_t>> read_timeout(const std::string& text) {
  if (text.empty()) return std::nullopt;
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ms);
  if (error == std::errc{} && end == text.data() + text.size() && ms > 0) return ms;
  const auto duration = parse_duration(text);
  if (!duration)
    return std::unexpected(
        Error{"bad_duration", "--timeout must be a duration such as 30s, or whole milliseconds above 0", ""});
  return duration->count();
}

std::expected<Document, int> wait_for_run(const Client& client, const std::string& id,
                                          const WaitOptions& options, std::ostream& err) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds grace{10}, away{30};
  const std::string path = "/v1/runs/" + url_encode(id);
  auto run = fetch(client, path, err);
  if (!run) return run;
  const std::int64_t span_ms =
      options.timeout_ms ? *options.timeout_ms
                         : number_of(run->root, "remaining_ms") + std::chrono::milliseconds(grace).count();
  const auto end = Clock::now() + std::chrono::milliseconds(span_ms);
  auto last_answer = Clock::now();
  while (!at_rest(run->root) && Clock::now() < end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    const auto wait_ms = std::clamp<std::int64_t>(left, 1, 30'000);
    auto reply = client.send("GET", path + "?wait=" + std::to_string(wait_ms), {}, {},
                             std::chrono::milliseconds(wait_ms + 10'000));
    if (reply && reply->status == 200) {
      auto document = read_document(std::move(reply->body));
      if (!document) return std::unexpected(report(document.error(), err));
      run = std::move(*document);
      last_answer = Clock::now();
      continue;
    }
    if (reply && reply->status < 500) return std::unexpected(report(*reply, err));
    if (Clock::now() - last_answer > away)
      return std::unexpected(reply ? report(*reply, err) : report(reply.error(), err));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  return run;
}

}  // namespace holdfast::cli
