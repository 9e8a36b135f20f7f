#pragma once
// Rows as bytes: what one commit changed, for the journal. A member costs nothing while it has the value that it had before; a text that comes
// again in the same record costs a number, an instant its distance from the one before. Enumerations are written as their words, but for the
// first of each, which is nothing. Format 1, a byte in front; one that is not known throws SQLite::Exception (SQLITE_CORRUPT), as anything else
// that can't be read.
#include <deque>
#include <unordered_map>

#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {

/// Every member of the lists in rows.h to its zero: what the first image of a row is compared with.
struct Zero {
  template <class... T>
  void operator()(T&&... members) const {
    (clear(members), ...);
  }

 private:
  template <class T>
  static void clear(T& member) {
    member = T{};
  }
  static void clear(OrNull<std::string>& member) { member.text.clear(); }
};

class RecordWriter {
 public:
  RecordWriter();

  void number(std::uint64_t value);
  void whole(std::int64_t value);
  /// `text` must live as long as the writer.
  void text(std::string_view text);
  /// The members of `list` in `now` that differ from those in `before`.
  template <class Row, class List>
  void changes(const Row& before, const Row& now, List list) {
    list(before, [&](auto&&... old) { list(now, [&](auto&&... fresh) { changed({same(old, fresh)...}, fresh...); }); });
  }
  /// For an instant in an entry's head.
  void put(Instant at) {
    whole(at.ms - instant_);
    instant_ = at.ms;
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  static bool same(const T& a, const T& b) {
    return a == b;
  }
  template <class S>
  static bool same(const OrNull<S>& a, const OrNull<S>& b) {
    return a.text == b.text;
  }
  template <class... T>
  void changed(std::initializer_list<bool> same, const T&... values) {
    std::uint64_t mask = 0, bit = 1;
    for (const bool equal : same) {
      if (!equal) mask |= bit;
      bit <<= 1;
    }
    number(mask);
    bit = 1;
    (((mask & bit) != 0 ? put(values) : void(), bit <<= 1), ...);
  }
  void put(const std::string& value) { text(value); }
  template <class S>
  void put(const OrNull<S>& value) { text(value.text); }
  template <std::integral I>
  void put(I value) { whole(static_cast<std::int64_t>(value)); }
  template <class E>
  requires std::is_enum_v<E>
  void put(E value) { text(word(value)); }
  void put(Duration span) { whole(span.count()); }
  template <class T>
  void put(const std::optional<T>& value) {
    number(value ? 1 : 0);
    if (value) put(*value);
  }
  void put(const std::vector<std::uint32_t>& values) {
    number(values.size());
    for (const std::uint32_t value : values) number(value);
  }

  std::string bytes_;
  std::unordered_map<std::string_view, std::uint64_t> texts_;
  std::int64_t instant_ = 0;
};

class RecordReader {
 public:
  /// `bytes` must live as long as the reader.
  explicit RecordReader(std::string_view bytes);

  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::int64_t whole();
  [[nodiscard]] std::string_view text();
  /// Reads what changes() wrote; the members that had not changed stay as they are.
  template <class Row, class List>
  void changes(Row& row, List list) {
    list(row, [&](auto&&... members) {
      const std::uint64_t mask = number();
      std::uint64_t bit = 1;
      (((mask & bit) != 0 ? get(members) : void(), bit <<= 1), ...);
    });
  }
  void get(Instant& out) { out.ms = instant_ += whole(); }
  /// Bytes of all texts that were read, each time that they were.
  [[nodiscard]] std::size_t text_bytes() const { return text_bytes_; }

 private:
  [[noreturn]] static void fail();
  void get(std::string& out) { out = text(); }
  void get(OrNull<std::string>& out) { out.text = text(); }
  template <std::integral I>
  void get(I& out) {
    out = as_member<I>(whole());
  }
  template <class E>
  requires std::is_enum_v<E>
  void get(E& out) {
    const std::optional<E> value = read_word<E>(text());
    if (!value) fail();
    out = *value;
  }
  void get(Duration& out) { out = Duration(whole()); }
  template <class T>
  void get(std::optional<T>& out) {
    if (number() == 0)
      out.reset();
    else
      get(out.emplace());
  }
  void get(std::vector<std::uint32_t>& out) {
    const std::uint64_t count = number();
    if (count > bytes_.size()) fail();
    out.clear();
    for (std::uint64_t i = 0; i < count; ++i) out.push_back(as_member<std::uint32_t>(static_cast<std::int64_t>(number())));
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::vector<std::string_view> texts_;
  std::int64_t instant_ = 0;
  std::size_t text_bytes_ = 0;
};

}  // namespace holdfast::ledger::sqlite
