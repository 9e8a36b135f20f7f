#pragma once
#include <cstdint>
#include <vector>

namespace holdfast::run {

/// The steps of one cycle in the order in which they wait for each other, empty when there is none.
/// `after[i]` are the steps that step i waits for. Linear in steps and arrows, without recursion.
[[nodiscard]] std::vector<std::uint32_t> find_cycle(const std::vector<std::vector<std::uint32_t>>& after);

}  // namespace holdfast::run
