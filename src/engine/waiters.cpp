// Steps that waited for something shared, when it is there.
#include "engine/loop.h"

namespace holdfast::engine {

void Engine::Impl::serve_waiters() {
  for (Gates::Released& released : gates.take_released()) {
    Live* live = find(released.waiter.run_id);
    if (live == nullptr) continue;
    run::Step& step = live->run.steps[released.waiter.step];
    if (released.waiter.check) {
      if (step.in_flight || !step.next_check) continue;
      step.next_check = released.at;
      if (step.status != run::StepStatus::unknown) step.wait = {run::WaitFor::backoff, released.at};
      live->changes.touch(released.waiter.step);
      mark(*live);
      continue;
    }
    if (step.status != run::StepStatus::waiting || step.wait.what != run::WaitFor::circuit) continue;
    run::Turn turn{live->run, live->changes, now, random};
    run::hold(turn, released.waiter.step, {run::WaitFor::circuit, released.at});
    mark(*live);
    advance(*live);
  }
  Waiter waiter;
  while (!draining && gates.next_for_slot(waiter)) serve_slot(waiter);
}

void Engine::Impl::serve_slot(const Waiter& waiter) {
  Live* live = find(waiter.run_id);
  if (live == nullptr || waiter.step >= live->run.steps.size()) return;
  run::Step& step = live->run.steps[waiter.step];
  if (waiter.check) {
    // Other evidence may have ended the doubt, or begun another check, since it was queued.
    if (step.in_flight || !step.next_check || step.doubt == Reason::none) return;
    start_check(*live, waiter.step, true);
  } else {
    if (step.status != run::StepStatus::waiting || step.wait.what != run::WaitFor::slot) return;
    if (run::given_up(step))
      start_fallback(*live, waiter.step, true);
    else
      start_step(*live, waiter.step, true);
  }
  mark(*live);
  advance(*live);
}

void Engine::Impl::release_gate(std::string_view server) {
  Instant at = now;
  for (const std::string& id : resting.ids()) (void)find(id);  // one that does not wait for this gate rests again at the end of the turn
  for (auto& [id, live] : runs) {
    bool any = false;
    for (std::uint32_t i = 0; i < live->run.steps.size(); ++i) {
      const run::Step& step = live->run.steps[i];
      if (step.spec.server != server || step.status != run::StepStatus::waiting ||
          step.wait.what != run::WaitFor::rate_gate)
        continue;
      run::Turn turn{live->run, live->changes, now, random};
      run::hold(turn, i, {run::WaitFor::rate_gate, at});
      at = at + Duration{1 + random.up_to(kApartMs - 1)};
      any = true;
    }
    if (any) mark(*live);
  }
}

}  // namespace holdfast::engine
