#include "http/admission.h"

#include "core/ascii.h"

namespace holdfast::http {
namespace {

Refusal refuse(int status, std::string code, std::string message) {
  return Refusal{.status = status, .error = {std::move(code), std::move(message), ""}};
}

Refusal unauthorized(std::string message) {
  Refusal refusal = refuse(401, "unauthorized", std::move(message));
  refusal.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refusal;
}

/// The token of `Bearer token`; nullopt for another scheme.
std::optional<std::string_view> bearer_of(std::string_view value) {
  constexpr std::string_view kScheme = "bearer ";
  if (value.size() <= kScheme.size()) return std::nullopt;
  if (ascii::lowered(value.substr(0, kScheme.size())) != kScheme) return std::nullopt;
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

std::expected<Identity, Refusal> identify(const Request& request, Access access, const Options& options,
                                          const WrongToken& wrong_token) {
  if (!options.authenticate) return Identity{};
  if (access == Access::open) return Identity{.name = "", .operate = false};
  const auto header = request.header("authorization");
  const auto bearer = header ? bearer_of(*header) : std::nullopt;
  if (!bearer) return std::unexpected(unauthorized("A token is required: Authorization: Bearer <token>."));
  auto identity = options.authenticate(*bearer);
  if (!identity) {
    const int wait_s = wrong_token();
    if (wait_s == 0) return std::unexpected(unauthorized("The token is not known."));
    Refusal refusal = refuse(429, "too_many_failures", "Too many wrong tokens came from this address.");
    refusal.retry_after_s = wait_s;
    return std::unexpected(std::move(refusal));
  }
  if (access == Access::operate && !identity->operate) {
    return std::unexpected(
        refuse(403, "forbidden", "The token's scope does not allow this; an operator token is required."));
  }
  return std::move(*identity);
}

std::expected<Match, Refusal> find_route(const Head& head, const Router& router) {
  Match match = router.match(head.request.method, head.segments);
  if (match.route != nullptr) return match;
  if (match.allow.empty())
    return std::unexpected(refuse(404, "not_found", "There is nothing at this address."));
  Refusal refusal = refuse(405, "method_not_allowed", "This address answers to " + match.allow + ".");
  refusal.headers.emplace_back("Allow", match.allow);
  return std::unexpected(std::move(refusal));
}

}  // namespace

std::expected<Admitted, Refusal> admit(std::string_view text, const Router& router, const Options& options,
                                       const WrongToken& wrong_token) {
  auto head = parse_head(text);
  if (!head) return std::unexpected(std::move(head.error()));
  auto match = find_route(*head, router);
  if (!match) return std::unexpected(std::move(match.error()));
  auto identity = identify(head->request, match->route->access, options, wrong_token);
  if (!identity) return std::unexpected(std::move(identity.error()));
  if (head->content_length > options.body_bytes) {
    return std::unexpected(refuse(
        413, "body_too_large", "The body is larger than " + std::to_string(options.body_bytes) + " bytes."));
  }
  Admitted admitted{.exchange = std::make_unique<Exchange>(),
                    .body_length = head->content_length,
                    .expect_continue = head->expect_continue};
  Exchange& exchange = *admitted.exchange;
  exchange.route = match->route;
  exchange.request = std::move(head->request);
  exchange.request.parameters = std::move(match->parameters);
  exchange.request.identity = std::move(*identity);
  exchange.sent_path = std::move(head->sent_path);
  exchange.http_1_0 = head->http_1_0;
  exchange.close_after = head->close;
  return admitted;
}

}  // namespace holdfast::http
