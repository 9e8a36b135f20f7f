#include <cctype>

#include "holdfast/core/json.h"
#include "http/server.h"

namespace holdfast::http {
namespace {

/// `key_reused` reads "Key reused".
std::string title_of(std::string_view code) {
  std::string title(code);
  for (char& c : title) {
    if (c == '_') c = ' ';
  }
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

template <class Map>
std::optional<std::string> first_of(const Map& map, std::string_view name) {
  const auto found = map.find(std::string(name));
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

std::optional<std::string> Request::header(std::string_view lower_name) const {
  return first_of(headers, lower_name);
}

std::optional<std::string> Request::query_value(std::string_view name) const {
  return first_of(query, name);
}

Response problem(int status, const Error& error, int retry_after_s) {
  Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  if (retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
  json::Writer w(response.body);
  w.begin_object();
  w.field("type", "/errors/" + error.code);
  w.field("title", title_of(error.code));
  w.field("status", status);
  w.field("detail", error.message);
  w.field("code", error.code);
  w.text_or_null("pointer", error.pointer);
  w.end_object();
  return response;
}

}  // namespace holdfast::http
