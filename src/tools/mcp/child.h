#pragma once
// A child process with pipes, in a process group of its own, that does not outlive the thread that started
// it.
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::tools::mcp {

/// An open descriptor; closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }
  void reset();
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Child {
  pid_t pid = 0;
  Descriptor input;   // the child's stdin, non-blocking
  Descriptor output;  // the child's stdout, non-blocking
};

/// Starts `command` (looked up in PATH) with a small safe part of our environment and `environment` on top;
/// its stderr goes nowhere. Returns once the program runs. Error `cannot_start` with the system's words. The
/// child is killed when the calling *thread* ends.
[[nodiscard]] Result<Child> start_child(const std::vector<std::string>& command,
                                        const std::vector<std::pair<std::string, std::string>>& environment);

/// Sends the whole group a signal.
void signal_group(const Child& child, int signal);
/// True once the child itself has ended, or there is none; it is still to be waited for. Never blocks.
[[nodiscard]] bool has_ended(const Child& child);
/// Kills the group and waits for the child.
void end_child(Child& child);

}  // namespace holdfast::tools::mcp
