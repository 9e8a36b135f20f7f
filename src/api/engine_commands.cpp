#include "api/engine_commands.h"

#include <future>

#include "api/later.h"

namespace holdfast::api {
namespace {

/// Posts a command and waits for its answer. An answer that is dropped unanswered means that the engine has
/// stopped.
template <class T, class Post>
Result<T> wait_for(Post&& post) {
  auto promise = std::make_shared<std::promise<Result<T>>>();
  auto future = promise->get_future();
  post([promise = std::move(promise)](Result<T> result) { promise->set_value(std::move(result)); });
  if (future.wait_for(kLongestCommit) != std::future_status::ready) {
    return std::unexpected(commit_timeout());
  }
  try {
    return future.get();
  } catch (const std::future_error&) {
    return std::unexpected(
        Error{"shutting_down", "the server is stopping; repeat the request when it is back", ""});
  }
}

}  // namespace

Result<std::optional<engine::Submitted>> EngineCommands::replay(std::string owner, std::string key,
                                                                std::string digest) {
  return wait_for<std::optional<engine::Submitted>>([&](auto answer) {
    engine_.replay(std::move(owner), std::move(key), std::move(digest), std::move(answer));
  });
}

Result<engine::StepAdded> EngineCommands::add_step(std::string run_id, std::string owner, std::string step_id,
                                                   std::string digest, engine::Engine::Bind bind) {
  return wait_for<engine::StepAdded>([&](auto answer) {
    engine_.add_step(std::move(run_id), std::move(owner), std::move(step_id), std::move(digest),
                     std::move(bind), std::move(answer));
  });
}

Result<void> EngineCommands::finish(std::string run_id, std::string owner, run::RunStatus status,
                                    std::string result, std::string reason, std::string digest) {
  return wait_for<void>([&](auto answer) {
    engine_.finish(std::move(run_id), std::move(owner), status, std::move(result), std::move(reason),
                   std::move(digest), std::move(answer));
  });
}

Result<void> EngineCommands::cancel(std::string run_id, std::string owner, std::string who,
                                    std::string reason) {
  return wait_for<void>([&](auto answer) {
    engine_.cancel(std::move(run_id), std::move(owner), std::move(who), std::move(reason), std::move(answer));
  });
}

Result<void> EngineCommands::resolve(std::string write_id, engine::Engine::Verdict verdict) {
  return wait_for<void>(
      [&](auto answer) { engine_.resolve(std::move(write_id), std::move(verdict), std::move(answer)); });
}

Result<void> EngineCommands::note(std::string who, std::string action, std::string subject, std::string why) {
  return wait_for<void>([&](auto answer) {
    engine_.note({.who = std::move(who), .action = std::move(action), .subject = std::move(subject), .why = std::move(why)},
                 std::move(answer));
  });
}

Result<Breaker> EngineCommands::force_breaker(std::string server, std::string tool, bool open,
                                              std::string who, std::string why,
                                              std::optional<Duration> span) {
  return wait_for<Breaker>([&](auto answer) {
    engine_.force_breaker(std::move(server), std::move(tool), open, std::move(who), std::move(why), span,
                          std::move(answer));
  });
}

}  // namespace holdfast::api
