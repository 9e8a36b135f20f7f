// One pass over the text, a tree of views into it.
#include <algorithm>
#include <ranges>

#include "core/json_text.h"
#include "core/utf8.h"
#include "holdfast/core/json.h"

namespace holdfast::json {
namespace {

// Whatever a configuration asks for, the recursion stays well inside a thread's stack.
constexpr std::size_t kDeepest = 1'000;
// Up to here members are compared one by one, beyond it their names are sorted.
constexpr std::size_t kFewMembers = 16;

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Parser {
 public:
  Parser(std::string_view text, const Limits& limits)
      : text_(text), depth_left_(std::min(limits.depth, kDeepest)), limits_(limits) {}

  Result<Value> run() {
    Value root;
    skip_space();
    if (!value(root)) return std::unexpected(error());
    skip_space();
    if (at_ == text_.size()) return root;
    (void)fail("something follows the end of the JSON text");
    return std::unexpected(error());
  }

 private:
  [[nodiscard]] bool fail(std::string_view what, std::string_view code = "bad_json") {
    error_.code = code;
    error_.message = std::string(what) + " (byte " + std::to_string(at_) + ")";
    return false;
  }

  /// Where the failing value is, from the tokens that the levels above it left behind while unwinding.
  Error error() {
    for (const std::string& token : std::views::reverse(path_)) error_.pointer += "/" + token;
    return std::move(error_);
  }

  [[nodiscard]] bool ended() const { return at_ == text_.size(); }
  [[nodiscard]] bool here(char c) const { return at_ < text_.size() && text_[at_] == c; }
  [[nodiscard]] bool take(char c) {
    if (!here(c)) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }

  [[nodiscard]] bool value(Value& out) {
    if (ended()) return fail("the text ends where a value is expected");
    if (++nodes_ > limits_.nodes)
      return fail("more than " + std::to_string(limits_.nodes) + " values", "too_large");
    const std::size_t start = at_;
    const bool good = [&] {
      switch (text_[at_]) {
        case '{':
          return nested(out, &Parser::object);
        case '[':
          return nested(out, &Parser::array);
        case '"':
          out.kind = Kind::string;
          return string();
        case 't':
          out.kind = Kind::boolean;
          return word("true");
        case 'f':
          out.kind = Kind::boolean;
          return word("false");
        case 'n':
          out.kind = Kind::null;
          return word("null");
        default:
          out.kind = Kind::number;
          return number();
      }
    }();
    if (good) out.raw = text_.substr(start, at_ - start);
    return good;
  }

  [[nodiscard]] bool nested(Value& out, bool (Parser::*body)(Value&)) {
    if (depth_left_ == 0)
      return fail("more than " + std::to_string(std::min(limits_.depth, kDeepest)) + " levels of nesting",
                  "too_deep");
    --depth_left_;
    ++at_;
    skip_space();
    const bool good = (this->*body)(out);
    ++depth_left_;
    return good;
  }

  [[nodiscard]] bool array(Value& out) {
    out.kind = Kind::array;
    if (take(']')) return true;
    for (;;) {
      if (!value(out.items.emplace_back())) {
        path_.push_back(std::to_string(out.items.size() - 1));
        return false;
      }
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return fail("a comma or ] is expected in an array");
      skip_space();
    }
  }

  [[nodiscard]] bool object(Value& out) {
    out.kind = Kind::object;
    if (take('}')) return true;
    for (;;) {
      if (!here('"')) return fail("a member name in quotes is expected");
      Member& member = out.members.emplace_back();
      if (!name(member.name)) return false;
      skip_space();
      if (!take(':')) return fail("a colon is expected after a member name");
      skip_space();
      if (!value(member.value)) {
        path_.push_back(escape_token(member.name));
        return false;
      }
      skip_space();
      if (take('}')) return unique(out.members);
      if (!take(',')) return fail("a comma or } is expected in an object");
      skip_space();
    }
  }

  [[nodiscard]] bool name(std::string& out) {
    const std::size_t start = at_ + 1;
    if (!string()) return false;
    const std::string_view inside = text_.substr(start, at_ - 1 - start);
    out = inside.find('\\') == std::string_view::npos ? std::string(inside) : unescape(inside);
    return true;
  }

  [[nodiscard]] bool unique(const std::vector<Member>& members) {
    const std::string* twice =
        members.size() <= kFewMembers ? repeated_of_few(members) : repeated_of_many(members);
    if (twice == nullptr) return true;
    path_.push_back(escape_token(*twice));
    return fail("a member name occurs twice in one object");
  }

  static const std::string* repeated_of_few(const std::vector<Member>& members) {
    for (std::size_t i = 1; i < members.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (members[i].name == members[j].name) return &members[i].name;
      }
    }
    return nullptr;
  }

  static const std::string* repeated_of_many(const std::vector<Member>& members) {
    std::vector<const std::string*> names;
    names.reserve(members.size());
    for (const Member& member : members) names.push_back(&member.name);
    const auto text = [](const std::string* name) -> const std::string& { return *name; };
    std::ranges::sort(names, {}, text);
    const auto twice = std::ranges::adjacent_find(names, {}, text);
    return twice == names.end() ? nullptr : *twice;
  }

  [[nodiscard]] bool word(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return fail("a value is expected");
    at_ += expected.size();
    return true;
  }

  [[nodiscard]] bool digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    return at_ > start;
  }

  [[nodiscard]] bool number() {
    const bool negative = take('-');
    if (ended() || !is_digit(text_[at_]))
      return fail(negative ? "a digit is expected after a minus sign" : "a value is expected");
    if (take('0')) {
      if (!ended() && is_digit(text_[at_])) return fail("a number has a leading zero");
    } else {
      (void)digits();
    }
    if (take('.') && !digits()) return fail("a digit is expected after a decimal point");
    if (take('e') || take('E')) {
      if (!take('+')) (void)take('-');
      if (!digits()) return fail("a digit is expected in an exponent");
    }
    return true;
  }

  /// From the opening to behind the closing quote.
  [[nodiscard]] bool string() {
    ++at_;
    for (;;) {
      while (at_ < text_.size() && plain(text_[at_])) ++at_;
      if (ended()) return fail("a string has no end");
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return true;
      }
      if (c == '\\') {
        if (!escape()) return false;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        return fail("a control character in a string must be escaped");
      } else {
        const std::size_t length = utf8::sequence(text_, at_);
        if (length == 0) return fail("a string is not valid UTF-8");
        at_ += length;
      }
    }
  }

  static constexpr bool plain(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
  }

  [[nodiscard]] bool escape() {
    ++at_;
    if (ended()) return fail("a string has no end");
    const char kind = text_[at_];
    if (kind != 'u') {
      if (std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)
        return fail("an unknown escape in a string");
      ++at_;
      return true;
    }
    const std::int32_t unit = hex4(text_.substr(at_ + 1));
    if (unit < 0) return fail("four hexadecimal digits are expected after \\u");
    if (unit >= 0xDC00 && unit <= 0xDFFF) return fail("an escaped surrogate stands alone");
    at_ += 5;
    if (unit < 0xD800 || unit > 0xDBFF) return true;
    const bool paired = text_.substr(at_, 2) == "\\u";
    const std::int32_t low = paired ? hex4(text_.substr(at_ + 2)) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return fail("an escaped surrogate stands alone");
    at_ += 6;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t nodes_ = 0;
  std::size_t depth_left_;
  Limits limits_;
  Error error_;
  std::vector<std::string> path_;  // innermost first
};

}  // namespace

Result<Value> parse(std::string_view text, const Limits& limits) {
  return Parser(text, limits).run();
}

}  // namespace holdfast::json
