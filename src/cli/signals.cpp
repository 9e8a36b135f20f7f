#include "cli/signals.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

namespace holdfast::cli {
namespace {

sigset_t our_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

int next_signal(const std::function<void()>& meanwhile) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 500'000'000};
  const sigset_t set = our_signals();
  while (true) {
    if (const int signal = sigtimedwait(&set, nullptr, &kPause); signal > 0) return signal;
    if (errno == EAGAIN) meanwhile();
  }
}

}  // namespace

void hold_signals() {
  const sigset_t set = our_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the process's size limit: the write fails, as on a full disk
}

void wait_for_stop(const std::function<void()>& reload, const std::function<void()>& meanwhile) {
  while (next_signal(meanwhile) == SIGHUP) reload();
  std::thread([] {
    int signal = SIGHUP;
    while (signal == SIGHUP) signal = next_signal([] {});
    _exit(128 + signal);
  }).detach();
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);  // a lower limit costs connections, not safety
}

}  // namespace holdfast::cli
