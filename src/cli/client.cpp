#include "cli/client.h"

#include <curl/curl.h>

#include <ostream>

#include "cli/table.h"

namespace holdfast::cli {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::size_t kLongestAnswer = 256u << 20;

struct CurlDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

std::size_t collect(char* data, std::size_t size, std::size_t count, void* target) {
  auto& body = *static_cast<std::string*>(target);
  const std::size_t bytes = size * count;
  if (body.size() + bytes > kLongestAnswer) return 0;
  body.append(data, bytes);
  return bytes;
}

std::string variable(const Io& io, const char* name) {
  const char* value = io.env(name);
  return value ? value : "";
}

std::unexpected<Error> unreachable(std::string message) {
  return std::unexpected(Error{"unreachable", std::move(message), ""});
}

}  // namespace

std::string address_of(Listener listener, const std::string& url_option, const Io& io) {
  std::string url = url_option;
  if (url.empty() && listener == Listener::admin) url = variable(io, "HOLDFAST_ADMIN_URL");
  if (url.empty()) url = variable(io, "HOLDFAST_URL");
  if (url.empty()) url = listener == Listener::admin ? "http://127.0.0.1:4654" : "http://127.0.0.1:4653";
  while (!url.empty() && url.back() == '/') url.pop_back();
  return url;
}

Client make_client(Listener listener, const Common& common, const Io& io) {
  return Client(address_of(listener, common.url, io), variable(io, "HOLDFAST_TOKEN"));
}

Result<Reply> Client::send(const std::string& method, const std::string& path, const std::string& body,
                           const std::vector<std::string>& headers, std::chrono::milliseconds timeout) const {
  const std::unique_ptr<CURL, CurlDeleter> handle(curl_easy_init());
  if (!handle) return unreachable("no memory for a connection");
  CURL* const curl = handle.get();
  curl_slist* list = curl_slist_append(nullptr, "Content-Type: application/json");
  list = curl_slist_append(list, "Expect:");
  if (!token_.empty()) list = curl_slist_append(list, ("Authorization: Bearer " + token_).c_str());
  for (const std::string& header : headers) list = curl_slist_append(list, header.c_str());
  const std::unique_ptr<curl_slist, CurlDeleter> owned(list);

  Reply reply;
  char message[CURL_ERROR_SIZE] = "";
  const bool local = url_.starts_with(kUnix);
  curl_easy_setopt(curl, CURLOPT_URL, ((local ? "http://localhost" : url_) + path).c_str());
  if (local) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, url_.substr(kUnix.size()).c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  if (method != "GET") {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  }
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &collect);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, 5000L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(timeout.count()));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);

  const CURLcode code = curl_easy_perform(curl);
  if (code != CURLE_OK)
    return unreachable("no answer from " + url_ + ": " + (*message ? message : curl_easy_strerror(code)));
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  return reply;
}

int report(const Error& error, std::ostream& err) {
  err << "holdfast: " << error.message << '\n';
  return kNotSettled;
}

int report(const Reply& reply, std::ostream& err) {
  err << "holdfast: ";
  const auto problem = read_document(reply.body);
  if (problem && problem->root.find("detail")) {
    err << text_of(problem->root, "detail");
    if (const std::string pointer = text_of(problem->root, "pointer"); !pointer.empty())
      err << " (at " << pointer << ')';
    err << " [" << text_of(problem->root, "code") << "]\n";
  } else {
    err << "the server answered " << reply.status << '\n';
  }
  if (reply.status >= 500) return kNotSettled;
  return reply.status == 409 || reply.status == 401 || reply.status == 403 ? kFailed : kBadInput;
}

Result<Document> read_document(std::string body) {
  Document document{std::make_shared<const std::string>(std::move(body)), {}};
  auto root = json::parse(*document.text, json::Limits{.depth = 512, .nodes = 20'000'000});
  if (!root)
    return std::unexpected(
        Error{"bad_answer", "the server's answer is not JSON: " + root.error().message, ""});
  document.root = std::move(*root);
  return document;
}

std::expected<Document, int> fetch(const Client& client, const std::string& path, std::ostream& err) {
  auto reply = client.send("GET", path);
  if (!reply) return std::unexpected(report(reply.error(), err));
  if (reply->status != 200) return std::unexpected(report(*reply, err));
  auto document = read_document(std::move(reply->body));
  if (!document) return std::unexpected(report(document.error(), err));
  return std::move(*document);
}

std::expected<Items, int> fetch_items(const Client& client, const std::string& path, std::size_t most,
                                      std::ostream& err) {
  Items items;
  std::string cursor;
  while (items.list.size() < most) {
    const std::size_t limit = std::min<std::size_t>(200, most - items.list.size());
    std::string page =
        path + (path.find('?') == std::string::npos ? '?' : '&') + "limit=" + std::to_string(limit);
    if (!cursor.empty()) page += "&cursor=" + url_encode(cursor);
    auto document = fetch(client, page, err);
    if (!document) return std::unexpected(document.error());
    cursor = text_of(document->root, "next_cursor");
    items.pages.push_back(std::move(*document));
    if (cursor.empty()) break;
    const json::Value* list = items.pages.back().root.find("items");
    if (!list || list->items.empty()) break;
    items.list.resize(items.list.size() + list->items.size());  // counted here, pointed to below
  }
  items.list.clear();
  for (const Document& page : items.pages) {
    const json::Value* list = page.root.find("items");
    if (!list) continue;
    for (const json::Value& item : list->items) items.list.push_back(&item);
  }
  return std::expected<Items, int>(std::in_place, std::move(items));
}

std::string url_encode(std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain) {
      out += c;
    } else {
      out += '%';
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
  }
  return out;
}

std::string text_of(const json::Value& object, std::string_view name) {
  const json::Value* value = object.find(name);
  if (!value || value->is(json::Kind::null)) return {};
  return value->is(json::Kind::string) ? value->text() : std::string(value->raw);
}

void print_list(std::ostream& out, Format format, const std::vector<const json::Value*>& items,
                std::vector<std::string> head,
                const std::function<std::vector<std::string>(const json::Value&)>& cells,
                std::string_view id) {
  if (format == Format::json) {
    out << '[';
    for (std::size_t i = 0; i < items.size(); ++i) out << (i == 0 ? "" : ",\n ") << items[i]->raw;
    out << "]\n";
    return;
  }
  if (format == Format::ids) {
    for (const json::Value* item : items) out << text_of(*item, id) << '\n';
    return;
  }
  Table table(std::move(head));
  for (const json::Value* item : items) table.row(cells(*item));
  table.print(out);
}

int exit_of(const json::Value& run) {
  const std::string status = text_of(run, "status");
  if (status == "succeeded") return kOk;
  if (status == "failed") return kFailed;
  if (status == "unknown") return kUnknown;
  if (status == "cancelled") return kCancelled;
  return kNotSettled;
}

}  // namespace holdfast::cli
