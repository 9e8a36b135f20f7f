// The pages of docs/errors, compiled in: what the `type` of a problem leads to.
#include <algorithm>
#include <string_view>

#include "api/routes.h"

namespace holdfast::api {
namespace {

struct Page {
  std::string_view code, text;
};

constexpr Page kPages[] = {
#include "error_pages.inc"
};

http::Outcome error_page(http::Request& request) {
  const std::string& code = request.parameters.at("code");
  const auto* const page = std::ranges::find(kPages, code, &Page::code);
  if (page == std::end(kPages))
    return http::problem(404, {"not_found", "There is no error code of this name; schema/openapi.yaml lists them all.", ""});
  http::Response response;
  response.content_type = "text/markdown; charset=utf-8";
  response.headers.emplace_back("Cache-Control", "public, max-age=86400");
  response.body = page->text;
  return response;
}

}  // namespace

void add_error_pages(http::Server& server) {
  server.route("GET", "/errors/{code}", http::Access::open, error_page, error_page);
}

}  // namespace holdfast::api
