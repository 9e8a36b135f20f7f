#pragma once
#include <ctime>

namespace holdfast::cli {

/// Gives back the pages of program text that start-up, reading the configuration and bursts of work went through. Text that is needed again is
/// mapped again from the page cache, without reading the disk.
class IdleMemory {
 public:
  /// Call when the server is ready and then about twice a second, on one thread: gives the pages back now, and again at the first call that finds
  /// that the process has hardly used a processor since the call before it. Never fails.
  void look();

 private:
  std::clock_t used_ = 0;
  bool worked_ = true;
};

}  // namespace holdfast::cli
