#include "ledger/sqlite/journal.h"

#include <algorithm>
#include <map>

#include "ledger/sqlite/rows.h"

namespace holdfast::ledger::sqlite {
namespace {

// The largest cell that leaves room for no second one and needs no overflow page, where pages have 4 KiB.
constexpr std::size_t kChunkBytes = 4048;
constexpr std::size_t kHeadBytes = 16;  // record, its bytes in all, the chunk's place in it
constexpr std::size_t kBodyBytes = kChunkBytes - kHeadBytes;

void put(std::string& out, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) out[at + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
}

std::uint64_t get(std::string_view in, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(in[at + i]);
  return value;
}

std::size_t slots_for(std::size_t bytes) {
  return (bytes + kBodyBytes - 1) / kBodyBytes;
}

[[noreturn]] void torn() {
  throw SQLite::Exception("a record of the journal is not whole", SQLITE_CORRUPT);
}

}  // namespace

std::vector<std::string> Journal::load(Connection& connection) {
  struct Found {
    std::size_t size = 0;
    std::string bytes;
  };
  const std::int64_t folded = connection.number(sql().folded);
  std::map<std::int64_t, Found> found;
  now_ = {.newest = folded, .used = 0};
  Statement& rows = connection.statement(sql().journal);
  const Reset reset(rows);
  while (rows.row()) {
    std::uint32_t slot = 0;
    std::string chunk;
    rows.take(slot, chunk);
    if (chunk.size() != kChunkBytes) torn();
    const auto record = static_cast<std::int64_t>(get(chunk, 0, 8));
    if (record <= folded) continue;
    Found& into = found[record];
    into.size = get(chunk, 8, 4);
    if (get(chunk, 12, 4) * kBodyBytes != into.bytes.size() || into.size <= into.bytes.size()) torn();
    into.bytes.append(chunk, kHeadBytes, std::min(kBodyBytes, into.size - into.bytes.size()));
    now_.used = slot + 1;
  }
  std::vector<std::string> records;
  for (auto& [number, record] : found) {
    if (record.bytes.size() != record.size || number != ++now_.newest) torn();
    records.push_back(std::move(record.bytes));
  }
  return records;
}

/// A record that would take a quarter of the journal for itself does not belong there.
bool Journal::fits(std::size_t bytes) const {
  const std::size_t needed = slots_for(bytes);
  return needed <= slots_ / 4 && now_.used + needed <= slots_;
}

void Journal::write(Connection& connection, std::string_view record) {
  ++now_.newest;
  std::string chunk(kChunkBytes, '\0');
  put(chunk, 0, static_cast<std::uint64_t>(now_.newest), 8);
  put(chunk, 8, record.size(), 4);
  for (std::size_t part = 0; part < slots_for(record.size()); ++part) {
    put(chunk, 12, part, 4);
    const std::string_view body = record.substr(part * kBodyBytes, kBodyBytes);
    chunk.replace(kHeadBytes, body.size(), body);
    connection.statement(sql().put_chunk).add(now_.used++, Blob{chunk}).run();
  }
}

void Journal::folded(Connection& connection) {
  connection.statement(sql().put_folded).add(now_.newest).run();
  now_.used = 0;
}

}  // namespace holdfast::ledger::sqlite
