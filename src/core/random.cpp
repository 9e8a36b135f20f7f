#include "holdfast/core/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>

namespace holdfast {
namespace {

/// The kernel's generator, asked for a buffer at a time.
class SystemRandom final : public Random {
 public:
  std::uint64_t next() override {
    if (left_ == 0) fill();
    return buffer_[--left_];
  }

 private:
  void fill() {
    // At most 256 bytes: such a read is never short and never interrupted once the kernel's pool is ready.
    while (getrandom(buffer_.data(), sizeof buffer_, 0) != static_cast<ssize_t>(sizeof buffer_)) {
      if (errno != EINTR) std::abort();  // without randomness two processes could make the same id
    }
    left_ = buffer_.size();
  }

  std::array<std::uint64_t, 32> buffer_{};
  std::size_t left_ = 0;
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override {
    state_ += 0x9E3779B97F4A7C15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
    return mixed ^ mixed >> 31;
  }

 private:
  std::uint64_t state_;
};

}  // namespace

std::unique_ptr<Random> system_random() {
  return std::make_unique<SystemRandom>();
}
std::unique_ptr<Random> seeded_random(std::uint64_t seed) {
  return std::make_unique<SeededRandom>(seed);
}

}  // namespace holdfast
