#pragma once
// A small blocking HTTP client for the commands.
#include <chrono>
#include <expected>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "holdfast/core/json.h"

namespace holdfast::cli {

enum class Listener { client, admin };

/// Where a command is sent: `--url`, else the environment (an operator command: HOLDFAST_ADMIN_URL, else
/// HOLDFAST_URL), else the default. `http://host:port`, or `unix:/path` of a listener's socket.
[[nodiscard]] std::string address_of(Listener listener, const std::string& url_option, const Io& io);

struct Reply {
  int status = 0;
  std::string body;
};

class Client {
 public:
  Client(std::string url, std::string token) : url_(std::move(url)), token_(std::move(token)) {}

  /// Any HTTP answer, whatever its status. Error `unreachable` when there is none. Blocks for `timeout` at
  /// most.
  [[nodiscard]] Result<Reply> send(const std::string& method, const std::string& path,
                                   const std::string& body = {}, const std::vector<std::string>& headers = {},
                                   std::chrono::milliseconds timeout = std::chrono::seconds(40)) const;
  [[nodiscard]] const std::string& url() const { return url_; }

 private:
  std::string url_;
  std::string token_;
};

[[nodiscard]] Client make_client(Listener listener, const Common& common, const Io& io);

/// The exit code of an answer that is no success, after one line about it on `err`: 409, 401 and 403 are
/// refusals (1), other 4xx bad input (2), 5xx is a server that can't answer now (5).
[[nodiscard]] int report(const Reply& reply, std::ostream& err);
/// The same for no answer at all (5).
[[nodiscard]] int report(const Error& error, std::ostream& err);

/// A JSON answer with the text it points into.
struct Document {
  std::shared_ptr<const std::string> text;
  json::Value root;
};
/// Error `bad_answer` when the body is not JSON.
[[nodiscard]] Result<Document> read_document(std::string body);

/// GET `path`; a document, or an exit code that was reported.
[[nodiscard]] std::expected<Document, int> fetch(const Client& client, const std::string& path,
                                                 std::ostream& err);
/// Every item of a list, over all pages, `most` at the most. `path` may have a query.
struct Items {
  std::vector<Document> pages;
  std::vector<const json::Value*> list;
};
[[nodiscard]] std::expected<Items, int> fetch_items(const Client& client, const std::string& path,
                                                    std::size_t most, std::ostream& err);

/// Percent-encodes what is not unreserved.
[[nodiscard]] std::string url_encode(std::string_view text);

/// A string member's text, another value's JSON text, nothing for null and absent.
[[nodiscard]] std::string text_of(const json::Value& object, std::string_view name);
/// A list in the wished format: the items' JSON as one array, their ids, or a table of `cells(item)`.
void print_list(std::ostream& out, Format format, const std::vector<const json::Value*>& items,
                std::vector<std::string> head,
                const std::function<std::vector<std::string>(const json::Value&)>& cells,
                std::string_view id = "id");

/// The exit code of a run's JSON by its status.
[[nodiscard]] int exit_of(const json::Value& run);

}  // namespace holdfast::cli
