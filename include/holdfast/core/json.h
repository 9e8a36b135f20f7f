#pragma once
// JSON as text. Numbers and strings pass through digit for digit and byte for byte, so a document is a tree
// of views into the text it was read from; nothing is converted and written again.
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/core/error.h"

namespace holdfast::json {

struct Limits {
  std::size_t depth = 64;         // nested arrays and objects
  std::size_t nodes = 1'000'000;  // values in all
};

enum class Kind { null, boolean, number, string, array, object };

struct Member;

/// A value of a parsed text. Views point into the text given to parse(), which must outlive them.
struct Value {
  Kind kind = Kind::null;
  std::string_view raw;         // the exact text, quotes included
  std::vector<Value> items;     // of an array
  std::vector<Member> members;  // of an object, in order; names are unique

  /// The member's value; nullptr when this is no object or has no such member. `name` is unescaped.
  [[nodiscard]] const Value* find(std::string_view name) const;
  [[nodiscard]] bool is(Kind k) const { return kind == k; }
  /// The unescaped text of a string; empty for other kinds.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_true() const { return raw == "true"; }
  /// The value of a number that is written as a plain integer and fits; nullopt otherwise (`1.0`, `1e3`, too
  /// large, no number).
  [[nodiscard]] std::optional<std::int64_t> integer() const;
};

struct Member {
  std::string name;  // unescaped
  Value value;
};

/// Reads one JSON text (RFC 8259, nothing around it but white space). Errors, each with a pointer to the
/// place: `bad_json` (syntax, invalid UTF-8, lone surrogates, duplicate member names), `too_deep`,
/// `too_large` (nodes). Never recurses deeper than `limits.depth`.
[[nodiscard]] Result<Value> parse(std::string_view text, const Limits& limits = {});

/// The value at an RFC 6901 pointer ("" is the whole); nullptr when it leads nowhere. Array indices are
/// decimal without leading zeros; `-` leads nowhere.
[[nodiscard]] const Value* at(const Value& root, std::string_view pointer);
/// True for an RFC 6901 pointer, the empty one included.
[[nodiscard]] bool is_pointer(std::string_view pointer);
/// `~` and `/` escaped, for building pointers.
[[nodiscard]] std::string escape_token(std::string_view token);

/// A form in which two texts are equal exactly when they are equal JSON in the sense of the contract: members
/// sorted by name, no white space, strings compared unescaped, numbers as written.
[[nodiscard]] std::string canonical(const Value& value);

/// A JSON string literal for these bytes (which must be valid UTF-8; invalid bytes become U+FFFD).
[[nodiscard]] std::string quote(std::string_view text);
/// Appends what quote() gives.
void append_quoted(std::string& out, std::string_view text);
/// True for well-formed UTF-8: no overlong forms, surrogates or code points over U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Appends JSON text without a tree: `Writer w(out); w.begin_object(); w.field("id", id); w.raw_field("args",
/// text); w.end_object();` Commas are its business. Names must need no escaping.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}
  void begin_object() {
    comma();
    out_ += '{';
    first_ = true;
  }
  void end_object() {
    out_ += '}';
    first_ = false;
  }
  void begin_array() {
    comma();
    out_ += '[';
    first_ = true;
  }
  void end_array() {
    out_ += ']';
    first_ = false;
  }
  void name(std::string_view n) {
    comma();
    out_ += '"';
    out_ += n;
    out_ += "\":";
    first_ = true;
  }
  void string(std::string_view v) {
    comma();
    append_quoted(out_, v);
  }
  void integer(std::int64_t v) {
    comma();
    out_ += std::to_string(v);
  }
  void boolean(bool v) {
    comma();
    out_ += v ? "true" : "false";
  }
  void null() {
    comma();
    out_ += "null";
  }
  /// `text` is a JSON value already.
  void raw(std::string_view text) {
    comma();
    out_ += text;
  }

  void field(std::string_view n, std::string_view v) {
    name(n);
    string(v);
  }
  void field(std::string_view n, const char* v) {
    name(n);
    string(v);
  }
  void field(std::string_view n, const std::string& v) {
    name(n);
    string(v);
  }
  void field(std::string_view n, std::int64_t v) {
    name(n);
    integer(v);
  }
  void field(std::string_view n, int v) {
    name(n);
    integer(v);
  }
  void field(std::string_view n, std::uint32_t v) {
    name(n);
    integer(v);
  }
  void field(std::string_view n, std::uint64_t v) {
    name(n);
    integer(static_cast<std::int64_t>(v));
  }
  void field(std::string_view n, bool v) {
    name(n);
    boolean(v);
  }
  void null_field(std::string_view n) {
    name(n);
    null();
  }
  /// null when empty.
  void text_or_null(std::string_view n, std::string_view v) {
    name(n);
    if (v.empty())
      null();
    else
      string(v);
  }
  void raw_field(std::string_view n, std::string_view text) {
    name(n);
    raw(text);
  }
  /// null when empty.
  void raw_or_null(std::string_view n, std::string_view text) {
    name(n);
    if (text.empty())
      null();
    else
      raw(text);
  }

 private:
  void comma() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  std::string& out_;
  bool first_ = true;
};

}  // namespace holdfast::json
