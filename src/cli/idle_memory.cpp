#include "cli/idle_memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace holdfast::cli {
namespace {

/// Segments that nobody may write are the file's own bytes; all others hold relocations and must stay.
int release_text(dl_phdr_info* object, std::size_t, void* page) {
  const std::uintptr_t size = *static_cast<const std::uintptr_t*>(page);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t from = (object->dlpi_addr + segment.p_vaddr + size - 1) & ~(size - 1);
    const std::uintptr_t to = (object->dlpi_addr + segment.p_vaddr + segment.p_filesz) & ~(size - 1);
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }
  return 0;
}

}  // namespace

void IdleMemory::look() {
  constexpr std::clock_t kHardly = CLOCKS_PER_SEC / 1'000;
  const std::clock_t before = used_;
  used_ = std::clock();
  const bool works = before != 0 && used_ - before > kHardly;
  if (worked_ && !works) {
    auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    dl_iterate_phdr(&release_text, &page);
    used_ = std::clock();  // what this took is no work
  }
  worked_ = works;
}

}  // namespace holdfast::cli
