#pragma once
// Commands that hold no thread: the request is parked until the engine has answered, and its handler runs again.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "holdfast/engine/engine.h"
#include "http/server.h"

namespace holdfast::api {

/// Longer than any commit takes: after that the client is told that its command may still take effect.
constexpr Duration kLongestCommit{30'000};

[[nodiscard]] inline Error commit_timeout() {
  return Error{"commit_timeout",
               "the ledger has not confirmed this in time; it may still take effect, so repeat it unchanged", ""};
}

/// An answer on its way from the engine's thread to the handler's next run.
template <class T>
struct Later {
  explicit Later(Instant until_) : until(until_) {}
  const Instant until;  // the client is kept waiting no longer
  std::mutex mutex;
  std::optional<Result<T>> value;
};

/// The first run of a handler: `post(answer)` gives the command to the engine. The request keeps what is returned.
template <class T, class Post>
[[nodiscard]] std::shared_ptr<Later<T>> ask_later(http::Server& server, http::Request& request, Instant now,
                                                  Post&& post) {
  static std::atomic<std::uint64_t> next{1};
  const std::string topic = "answer " + std::to_string(next.fetch_add(1, std::memory_order_relaxed));
  auto later = std::make_shared<Later<T>>(now + kLongestCommit);
  if (request.state) *request.state = later;
  request.watch(topic);
  post([later, topic, &server](Result<T> value) {
    {
      const std::lock_guard lock(later->mutex);
      later->value.emplace(std::move(value));
    }
    server.wake(topic);
  });
  return later;
}

/// What an earlier run of the handler asked; nullptr on the first one.
template <class T>
[[nodiscard]] std::shared_ptr<Later<T>> asked_later(const http::Request& request) {
  const auto* kept = request.state ? std::any_cast<std::shared_ptr<Later<T>>>(request.state) : nullptr;
  return kept ? *kept : nullptr;
}

/// True when the engine has answered with a value that `look` says yes to. Takes nothing.
template <class T, class Look>
[[nodiscard]] bool answered_with(Later<T>& later, Look&& look) {
  const std::lock_guard lock(later.mutex);
  return later.value && later.value->has_value() && look(**later.value);
}

/// The answer as `render(result)` puts it, or Park while there is none; `commit_timeout` when the wait is over.
template <class T, class Render>
[[nodiscard]] http::Outcome answer_or_park(const http::Request& request, Later<T>& later, Render&& render) {
  std::optional<Result<T>> value;
  {
    const std::lock_guard lock(later.mutex);
    value = std::move(later.value);
  }
  if (value) return render(*value);
  if (request.waited_out) return render(Result<T>(std::unexpected(commit_timeout())));
  return http::Park{later.until};
}

}  // namespace holdfast::api
