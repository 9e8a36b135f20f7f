// The events of a run: pages, long polls, and a stream of server-sent events.
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"
#include "api/waiting.h"

namespace holdfast::api {
namespace {

constexpr std::uint32_t kEventsPerPage = 500;
constexpr Duration kHeartbeat{15'000};

/// Where a stream stands, kept while it is parked.
struct StreamState {
  std::int64_t after = 0;
};

Result<std::int64_t> read_after(const http::Request& request) {
  const auto text = request.query_value("after");
  if (!text) return 0;
  return read_count("after", *text);
}

/// The reader has seen events that this ledger does not have: it was restored from a backup. Waiting would be waiting
/// for what never comes, so the reader is told, and goes on behind the last event that there is.
struct Gap {
  std::int64_t after = 0, last = 0;
};

/// The run as stored is asked once more: an event may be on the disk a moment before the run in memory has counted it.
Result<std::optional<Gap>> find_gap(const Service& service, const run::Run& run, std::int64_t after) {
  if (after <= run.last_event) return std::nullopt;
  const auto stored = service.reader.run(run.id);
  if (!stored) return std::unexpected(stored.error());
  if (!*stored || after <= (*stored)->last_event) return std::nullopt;
  return Gap{after, (*stored)->last_event};
}

void render_gap(json::Writer& w, const Gap& gap) {
  w.begin_object();
  w.field("after", gap.after);
  w.field("last", gap.last);
  w.end_object();
}

/// Nothing will ever follow the event `after`.
bool complete(const run::Run& run, std::int64_t after) {
  return run.settled() && after >= run.last_event;
}

std::string events_json(const std::vector<run::Event>& events, std::int64_t after,
                        const std::optional<Gap>& gap = std::nullopt) {
  std::string out;
  json::Writer w(out);
  w.begin_object();
  w.name("events");
  w.begin_array();
  for (const run::Event& event : events) render_event(w, event);
  w.end_array();
  w.field("next", events.empty() ? after : events.back().seq);
  if (gap) {
    w.name("gap");
    render_gap(w, *gap);
  }
  w.end_object();
  return out;
}

http::Outcome page(const Service& service, http::Request& request) {
  const auto wait = read_wait(request);
  if (!wait) return failure(wait.error());
  const auto after = read_after(request);
  if (!after) return failure(after.error());
  request.watch(request.parameters.at("id"));
  const auto run = find_run(service, request);
  if (!run) return failure(run.error());
  const auto gap = find_gap(service, **run, *after);
  if (!gap) return failure(gap.error());
  if (*gap) return json_response(events_json({}, (*gap)->last, **gap));
  const auto events = service.reader.events((*run)->seq, *after, kEventsPerPage);
  if (!events) return failure(events.error());
  if (events->empty() && !complete(**run, *after)) {
    if (const auto until = wait_until(request, *wait, service.clock.now())) return http::Park{*until};
  }
  return json_response(events_json(*events, *after));
}

std::string as_stream(const std::vector<run::Event>& events) {
  std::string out;
  for (const run::Event& event : events) {
    out += "id: " + std::to_string(event.seq) + "\nevent: ";
    out += event.type;
    out += "\ndata: ";
    json::Writer w(out);
    render_event(w, event);
    out += "\n\n";
  }
  return out;
}

std::string as_stream(const Gap& gap) {
  std::string out = "id: " + std::to_string(gap.last) + "\nevent: gap\ndata: ";
  json::Writer w(out);
  render_gap(w, gap);
  return out + "\n\n";
}

/// The newest event that the reader of a new stream has seen: Last-Event-ID of a reconnect, else `after`.
Result<std::int64_t> stream_start(const http::Request& request) {
  if (const auto id = request.header("last-event-id")) return read_count("Last-Event-ID", *id);
  return read_after(request);
}

http::Outcome stream(const Service& service, http::Request& request) {
  StreamState* kept = request.state ? std::any_cast<StreamState>(request.state) : nullptr;
  std::int64_t after = 0;
  if (kept) {
    after = kept->after;
  } else {
    const auto start = stream_start(request);
    if (!start) return failure(start.error());
    after = *start;
  }
  request.watch(request.parameters.at("id"));
  const auto run = find_run(service, request);
  Result<std::optional<Gap>> gap;
  if (run && !kept) gap = find_gap(service, **run, after);
  if (gap && *gap) after = (*gap)->last;
  const auto events =
      run ? service.reader.events((*run)->seq, after, kEventsPerPage) : std::unexpected(run.error());
  if (!events || !gap) {
    // In the middle of a stream the only honest answer is its end: the reader comes back with Last-Event-ID.
    if (kept) return http::Stream{.data = "", .until = service.clock.now(), .end = true};
    return failure(events ? gap.error() : events.error());
  }
  if (!events->empty()) after = events->back().seq;
  if (request.state) *request.state = StreamState{after};

  http::Stream piece;
  piece.data = (*gap ? as_stream(**gap) : "") + as_stream(*events);
  piece.end = complete(**run, after);
  const Instant now = service.clock.now();
  piece.until = events->size() == kEventsPerPage ? now : now + kHeartbeat;
  if (piece.data.empty() && (!kept || request.waited_out)) piece.data = ": waiting\n\n";
  return piece;
}

bool wants_stream(const http::Request& request) {
  const auto accept = request.header("accept");
  return accept && accept->find("text/event-stream") != std::string::npos;
}

}  // namespace

void add_event_routes(http::Server& server, const Service& service, http::Access access) {
  server.route("GET", "/v1/runs/{id}/events", access, [&service](http::Request& request) -> http::Outcome {
    if (auto ok = check_query(request, {"after", "wait"}); !ok) return failure(ok.error());
    return wants_stream(request) ? stream(service, request) : page(service, request);
  });
}

}  // namespace holdfast::api
