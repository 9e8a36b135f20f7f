#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace holdfast::bench {

/// The built binary, serving a database in a temporary folder that goes away with it.
class Service {
 public:
  /// Throws std::runtime_error when it does not become ready.
  Service(const std::string& binary, std::uint16_t tool_port);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Asks the process to end, waits, and ends it by force when it does not.
  void stop();

  [[nodiscard]] std::uint16_t client_port() const { return client_port_; }
  [[nodiscard]] long peak_rss_kib() const;
  /// Of the database and what lies beside it: after stop() without a log that is only waiting to be copied.
  [[nodiscard]] std::uint64_t bytes_on_disk() const;
  /// The value of a metric without labels; -1 where it is not to be had.
  [[nodiscard]] double metric(const std::string& name) const;

 private:
  void start(const std::string& binary);

  std::filesystem::path folder_;
  pid_t process_ = -1;
  std::uint16_t client_port_ = 0;
  std::uint16_t admin_port_ = 0;
};

}  // namespace holdfast::bench
