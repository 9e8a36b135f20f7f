#pragma once
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <unordered_map>

namespace holdfast::bench {

/// A tool that answers every POST at once with a small JSON body. One thread, nothing of the product in it.
class ToolServer {
 public:
  ToolServer();
  ~ToolServer();
  ToolServer(const ToolServer&) = delete;
  ToolServer& operator=(const ToolServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(); }

 private:
  void serve();
  void accept_all();
  void on_input(int socket);
  void drop(int socket);

  int listener_ = -1;
  int epoll_ = -1;
  int stop_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<std::uint64_t> requests_{0};
  std::unordered_map<int, std::string> input_;
  std::thread thread_;
};

}  // namespace holdfast::bench
