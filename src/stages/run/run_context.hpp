#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/error.hpp>

#include "planning/operator_needs.hpp"
#include "planning/strip_plan.hpp"
#include "runtime/stage_meter.hpp"
#include "runtime/trace.hpp"
#include "stages/run/batch.hpp"
#include "stages/run/images_under_way.hpp"

/// \file
/// What the stages of a run share.

namespace slidestream {

/// What a lane has under way.
struct LaneLoad {
  std::atomic<std::size_t> decoded_on_cpu{0};  ///< batches
};

/// Threads of a run: as configured, or one a processor.
int threads_of(const Config& config) noexcept;

/// Memory that decoding on the CPU may take, over all threads of a run, in bytes.
std::uint64_t decode_memory_bytes(const Config& config) noexcept;

/// \throws Error when decoding a tile of the level on the CPU takes more than that, as far as its codec is known. The
/// memory that it advises is also enough for `plan`, which plans the level and may throw.
void check_decode_memory(const Config& config, const Slide& slide, std::size_t level,
                         const std::function<void()>& plan);

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
  std::shared_ptr<DecodeMemory> decode_memory;    ///< of all slides
  std::shared_ptr<DecodeMemory> small_levels;     ///< memory of theirs, of all slides
  Operators all_operators;                        ///< of the run
  std::shared_ptr<const Network> tissue_network;  ///< of `tissue.model`, where an operator wants to know tissue
  Operators operators;                  ///< of these, the ones that pixels pass by: what stages mean by an operator
  std::vector<OperatorNeeds> needs;     ///< of `operators`
  std::vector<std::size_t> ranks;       ///< their places among `all_operators`
  std::optional<std::size_t> spectrum;  ///< its place among `operators`
  bool makes_images = false;            ///< some operator does
  bool makes_files = false;             ///< or files of another kind
  bool has_networks = false;            ///< some operator has
  std::vector<int> devices;             ///< GPUs that are used, by number; none on the CPU
  std::size_t most_sessions = std::numeric_limits<std::size_t>::max();  ///< of a network, on each GPU or the CPU
  class EmitStage* emit = nullptr;                                      ///< null where no operator makes files
  class GpuSet* gpus = nullptr;                                         ///< null on the CPU
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

  /// For tests: called at the start of each stage's work on a strip; what it throws is the stage's failure.
  void (*fault)(void* data, const char* stage, const std::string& path, std::size_t strip) = nullptr;
  void* fault_data = nullptr;

  /// Takes notes for whoever runs it, one line each; may be empty. Any thread.
  std::function<void(const std::string&)> on_message;
  /// Takes doubts about slides likewise.
  std::function<void(const std::string&)> on_warning;
  /// Whether the run was told to stop. May be empty.
  std::function<bool()> stop_requested;
  bool stopping() const { return stop_requested && stop_requested(); }
  /// How long slides may go on after a stop when all of their strips are in slots.
  std::chrono::nanoseconds time_to_end = std::chrono::seconds(5);
  /// Whether a stop leaves the slide unfinished, so that nothing more is to be done for it. Any thread.
  bool leaves(const SlideRun& slide) const;

  /// Called with an error that ends the run, such as a lost device. Any thread, as often as it happens.
  std::function<void(const std::exception_ptr&)> on_fatal;

  /// Something that was made couldn't be written: files that aren't whole are in the way of the next run.
  std::atomic<bool> output_failed{false};

  /// Called with a failure to write what was made, which ends the run and comes out of it. Any thread.
  std::function<void(const std::exception_ptr&)> on_output_failure;
  /// Called when a slide's file can't be written, before the first of these calls, with the path of the slide. May be
  /// empty.
  std::function<void(const std::string&)> on_unwritten;

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

 private:
  mutable std::atomic<runtime::Clock::rep> stop_seen_{0};  ///< when; 0: not yet
};

/// The message of the exception being handled, without the slide's path in front.
std::string current_cause(const std::string& path);

/// Memory lacks for what every slide needs: the run ends with what this says, and the slide stays to be done.
class MemoryShortage : public std::bad_alloc {
 public:
  explicit MemoryShortage(const std::string& text) : text_(std::make_shared<const std::string>(text)) {}
  const char* what() const noexcept override { return text_->c_str(); }

 private:
  std::shared_ptr<const std::string> text_;
};

/// Whether it is that memory lacks.
bool lacks_memory(const std::exception_ptr& error) noexcept;

/// Runs `work` as `stage` on the batch's slide, or from an item of the batch on, unless `Batch::skip` is true or a stop
/// leaves it unfinished. Whatever `work` throws fails that slide. A `CudaError` ends the run, too (`RunContext::fail`).
template <class Work>
void guarded(const RunContext& context, const char* stage, Batch& batch, Work&& work,
             std::int64_t item = SlideRun::all_items) noexcept {
  if (batch.skip(item)) return;
  // A stop needn't wait for work on a slide that it leaves unfinished.
  if (context.leaves(*batch.slide)) {
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
