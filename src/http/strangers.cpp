#include "http/strangers.h"

#include <algorithm>
#include <cmath>

namespace holdfast::http {
namespace {

constexpr double kInARow = 50;
constexpr double kPerMs = 1.0 / 1'000;
constexpr std::size_t kAddresses = 4'096;
const std::string kOthers;  // no address is empty

double left_at(double left, Instant at, Instant now) {
  return std::min(kInARow, left + static_cast<double>(std::max<std::int64_t>(0, (now - at).count())) * kPerMs);
}

}  // namespace

Strangers::Account& Strangers::account_of(const std::string& address_group, Instant now) {
  if (const auto found = accounts_.find(address_group); found != accounts_.end()) return found->second;
  if (accounts_.size() >= kAddresses)
    std::erase_if(accounts_, [&](const auto& one) { return left_at(one.second.left, one.second.at, now) >= kInARow; });
  const std::string& name = accounts_.size() < kAddresses ? address_group : kOthers;
  return accounts_.try_emplace(name, Account{kInARow, now}).first->second;
}

int Strangers::wrong(const std::string& address_group, Instant now) {
  Account& account = account_of(address_group, now);
  account.left = left_at(account.left, account.at, now);
  account.at = now;
  if (account.left >= 1) {
    account.left -= 1;
    return 0;
  }
  return std::max(1, static_cast<int>(std::ceil((1 - account.left) / kPerMs / 1'000)));
}

}  // namespace holdfast::http
