#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/handoff.hpp"
#include "runtime/io_threads.hpp"
#include "runtime/reading_threads.hpp"
#include "runtime/slot_pool.hpp"
#include "stages/decode.hpp"
#include "stages/read.hpp"
#include "stages/run/run_context.hpp"
#include "stages/source.hpp"

namespace slidestream {

class EmitStage;

/// The way of batches through the graph up to their sums. What lanes share is the source, which gives each the next
/// chain when it has sent its last, and the reduce stage. This part, from the source to luminance in the slots, is the
/// same on every backend; `CpuLane` and `GpuLane` go on from there.
class Lane {
 public:
  /// What all lanes of a run share. The reduce node takes batches with their sums.
  struct Shared {
    RunContext& context;
    tbb::flow::graph& graph;
    runtime::GraphLifetime& lifetime;
    SourceStage& source;
    DecodeStage& decode;
    ReadStage& read;
    tbb::flow::receiver<Batch*>& reduce;
  };

  virtual ~Lane();
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  /// Joins the nodes and sends the first strips: before, nothing of the lane is under way, and it may go away.
  void start();
  /// A batch that was given a band goes on. For lanes that ask for bands.
  virtual void with_band(Batch&) {}
  /// A parcel of a batch has its slot. For lanes that make parcels.
  virtual void with_parcel(Batch&, std::size_t) {}

 protected:
  Lane(const Shared& shared, std::size_t index);

  /// Joins the nodes behind this part, and this part to them. (An edge makes tasks at once, which refer to nodes.)
  virtual void connect() = 0;
  /// `decoded` takes batches with luminance in their slots.
  void connect(tbb::flow::receiver<Batch*>& decoded);

  /// Has the threads that read do something else that waits; batches that came first to the lane come first.
  void submit(const Batch& batch, runtime::ReadingThreads::Job job) { io_.submit(batch.number, std::move(job)); }

  static void take(Batch& batch) { batch.handoff.take(); }
  static Batch* give(Batch& batch) {
    batch.ready = runtime::Clock::now();
    batch.handoff.give();
    return &batch;
  }

  /// Sends a batch out as tasks, or straight on when there are none.
  template <class TaskPort, class BatchPort, class MakeTask>
  static void fan_out(Batch& batch, std::size_t tasks, TaskPort& task_port, BatchPort& batch_port, MakeTask make_task) {
    if (tasks == 0) {
      batch_port.try_put(give(batch));
      return;
    }
    batch.tasks_left.store(static_cast<std::int64_t>(tasks), std::memory_order_relaxed);
    give(batch);
    // The batch may be gone before the loop ends only after the last task was put.
    for (std::size_t i = 0; i < tasks; ++i) task_port.try_put(make_task(i));
  }

  /// Whether pixels of the batch's slide become images, and bands are asked for.
  bool makes_images(const Batch& batch) const { return shared_.context.makes_images && batch.slide->images != nullptr; }
  /// Computed: from here on the batch's images go their own way.
  void emit(EmitStage& stage, Batch& batch) const;

  /// Of a batch's tasks the one that ends last hands it on: whether this is it.
  static bool is_last(Batch& batch) { return batch.tasks_left.fetch_sub(1, std::memory_order_acq_rel) == 1; }

  const Shared shared_;
  const std::size_t index_;

 private:
  /// Says that one slot is free. There are as many as slots, so nothing in the lane can queue up beyond them.
  struct SlotToken {};
  using Admission = std::tuple<StripMessage, SlotToken>;
  using ReadNode = tbb::flow::async_node<Batch*, Batch*>;
  using SplitNode = tbb::flow::multifunction_node<Batch*, std::tuple<TileRun, Batch*>>;
  using DecodeNode = tbb::flow::multifunction_node<TileRun, std::tuple<Batch*>>;

  /// Has the source asked for the next strip, on a thread that may wait for slides to be opened.
  void ask_for_strip();
  void put_next_strip();
  Batch* admit(const Admission& admission);
  void give_token();
  void copy_tiles(Batch& batch) const;
  void start_read(Batch& batch, ReadNode::gateway_type& gateway);

  std::size_t depth_;
  bool ending_ = false;         ///< nobody waits for slots any more
  std::vector<Batch> batches_;  ///< one a slot
  runtime::Handoff source_turn_;
  std::uint64_t sent_ = 0;  ///< strips; used by the thread that asks alone
  tbb::flow::buffer_node<SlotToken> tokens_;
  runtime::SlotPool pool_;
  runtime::ReadingThreads io_;

  tbb::flow::queue_node<StripMessage> strips_;  ///< one at most
  tbb::flow::join_node<Admission, tbb::flow::reserving> join_;
  tbb::flow::function_node<Admission, Batch*> admit_;
  ReadNode read_;
  SplitNode split_;
  DecodeNode decode_;
  runtime::IoThreads asking_{1};  ///< last: its work uses the others
};

/// Carries rows between strips in the slots and computes with the threads of the graph.
/// `emit` is null where no operator makes images.
std::unique_ptr<Lane> make_cpu_lane(const Lane::Shared& shared, class CarryStage& carry, class ComputeStage& compute,
                                    EmitStage* emit);

/// Copies rows to the lane's device and has everything else done there. `emit` as above.
std::unique_ptr<Lane> make_gpu_lane(const Lane::Shared& shared, std::size_t index, class GpuSet& gpus, EmitStage* emit);

}  // namespace slidestream
