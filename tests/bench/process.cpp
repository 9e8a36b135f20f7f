#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

namespace holdfast::bench {
namespace {

constexpr int kReadyMs = 60'000;  // a peer may have to create its database first
constexpr int kStopMs = 12'000;
constexpr std::size_t kShownLog = 2000;

std::filesystem::path new_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  return name;
}

/// What the program said up to its ready line, or all of it where none came.
std::string read_until_ready(int descriptor) {
  std::string said;
  while (true) {
    const std::size_t ready = said.find("ready ");
    if (ready != std::string::npos && said.find('\n', ready) != std::string::npos) return said.substr(ready);
    pollfd p{.fd = descriptor, .events = POLLIN, .revents = 0};
    std::array<char, 512> buffer;
    if (::poll(&p, 1, kReadyMs) <= 0) return said;
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n <= 0) return said;
    said.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Stat {
  pid_t parent = 0;
  double cpu_ms = 0;
};

/// The name in a stat line is in brackets and may hold anything, so the fields are counted from the last bracket.
Stat stat_of(pid_t process) {
  const std::string text = text_of("/proc/" + std::to_string(process) + "/stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream in(text.substr(name_end + 1));
  std::string state, skip;
  Stat stat;
  in >> state >> stat.parent;
  for (int i = 0; i < 9; ++i) in >> skip;
  double user = 0, system = 0;
  in >> user >> system;
  stat.cpu_ms = (user + system) * 1000 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return stat;
}

std::vector<pid_t> with_descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0) children.emplace(stat_of(process).parent, process);
  }
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [from, to] = children.equal_range(found[i]);
    for (auto it = from; it != to; ++it) found.push_back(it->second);
  }
  return found;
}

double number_after(const std::string& text, const std::string& name) {
  const std::size_t at = text.find(name);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

}  // namespace

Process::Process() : folder_(new_folder()) {}

Process::~Process() {
  stop();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Process::start(const std::vector<std::string>& words,
                           const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::array<int, 2> out{};
  if (pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // an interrupted measurement leaves nothing running
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    if (chdir(folder_.c_str()) != 0) _exit(126);
    dup2(out[1], STDOUT_FILENO);
    const int log = ::open("log", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log >= 0) dup2(log, STDERR_FILENO);
    execv(arguments.front(), arguments.data());
    _exit(127);
  }
  ::close(out[1]);
  const std::string line = read_until_ready(out[0]);
  ::close(out[0]);
  if (line.find("ready ") == std::string::npos) {
    const std::string log = text_of(folder_ / "log");
    throw std::runtime_error("not ready, but: " + line + "\n" + log.substr(0, kShownLog));
  }
  return line;
}

void Process::stop() {
  if (process_ <= 0) return;
  const std::vector<pid_t> all = with_descendants(process_);
  kill(process_, SIGTERM);
  int waited_ms = 0;
  for (; waitpid(process_, nullptr, WNOHANG) == 0 && waited_ms < kStopMs; waited_ms += 20) {
    ::poll(nullptr, 0, 20);
  }
  if (waited_ms >= kStopMs) {
    for (const pid_t process : all) kill(process, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  kill(-process_, SIGKILL);  // children that outlived it
  process_ = -1;
}

Usage Process::usage() const {
  Usage sum;
  for (const pid_t process : with_descendants(process_)) {
    const std::string folder = "/proc/" + std::to_string(process);
    sum.cpu_ms += stat_of(process).cpu_ms;
    sum.written_bytes += number_after(text_of(folder + "/io"), "\nwrite_bytes:");
    sum.peak_rss_kib += number_after(text_of(folder + "/status"), "\nVmHWM:");
  }
  return sum;
}

double Process::memory_kib() const {
  double sum = 0;
  for (const pid_t process : with_descendants(process_)) {
    sum += number_after(text_of("/proc/" + std::to_string(process) + "/smaps_rollup"), "\nPss:");
  }
  return sum;
}

}  // namespace holdfast::bench
