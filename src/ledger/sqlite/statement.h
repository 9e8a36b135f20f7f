#pragma once
// A prepared statement kept for the life of its connection. Texts are bound by length and without a copy:
// what was bound must live until run() or the last row(). Failures are thrown as SQLite::Exception, as by the
// rest of SQLiteCpp, and end at the border of sqlite/. (SQLiteCpp's own Statement neither binds a string_view
// nor prepares with SQLITE_PREPARE_PERSISTENT.)
#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "holdfast/core/time.h"
#include "holdfast/policy/breaker.h"
#include "holdfast/policy/words.h"
#include "holdfast/run/run.h"

namespace holdfast::ledger::sqlite {

/// A text whose empty value is stored as NULL.
template <class S>
struct OrNull {
  S& text;
};
template <class S>
OrNull(S&) -> OrNull<S>;

/// Bytes that are no text.
struct Blob {
  std::string_view bytes;
};

/// A stored number as a member's type. One that does not fit was not written by us: throws SQLite::Exception (SQLITE_CORRUPT).
template <std::integral I>
[[nodiscard]] I as_member(std::int64_t stored) {
  if constexpr (std::is_same_v<I, bool>) {
    return stored != 0;
  } else {
    if (sizeof(I) < sizeof stored && (stored < static_cast<std::int64_t>(std::numeric_limits<I>::min()) || stored > static_cast<std::int64_t>(std::numeric_limits<I>::max())))
      throw SQLite::Exception("a number that no member has room for", SQLITE_CORRUPT);
    return static_cast<I>(stored);
  }
}

/// Indices as "0,3,17".
[[nodiscard]] std::string join_indices(const std::vector<std::uint32_t>& indices);
[[nodiscard]] std::vector<std::uint32_t> split_indices(std::string_view text);

template <class E>
[[nodiscard]] std::optional<E> read_word(std::string_view text) {
  using namespace run;
  if constexpr (std::is_same_v<E, BreakerState>) {
    return breaker_state_from_word(text);
  } else if constexpr (std::is_same_v<E, Mode> || std::is_same_v<E, RunStatus> ||
                       std::is_same_v<E, StepStatus> || std::is_same_v<E, WriteState> ||
                       std::is_same_v<E, WaitFor> || std::is_same_v<E, OnFailure> ||
                       std::is_same_v<E, OnCircuitOpen> || std::is_same_v<E, Resolution>) {
    return run::from_word<E>(text);
  } else {
    return holdfast::from_word<E>(text);
  }
}

class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql);
  Statement(Statement&& other) noexcept
      : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  /// Binds the next parameters, from the first one after run() or the last row().
  template <class... T>
  Statement& add(const T&... values) {
    (put(values), ...);
    return *this;
  }
  /// Executes a statement that gives no rows, and makes it ready to be bound again.
  void run();
  /// The next row; false after the last one, and the statement is ready to be bound again.
  [[nodiscard]] bool row();
  /// Ends a query early.
  void reset();
  /// Reads the row's next columns, from the first one after row().
  template <class... T>
  Statement& take(T&&... out) {
    (get(out), ...);
    return *this;
  }

 private:
  [[noreturn]] void fail(int code);
  void check(int code) {
    if (code != SQLITE_OK) fail(code);
  }

  void put(std::string_view text) {
    if (text.size() > std::numeric_limits<int>::max()) fail(SQLITE_TOOBIG);
    const char* bytes = text.data() ? text.data() : "";  // a null pointer would be stored as NULL
    check(sqlite3_bind_text(statement_, ++parameter_, bytes, static_cast<int>(text.size()), SQLITE_STATIC));
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const char* text) { put(std::string_view(text)); }
  void put(Blob blob) {
    if (blob.bytes.size() > std::numeric_limits<int>::max()) fail(SQLITE_TOOBIG);
    check(sqlite3_bind_blob(statement_, ++parameter_, blob.bytes.data(), static_cast<int>(blob.bytes.size()), SQLITE_STATIC));
  }
  template <std::integral I>
  void put(I value) {
    check(sqlite3_bind_int64(statement_, ++parameter_, static_cast<std::int64_t>(value)));
  }
  template <class E>
  requires std::is_enum_v<E>
  void put(E value) { put(std::string_view(word(value))); }
  void put(Instant at) { put(at.ms); }
  void put(Duration span) { put(static_cast<std::int64_t>(span.count())); }
  template <class T>
  void put(const std::optional<T>& value) {
    if (value)
      put(*value);
    else
      null();
  }
  template <class S>
  void put(OrNull<S> value) {
    if (value.text.empty())
      null();
    else
      put(std::string_view(value.text));
  }
  void put(const std::vector<std::uint32_t>& indices) {
    const std::string text = join_indices(indices);
    check(sqlite3_bind_text(statement_, ++parameter_, text.c_str(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT));
  }
  void null() { check(sqlite3_bind_null(statement_, ++parameter_)); }

  [[nodiscard]] bool is_null() const { return sqlite3_column_type(statement_, column_) == SQLITE_NULL; }
  [[nodiscard]] std::string_view text() {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column_));
    const int size = sqlite3_column_bytes(statement_, column_);
    if (!bytes && !is_null()) fail(SQLITE_NOMEM);
    ++column_;
    return bytes ? std::string_view(bytes, static_cast<std::size_t>(size)) : std::string_view();
  }
  void get(std::string& out) { out = text(); }
  template <std::integral I>
  void get(I& out) {
    out = as_member<I>(sqlite3_column_int64(statement_, column_++));
  }
  template <class E>
  requires std::is_enum_v<E>
  void get(E& out) {
    const std::string_view stored = text();
    const std::optional<E> value = read_word<E>(stored);
    if (!value)
      throw SQLite::Exception("a word that this version does not know: '" + std::string(stored) + "'",
                              SQLITE_CORRUPT);
    out = *value;
  }
  void get(Instant& out) { get(out.ms); }
  void get(Duration& out) { out = Duration(sqlite3_column_int64(statement_, column_++)); }
  template <class T>
  void get(std::optional<T>& out) {
    if (is_null()) {
      out.reset();
      ++column_;
    } else
      get(out.emplace());
  }
  void get(OrNull<std::string>& out) { out.text = text(); }
  void get(std::vector<std::uint32_t>& out) { out = split_indices(text()); }

  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  int parameter_ = 0;
  int column_ = 0;
};

/// Resets a query when its scope ends, also by an exception: an open query would hold its snapshot.
class Reset {
 public:
  explicit Reset(Statement& statement) : statement_(statement) {}
  Reset(const Reset&) = delete;
  Reset& operator=(const Reset&) = delete;
  ~Reset() { statement_.reset(); }

 private:
  Statement& statement_;
};

}  // namespace holdfast::ledger::sqlite
