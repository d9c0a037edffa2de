#include "system/control_groups.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace slidestream {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  std::string part;
  while (std::getline(in, part, separator)) parts.push_back(part);
  return parts;
}

bool lists(const std::string& list, std::string_view word) {
  const std::vector<std::string> words = split(list, ',');
  return std::ranges::find(words, word) != words.end();
}

/// mountinfo writes a space, a tab, a line break and a backslash as three octal digits.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

/// Where a hierarchy of groups is mounted.
struct Mount {
  bool is_second = false;   ///< version 2
  std::string controllers;  ///< version 1: with commas between them
  fs::path group;           ///< the group that is seen at `point`
  fs::path point;
};

std::vector<Mount> mounts_of(const fs::path& root) {
  std::vector<Mount> mounts;
  std::ifstream in(root / "proc/self/mountinfo");
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = split(line, ' ');
    const auto dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    const std::string& type = *(dash + 1);
    if (type != "cgroup" && type != "cgroup2") continue;
    mounts.push_back({type == "cgroup2", *(dash + 3), unescaped(fields[3]), unescaped(fields[4])});
  }
  if (mounts.empty()) {
    mounts = {{true, "", "/", "/sys/fs/cgroup"},
              {false, "memory", "/", "/sys/fs/cgroup/memory"},
              {false, "cpu", "/", "/sys/fs/cgroup/cpu"}};
  }
  return mounts;
}

/// A line of /proc/self/cgroup: "4:cpu,cpuacct:/slurm/job_1", or "0::/user.slice" of version 2.
struct Membership {
  std::string controllers;
  fs::path group;
};

std::vector<Membership> memberships(const fs::path& root) {
  std::vector<Membership> all;
  std::ifstream in(root / "proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    all.push_back({line.substr(first + 1, second - first - 1), line.substr(second + 1)});
  }
  return all;
}

/// Folders of a group and of those above it that this process sees, the group's own first.
std::vector<fs::path> folders_of(const fs::path& root, const Mount& mount, const fs::path& group) {
  fs::path below = group.lexically_relative(mount.group);
  // A container may see its own group alone, at the point itself.
  if (below.empty() || *below.begin() == ".." || below == ".") below.clear();
  const fs::path point = root / mount.point.relative_path();
  std::vector<fs::path> folders;
  for (; !below.empty(); below = below.parent_path()) folders.push_back(point / below);
  folders.push_back(point);
  return folders;
}

std::optional<std::uint64_t> number_in(const fs::path& file) {
  // Version 1 has no word for "no limit": it is the largest number of whole pages.
  constexpr std::uint64_t no_limit = std::uint64_t{1} << 62;
  std::ifstream in(file);
  std::string text;
  in >> text;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || number >= no_limit) {
    return std::nullopt;
  }
  return number;
}

/// The sum of the lines of memory.stat with these names.
std::uint64_t sum_of(const fs::path& file, std::string_view first, std::string_view second) {
  std::ifstream in(file);
  std::uint64_t sum = 0;
  std::string name;
  std::uint64_t number = 0;
  while (in >> name >> number) {
    if (name == first || name == second) sum += number;
  }
  return sum;
}

void keep_smallest(std::optional<std::uint64_t>& kept, std::optional<std::uint64_t> found) {
  if (found) kept = std::min(kept.value_or(*found), *found);
}

void read_memory(GroupLimits& limits, const fs::path& folder, bool is_second) {
  std::optional<std::uint64_t> limit = number_in(folder / (is_second ? "memory.max" : "memory.limit_in_bytes"));
  // Above it the kernel slows a group down until it hardly goes on.
  if (is_second) keep_smallest(limit, number_in(folder / "memory.high"));
  if (!limit) return;
  keep_smallest(limits.memory, limit);
  const auto used = number_in(folder / (is_second ? "memory.current" : "memory.usage_in_bytes"));
  const fs::path stat = folder / "memory.stat";
  const std::uint64_t cache = is_second ? sum_of(stat, "active_file", "inactive_file")
                                        : sum_of(stat, "total_active_file", "total_inactive_file");
  const std::uint64_t held = used.value_or(0) - std::min(used.value_or(0), cache);
  keep_smallest(limits.memory_left, *limit - std::min(*limit, held));
}

void read_processors(GroupLimits& limits, const fs::path& folder, bool is_second) {
  std::optional<std::uint64_t> quota;
  std::optional<std::uint64_t> period;
  if (is_second) {
    std::ifstream in(folder / "cpu.max");
    std::string first;
    std::uint64_t second = 0;
    std::uint64_t number = 0;
    if (!(in >> first >> second)) return;
    const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), number);
    if (error == std::errc() && end == first.data() + first.size()) quota = number;
    period = second;
  } else {
    quota = number_in(folder / "cpu.cfs_quota_us");  // -1: none
    period = number_in(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return;
  const std::uint64_t whole = (*quota + *period - 1) / *period;
  const int processors = static_cast<int>(std::min<std::uint64_t>(whole, std::numeric_limits<int>::max()));
  limits.processors = std::min(limits.processors.value_or(processors), processors);
}

}  // namespace

GroupLimits group_limits(const fs::path& root) {
  GroupLimits limits;
  const std::vector<Mount> mounts = mounts_of(root);
  for (const Membership& membership : memberships(root)) {
    for (const Mount& mount : mounts) {
      if (mount.is_second != membership.controllers.empty()) continue;
      const auto has = [&](std::string_view controller) {
        return mount.is_second || (lists(membership.controllers, controller) && lists(mount.controllers, controller));
      };
      for (const fs::path& folder : folders_of(root, mount, membership.group)) {
        if (has("memory")) read_memory(limits, folder, mount.is_second);
        if (has("cpu")) read_processors(limits, folder, mount.is_second);
      }
    }
  }
  return limits;
}

int allowed_processors() noexcept {
  int allowed = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) allowed = std::max(1, CPU_COUNT(&mask));
  try {
    return std::min(allowed, group_limits().processors.value_or(allowed));
  } catch (...) {
    return allowed;
  }
}

}  // namespace slidestream
