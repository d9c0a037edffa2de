#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

#include "planning/strip_plan.hpp"
#include "runtime/slot_pool.hpp"
#include "runtime/trace.hpp"
#include "stages/run/work_time.hpp"

/// \file
/// A slide that a run works on, and its chains of strips.

namespace slidestream::runtime::cuda {
class DeviceFile;
}

namespace slidestream {

struct Batch;
class SlideImages;
struct TissueTiles;

/// Consecutive strips of a slide on their way through one lane, in row order: the whole slide, or a fragment of it.
struct Chain {
  std::size_t index = 0;  ///< in the slide
  ChainPlan plan;

  std::size_t strips_sent = 0;  ///< used by the source alone, for one lane

  // Used by the lane's carry stage alone, which is serial.
  std::size_t next = 0;                   ///< strip of the chain whose turn it is
  std::map<std::size_t, Batch*> waiting;  ///< ready before their turn
  runtime::Slot carry;                    ///< rows for the next strip, on the host
  int device_carry = -1;                  ///< number of the buffer with rows for the next strip, on a device
  int device_stream = -1;                 ///< number of the compute stream that all of the chain's batches go through

  // Used by the lane's pack node alone, which is serial.
  std::size_t packed = 0;                  ///< strips
  std::map<std::size_t, Batch*> computed;  ///< before their turn

  // Used by the reduce stage alone, which is serial; the source reads the first.
  std::atomic<std::size_t> strips_reduced{0};
  std::size_t strips_expected = SIZE_MAX;  ///< known with the last one
};

/// A slide on its way through the graph, shared by its batches.
struct SlideRun {
  std::size_t index = 0;  ///< position in the input
  std::string path;
  std::shared_ptr<const Slide> slide;  ///< null when it couldn't be opened
  std::size_t level = 0;
  std::once_flag io_chosen;
  InputIo io = InputIo::posix;                                   ///< how its tiles are read; never `automatic`
  std::shared_ptr<const runtime::cuda::DeviceFile> device_file;  ///< with `cufile`: what they are read by
  bool decode_on_device = false;                                 ///< compressed tiles go to the device
  bool levels_on_device = false;                                 ///< of its images
  LevelPlan plan;
  std::vector<Chain> chains;  ///< as the plan's; one that has no work when the slide couldn't be opened
  /// What operators prepared, by place in `RunContext::all_operators`; null where they had nothing to say.
  std::vector<std::shared_ptr<const SlideParameters>> parameters;
  /// Whether an operator failed before the slide's pixels pass by, by the same places: it makes nothing of the slide.
  std::vector<bool> lacking;
  bool lacks(std::size_t rank) const noexcept { return rank < lacking.size() && lacking[rank]; }
  bool lacks_any() const noexcept { return std::find(lacking.begin(), lacking.end(), true) != lacking.end(); }
  std::shared_ptr<const TissueTiles> tissue;  ///< that networks get; null where they get all
  std::shared_ptr<SlideImages> images;        ///< null where the slide gets no files; let go by the reduce stage
  SlideResult result;  ///< sums and counts belong to the reduce stage, the map's disjoint parts to compute tasks
  runtime::Clock::time_point start;

  /// Where something went wrong: the strip, and an item of it in the stage's own order, such as a tile.
  struct Place {
    std::size_t strip = 0;
    std::int64_t item = 0;
  };
  static constexpr std::int64_t all_items = INT64_MAX;

  /// Notes a failure. Of several the one that comes first in the slide stands, not in time: what is before a failure
  /// goes on, so that the cause doesn't depend on who was faster; what is behind it passes through without work.
  /// `tile`: the one at fault, by its number in the level. Thread-safe.
  void fail(const char* stage, const std::string& cause, Place place, std::optional<std::int64_t> tile = {});
  bool failed() const noexcept { return failed_at_.load(std::memory_order_acquire) != nowhere; }
  bool failed_before(Place place) const noexcept { return failed_at_.load(std::memory_order_acquire) < packed(place); }
  /// Somebody reads its first strip now. Thread-safe.
  void begin_work() noexcept { work->begin(); }
  /// Shared with its images, whose networks may be the last to work on it.
  std::shared_ptr<WorkTime> work = std::make_shared<WorkTime>();
  std::atomic<bool> is_opening{true};
  /// While it was opened, for memory that other slides had: nanoseconds.
  std::atomic<std::int64_t> waited{0};
  /// A stop leaves the slide: it has no result.
  std::atomic<bool> abandoned{false};
  /// Chains whose last strip wasn't sent: while there are some, a stop leaves the slide unfinished.
  std::atomic<std::size_t> chains_to_send{0};

  std::size_t chains_reduced = 0;  ///< used by the reduce stage alone

 private:
  static constexpr std::uint64_t nowhere = UINT64_MAX;
  /// In order; strips in the upper half. No level has more tiles than the lower half holds.
  static std::uint64_t packed(Place place) noexcept;

  std::mutex mutex_;
  std::atomic<std::uint64_t> failed_at_{nowhere};
};

/// "tile 17 (column 1, row 2)"
std::string text_of_tile(const SlideRun& slide, std::int64_t index);

}  // namespace slidestream
