#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <string_view>

/// \file
/// Which slides a run works on, for the line that it ends with where memory lacks. Nothing here takes memory.

namespace slidestream::cli {

/// A line of bounded size, put together without memory from the heap.
class BoundedLine {
 public:
  /// What exceeds the line is left out.
  void add(std::string_view text) noexcept;
  void add(std::size_t number) noexcept;
  /// As `add`, with `?` for control characters, and the end alone of what is long.
  void add_name(std::string_view name) noexcept;
  /// Adds a line's end, for which there is always room.
  void end() noexcept;
  std::string_view text() const noexcept { return {bytes_.data(), size_}; }
  void clear() noexcept { size_ = 0; }

 private:
  std::size_t room() const noexcept { return bytes_.size() - 1 - size_; }

  std::array<char, 2048> bytes_{};
  std::size_t size_ = 0;
};

/// Names of slides that were begun and haven't ended. Thread-safe.
class SlidesUnderWay {
 public:
  static constexpr std::size_t most_named = 4;

  void begin(std::string_view path) noexcept;
  void end(std::string_view path) noexcept;
  /// Forgets all, for a run that begins.
  void reset() noexcept;
  /// The run is over: it works on none, and what was noted stays.
  void end_all() noexcept;
  /// Adds what they are, such as `; slides under way: a.svs, b.svs and 3 more`; nothing where there are none, or
  /// another thread is just here and doesn't go on.
  void add_to(BoundedLine& line) noexcept;
  /// Keeps what `add_to` says now, to be told when the run is over.
  void note() noexcept;
  std::string_view noted() const noexcept { return noted_.text(); }

 private:
  /// More than a run has under way; of others only the number is known.
  static constexpr std::size_t most_kept = 64;
  static constexpr std::size_t most_bytes = 400;
  struct Name {
    std::array<char, most_bytes> end;  ///< of the path
    std::size_t kept = 0;
    std::size_t whole = 0;  ///< bytes of the path
    std::size_t hash = 0;
  };

  std::mutex mutex_;  ///< of what follows
  std::array<Name, most_kept> names_{};
  std::size_t count_ = 0;
  std::size_t more_ = 0;
  BoundedLine noted_;  ///< of the thread that ends the run
};

/// Of this process's run.
SlidesUnderWay& slides_under_way() noexcept;

}  // namespace slidestream::cli
