#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/run_record.hpp"

// Which slides come last, are tried alone, or are given up, as earlier starts ended at them.

namespace slidestream::cli {

namespace {

/// Processes that died or lacked memory at a slide, from which on it is tried alone.
constexpr std::int64_t deaths_of_suspect = 2;

}  // namespace

std::int64_t RunRecord::deaths_of(std::size_t place) const {
  const auto found = start_.deaths.find(place);
  return found == start_.deaths.end() ? 0 : found->second;
}

std::int64_t RunRecord::shortages_of(std::size_t place) const {
  const auto found = start_.shortages.find(place);
  return found == start_.shortages.end() ? 0 : found->second;
}

bool RunRecord::is_suspect(std::size_t place) const {
  return std::max(deaths_of(place), shortages_of(place)) >= deaths_of_suspect || start_.unwritten.contains(place);
}

std::vector<std::string> RunRecord::todo() const {
  std::vector<std::string> paths;
  paths.reserve(start_.todo.size());
  for (const std::int64_t deaths : {0, 1}) {
    for (const std::size_t place : start_.todo) {
      const bool is_next = std::max(deaths_of(place), shortages_of(place)) == deaths;
      if (is_next && !is_suspect(place)) paths.push_back(manifest_[place].path);
    }
  }
  return paths;
}

std::vector<std::string> RunRecord::suspects() const {
  std::vector<std::string> paths;
  for (const std::size_t place : start_.todo) {
    if (is_suspect(place)) paths.push_back(manifest_[place].path);
  }
  return paths;
}

/// A slide that a process died at, or lacked memory for, when it was tried alone is not tried again, unless the user
/// asks for failed ones: no slide may stop an archive.
void RunRecord::give_up_deadly_slides() {
  for (std::size_t i = 0; i < start_.todo.size();) {
    const std::size_t place = start_.todo[i];
    if (std::max(deaths_of(place), shortages_of(place)) <= deaths_of_suspect) {
      ++i;
      continue;
    }
    SlideResult& slide = given_up_.emplace_back();
    slide.path = manifest_[place].path;
    slide.level = config_.input.level;
    slide.sums.histogram.assign(static_cast<std::size_t>(config_.analysis.bins), 0);
    slide.fail({"source", {}, deaths_of(place) > deaths_of_suspect ? cause_of_deaths : cause_of_shortages});
    ledger_->started(place);
    tell_earlier(ledger_->ended(place, slide));
    start_.bytes_left -= start_.todo_bytes[i];
    start_.todo.erase(start_.todo.begin() + static_cast<std::ptrdiff_t>(i));
    start_.todo_bytes.erase(start_.todo_bytes.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// Logs slides that this run gives up or tries alone.
void RunRecord::tell_deadly_slides() const {
  for (const SlideResult& slide : given_up_) {
    spdlog::error("{}: {}; --retry-failed tries it again", slide.path, slide.error);
  }
  for (const std::size_t place : start_.todo) {
    if (!is_suspect(place)) continue;
    spdlog::warn("{}: {}: it is tried alone, behind all others", manifest_[place].path, reason_of_suspicion(place));
  }
}

std::string RunRecord::reason_of_suspicion(std::size_t place) const {
  const auto text_of = [](std::int64_t count) {
    return count == deaths_of_suspect ? std::string("two") : std::to_string(count);
  };
  const std::int64_t deaths = deaths_of(place);
  if (deaths >= deaths_of_suspect) return text_of(deaths) + " processes died while they worked on it";
  const std::int64_t shortages = shortages_of(place);
  if (shortages >= deaths_of_suspect) {
    return text_of(shortages) + " starts ended as memory or threads lacked while they worked on it";
  }
  return "an earlier run ended as a file of it couldn't be written";
}

}  // namespace slidestream::cli
