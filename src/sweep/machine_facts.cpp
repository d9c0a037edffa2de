#include "sweep/machine_facts.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

namespace slidestream {

namespace {

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

std::optional<std::uint64_t> number_in(const char* file) {
  std::uint64_t number = 0;
  if (std::ifstream in(file); in >> number) return number;
  return std::nullopt;
}

/// What the control group's limit leaves, where it has one: what it caches can be given up.
std::optional<std::uint64_t> left_of_group() {
  const auto limit = number_in("/sys/fs/cgroup/memory.max");
  const auto used = number_in("/sys/fs/cgroup/memory.current");
  if (!limit || !used) return std::nullopt;
  const std::uint64_t cache = number_after("/sys/fs/cgroup/memory.stat", "file").value_or(0);
  const std::uint64_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "";
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

std::string time_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::optional<std::uint64_t> available_memory() {
  std::optional<std::uint64_t> available;
  if (const auto kib = number_after("/proc/meminfo", "MemAvailable:")) available = *kib << 10;
  if (const auto left = left_of_group()) available = std::min(available.value_or(*left), *left);
  return available;
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

}  // namespace slidestream
