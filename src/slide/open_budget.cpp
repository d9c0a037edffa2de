#include "slide/open_budget.hpp"

#include <ctime>
#include <slidestream/error.hpp>

#include "slide/file.hpp"

namespace slidestream {

namespace {

/// Storage that is slow costs none of it.
double processor_seconds() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

OpenBudget::OpenBudget(const std::filesystem::path& path, std::uint64_t file_size, const OpenOptions& options,
                       double seconds)
    : path_(path),
      options_(options),
      seconds_(seconds),
      begin_(processor_seconds()),
      bytes_left_(file_size + spare_bytes) {}

void OpenBudget::refuse(const std::string& cause) const { throw_slide_error(path_, cause); }

void OpenBudget::check() const {
  if (options_.give_up && options_.give_up()) throw_stopped(path_, "was being opened");
  if (processor_seconds() - begin_ > seconds_) {
    refuse("takes more than " + std::to_string(static_cast<int>(seconds_)) + " s of processor time to open");
  }
}

void OpenBudget::take_directory(std::uint64_t entries) {
  if (++directories_ > most_directories) {
    refuse("has more than " + std::to_string(most_directories) + " directories");
  }
  entries_ += entries;
  if (entries_ > most_entries) {
    refuse("its directories have more than " + std::to_string(most_entries) + " entries together");
  }
  check();
}

void OpenBudget::take_level(std::uint64_t tiles) {
  if (++levels_ > most_levels) refuse("has more than " + std::to_string(most_levels) + " levels");
  // Both are far below 2^63.
  tiles_ += tiles;
  if (tiles_ > static_cast<std::uint64_t>(options_.max_tiles)) {
    refuse("its levels have " + std::to_string(tiles_) + " tiles or more, which is above input.max_tiles " +
           std::to_string(options_.max_tiles));
  }
  check();
}

void OpenBudget::take_bytes(std::uint64_t bytes) {
  if (bytes > bytes_left_) {
    refuse("its directories and tables share bytes: reading them takes more than the file's size and 16 MiB");
  }
  bytes_left_ -= bytes;
  check();
}

}  // namespace slidestream
