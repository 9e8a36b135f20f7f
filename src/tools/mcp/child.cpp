#include "tools/mcp/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

namespace holdfast::tools::mcp {
namespace {

/// What a tool server needs to run at all; secrets in our environment stay ours.
constexpr std::array<const char*, 10> kInherited = {"PATH", "HOME", "LOGNAME", "USER",   "SHELL",
                                                    "TERM", "LANG", "LC_ALL",  "TMPDIR", "TZ"};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(Error{"cannot_start", "no pipe: " + std::generic_category().message(errno), ""});
  }
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

std::vector<std::string> environment_of(const std::vector<std::pair<std::string, std::string>>& extra) {
  std::vector<std::string> lines;
  for (const char* name : kInherited) {
    const bool replaced = std::ranges::any_of(extra, [&](const auto& pair) { return pair.first == name; });
    const char* value = replaced ? nullptr : std::getenv(name);
    if (value != nullptr) lines.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : extra) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

/// Every path where the program may be, made before the fork: nothing is allocated after it.
std::vector<std::string> candidates(const std::string& program) {
  if (program.find('/') != std::string::npos) return {program};
  const char* value = std::getenv("PATH");
  std::string_view path = value == nullptr ? "/usr/local/bin:/usr/bin:/bin" : value;
  std::vector<std::string> found;
  while (true) {
    const std::size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    found.push_back((folder.empty() ? std::string(".") : std::string(folder)) + "/" + program);
    if (colon == std::string_view::npos) return found;
    path.remove_prefix(colon + 1);
  }
}

struct Plan {
  int input, output, nowhere, report;
  pid_t parent;
  const std::vector<char*>& programs;
  const std::vector<char*>& arguments;
  const std::vector<char*>& environment;
};

/// In the child, between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const Plan& plan) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) _exit(127);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(plan.input, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.nowhere, STDERR_FILENO);
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  int problem = ENOENT;
  for (const char* program : plan.programs) {
    if (program == nullptr) break;
    execve(program, plan.arguments.data(), plan.environment.data());
    if (errno != ENOENT && errno != ENOTDIR) problem = errno;
  }
  [[maybe_unused]] const ssize_t written = write(plan.report, &problem, sizeof problem);
  _exit(127);
}

void set_nonblocking(const Descriptor& descriptor) {
  fcntl(descriptor.get(), F_SETFL, fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Child> start_child(const std::vector<std::string>& command,
                          const std::vector<std::pair<std::string, std::string>>& environment) {
  if (command.empty()) return std::unexpected(Error{"cannot_start", "the command is empty", ""});
  Result<Pipe> input = make_pipe();
  Result<Pipe> output = make_pipe();
  Result<Pipe> report = make_pipe();
  for (const Result<Pipe>* pipe : {&input, &output, &report}) {
    if (!*pipe) return std::unexpected(pipe->error());
  }
  const Descriptor nowhere(open("/dev/null", O_WRONLY | O_CLOEXEC));
  const std::vector<std::string> programs = candidates(command.front());
  const std::vector<std::string> lines = environment_of(environment);
  const std::vector<char*> program_list = pointers(programs), arguments = pointers(command),
                           variables = pointers(lines);
  const Plan plan{input->read.get(), output->write.get(), nowhere.get(), report->write.get(),
                  getpid(),          program_list,        arguments,     variables};
  Child child;
  child.pid = fork();
  if (child.pid == 0) become(plan);
  if (child.pid < 0)
    return std::unexpected(
        Error{"cannot_start", "no process: " + std::generic_category().message(errno), ""});
  setpgid(child.pid, child.pid);  // also here: whoever comes first
  input->read.reset();
  output->write.reset();
  report->write.reset();
  int problem = 0;
  ssize_t got = 0;
  do got = read(report->read.get(), &problem, sizeof problem);
  while (got < 0 && errno == EINTR);
  if (got != 0) {
    end_child(child);
    return std::unexpected(Error{
        "cannot_start", "the command cannot be started: " + std::generic_category().message(problem), ""});
  }
  child.input = std::move(input->write);
  child.output = std::move(output->read);
  set_nonblocking(child.input);
  set_nonblocking(child.output);
  return child;
}

void signal_group(const Child& child, int signal) {
  if (child.pid > 0) kill(-child.pid, signal);
}

bool has_ended(const Child& child) {
  if (child.pid <= 0) return true;
  siginfo_t info{};
  const int got = waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return got != 0 ? errno == ECHILD : info.si_pid != 0;
}

void end_child(Child& child) {
  child.input.reset();
  child.output.reset();
  if (child.pid <= 0) return;
  signal_group(child, SIGKILL);
  while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  child.pid = 0;
}

}  // namespace holdfast::tools::mcp
