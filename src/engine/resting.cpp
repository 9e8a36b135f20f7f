#include "engine/resting.h"

#include "engine/loop.h"
#include "run/packed.h"

namespace holdfast::engine {

bool may_rest(const Live& live, Instant now) {
  const run::Run& run = live.run;
  if (run.status != run::RunStatus::waiting && run.status != run::RunStatus::unknown) return false;
  // Slots come free and clients come back without a word of when.
  if (run.wait.what == run::WaitFor::slot || run.wait.what == run::WaitFor::client) return false;
  return live.flights == 0 && (!live.wake || *live.wake > now + kShortestRest);
}

std::string pack(const Live& live) {
  // Who adds a member decides here whether it is kept: the others are those of a turn, or follow from the run.
  [[maybe_unused]] const auto& [run, changes, attempts, new_steps, last_class, requests, is_new, dirty, flights, queued, wake, counted,
                                is_counted, unknown_since] = live;
  run::Packer packer;
  packer.put(run);
  packer.put(last_class);
  packer.put(requests);
  packer.put(queued);
  return packer.take();
}

void unpack(std::string_view bytes, Live& live) {
  run::Unpacker unpacker(bytes);
  unpacker.get(live.run);
  unpacker.get(live.last_class);
  unpacker.get(live.requests);
  unpacker.get(live.queued);
  live.wake = run::wake_at(live.run);
  live.counted = live.run.status;
  live.is_counted = true;
  live.unknown_since = open_unknowns(live.run);
}

void Resting::put(std::string_view run_id, std::string_view bytes) {
  std::string entry;
  entry.reserve(1 + run_id.size() + bytes.size());
  entry += static_cast<char>(run_id.size());
  entry += run_id;
  entry += bytes;
  entries_.insert(std::move(entry));
}

std::optional<std::string> Resting::take(std::string_view run_id) {
  const auto it = entries_.find(run_id);
  if (it == entries_.end()) return std::nullopt;
  std::string bytes = it->substr(1 + run_id.size());
  entries_.erase(it);
  return bytes;
}

std::vector<std::string> Resting::ids() const {
  std::vector<std::string> ids;
  ids.reserve(entries_.size());
  for (const std::string& entry : entries_) ids.emplace_back(id_of(entry));
  return ids;
}

}  // namespace holdfast::engine
