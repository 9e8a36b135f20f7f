// The operator's work list: writes that nobody can tell about, and the verdicts on them.
#include "api/cursor.h"
#include "api/reading.h"
#include "api/render.h"
#include "api/routes.h"
#include "api/status.h"
#include "holdfast/core/ids.h"

namespace holdfast::api {
namespace {

Error write_not_found(std::string_view id) {
  return Error{"write_not_found", "there is no unknown write " + std::string(id.substr(0, 64)), ""};
}

Result<ledger::UnknownFilter> read_filter(const http::Request& request) {
  if (auto ok = check_query(request, {"state", "server", "tool", "limit", "cursor"}); !ok)
    return std::unexpected(ok.error());
  ledger::UnknownFilter filter;
  const auto limit = read_limit(request);
  if (!limit) return std::unexpected(limit.error());
  filter.limit = *limit;
  filter.server = request.query_value("server");
  filter.tool = request.query_value("tool");
  const std::string state = request.query_value("state").value_or("open");
  if (state != "open" && state != "all")
    return std::unexpected(Error{"bad_parameter", "state must be open or all", ""});
  filter.open_only = state == "open";
  if (const auto cursor = request.query_value("cursor")) {
    const auto numbers = read_cursor('u', 3, *cursor);
    if (!numbers) return std::unexpected(numbers.error());
    filter.after_since_ms = (*numbers)[0];
    filter.after_run_seq = (*numbers)[1];
    filter.after_step = (*numbers)[2];
  }
  return filter;
}

std::string cursor_after(const ledger::UnknownEntry& entry) {
  const Instant since = entry.state.write ? entry.state.write->unknown_since.value_or(Instant{}) : Instant{};
  return make_cursor('u', {since.ms, entry.run_seq, entry.step});
}

http::Outcome list_unknowns(const Service& service, const http::Request& request) {
  const auto filter = read_filter(request);
  if (!filter) return failure(filter.error());
  const auto entries = service.reader.unknowns(*filter);
  if (!entries) return failure(entries.error());
  const Instant now = service.clock.now();
  const std::string next = entries->size() < filter->limit ? "" : cursor_after(entries->back());
  return json_response(render_page(entries->size(), next, [&](json::Writer& w, std::size_t i) {
    render_unknown(w, (*entries)[i], service.catalog, now);
  }));
}

/// The entry of a write that is or was unknown.
Result<ledger::UnknownEntry> find_unknown(const Service& service, std::string_view id) {
  const auto ref = parse_write_id(id);
  if (!ref || ref->step_index > UINT32_MAX) return std::unexpected(write_not_found(id));
  auto entry = service.reader.unknown(ref->run_id, static_cast<std::uint32_t>(ref->step_index));
  if (!entry) return std::unexpected(std::move(entry.error()));
  if (!*entry || !(*entry)->state.write) return std::unexpected(write_not_found(id));
  return std::move(**entry);
}

http::Outcome show_unknown(const Service& service, std::string_view id) {
  const auto entry = find_unknown(service, id);
  if (!entry) return failure(entry.error());
  std::string out;
  json::Writer w(out);
  render_unknown(w, *entry, service.catalog, service.clock.now());
  return json_response(std::move(out));
}

Result<engine::Engine::Verdict> read_verdict(const Service& service, const http::Request& request) {
  const auto body = read_body(request, service.catalog.config().limits.json_depth);
  if (!body) return std::unexpected(body.error());
  const json::Value& root = (*body)->root;
  if (auto ok = check_members(root, {"verdict", "result", "note", "deadline"}); !ok)
    return std::unexpected(ok.error());
  engine::Engine::Verdict verdict;
  const auto word = read_text(root, "verdict");
  if (!word) return std::unexpected(word.error());
  if (*word == "landed") {
    verdict.verdict = run::Resolution::landed;
  } else if (*word == "not_landed") {
    verdict.verdict = run::Resolution::not_landed;
  } else if (*word == "abandon") {
    verdict.verdict = run::Resolution::abandon;
  } else {
    return std::unexpected(Error{"bad_verdict", "verdict must be landed, not_landed or abandon", "/verdict"});
  }
  auto note = read_text(root, "note");
  if (!note) return std::unexpected(note.error());
  if (note->find_first_not_of(" \t\r\n") == std::string::npos) {
    return std::unexpected(Error{"note_required", "note must say why this verdict is right", "/note"});
  }
  verdict.note = std::move(*note);
  if (const json::Value* result = root.find("result")) {
    if (verdict.verdict != run::Resolution::landed) {
      return std::unexpected(Error{"bad_verdict", "result goes with the verdict landed only", "/result"});
    }
    verdict.result = std::string(result->raw);
  }
  const auto deadline = read_deadline(root, "deadline", service.clock.now());
  if (!deadline) return std::unexpected(deadline.error());
  verdict.deadline = *deadline;
  verdict.who = who(request.identity);
  return verdict;
}

http::Outcome resolve_unknown(const Service& service, const http::Request& request) {
  if (auto ok = check_query(request, {}); !ok) return failure(ok.error());
  auto verdict = read_verdict(service, request);
  if (!verdict) return failure(verdict.error());
  const std::string& id = request.parameters.at("id");
  if (!parse_write_id(id)) return failure(write_not_found(id));
  const auto done = service.commands.resolve(id, std::move(*verdict));
  if (!done) return failure(done.error());
  return show_unknown(service, id);
}

}  // namespace

void add_unknown_routes(http::Server& server, const Service& service) {
  server.route("GET", "/v1/unknowns", http::Access::operate,
               [&service](http::Request& r) { return list_unknowns(service, r); });
  server.route("GET", "/v1/unknowns/{id}", http::Access::operate,
               [&service](http::Request& r) -> http::Outcome {
                 if (auto ok = check_query(r, {}); !ok) return failure(ok.error());
                 return show_unknown(service, r.parameters.at("id"));
               });
  server.route("POST", "/v1/unknowns/{id}/resolve", http::Access::operate,
               [&service](http::Request& r) { return resolve_unknown(service, r); });
}

}  // namespace holdfast::api
