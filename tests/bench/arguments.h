#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace holdfast::bench {

struct Plan {
  std::string binary;
  std::string packages;            // of the peers; empty: none is measured
  std::vector<std::string> peers;  // those that are installed
  std::vector<std::size_t> concurrencies{1, 16, 64, 256};
  std::vector<std::string> tools{"plain", "keyed"};
  std::vector<int> steps{1, 5};
  int repetitions = 3;
  std::string ledger;  // an old one: ours is measured with a copy of it too; empty: not
  bool floor = true;
  std::chrono::milliseconds warm_up{1500};  // for the peers' compilers and pools; the same for all
  std::chrono::milliseconds time{3000};
};

/// What the words on the command line ask for. Throws std::runtime_error, with the usage, when they make no sense.
[[nodiscard]] Plan read_arguments(int count, char** words);

}  // namespace holdfast::bench
