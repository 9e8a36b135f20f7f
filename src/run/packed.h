#pragma once
// Values of a run as bytes, to be kept in this process's memory and nowhere else: there is no version, and what is read is what was
// written. A member costs one bit while it has the value of a new one, and an instant its distance from the one before.
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "run/members.h"

namespace holdfast::run {

class Packer {
 public:
  template <class T>
  void put(const T& value) {
    if constexpr (Compound<T>) {
      static const T fresh;
      put_members(members(value), members(fresh));
    } else if constexpr (std::is_enum_v<T> || std::unsigned_integral<T>) {
      number(static_cast<std::uint64_t>(value));
    } else if constexpr (std::signed_integral<T>) {
      whole(value);
    } else {
      put_text_or_list(value);
    }
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  template <class... T>
  void put_members(std::tuple<T...> values, std::tuple<T...> fresh) {
    static_assert(sizeof...(T) <= 64);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::uint64_t mask = 0;
      ((mask |= std::uint64_t{std::get<I>(values) != std::get<I>(fresh)} << I), ...);
      number(mask);
      (((mask >> I & 1) != 0 ? put(std::get<I>(values)) : void()), ...);
    }(std::index_sequence_for<T...>());
  }

  void put_text_or_list(const std::string& text) {
    number(text.size());
    bytes_ += text;
  }
  void put_text_or_list(Instant at) {
    whole(static_cast<std::int64_t>(static_cast<std::uint64_t>(at.ms) - static_cast<std::uint64_t>(instant_)));
    instant_ = at.ms;
  }
  void put_text_or_list(Duration span) { whole(span.count()); }
  template <class T>
  void put_text_or_list(const std::optional<T>& value) {
    number(value ? 1 : 0);
    if (value) put(*value);
  }
  template <class T>
  void put_text_or_list(const std::vector<T>& values) {
    number(values.size());
    for (const T& value : values) put(value);
  }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void whole(std::int64_t value) { number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63)); }

  std::string bytes_;
  std::int64_t instant_ = 0;
};

/// Gives back, in the same order and into new values, what a Packer took.
class Unpacker {
 public:
  /// `bytes` must live as long as this.
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  void get(T& out) {
    if constexpr (Compound<T>) {
      std::apply(
          [this, mask = number()](auto&... member) mutable {
            (((mask & 1) != 0 ? get(member) : void(), mask >>= 1), ...);
          },
          members(out));
    } else if constexpr (std::is_enum_v<T> || std::unsigned_integral<T>) {
      out = static_cast<T>(number());
    } else if constexpr (std::signed_integral<T>) {
      out = static_cast<T>(whole());
    } else {
      get_text_or_list(out);
    }
  }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  void get_text_or_list(std::string& out) {
    const std::uint64_t size = number();
    out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
  }
  void get_text_or_list(Instant& out) {
    out.ms = instant_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(instant_) + static_cast<std::uint64_t>(whole()));
  }
  void get_text_or_list(Duration& out) { out = Duration{whole()}; }
  template <class T>
  void get_text_or_list(std::optional<T>& out) {
    if (number() != 0) get(out.emplace());
    else out.reset();
  }
  template <class T>
  void get_text_or_list(std::vector<T>& out) {
    out.resize(number());
    for (T& value : out) get(value);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
  std::int64_t whole() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }

  std::string_view bytes_;
  std::int64_t instant_ = 0;
};

}  // namespace holdfast::run
