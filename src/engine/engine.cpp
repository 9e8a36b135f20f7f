// The public face: commands from other threads become items of the inbox.
#include "holdfast/engine/engine.h"

#include "core/canary.h"
#include "engine/loop.h"
#include "holdfast/core/thread_name.h"

namespace holdfast::engine {

namespace {

Error shutting_down() {
  return {"shutting_down", "the server is shutting down: try again", ""};
}
Error overloaded() {
  return {"overloaded", "too many requests are waiting: try again", ""};
}
Error run_not_found(std::string_view run_id) {
  return {"run_not_found", "there is no run " + std::string(run_id), ""};
}

Error reused(const std::string& run_id) {
  return {"key_reused", "this Idempotency-Key belongs to " + run_id + ", submitted with another body", ""};
}

/// Posts `work`, or answers at once why not.
template <class T, class Work>
void post(Engine::Impl& impl, Answer<T> answer, Work work) {
  if (impl.draining) return answer(std::unexpected(shutting_down()));
  // Shared between the item and the refusal: exactly one of both answers.
  auto shared = std::make_shared<Answer<T>>(std::move(answer));
  const bool taken = impl.inbox.post_command([&impl, shared, work = std::move(work)]() mutable {
    if (impl.draining) return (*shared)(std::unexpected(shutting_down()));
    if (!impl.storage_ok) return (*shared)(std::unexpected(impl.storage_error));
    work(impl, *shared);
  });
  if (!taken) (*shared)(std::unexpected(overloaded()));
}

/// The live run for a command of `owner`, or why not. Empty owner: anybody's.
Result<Live*> visible(Engine::Impl& impl, std::string_view run_id, std::string_view owner) {
  auto found = impl.find_any(run_id);
  if (!found) return found;
  if (*found == nullptr || (!owner.empty() && (*found)->run.owner != owner))
    return std::unexpected(run_not_found(run_id));
  return found;
}

void record(Engine::Impl& impl, ledger::AuditEntry entry) {
  entry.at = impl.now;
  impl.audit.push_back(std::move(entry));
}

/// `live`: of a new run, which its own answer carries; it is in memory until that answer has been given.
std::move_only_function<void(const Error*)> told(Answer<Submitted> answer, Submitted value, const Live* live) {
  return [a = std::move(answer), v = std::move(value), live](const Error* error) mutable {
    if (error != nullptr) return a(std::unexpected(*error));
    if (live != nullptr) v.run = std::make_shared<const run::Run>(live->run);
    a(std::move(v));
  };
}

void accept(Engine::Impl& impl, run::Run planned, Answer<Submitted>& answer) {
  const std::string key =
      planned.submit_key.empty() ? std::string{} : planned.owner + '\0' + planned.submit_key;
  if (!key.empty()) {
    std::optional<ledger::Ledger::Submission> known;
    if (const auto it = impl.keys.find(key); it != impl.keys.end()) {
      known.emplace(it->second, impl.runs.at(it->second)->run.submit_digest);
    } else {
      auto stored = impl.heed(impl.ledger.find_submission(planned.owner, planned.submit_key));
      if (!stored) return answer(std::unexpected(stored.error()));
      if (!canary(Canary::submit_key_not_looked_up)) known = std::move(*stored);
    }
    if (known && known->digest != planned.submit_digest && !canary(Canary::other_body_accepted))
      return answer(std::unexpected(reused(known->run_id)));
    if (known && impl.keys.contains(key)) {
      // Its run is of this very turn: if that can't be stored, neither is this answer true.
      impl.submit_answers.emplace_back(known->run_id,
                                       told(std::move(answer), Submitted{known->run_id, true}, nullptr));
      return;
    }
    if (known && canary(Canary::replay_names_another_run) && !impl.runs.empty())
      known->run_id = impl.runs.begin()->first;
    if (known) return impl.reply<Submitted>(answer, Submitted{known->run_id, !canary(Canary::replay_not_told)});
  }
  auto live = std::make_unique<Live>();
  live->run = std::move(planned);
  live->run.id = impl.ids.next(impl.now);
  if (canary(Canary::arguments_lost) && !live->run.steps.empty()) live->run.steps.front().spec.args = "{}";
  live->is_new = true;
  const std::string id = live->run.id;
  Live& ref = *live;
  impl.runs.emplace(id, std::move(live));
  if (!key.empty()) impl.keys.emplace(key, id);
  run::Turn turn{ref.run, ref.changes, impl.now, impl.random};
  run::submitted(turn);
  impl.mark(ref);
  impl.advance(ref);
  impl.submit_answers.emplace_back(id, told(std::move(answer), Submitted{id, false}, &ref));
}

}  // namespace

Engine::Engine(const Clock& clock, Random& random, ledger::Ledger& ledger, const tools::Catalog& catalog,
               tools::Transport& transport, Observer& observer, Metrics& metrics, Options options)
    : impl_(std::make_unique<Impl>(*this, clock, random, ledger, catalog, transport, observer, metrics,
                                   options)) {
  ledger.when_broken([impl = impl_.get()](const Error& error) {
    impl->inbox.post_evidence([error] { Impl::stop_if_broken(error); });
  });
}

Engine::~Engine() {
  impl_->ledger.when_broken({});
  impl_->stop = true;
  impl_->inbox.nudge();
  if (impl_->thread.joinable()) impl_->thread.join();
}

Result<void> Engine::load() {
  return impl_->load();
}
std::optional<Instant> Engine::turn() {
  return impl_->turn();
}
void Engine::drain() {
  impl_->drain();
}
void Engine::begin_drain() {
  impl_->begin_drain();
}
bool Engine::drained() const {
  const std::lock_guard lock(impl_->drained_mutex);
  return impl_->drained;
}
const Latencies& Engine::latencies() const {
  return impl_->latencies;
}
std::size_t Engine::resting() const {
  return impl_->resting.size();
}
bool Engine::ready() const {
  return impl_->storage_ok && !impl_->draining && !impl_->stop;
}
bool Engine::storage_ok() const {
  return impl_->storage_ok;
}

Result<void> Engine::start() {
  if (auto loaded = impl_->load(); !loaded) return loaded;
  impl_->thread = std::thread([this] {
    name_this_thread("engine");
    impl_->run_thread();
  });
  return {};
}

void Engine::submit(run::Run planned, Answer<Submitted> answer) {
  post<Submitted>(*impl_, std::move(answer),
                  [planned = std::move(planned)](Impl& impl, Answer<Submitted>& a) mutable {
                    accept(impl, std::move(planned), a);
                  });
}

void Engine::replay(std::string owner, std::string key, std::string digest,
                    Answer<std::optional<Submitted>> answer) {
  using Known = std::optional<Submitted>;
  post<Known>(*impl_, std::move(answer),
              [owner = std::move(owner), key = std::move(key), digest = std::move(digest)](
                  Impl& impl, Answer<Known>& a) mutable {
                auto stored = impl.heed(impl.ledger.find_submission(owner, key));
                if (!stored) return a(std::unexpected(stored.error()));
                if (!*stored) return a(Known{});
                if ((*stored)->digest != digest) return a(std::unexpected(reused((*stored)->run_id)));
                impl.reply<Known>(a, Known{Submitted{(*stored)->run_id, true}});
              });
}

void Engine::add_step(std::string run_id, std::string owner, std::string step_id, std::string digest,
                      Bind bind, Answer<StepAdded> answer) {
  post<StepAdded>(
      *impl_, std::move(answer),
      [run_id = std::move(run_id), owner = std::move(owner), step_id = std::move(step_id),
       digest = std::move(digest), bind = std::move(bind)](Impl& impl, Answer<StepAdded>& a) mutable {
        auto found = visible(impl, run_id, owner);
        if (!found) return a(std::unexpected(found.error()));
        Live& live = **found;
        if (live.run.mode != run::Mode::open)
          return a(std::unexpected(
              Error{"not_open",
                    "this run has a fixed plan: steps can be added to runs submitted with mode open", ""}));
        for (const run::Step& step : live.run.steps) {
          if (step.spec.id != step_id) continue;
          if (step.spec.digest == digest || canary(Canary::other_step_accepted))
            return impl.reply<StepAdded>(a, StepAdded{!canary(Canary::step_repeat_not_told)});
          return a(std::unexpected(
              Error{"step_reused", "step " + step_id + " of this run was added with another body", "/id"}));
        }
        if (live.run.settled())
          return a(std::unexpected(
              Error{"run_settled",
                    "the run is " + std::string(word(live.run.status)) + " and takes no more steps", ""}));
        if (live.run.cancel_requested)
          return a(std::unexpected(Error{"run_settled", "the run is being cancelled", ""}));
        if (impl.now >= live.run.deadline)
          return a(std::unexpected(Error{"run_settled", "the run's deadline has passed", ""}));
        auto posted = bind(live.run);
        if (!posted) return a(std::unexpected(posted.error()));
        run::add(std::move(*posted), live.run);
        live.new_steps.push_back(static_cast<std::uint32_t>(live.run.steps.size() - 1));
        live.changes.run = true;
        impl.mark(live);
        impl.advance(live);
        impl.reply<StepAdded>(a, StepAdded{false});
      });
}

void Engine::finish(std::string run_id, std::string owner, run::RunStatus status, std::string result,
                    std::string reason, std::string digest, Answer<void> answer) {
  post<void>(
      *impl_, std::move(answer),
      [run_id = std::move(run_id), owner = std::move(owner), status, result = std::move(result),
       reason = std::move(reason), digest = std::move(digest)](Impl& impl, Answer<void>& a) mutable {
        auto found = visible(impl, run_id, owner);
        if (!found) return a(std::unexpected(found.error()));
        Live& live = **found;
        if (live.run.mode != run::Mode::open)
          return a(std::unexpected(Error{
              "not_open",
              "this run has a fixed plan and ends by itself: only runs submitted with mode open are finished",
              ""}));
        run::Turn turn{live.run, live.changes, impl.now, impl.random};
        auto done = run::finish(turn, status, std::move(result), std::move(reason), std::move(digest));
        if (!done) return a(std::unexpected(done.error()));
        impl.mark(live);
        impl.reply<void>(a, {});
      });
}

void Engine::cancel(std::string run_id, std::string owner, std::string who, std::string reason,
                    Answer<void> answer) {
  post<void>(*impl_, std::move(answer),
             [run_id = std::move(run_id), owner = std::move(owner), who = std::move(who),
              reason = std::move(reason)](Impl& impl, Answer<void>& a) mutable {
               auto found = visible(impl, run_id, owner);
               if (!found) return a(std::unexpected(found.error()));
               Live& live = **found;
               if (canary(Canary::settled_overwritten) && live.run.settled())
                 live.changes.run = true, live.run.status = run::RunStatus::cancelled;
               if (!live.run.settled() && !live.run.cancel_requested) {
                 run::Turn turn{live.run, live.changes, impl.now, impl.random};
                 record(impl, {.who = std::move(who), .action = "cancel", .subject = live.run.id, .why = reason});
                 run::request_cancel(turn, std::move(reason));
                 impl.mark(live);
                 impl.advance(live);
               }
               impl.reply<void>(a, {});
             });
}

void Engine::resolve(std::string write, Verdict verdict, Answer<void> answer) {
  post<void>(*impl_, std::move(answer),
             [write = std::move(write), verdict = std::move(verdict)](Impl& impl, Answer<void>& a) mutable {
               const auto missing = [&] {
                 return std::unexpected(Error{"write_not_found", "there is no write " + write, ""});
               };
               const auto ref = parse_write_id(write);
               if (!ref) return a(missing());
               auto found = impl.find_any(ref->run_id);
               if (!found) return a(std::unexpected(found.error()));
               if (*found == nullptr || ref->step_index >= (*found)->run.steps.size()) return a(missing());
               Live& live = **found;
               const auto index = static_cast<std::uint32_t>(ref->step_index);
               if (!live.run.steps[index].write) return a(missing());
               const bool was_open = live.run.steps[index].write->open;
               run::Turn turn{live.run, live.changes, impl.now, impl.random};
               const auto done = run::resolve(
                   turn, index,
                   {verdict.verdict, verdict.result, verdict.note, verdict.who, verdict.deadline});
               if (!done) return a(std::unexpected(done.error()));
               if (was_open) {
                 record(impl, {.who = verdict.who,
                               .action = "resolve." + std::string(run::word(verdict.verdict)),
                               .subject = write,
                               .why = verdict.note});
                 if (live.run.steps[index].in_flight)
                   live.changes.cancel_calls.push_back(index);  // a check that is out
                 impl.mark(live);
                 impl.advance(live);
               }
               impl.reply<void>(a, {});
             });
}

void Engine::note(ledger::AuditEntry entry, Answer<void> answer) {
  post<void>(*impl_, std::move(answer), [entry = std::move(entry)](Impl& impl, Answer<void>& a) mutable {
    record(impl, std::move(entry));
    impl.reply<void>(a, {});
  });
}

void Engine::force_breaker(std::string server, std::string tool, bool open, std::string who, std::string why,
                           std::optional<Duration> span, Answer<Breaker> answer) {
  post<Breaker>(
      *impl_, std::move(answer),
      [server = std::move(server), tool = std::move(tool), open, who = std::move(who), why = std::move(why),
       span](Impl& impl, Answer<Breaker>& a) mutable {
        if (impl.catalog.server(server) == nullptr)
          return a(std::unexpected(Error{"server_not_found", "there is no server " + server, ""}));
        if (!tool.empty() && impl.catalog.find(server, tool) == nullptr)
          return a(std::unexpected(Error{"tool_not_found", "server " + server + " has no tool " + tool, ""}));
        const std::optional<Instant> until = span ? std::optional<Instant>(impl.now + *span) : std::nullopt;
        record(impl, {.who = who,
                      .action = open ? "breaker.open" : "breaker.close",
                      .subject = tool.empty() ? server : server + "/" + tool,
                      .why = why});
        impl.reply<Breaker>(a, impl.gates.force(server, tool, open, who, why, until, impl.now));
        if (!open && tool.empty()) impl.release_gate(server);
      });
}

void Engine::between_events(std::move_only_function<void()> work) {
  impl_->inbox.post_evidence(std::move(work));
}

void Engine::finished(tools::CallId id, Evidence evidence) {
  impl_->inbox.post_evidence([impl = impl_.get(), id, evidence = std::move(evidence)]() mutable {
    impl->call_finished(id, std::move(evidence));
  });
}

void Engine::late(tools::CallId id, Evidence evidence) {
  impl_->inbox.post_evidence([impl = impl_.get(), id, evidence = std::move(evidence)]() mutable {
    impl->call_late(id, std::move(evidence));
  });
}

}  // namespace holdfast::engine
