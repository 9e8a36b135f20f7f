#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "holdfast/tools/config.h"
#include "http/server.h"

namespace holdfast::api {

/// Who a bearer token belongs to: its SHA-256 is compared with every configured one, in time that tells
/// nothing about the token. An empty function when no tokens are configured. `tokens` is copied.
[[nodiscard]] std::function<std::optional<http::Identity>(std::string_view)> authenticator(
    const std::vector<tools::Token>& tokens);

/// Tokens that can be exchanged while requests come in. Thread-safe.
class TokenTable {
 public:
  explicit TokenTable(const std::vector<tools::Token>& tokens) { replace(tokens); }
  /// Every request that is admitted after this goes by `tokens`. Whether tokens are asked for at all was decided when the
  /// listeners were made: the list must be empty if and only if it was.
  void replace(const std::vector<tools::Token>& tokens);
  /// For http::Options; the table must outlive the server. Empty when there are no tokens.
  [[nodiscard]] std::function<std::optional<http::Identity>(std::string_view)> authenticate() const;

 private:
  using Find = std::function<std::optional<http::Identity>(std::string_view)>;
  [[nodiscard]] std::shared_ptr<const Find> find() const;
  mutable std::mutex mutex_;
  std::shared_ptr<const Find> find_;
};

}  // namespace holdfast::api
