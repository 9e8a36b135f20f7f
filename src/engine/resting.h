#pragma once
// Runs that wait for a later instant, or for a person, as bytes: as it moves, a run takes several times the memory. Engine thread only.
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "holdfast/core/time.h"

namespace holdfast::engine {

struct Live;

/// Who waits for less than this stays as it is.
inline constexpr Duration kShortestRest{1'000};

/// Nothing of the run is under way, and nothing will be for a while unless somebody comes.
[[nodiscard]] bool may_rest(const Live& live, Instant now);
/// What a run at rest is made of again; all else follows from that. `live` is neither dirty nor does it have calls out.
[[nodiscard]] std::string pack(const Live& live);
void unpack(std::string_view bytes, Live& live);

class Resting {
 public:
  void put(std::string_view run_id, std::string_view bytes);
  /// Its bytes; it rests no more. nullopt: it does not rest.
  [[nodiscard]] std::optional<std::string> take(std::string_view run_id);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] std::vector<std::string> ids() const;

 private:
  // Id and bytes are one text, the id's length in front: of many small pieces of memory each costs something of its own.
  struct ById {
    using is_transparent = void;
    std::size_t operator()(std::string_view run_id) const { return std::hash<std::string_view>()(run_id); }
    std::size_t operator()(const std::string& entry) const { return (*this)(id_of(entry)); }
    bool operator()(const std::string& a, const std::string& b) const { return id_of(a) == id_of(b); }
    bool operator()(std::string_view run_id, const std::string& entry) const { return run_id == id_of(entry); }
    bool operator()(const std::string& entry, std::string_view run_id) const { return run_id == id_of(entry); }
  };
  [[nodiscard]] static std::string_view id_of(const std::string& entry) {
    return std::string_view(entry).substr(1, static_cast<unsigned char>(entry.front()));
  }

  std::unordered_set<std::string, ById, ById> entries_;
};

}  // namespace holdfast::engine
