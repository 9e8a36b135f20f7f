#pragma once
// Rows as bytes: what one commit changed, for the journal. A member costs nothing while it has the value that it had before; a text that comes
// again in the same record costs a number, an instant its distance from the one before. Enumerations are written as their words, but for the
// first of each, which is nothing. Format 1, a byte in front; one that is not known throws SQLite::Exception (SQLITE_CORRUPT), as anything else
// that can't be read.
#include <array>
#include <vector>

#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {

/// Texts that nearly every record holds: how many, and the one with this number, from 1.
constexpr std::size_t kKnownTexts = 58;
[[nodiscard]] std::string_view known_text(std::size_t number);

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

/// The texts of one record by their numbers. One that looks like too many others is not found again, and is then written once more: no choice
/// of texts makes it slow.
class TextNumbers {
 public:
  /// The number of `text`; 0 when it was not there, and it now has the next one. `text` must live as long as this.
  std::uint64_t find_or_add(std::string_view text);

 private:
  void grow();

  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> slots_;  // number of a text, or 0; a power of two, at most half of them taken
};

class RecordWriter {
 public:
  RecordWriter();

  void number(std::uint64_t value) {
    constexpr std::size_t kMost = 10;
    if (bytes_.size() - size_ < kMost) bytes_.resize(2 * bytes_.size() + kMost);
    for (; value >= 0x80; value >>= 7) bytes_[size_++] = static_cast<char>(value | 0x80);
    bytes_[size_++] = static_cast<char>(value);
  }
  void whole(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
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
  [[nodiscard]] std::string take() {
    bytes_.resize(size_);
    return std::move(bytes_);
  }

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

  std::string bytes_;  // the record so far, and room
  std::size_t size_ = 0;
  TextNumbers texts_;
  std::int64_t instant_ = 0;
};

class RecordReader {
 public:
  /// `bytes` must live as long as the reader.
  explicit RecordReader(std::string_view bytes);

  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::uint64_t number() {
    if (at_ < bytes_.size())
      if (const auto byte = static_cast<unsigned char>(bytes_[at_]); byte < 0x80) return ++at_, byte;
    return long_number();
  }
  [[nodiscard]] std::int64_t whole() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  [[nodiscard]] std::string_view text() { return text(number()); }
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
  [[nodiscard]] std::uint64_t long_number();
  [[nodiscard]] std::string_view text(std::uint64_t number);
  void get(std::string& out) { out = text(); }
  void get(OrNull<std::string>& out) { out.text = text(); }
  template <std::integral I>
  void get(I& out) {
    out = as_member<I>(whole());
  }
  template <class E>
  requires std::is_enum_v<E>
  void get(E& out) {
    // Most are among the known texts: what the number of each means is found out once.
    static const auto known = [] {
      std::array<std::optional<E>, kKnownTexts + 1> values;
      for (std::size_t i = 1; i < values.size(); ++i) values[i] = read_word<E>(known_text(i));
      return values;
    }();
    const std::uint64_t place = number();
    const std::optional<E> value = place != 0 && place < known.size() ? known[place] : read_word<E>(text(place));
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
