#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include <slidestream/pipeline.hpp>

#include "cli/terminal.hpp"

namespace slidestream::cli {

/// How much is done, 0 to 1.
struct Share {
  double start = 0.0;  ///< of what this start has to do
  double all = 0.0;    ///< with what earlier starts did, of everything
};

/// How much of a run is done, from what is known of it: where the sizes of the files are known, by bytes; else slides
/// that weren't opened yet are taken to be as large as those that were. Never goes back.
class Estimate {
 public:
  Estimate() = default;
  /// `bytes` and `slides` of what is to be done, `before`: bytes of what earlier starts did.
  Estimate(std::uint64_t bytes, std::size_t slides, std::uint64_t before = 0)
      : bytes_(static_cast<double>(bytes)),
        slides_(static_cast<double>(slides)),
        before_(static_cast<double>(before)) {}

  /// `bytes` of its file.
  void slide_ended(const SlideResult& slide, std::uint64_t bytes = 0);
  /// 0 to 1, of what this start has to do.
  double fraction(const Progress& progress);
  Share share(const Progress& progress);

 private:
  double fraction_by_bytes(const Progress& progress) const;

  double bytes_ = 0.0;   ///< of all files; 0: not known
  double slides_ = 0.0;  ///< all
  double before_ = 0.0;
  double ended_bytes_ = 0.0;
  double ended_pixels_ = 0.0;
  std::uint64_t ended_with_size_ = 0;
  std::uint64_t ended_ = 0;
  double shown_ = 0.0;
};

/// What a run is over: its progress counts pixels of slides, or voxels of volumes.
enum class RunOver { slides, volumes };

/// The time that is left, in seconds, where something can be said of it. \param fraction  of this start's work, done.
std::optional<double> seconds_left(const Progress& progress, double fraction);

/// The live line: as much as fits into `width` columns, the least important left out first.
std::string live_line(const Progress& progress, const Share& share, bool stopping, int width, const Style& style,
                      RunOver over = RunOver::slides);

/// The same as a log line.
std::string progress_text(const Progress& progress, const Share& share, RunOver over = RunOver::slides);

/// Shows a run on standard error: a live line on a terminal, else a log line every five seconds.
class ProgressDisplay {
 public:
  /// `plain`: log lines on a terminal too.
  ProgressDisplay(bool quiet, bool plain, const Estimate& estimate, RunOver over = RunOver::slides)
      : quiet_(quiet), over_(over), style_(Style::of(2)), estimate_(estimate) {
    if (plain) style_.terminal = false;
  }
  ~ProgressDisplay() { end(); }

  void slide_ended(const SlideResult& slide, std::uint64_t bytes);
  /// \return how much is done.
  Share update(const Progress& progress);
  /// Takes the live line away.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  bool quiet_;
  RunOver over_;
  Style style_;
  std::mutex mutex_;
  Estimate estimate_;                      // guarded by mutex_
  Clock::time_point last_ = Clock::now();  // guarded by mutex_
  bool told_of_signal_ = false;            // guarded by mutex_
};

}  // namespace slidestream::cli
