#pragma once
// What really happened, outside the product: what tools saw and did, what people were told and said.
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/outcome.h"

namespace holdfast::sim {

/// One call of a step on its way.
struct Send {
  std::uint32_t n = 0;  // its attempt row
  Instant begun{};      // as the row has it
  Shown given = Shown::nothing;  // what the evidence handed to the engine shows
  bool recorded = false;         // and the ledger has it
  bool crashed = false;          // the ledger has that our process ended meanwhile
  bool travelling = false;       // its request may still reach the tool
  bool acted = false;
  std::optional<Instant> not_before;  // a Retry-After, by the engine's clock

  /// Nothing of this call can have had an effect, as far as anybody was told.
  [[nodiscard]] bool harmless() const {
    return recorded && !crashed && (given == Shown::unsent || given == Shown::refused);
  }
};

/// One step as its client sees it, whatever run holds it.
struct Op {
  std::string name;
  Tool* tool = nullptr;
  std::string run_id;  // once known
  std::uint32_t step = 0;
  std::vector<Send> sends;
  std::uint32_t hits = 0;  // requests of these that reached the tool
  std::uint32_t effects = 0;
  std::optional<Instant> first_effect;
  std::uint64_t request = 0;  // hash of the bytes that every send must have
  std::string key;
  std::uint32_t repairs = 0;        // refusals that allow one repeat beside the count
  std::uint32_t orders = 0;         // times an operator said not_landed
  std::uint32_t wrong_orders = 0;   // and it was not so, or not yet sure
  std::uint32_t forgotten = 0;      // times the tool forgot its key
  std::size_t cleared = 0;          // sends before this one are settled by an operator or a check
  std::size_t absent = 0;           // of a keyed write: sends before this one were not there when the check was asked
  bool absent_seen = false;         // the check's answer since the last send
  bool said_landed = false, said_abandon = false;
  bool extended = false;  // an operator gave its run a new deadline
  std::uint32_t asked[3]{};  // calls of checks, fallbacks, probes

  [[nodiscard]] bool travelling() const {
    for (const Send& send : sends)
      if (send.travelling) return true;
    return false;
  }
};

class Truth {
 public:
  Op& op(const std::string& name) { return ops_.at(name); }
  [[nodiscard]] Op* find(std::string_view name) {
    const auto it = ops_.find(name);
    return it == ops_.end() ? nullptr : &it->second;
  }
  Op& add(const std::string& name, Tool* tool) {
    Op& op = ops_[name];
    op.name = name;
    op.tool = tool;
    return op;
  }
  /// The op that arguments name; empty when they name none.
  [[nodiscard]] static std::string name_in(std::string_view json) {
    const std::size_t at = json.find("\"op\":\"");
    if (at == std::string_view::npos) return name_between_the_lines(json);
    const std::size_t from = at + 6;
    return std::string(json.substr(from, json.find('"', from) - from));
  }
  /// Arguments that are equal for many ops: how the letters of a word are written tells whose they are.
  [[nodiscard]] static std::string shared_args(int number, int index, int about) {
    std::string args = "{\"topic\":\"";
    const int name = number * kMostSteps + index;
    for (int bit = 0; bit < kNameBits; ++bit) args += (name >> bit & 1) != 0 ? "\\u0061" : "a";
    return args + "\",\"about\":" + std::to_string(about) + "}";
  }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  std::unordered_map<std::string, Op, Hash, std::equal_to<>> ops_;
  static constexpr int kMostSteps = 32, kNameBits = 20;
  static std::string name_between_the_lines(std::string_view json) {
    std::size_t at = json.find("\"topic\":\"");
    if (at == std::string_view::npos) return {};
    at += 9;
    int name = 0;
    for (int bit = 0; bit < kNameBits; ++bit) {
      const bool escaped = json[at] == '\\';
      name |= escaped ? 1 << bit : 0;
      at += escaped ? 6 : 1;
    }
    return std::to_string(name / kMostSteps) + "." + std::to_string(name % kMostSteps);
  }
};

/// One submission, with what its client was told.
struct Submission {
  int number = 0;
  std::string key, body;
  std::vector<std::string> ops;
  bool open = false;
  bool asked = false;     // sent at least once
  bool refused = false;   // the last answer was that it was not taken
  bool coming = false;    // is about to ask
  bool waiting = false;   // an answer is due
  bool lost_answer = false;
  std::string run_id;     // acknowledged
  Instant deadline{};
  std::uint32_t budget = 0;
  bool cancel_asked = false, cancel_acked = false;
  std::size_t steps_acked = 0;  // of an open run
  std::vector<std::string> step_bodies;
  bool finish_acked = false;
  std::string settled_as;  // the status in which it was seen settled
};

}  // namespace holdfast::sim
