#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

#include "runtime/slot_pool.hpp"
#include "runtime/stage_meter.hpp"
#include "stages/strip_plan.hpp"

/// \file
/// What travels through the graph. A batch is a strip (or several) of one slide with the slot that holds its bytes.

namespace slidestream {

struct Batch;

/// A slide on its way through the graph, shared by its batches.
struct SlideRun {
  std::size_t index = 0;  ///< position in the input
  std::string path;
  std::shared_ptr<const Slide> slide;  ///< null when it couldn't be opened
  std::size_t level = 0;
  LevelPlan plan;
  SlideResult result;  ///< sums and counts belong to the reduce stage, the map's disjoint parts to compute tasks
  runtime::Clock::time_point start;

  /// Notes the first failure; the batches still on their way pass through without work. Thread-safe.
  void fail(const char* stage, const std::string& cause);
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  /// A stop was asked for before all strips were sent: the slide has no result.
  std::atomic<bool> abandoned{false};

  // The chain of carried rows: used by the carry stage alone, which is serial.
  std::size_t next_in_chain = 0;
  std::map<std::size_t, Batch*> waiting;  ///< decoded before their turn
  runtime::Slot carry;                    ///< rows for the next strip

  // Used by the reduce stage alone, which is serial.
  std::size_t strips_reduced = 0;
  std::size_t strips_expected = SIZE_MAX;  ///< known with the last one

 private:
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
};

/// One tile of a batch.
struct BatchTile {
  enum class Source { file, missing, outside_file, too_long };
  std::int64_t index = 0;  ///< in the level
  /// outside_file: the range isn't in the file; too_long: more bytes than the tile's pixels could need.
  Source source = Source::file;
  bool owned = true;       ///< false: a panel before this one counts it
  std::size_t offset = 0;  ///< of its bytes in the slot
  std::size_t length = 0;
  std::int64_t from_x = 0;  ///< first pixel of the tile that is wanted
  std::int64_t from_y = 0;
  LuminanceView out;
};

/// One positional read: neighbouring tiles merged.
struct ReadChunk {
  std::uint64_t file_offset = 0;
  std::size_t slot_offset = 0;
  std::size_t length = 0;
};

/// A strip under way. There are as many as slots; each is reused for the whole run.
struct Batch {
  runtime::Slot slot;
  std::shared_ptr<SlideRun> slide;
  std::size_t strip_index = 0;
  StripPlan strip;
  bool empty = false;  ///< carries the end of a failed or abandoned slide: no work, but keeps its place in the chain
  bool last = false;   ///< no strip of the slide comes after

  std::vector<ReadChunk> chunks;
  std::vector<BatchTile> tiles;
  std::uint8_t* own_rows = nullptr;  ///< pixel (panel.x0, strip.y0); carried rows end right before it
  SpectrumSums sums;
  std::mutex sums_mutex;
  std::atomic<std::uint64_t> missing_tiles{0};
  std::atomic<std::uint64_t> bad_tiles{0};
  std::atomic<std::int64_t> tasks_left{0};  ///< of the present stage; the task that takes it to 0 hands the batch on
  runtime::Clock::time_point ready;         ///< when it was handed on

  const PanelPlan& panel() const { return slide->plan.panels[strip.panel]; }
  bool skip() const noexcept { return empty || slide->failed(); }
};

/// What the stages share for one run.
struct RunContext {
  RunContext(const Config& run_config, int run_threads);

  const Config& config;
  int threads;
  SlotLimits limits;
  runtime::StageMeter source{"source"};
  runtime::StageMeter read{"read"};
  runtime::StageMeter decode{"decode"};
  runtime::StageMeter carry{"carry"};
  runtime::StageMeter compute{"compute"};
  runtime::StageMeter reduce{"reduce"};
  std::atomic<std::uint64_t> pixels_started{0};
  std::atomic<std::uint64_t> pixels_done{0};

  /// For tests: called at the start of each stage's work on a strip; what it throws is the stage's failure.
  void (*fault)(void* data, const char* stage, const std::string& path, std::size_t strip) = nullptr;
  void* fault_data = nullptr;

  void check_fault(const char* stage, const SlideRun& slide, std::size_t strip) const {
    if (fault != nullptr) fault(fault_data, stage, slide.path, strip);
  }
};

/// The message of the exception being handled, without the slide's path in front.
std::string current_cause(const std::string& path);

/// Runs `work` as `stage` on the batch's slide: whatever it throws fails that slide alone.
template <class Work>
void guarded(const RunContext& context, const char* stage, Batch& batch, Work&& work) noexcept {
  if (batch.skip()) return;
  try {
    context.check_fault(stage, *batch.slide, batch.strip_index);
    work();
  } catch (...) {
    batch.slide->fail(stage, current_cause(batch.slide->path));
  }
}

}  // namespace slidestream
