#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "holdfast/core/time.h"

namespace holdfast::http {

/// Wrong tokens by address: each address may be wrong 50 times in a row, and once a second after that. Bounded: 4,096
/// addresses; when more are wrong at a time, the others share one account. For one thread.
class Strangers {
 public:
  /// Seconds until this address is listened to again; 0: this wrong token is within what it may.
  [[nodiscard]] int wrong(const std::string& address_group, Instant now);

 private:
  struct Account {
    double left = 0;
    Instant at;
  };
  [[nodiscard]] Account& account_of(const std::string& address_group, Instant now);

  std::unordered_map<std::string, Account> accounts_;
};

}  // namespace holdfast::http
