#include "runtime/host_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace slidestream::runtime {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

std::byte* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

/// `bytes`, a multiple of the page, that begin at a huge page.
std::byte* map_aligned(std::size_t bytes) {
  std::byte* memory = map(bytes + huge_page);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
  if (before > 0) munmap(memory, before);
  munmap(memory + before + bytes, huge_page - before);
  return memory + before;
}

}  // namespace

HostMemory::HostMemory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > SIZE_MAX - page - huge_page) throw std::bad_alloc();
  data_ = bytes < huge_page ? map(bytes) : map_aligned((bytes + page - 1) / page * page);
  // Fewer page faults and TLB misses; where the kernel declines, nothing changes but speed.
  madvise(data_, bytes, MADV_HUGEPAGE);
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) munmap(data_, size_);
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void populate(std::span<std::byte> memory) noexcept {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < memory.size(); at += page) {
    // Is always a write, for the processor, and changes nothing. MADV_POPULATE_WRITE would keep the lock of the whole
    // address space meanwhile, for which others that take pages, the driver and whoever maps a file would wait.
    unsigned char zero = 0;
    auto* byte = reinterpret_cast<volatile unsigned char*>(memory.data() + at);
    __atomic_compare_exchange_n(byte, &zero, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

void populate(std::span<std::byte> memory, std::size_t threads) noexcept {
  const std::size_t pages = (memory.size() + huge_page - 1) / huge_page;
  const std::size_t count = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(pages, 1));
  const auto populate_part = [&](std::size_t i) {
    const std::size_t begin = std::min(memory.size(), pages * i / count * huge_page);
    const std::size_t end = std::min(memory.size(), pages * (i + 1) / count * huge_page);
    populate(memory.subspan(begin, end - begin));
  };
  std::size_t begun = 1;
  std::vector<std::jthread> others;
  try {
    others.reserve(count);
    for (; begun < count; ++begun) others.emplace_back(populate_part, begun);
  } catch (...) {
    // Without more threads, or memory for them, this one takes what is left.
    for (std::size_t i = begun; i < count; ++i) populate_part(i);
  }
  populate_part(0);
}

}  // namespace slidestream::runtime
