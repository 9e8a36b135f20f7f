#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::bench {

/// What a process and all its descendants have used since they started.
struct Usage {
  double cpu_ms = 0;
  double written_bytes = 0;  // handed to the disk or the page cache
  double peak_rss_kib = 0;   // the sum of each one's own peak; pages that they share count for each
};

/// A program in a temporary folder that goes away with it.
class Process {
 public:
  Process();
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Starts `words` in folder(), its standard error in the file `log` there, and waits for the line with
  /// "ready " on its standard output. Returns it from there on; throws std::runtime_error when none comes.
  std::string start(const std::vector<std::string>& words,
                    const std::vector<std::pair<std::string, std::string>>& environment);
  /// Asks the process to end, waits, and ends it and its descendants by force where they do not.
  void stop();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] Usage usage() const;
  /// What it and its descendants hold now, each shared page counted once.
  [[nodiscard]] double memory_kib() const;

 private:
  std::filesystem::path folder_;
  pid_t process_ = -1;
};

}  // namespace holdfast::bench
