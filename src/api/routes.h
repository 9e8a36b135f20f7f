#pragma once
// The handlers of both listeners. A handler reads what is committed, posts commands, and renders; it holds no
// state of its own.
#include "api/service.h"
#include "http/server.h"

namespace holdfast::api {

/// `service` must outlive the server. `access` is the listener's: client or operate.
void add_health_routes(http::Server& server, const Service& service);
void add_error_pages(http::Server& server);  // where the `type` of every problem leads
void add_run_routes(http::Server& server, const Service& service, http::Access access);
void add_open_run_routes(http::Server& server, const Service& service, http::Access access);
void add_event_routes(http::Server& server, const Service& service, http::Access access);
void add_unknown_routes(http::Server& server, const Service& service);
void add_breaker_routes(http::Server& server, const Service& service);
void add_operator_routes(http::Server& server, const Service& service);  // tools, audit, metrics, backup

/// Everything of the client listener, and everything of the admin listener (which has the run routes too).
void add_client_listener(http::Server& server, const Service& service);
void add_admin_listener(http::Server& server, const Service& service);

// Shared by the handlers of runs.

/// The run that the request's path names, else `run_not_found`. Every token may read a run whose id it was
/// given (an id has 80 random bits); lists show a client token its own runs only, and the engine lets it
/// change no other.
[[nodiscard]] Result<RunPtr> find_run(const Service& service, const http::Request& request);
[[nodiscard]] Result<RunPtr> run_by_id(const Service& service, const std::string& id);
/// While the ledger can't be written no open run moves, and it can't record that itself: the run is shown as
/// `waiting` for `storage`, and so are its steps that were under way, else those that were to begin.
void show_storage(const Service& service, run::Run& run);
[[nodiscard]] Error run_not_found(std::string_view id);
/// The same run as it is now, or the error, as an answer.
[[nodiscard]] http::Outcome run_response(const Service& service, const http::Request& request);
[[nodiscard]] http::Response json_response(std::string body, int status = 200);

/// `{items, next_cursor}`: `render(writer, index)` appends the item.
template <class Render>
std::string render_page(std::size_t count, const std::string& next_cursor, Render&& render) {
  std::string out;
  json::Writer w(out);
  w.begin_object();
  w.name("items");
  w.begin_array();
  for (std::size_t i = 0; i < count; ++i) render(w, i);
  w.end_array();
  w.text_or_null("next_cursor", next_cursor);
  w.end_object();
  return out;
}

/// For lists that are short and known in whole: one page of `total` items by an offset cursor.
struct Slice {
  std::size_t begin = 0, end = 0;
  std::string next_cursor;
};
[[nodiscard]] Result<Slice> slice(const http::Request& request, char list, std::size_t total);

}  // namespace holdfast::api
