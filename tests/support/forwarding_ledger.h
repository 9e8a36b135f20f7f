#pragma once
// The base of ledgers that watch or disturb another one: everything goes through, so that a double names only what it does otherwise.
#include <string>
#include <string_view>

#include "holdfast/ledger/ledger.h"

namespace holdfast::testing {

class ForwardingLedger : public ledger::Ledger {
 public:
  explicit ForwardingLedger(ledger::Ledger& inner) : inner_(inner) {}

  Result<ledger::Committed> commit(ledger::Batch& batch) override { return seen(inner_.commit(batch)); }
  Result<Open> load_open() override { return seen(inner_.load_open()); }
  Result<std::optional<run::Run>> load(std::string_view run_id) override { return seen(inner_.load(run_id)); }
  Result<std::optional<Submission>> find_submission(std::string_view owner, std::string_view key) override {
    return seen(inner_.find_submission(owner, key));
  }
  Result<std::optional<run::Attempt>> find_attempt(std::int64_t run_seq, std::uint32_t step,
                                                   std::uint32_t n) override {
    return seen(inner_.find_attempt(run_seq, step, n));
  }
  Result<std::optional<ledger::CachedAnswer>> find_answer(std::string_view server, std::string_view tool,
                                                          std::string_view arguments) override {
    return seen(inner_.find_answer(server, tool, arguments));
  }
  Result<PruneSlice> prunable(Instant ended_before, std::int64_t after_seq, std::uint32_t most, const MayGo& may_go) override {
    return seen(inner_.prunable(ended_before, after_seq, most, may_go));
  }
  void checkpoint_if_due() override { inner_.checkpoint_if_due(); }
  [[nodiscard]] std::uint64_t wal_bytes() const override { return inner_.wal_bytes(); }
  void when_broken(std::function<void(const Error&)>) override {}  // who stands in between sees the error, and says what becomes of the process
  Result<void> backup(const std::string& path) override { return inner_.backup(path); }

 protected:
  /// After each answer of the inner ledger, backups apart; nullptr: it was none of its errors. May throw.
  virtual void answered(const Error* /*error*/) {}

  ledger::Ledger& inner_;

 private:
  template <class T>
  Result<T> seen(Result<T> result) {
    answered(result ? nullptr : &result.error());
    return result;
  }
};

}  // namespace holdfast::testing
