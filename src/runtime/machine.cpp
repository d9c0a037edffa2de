#include "runtime/machine.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <slidestream/error.hpp>
#include <sstream>
#include <string>

#include "system/control_groups.hpp"

namespace slidestream::runtime {
namespace {

/// The kernel's way to write sets: "0-15,32-47".
bool parse_cpu_list(const std::string& text, cpu_set_t& set) {
  CPU_ZERO(&set);
  std::istringstream ranges(text);
  std::string range;
  while (std::getline(ranges, range, ',')) {
    int first = 0;
    int last = 0;
    std::istringstream in(range);
    if (!(in >> first)) return false;
    last = first;
    if (in.peek() == '-') {
      in.get();
      if (!(in >> last)) return false;
    }
    for (int cpu = std::max(first, 0); cpu <= std::min(last, CPU_SETSIZE - 1); ++cpu) CPU_SET(cpu, &set);
  }
  return CPU_COUNT(&set) > 0;
}

/// The number behind a word at the beginning of a line.
std::optional<std::uint64_t> number_after(const char* file, const std::string& word) {
  std::ifstream in(file);
  std::string name;
  while (in >> name) {
    std::uint64_t number = 0;
    if (name == word && in >> number) return number;
    std::getline(in, name);
  }
  return std::nullopt;
}

bool several_nodes() {
  static const bool several = std::ifstream("/sys/devices/system/node/node1/cpulist").good();
  return several;
}

}  // namespace

int available_processors() noexcept { return allowed_processors(); }

std::size_t last_cache_bytes() noexcept {
  try {
    // All are like the first processor's.
    const std::string cache = "/sys/devices/system/cpu/cpu0/cache/index3/";
    std::size_t size = 0;
    char unit = 0;
    std::string sharing;
    std::string online;
    cpu_set_t sharers;
    cpu_set_t all;
    if (!(std::ifstream(cache + "size") >> size >> unit) || unit != 'K') return 0;
    if (!(std::ifstream(cache + "shared_cpu_list") >> sharing) || !parse_cpu_list(sharing, sharers)) return 0;
    if (!(std::ifstream("/sys/devices/system/cpu/online") >> online) || !parse_cpu_list(online, all)) return 0;
    const auto count = [](const cpu_set_t& set) { return static_cast<std::size_t>(CPU_COUNT(&set)); };
    return (size << 10) * std::max<std::size_t>(1, count(all) / count(sharers));
  } catch (...) {
    return 0;
  }
}

std::size_t resident_bytes() noexcept {
  try {
    std::size_t all = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> all >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  } catch (...) {
    return 0;
  }
}

void run_near_node(int node) noexcept {
  try {
    if (node < 0 || !several_nodes()) return;
    std::string list;
    std::ifstream("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist") >> list;
    cpu_set_t near;
    cpu_set_t allowed;
    if (!parse_cpu_list(list, near) || sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
    CPU_AND(&near, &near, &allowed);
    if (CPU_COUNT(&near) > 0) sched_setaffinity(0, sizeof(near), &near);
  } catch (...) {
    // A wish only.
  }
}

void place_on_node(std::span<std::byte> memory, int node) noexcept {
  if (node < 0 || node >= 64 || memory.empty() || !several_nodes()) return;
#ifdef SYS_mbind
  constexpr int prefer = 1;  // MPOL_PREFERRED of <numaif.h>, which is libnuma's
  const unsigned long mask = 1UL << node;
  syscall(SYS_mbind, memory.data(), memory.size(), prefer, &mask, sizeof(mask) * 8UL, 0UL);
#endif
}

std::optional<std::uint64_t> available_memory() {
  std::optional<std::uint64_t> available;
  if (const auto kib = number_after("/proc/meminfo", "MemAvailable:")) available = *kib << 10;
  if (const auto left = group_limits().memory_left) available = std::min(available.value_or(*left), *left);
  return available;
}

void require_memory(std::uint64_t bytes, const char* what) {
  constexpr std::uint64_t worth_asking = std::uint64_t{1} << 30;
  if (bytes < worth_asking) return;
  const std::optional<std::uint64_t> available = available_memory();
  if (!available || bytes <= *available) return;
  const auto mib = [](std::uint64_t number) { return std::to_string(number >> 20) + " MiB"; };
  throw ConfigError(what + (" takes " + mib(bytes)) + " of memory, and " + mib(*available) + " can be had");
}

bool reset_peak_memory() noexcept {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = ::write(file, "5", 1) == 1;
  ::close(file);
  return done;
}

std::optional<std::uint64_t> peak_memory() {
  const auto kib = number_after("/proc/self/status", "VmHWM:");
  if (!kib) return std::nullopt;
  return *kib << 10;
}

}  // namespace slidestream::runtime
