#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <slidestream/operator.hpp>
#include <slidestream/results.hpp>
#include <slidestream/slide.hpp>

#include "runtime/handoff.hpp"
#include "runtime/slot_pool.hpp"
#include "runtime/stage_meter.hpp"
#include "stages/images_under_way.hpp"
#include "stages/strip_plan.hpp"

/// \file
/// What travels through the graph. A batch is a strip (or several) of one slide with the slot that holds its bytes.

namespace slidestream::runtime::cuda {
class DeviceFile;
}

namespace slidestream {

struct Band;
struct Batch;
struct Parcel;
class SlideImages;
struct SlideRun;
struct TissueTiles;

/// Consecutive strips of a slide on their way through one lane, in row order: the whole slide, or a fragment of it.
struct Chain {
  std::size_t index = 0;  ///< in the slide
  ChainPlan plan;

  // Used by the lane's carry stage alone, which is serial.
  std::size_t next = 0;                   ///< strip of the chain whose turn it is
  std::map<std::size_t, Batch*> waiting;  ///< ready before their turn
  runtime::Slot carry;                    ///< rows for the next strip, on the host
  int device_carry = -1;                  ///< number of the buffer with rows for the next strip, on a device
  int device_stream = -1;                 ///< number of the compute stream that all of the chain's batches go through

  // Used by the lane's pack node alone, which is serial.
  std::size_t packed = 0;                  ///< strips
  std::map<std::size_t, Batch*> computed;  ///< before their turn

  // Used by the reduce stage alone, which is serial.
  std::size_t strips_reduced = 0;
  std::size_t strips_expected = SIZE_MAX;  ///< known with the last one
};

/// How long a slide has been worked on. Thread-safe.
class WorkTime {
 public:
  /// Somebody begins, if nobody has.
  void begin() noexcept;
  /// It waits for other slides, whose networks are at work: until `begin_anew` it takes no time. Nothing after that.
  void hold() noexcept;
  void begin_anew() noexcept;
  /// After `begin_anew`: it waits for other slides again, and takes no time until `go_on`. By one thread at a time.
  void pause() noexcept;
  void go_on() noexcept;
  double seconds() const noexcept;

 private:
  static constexpr runtime::Clock::rep held = -1;
  static constexpr runtime::Clock::rep paused = -2;
  std::atomic<runtime::Clock::rep> since_{0};  ///< 0: not yet
  std::atomic<runtime::Clock::rep> spent_{0};  ///< until it was paused
  std::atomic<bool> anew_{false};
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
  /// A stop was asked for before all strips were sent: the slide has no result.
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

/// One tile of a batch.
struct BatchTile {
  enum class Source { file, missing, outside_file, too_long };
  std::int64_t index = 0;  ///< in the level
  /// outside_file: the range isn't in the file; too_long: more bytes than the tile's pixels could need.
  Source source = Source::file;
  bool owned = true;       ///< false: a panel or fragment before this one counts it
  std::size_t offset = 0;  ///< of its bytes in the slot
  std::size_t length = 0;
  bool bad = false;         ///< it couldn't be decoded, and is taken as white
  std::int64_t from_x = 0;  ///< first pixel of the tile that is wanted
  std::int64_t from_y = 0;
  ByPlane<HostPixels> out;  ///< in the slot; without data where the batch is decoded on a device or nobody wants it
  ByPlane<std::int64_t> place{};  ///< in each plane, byte of the first pixel behind the batch's own first
};

/// One positional read: neighbouring tiles merged.
struct ReadChunk {
  std::uint64_t file_offset = 0;
  std::size_t slot_offset = 0;
  std::size_t length = 0;
  /// Whole blocks of the file that it lies in may be read: its place in the slot is as far into a block, and nothing
  /// else is in the slot's blocks.
  bool whole_blocks = false;
};

/// A strip under way. There are as many as slots; each is reused for the whole run.
struct Batch {
  std::size_t lane = 0;
  std::uint64_t number = 0;  ///< of those that came to the lane before it
  runtime::Slot slot;
  std::shared_ptr<SlideRun> slide;
  Chain* chain = nullptr;       ///< of the slide
  std::size_t strip_index = 0;  ///< in the slide's plan
  StripPlan strip;
  bool empty = false;  ///< carries the end of a failed or abandoned chain: no work, but keeps its place in it
  bool last = false;   ///< no strip of the chain comes after

  std::vector<ReadChunk> chunks;
  std::size_t chunks_a_turn = 1;           ///< that a thread reads at a time
  std::atomic<std::size_t> next_chunk{0};  ///< that no thread reads yet
  std::vector<BatchTile> tiles;
  std::atomic<std::size_t> chunks_to_come{0};  ///< with `bytes_on_device`: whose bytes aren't on the device yet
  bool decode_on_device = false;
  bool bytes_on_device = false;        ///< tiles are read straight into its memory: the slot has their headers at most
  std::size_t compressed_end = 0;      ///< of the slot: bytes before it are what was read
  std::size_t descriptors_offset = 0;  ///< of the slot: what the device is told of each tile
  std::size_t patches_offset = 0;      ///< of the slot: room for tiles that the CPU decodes after all
  std::vector<std::uint32_t> flagged;  ///< tiles that the device doesn't decode, or doesn't vouch for
  std::size_t patched = 0;             ///< of them, done
  std::size_t patching = 0;            ///< of them, under way
  /// In the slot: pixel (panel.x0, strip.y0) of each plane; on the CPU carried rows end before it.
  ByPlane<std::uint8_t*> own_rows{};
  std::shared_ptr<Band> band;  ///< rows of images that it completes; null without images, or where levels are made too
  std::vector<std::shared_ptr<Parcel>> parcels;  ///< what it makes of images whose levels the device makes
  SpectrumSums sums;
  std::mutex sums_mutex;
  std::atomic<std::uint64_t> missing_tiles{0};
  std::atomic<std::uint64_t> bad_tiles{0};
  std::atomic<std::uint64_t> fallback_tiles{0};  ///< flagged ones that were there to be decoded
  std::atomic<std::int64_t> tasks_left{0};  ///< of the present stage; the task that takes it to 0 hands the batch on
  runtime::Clock::time_point ready;         ///< when it was handed on
  runtime::Handoff handoff;                 ///< orders what one stage wrote before what the next one reads

  const PanelPlan& panel() const { return slide->plan.panels[strip.panel]; }
  /// Columns and rows of outputs that the batch completes for an operator.
  const OutputRange& columns(std::size_t op) const { return slide->plan.columns(strip.panel, op); }
  const OutputRange& rows(std::size_t op) const { return slide->plan.rows(strip_index, op); }
  /// Whether nothing is to be done for it, or from an item of its on.
  bool skip(std::int64_t item = SlideRun::all_items) const noexcept {
    return empty || slide->abandoned.load(std::memory_order_relaxed) || slide->failed_before({strip_index, item});
  }
  std::size_t strip_of_chain() const noexcept { return strip_index - chain->plan.first_strip; }
  /// Bytes that a tile which the CPU decodes after all takes in the room for patches: its planes one after the other.
  std::int64_t patch_bytes() const;
  /// Of pixel (panel.x0, strip.y0) in a plane whose first row is carry_in_y0.
  std::ptrdiff_t own_offset(std::size_t plane) const {
    return (strip.y0 - strip.carry_in_y0[plane]) * panel().pitch[plane];
  }
};

/// What a lane has under way.
struct LaneLoad {
  std::atomic<std::size_t> decoded_on_cpu{0};  ///< batches
};

using Operators = std::vector<std::shared_ptr<const Operator>>;

/// What the planner has to know of them.
std::vector<OperatorNeeds> needs_of(const Operators& operators);

/// Those that the level's pixels pass by.
Operators readers_of(const Operators& operators);

/// The image that an operator makes; null where it makes none.
std::optional<Product> image_of(const Operator& op);

/// What an operator's kernel makes a pixel of: of its image, or of the rows that its network's tiles are cut from. Null
/// where it makes neither.
std::optional<PixelFormat> band_format_of(const Operator& op);

/// The place of the spectrum among operators; none where it doesn't run.
std::optional<std::size_t> place_of_spectrum(const Operators& operators);

/// Threads of a run: as configured, or one a processor.
int threads_of(const Config& config) noexcept;

/// Bytes at the beginning of a long slot that are pinned apart, unless a test wants others: what a batch of compressed
/// tiles seldom exceeds.
constexpr std::size_t usual_pinned_front = std::size_t{256} << 20;

/// What the stages share for one run.
struct RunContext {
  RunContext(const Config& run_config, int run_threads, Operators run_operators);

  const Config& config;
  int threads;
  std::size_t slides = 0;  ///< of the run
  std::size_t lanes = 1;   ///< ways through the graph: one on the CPU, one a GPU
  std::vector<LaneLoad> lane_loads{1};
  const char* backend = "cpu";
  bool carried_on_device = false;  ///< rows between strips never pass through the slots
  SlotLimits limits;
  Operators all_operators;              ///< of the run
  Operators operators;                  ///< of these, the ones that pixels pass by: what stages mean by an operator
  std::vector<OperatorNeeds> needs;     ///< of `operators`
  std::vector<std::size_t> ranks;       ///< their places among `all_operators`
  std::optional<std::size_t> spectrum;  ///< its place among `operators`
  bool makes_images = false;            ///< some operator does
  bool makes_files = false;             ///< or files of another kind
  bool has_networks = false;            ///< some operator has
  std::vector<int> devices;             ///< GPUs that are used, by number; none on the CPU
  class EmitStage* emit = nullptr;      ///< null where no operator makes files
  class GpuSet* gpus = nullptr;         ///< null on the CPU
  runtime::StageMeter source{"source"};
  runtime::StageMeter read{"read"};
  runtime::StageMeter decode{"decode"};
  runtime::StageMeter upload{"upload"};
  runtime::StageMeter device_decode{"decode-gpu"};
  runtime::StageMeter carry{"carry"};
  runtime::StageMeter compute{"compute"};
  runtime::StageMeter collect{"collect"};
  runtime::StageMeter network{"network"};
  runtime::StageMeter stitch{"stitch"};
  runtime::StageMeter encode{"encode"};
  runtime::StageMeter write{"write"};
  runtime::StageMeter publish{"publish"};
  runtime::StageMeter reduce{"reduce"};
  std::atomic<std::uint64_t> pixels_started{0};
  std::atomic<std::uint64_t> pixels_done{0};
  ImagesUnderWay images;  ///< that are being written

  bool lanes_are_devices() const noexcept { return carried_on_device; }
  /// Of the stages that this run has, in their order.
  std::vector<const runtime::StageMeter*> meters() const;

  /// Bytes at the beginning of a long slot that are pinned apart.
  std::size_t pinned_front = usual_pinned_front;
  /// Of each lane, blocks for its first slots that were taken before the run; may be fewer lanes.
  std::vector<std::vector<runtime::HostMemory>> slots_ahead;

  /// For tests: called at the start of each stage's work on a strip; what it throws is the stage's failure.
  void (*fault)(void* data, const char* stage, const std::string& path, std::size_t strip) = nullptr;
  void* fault_data = nullptr;

  /// Takes notes for whoever runs it, one line each; may be empty. Any thread.
  std::function<void(const std::string&)> on_message;
  /// Whether the run was told to stop. May be empty.
  std::function<bool()> stop_requested;
  bool stopping() const { return stop_requested && stop_requested(); }

  /// Called with an error that ends the run, such as a lost device. Any thread, as often as it happens.
  std::function<void(const std::exception_ptr&)> on_fatal;

  /// Called with a failure to write what was made, which ends the run and comes out of it. Any thread.
  std::function<void(const std::exception_ptr&)> on_output_failure;

  /// Notes what went wrong with a slide in a stage. What a device failed with ends the run: what was finished is kept.
  void fail(const char* stage, SlideRun& slide, const std::exception_ptr& failure,
            SlideRun::Place place) const noexcept;

  /// Whether a slide has taken longer than one may.
  bool is_late(const WorkTime& work) const noexcept;
  /// What it fails with then.
  std::string text_of_limit() const;
  /// \throws Error when it has.
  void check_time(const SlideRun& slide) const;
  void check_fault(const char* stage, const SlideRun& slide, std::size_t strip) const {
    if (fault != nullptr) fault(fault_data, stage, slide.path, strip);
  }
};

/// "tile 17 (column 1, row 2)"
std::string text_of_tile(const SlideRun& slide, std::int64_t index);

/// The message of the exception being handled, without the slide's path in front.
std::string current_cause(const std::string& path);

/// Runs `work` as `stage` on the batch's slide, or from an item of the batch on: whatever it throws fails that slide
/// alone.
template <class Work>
void guarded(const RunContext& context, const char* stage, Batch& batch, Work&& work,
             std::int64_t item = SlideRun::all_items) noexcept {
  if (batch.skip(item)) return;
  // A stop needn't wait for work on a slide that it leaves unfinished.
  if (context.stopping() && batch.slide->chains_to_send.load(std::memory_order_relaxed) > 0) {
    batch.slide->abandoned.store(true);
    return;
  }
  try {
    context.check_fault(stage, *batch.slide, batch.strip_index);
    context.check_time(*batch.slide);
    work();
  } catch (...) {
    context.fail(stage, *batch.slide, std::current_exception(), {batch.strip_index, 0});
  }
}

}  // namespace slidestream
