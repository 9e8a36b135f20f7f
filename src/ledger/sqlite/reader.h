#pragma once
// A few read-only connections, handed out one call at a time.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "holdfast/ledger/ledger.h"
#include "ledger/sqlite/connection.h"
#include "ledger/sqlite/open.h"

namespace holdfast::ledger::sqlite {

class SqliteLedger;

class SqliteReader final : public Reader {
 public:
  /// `ledger` must outlive every call.
  SqliteReader(std::string path, std::uint32_t connections, const Tuning& tuning, SqliteLedger& ledger);

  Result<std::optional<run::Run>> run(std::string_view run_id) override;
  Result<std::vector<run::Run>> runs(const RunFilter& filter) override;
  Result<std::vector<run::Attempt>> attempts(std::int64_t run_seq, std::int64_t after_row,
                                             std::uint32_t limit) override;
  Result<std::vector<run::Event>> events(std::int64_t run_seq, std::int64_t after,
                                         std::uint32_t limit) override;
  Result<std::vector<UnknownEntry>> unknowns(const UnknownFilter& filter) override;
  Result<std::optional<UnknownEntry>> unknown(std::string_view run_id, std::uint32_t step) override;
  Result<std::vector<AuditEntry>> audit(std::int64_t before_seq, std::uint32_t limit) override;
  Result<std::vector<Breaker>> breakers() override;

 private:
  [[nodiscard]] std::unique_ptr<Connection> acquire();
  void give_back(std::unique_ptr<Connection> connection);
  template <class F>
  auto on_connection(F&& use) -> Result<decltype(use(std::declval<Connection&>()))>;
  template <class F>
  auto inside(const Error& not_shown, F&& read) -> Result<decltype(read(std::declval<Connection&>()))>;
  template <class F>
  auto reading(const Result<void>& shown, F&& read) -> Result<decltype(read(std::declval<Connection&>()))>;
  template <class F>
  auto listing(F&& read) -> Result<decltype(read(std::declval<Connection&>()))>;

  const std::string path_;
  const Tuning tuning_;
  SqliteLedger& ledger_;
  std::mutex listing_;  // taken before any other
  std::mutex mutex_;
  std::condition_variable free_one_;
  std::vector<std::unique_ptr<Connection>> free_;
  std::uint32_t may_open_;  // connections not opened yet
};

}  // namespace holdfast::ledger::sqlite
