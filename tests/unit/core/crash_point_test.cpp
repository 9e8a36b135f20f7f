#include "core/crash_point.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

using namespace holdfast;

namespace {

/// How a child ended that armed `text` and passed `point` so many times: the signal, or 0 when it lived.
int signal_after(const char* text, CrashPoint point, int passings) {
  const pid_t child = fork();
  if (child == 0) {
    if (!arm_crash_point(text)) _exit(1);
    for (int i = 0; i < passings; ++i) crash_point(point);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("an armed point kills at its n-th passing and at no other", "[crash_point]") {
  CHECK(signal_after("committed:3", CrashPoint::committed, 2) == 0);
  CHECK(signal_after("committed:3", CrashPoint::committed, 3) == SIGKILL);
  CHECK(signal_after("committed:1", CrashPoint::answered, 5) == 0);
}

TEST_CASE("without an armed point nothing happens", "[crash_point]") {
  REQUIRE(armed_crash_point == CrashPoint::none);
  for (int i = 0; i < 10; ++i) crash_point(CrashPoint::committed);
}

TEST_CASE("what names no point and count is refused, and the known ones are named", "[crash_point]") {
  for (const char* text : {"", "committed", "committed:", "committed:0", "committed:-1", "committed:1x", "commit:1", "none:1"}) {
    const auto armed = arm_crash_point(text);
    INFO(text);
    REQUIRE_FALSE(armed);
    CHECK(armed.error().code == "bad_crash_point");
    CHECK(armed.error().message.find("before_absorb") != std::string::npos);
  }
  CHECK(armed_crash_point == CrashPoint::none);
  CHECK(crash_point_names().size() == 22);
}
