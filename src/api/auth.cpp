#include "api/auth.h"

#include <openssl/crypto.h>

#include "holdfast/core/intent_key.h"

namespace holdfast::api {
namespace {

constexpr std::size_t kLongestToken = 1024;

bool equal_digests(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace

std::function<std::optional<http::Identity>(std::string_view)> authenticator(
    const std::vector<tools::Token>& tokens) {
  if (tokens.empty()) return {};
  return [tokens](std::string_view bearer) -> std::optional<http::Identity> {
    if (bearer.empty() || bearer.size() > kLongestToken) return std::nullopt;
    const std::string digest = sha256_hex(bearer);
    std::optional<http::Identity> found;
    for (const tools::Token& token : tokens) {
      if (equal_digests(digest, token.sha256))
        found = http::Identity{token.name, token.scope == tools::Token::Scope::operate};
    }
    return found;
  };
}

void TokenTable::replace(const std::vector<tools::Token>& tokens) {
  auto next = std::make_shared<const Find>(authenticator(tokens));
  const std::lock_guard lock(mutex_);
  find_ = std::move(next);
}

std::shared_ptr<const TokenTable::Find> TokenTable::find() const {
  const std::lock_guard lock(mutex_);
  return find_;
}

std::function<std::optional<http::Identity>(std::string_view)> TokenTable::authenticate() const {
  if (!*find()) return {};
  return [this](std::string_view bearer) -> std::optional<http::Identity> {
    const auto now = find();
    return *now ? (*now)(bearer) : std::nullopt;
  };
}

}  // namespace holdfast::api
