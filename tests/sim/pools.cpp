#include "sim/pools.h"

#include <sqlite3.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "support/sanitized.h"

namespace holdfast::sim {

#if !HOLDFAST_SANITIZED
namespace {

constexpr std::size_t kGrain = 64, kClasses = 128;  // up to 8 KiB, so that pages are among them
constexpr std::size_t kChunk = std::size_t{1} << 20;

/// Before each piece: its size, or the next free one of its class.
union alignas(std::max_align_t) Header {
  std::size_t size;
  Header* next;
};

std::array<Header*, kClasses + 1> free_pieces{};
std::byte* fresh = nullptr;
std::size_t fresh_left = 0;

std::size_t rounded(std::size_t size) {
  return (size + kGrain - 1) / kGrain * kGrain;
}

Header* carve(std::size_t size) {
  const std::size_t whole = size + sizeof(Header);
  if (fresh_left < whole) {
    fresh = static_cast<std::byte*>(std::malloc(kChunk));
    fresh_left = fresh ? kChunk : 0;
    if (!fresh) return nullptr;
  }
  auto* piece = reinterpret_cast<Header*>(fresh);
  fresh += whole;
  fresh_left -= whole;
  return piece;
}

void* take(std::size_t wanted) {
  const std::size_t size = rounded(wanted);
  Header* piece = nullptr;
  if (size > kGrain * kClasses) {
    piece = static_cast<Header*>(std::malloc(size + sizeof(Header)));
  } else if (Header*& first = free_pieces[size / kGrain]; first) {
    piece = first;
    first = piece->next;
  } else {
    piece = carve(size);
  }
  if (!piece) return nullptr;
  piece->size = size;
  return piece + 1;
}

void give_back(void* memory) {
  if (!memory) return;
  Header* piece = static_cast<Header*>(memory) - 1;
  if (piece->size > kGrain * kClasses) return std::free(piece);
  Header*& first = free_pieces[piece->size / kGrain];
  piece->next = first;
  first = piece;
}

int size_of(void* memory) {
  return memory ? static_cast<int>((static_cast<Header*>(memory) - 1)->size) : 0;
}

void* resize(void* memory, int wanted) {
  const int size = size_of(memory);
  if (wanted <= size && wanted > size / 2) return memory;
  void* larger = take(static_cast<std::size_t>(wanted));
  if (!larger) return nullptr;
  std::memcpy(larger, memory, static_cast<std::size_t>(size < wanted ? size : wanted));
  give_back(memory);
  return larger;
}

}  // namespace

void use_pools_for_sqlite() {
  static const sqlite3_mem_methods kPools{
      [](int wanted) { return take(static_cast<std::size_t>(wanted)); }, give_back, resize, size_of, [](int wanted) { return static_cast<int>(rounded(static_cast<std::size_t>(wanted))); },
      [](void*) { return SQLITE_OK; }, [](void*) {}, nullptr};
  sqlite3_config(SQLITE_CONFIG_MALLOC, &kPools);
}

}  // namespace holdfast::sim

// Everything else takes its memory from there too.
void* operator new(std::size_t size) {
  void* memory = holdfast::sim::take(size);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  holdfast::sim::give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  holdfast::sim::give_back(memory);
}
#else
void use_pools_for_sqlite() {}

}  // namespace holdfast::sim
#endif
