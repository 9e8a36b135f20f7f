#include "api/large_answers.h"

#include <algorithm>

namespace holdfast::api {
namespace {

constexpr std::size_t kTexts = 4;
constexpr std::size_t kBytes = std::size_t{32} << 20;

std::size_t slot_of(std::string_view run_id, std::size_t slots) {
  return std::hash<std::string_view>{}(run_id) % slots;
}

}  // namespace

LargeAnswers::Text LargeAnswers::find(std::string_view run_id) const {
  if (!any_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, run_id, [](const auto& one) -> std::string_view { return one.first; });
  return found == kept_.end() ? Text{} : found->second;
}

LargeAnswers::Ticket LargeAnswers::before_reading(std::string_view run_id) const {
  return {changes_of(run_id).load(std::memory_order_acquire)};
}

void LargeAnswers::keep(Ticket ticket, std::string_view run_id, Text text) {
  if (text.after->size() > kBytes) return;
  const std::lock_guard lock(mutex_);
  any_.store(true);  // before the look at the changes: forget() looks in the other order, so one of both sees the other
  if (changes_of(run_id).load() != ticket.changes) return;
  if (std::ranges::any_of(kept_, [&](const auto& one) { return one.first == run_id; })) return;
  bytes_ += text.after->size();
  kept_.emplace_back(run_id, std::move(text));
  while (kept_.size() > kTexts || bytes_ > kBytes) {
    bytes_ -= kept_.front().second.after->size();
    kept_.pop_front();
  }
}

void LargeAnswers::was_large(std::string_view run_id) {
  was_large_[slot_of(run_id, was_large_.size())].store(true, std::memory_order_release);
}

void LargeAnswers::forget(std::string_view run_id) {
  changes_of(run_id).fetch_add(1);
  if (!any_.load()) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(kept_, [&](const auto& one) {
    if (one.first != run_id) return false;
    bytes_ -= one.second.after->size();
    return true;
  });
  any_.store(!kept_.empty());
}

std::unique_lock<std::mutex> LargeAnswers::one_at_a_time(std::string_view run_id) const {
  if (!was_large_[slot_of(run_id, was_large_.size())].load(std::memory_order_acquire)) return {};
  return std::unique_lock(making_);
}

}  // namespace holdfast::api
