#include "cli/table.h"

#include <ostream>

namespace holdfast::cli {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

}  // namespace

std::string shown(std::string_view text, std::size_t most) {
  std::string out;
  std::size_t characters = 0;
  for (const char c : text) {
    if (!continues(c) && ++characters > most) return out + "…";
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

std::string short_time(std::string_view rfc3339) {
  std::string out(rfc3339.substr(0, 19));
  if (out.size() == 19) out[10] = ' ';
  return out;
}

std::string spoken(std::int64_t ms) {
  if (ms < 1000) return std::to_string(ms) + "ms";
  const std::int64_t s = ms / 1000;
  if (s < 120) return std::to_string(s) + "s";
  if (s < 120 * 60) return std::to_string(s / 60) + "m";
  if (s < 48 * 3600) return std::to_string(s / 3600) + "h";
  return std::to_string(s / 86400) + "d";
}

void Table::row(std::vector<std::string> cells) {
  cells.resize(rows_.front().size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i] = shown(cells[i], i + 1 == cells.size() ? 400 : 60);
    if (cells[i].empty()) cells[i] = "-";
  }
  rows_.push_back(std::move(cells));
}

void Table::print(std::ostream& out) const {
  std::vector<std::size_t> widths(rows_.front().size());
  for (const auto& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], width(cells[i]));
  }
  for (const auto& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      out << cells[i];
      if (i + 1 < cells.size()) out << std::string(widths[i] - width(cells[i]) + 2, ' ');
    }
    out << '\n';
  }
}

}  // namespace holdfast::cli
