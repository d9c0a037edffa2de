#include "stages/pipeline.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <slidestream/error.hpp>

#include "runtime/handoff.hpp"
#include "runtime/io_threads.hpp"
#include "runtime/machine.hpp"
#include "stages/carry.hpp"
#include "stages/compute.hpp"
#include "stages/decode.hpp"
#include "stages/read.hpp"
#include "stages/reduce.hpp"
#include "stages/source.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

/// Says that one slot is free. There are as many as slots, so nothing in the graph can queue up beyond them.
struct SlotToken {};

using Admission = std::tuple<StripMessage, SlotToken>;
using ReadNode = flow::async_node<Batch*, Batch*>;
using SplitNode = flow::multifunction_node<Batch*, std::tuple<TileRun, Batch*>>;
using DecodeNode = flow::multifunction_node<TileRun, std::tuple<Batch*>>;
using CarryNode = flow::multifunction_node<Batch*, std::tuple<ComputeTask, Batch*>>;
using ComputeNode = flow::multifunction_node<ComputeTask, std::tuple<Batch*>>;

/// Storage answers several requests at a time better than one; more than this gains nothing that was measured.
constexpr std::size_t kMostReaders = 4;

/// The stages of one run and the graph that joins them.
class CpuPipeline {
 public:
  CpuPipeline(RunContext& context, const std::vector<std::string>& slides, RunControl& control)
      : context_(context),
        control_(control),
        depth_(static_cast<std::size_t>(context.config.pipeline.queue_depth)),
        batches_(depth_),
        handoffs_(depth_),
        tokens_(graph_),
        pool_(depth_, context.limits.slot_bytes, [this] { tokens_.try_put({}); }),
        read_stage_(make_read_stage(context)),
        decode_stage_(make_decode_stage(context)),
        carry_stage_(make_carry_stage(context)),
        compute_stage_(make_compute_stage(context)),
        reduce_stage_(make_reduce_stage(context, slides.size(), control.on_slide,
                                        [this](std::exception_ptr error) { abort(std::move(error)); })),
        // One more than the readers: slides are opened here too.
        io_(std::min(depth_, kMostReaders) + 1),
        source_stage_(make_source_stage(context, slides, control, io_)),
        source_(graph_, [this](tbb::flow_control& flow_control) { return next_strip(flow_control); }),
        join_(graph_),
        admit_(graph_, flow::serial, [this](const Admission& admission) { return admit(admission); }),
        read_(graph_, flow::unlimited,
              [this](Batch* batch, ReadNode::gateway_type& gateway) { start_read(*batch, gateway); }),
        split_(graph_, flow::unlimited, [this](Batch* batch, auto& ports) { split(*batch, ports); }),
        decode_(
            graph_, flow::unlimited, [this](const TileRun& tiles, auto& ports) { decode(tiles, ports); },
            flow::node_priority_t{1}),
        carry_(
            graph_, flow::serial, [this](Batch* batch, auto& ports) { carry(*batch, ports); },
            flow::node_priority_t{3}),
        compute_(
            graph_, flow::unlimited, [this](const ComputeTask& task, auto& ports) { compute(task, ports); },
            flow::node_priority_t{2}),
        reduce_(
            graph_, flow::serial, [this](Batch* batch) { return reduce(*batch); }, flow::node_priority_t{3}) {
    const std::array<const runtime::StageContract*, 6> chain = {&source_contract, &read_contract,    &decode_contract,
                                                                &carry_contract,  &compute_contract, &reduce_contract};
    runtime::check_chain(chain);
    flow::make_edge(source_, flow::input_port<0>(join_));
    flow::make_edge(tokens_, flow::input_port<1>(join_));
    flow::make_edge(join_, admit_);
    flow::make_edge(admit_, read_);
    flow::make_edge(read_, split_);
    flow::make_edge(flow::output_port<0>(split_), decode_);
    flow::make_edge(flow::output_port<1>(split_), carry_);
    flow::make_edge(flow::output_port<0>(decode_), carry_);
    flow::make_edge(flow::output_port<0>(carry_), compute_);
    flow::make_edge(flow::output_port<1>(carry_), reduce_);
    flow::make_edge(flow::output_port<0>(compute_), reduce_);
  }

  ~CpuPipeline() {
    // Matters after an exception only: slots go back while their pools live.
    for (Batch& batch : batches_) {
      batch.slide.reset();
      batch.slot.reset();
    }
  }
  CpuPipeline(const CpuPipeline&) = delete;
  CpuPipeline& operator=(const CpuPipeline&) = delete;

  void run() {
    lifetime_.begin();
    for (std::size_t i = 0; i < depth_; ++i) tokens_.try_put({});
    source_.activate();
    graph_.wait_for_all();
    // Orders the workers' last steps in the graph before its destruction, where ThreadSanitizer can see it too.
    graph_.reserve_wait();
    graph_.release_wait();
    lifetime_.end();
    if (error_) std::rethrow_exception(error_);
  }

  ReduceStage& reduce_stage() { return *reduce_stage_; }
  const char* engine() const { return compute_stage_->engine(); }

 private:
  void abort(std::exception_ptr error) {
    // Only the serial reduce stage calls this, and the graph is idle when `run` looks.
    if (!error_) error_ = std::move(error);
    control_.request_stop();
  }

  StripMessage next_strip(tbb::flow_control& flow_control) {
    const runtime::GraphLifetime::Body body(lifetime_);
    const runtime::Turn turn(source_turn_);
    StripMessage message;
    if (!source_stage_->next(message)) flow_control.stop();
    return message;
  }

  Batch* admit(const Admission& admission) {
    const runtime::GraphLifetime::Body body(lifetime_);
    source_turn_.take();
    const StripMessage& message = std::get<0>(admission);
    auto slot = pool_.try_acquire();
    if (!slot) throw Error("internal: a token without a free slot");
    Batch& batch = batches_[slot->index()];
    handoff(batch).take();
    batch.slot = std::move(*slot);
    batch.slide = message.slide;
    batch.strip_index = message.strip_index;
    batch.empty = message.empty;
    batch.last = message.last;
    batch.strip = message.empty ? StripPlan{} : message.slide->plan.strips[message.strip_index];
    batch.sums = SpectrumSums{std::move(batch.sums.histogram)};
    batch.sums.histogram.assign(static_cast<std::size_t>(context_.config.analysis.bins), 0);
    batch.missing_tiles = 0;
    batch.bad_tiles = 0;
    return give(batch);
  }

  void start_read(Batch& batch, ReadNode::gateway_type& gateway) {
    const runtime::GraphLifetime::Body body(lifetime_);
    gateway.reserve_wait();
    io_.submit([this, &batch, &gateway] {
      const runtime::GraphLifetime::Body io_body(lifetime_);
      take(batch);
      read_stage_->run(batch);
      gateway.try_put(give(batch));
      gateway.release_wait();
    });
  }

  template <class Ports>
  void split(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(lifetime_);
    take(batch);
    const std::size_t tasks = decode_stage_->tasks(batch);
    if (tasks > 0) context_.decode.add_wait(batch.ready);
    fan_out(batch, tasks, std::get<0>(ports), std::get<1>(ports),
            [this, &batch](std::size_t i) { return decode_stage_->task(batch, i); });
  }

  template <class Ports>
  void decode(const TileRun& tiles, Ports& ports) {
    const runtime::GraphLifetime::Body body(lifetime_);
    take(*tiles.batch);
    decode_stage_->run(tiles);
    join_tasks(*tiles.batch, std::get<0>(ports));
  }

  template <class Ports>
  void carry(Batch& batch, Ports& ports) {
    const runtime::GraphLifetime::Body body(lifetime_);
    take(batch);
    context_.carry.add_wait(batch.ready);
    std::vector<Batch*> ready;
    carry_stage_->run(ready, batch);
    for (Batch* complete : ready) {
      const std::size_t tasks = compute_stage_->tasks(*complete);
      fan_out(*complete, tasks, std::get<0>(ports), std::get<1>(ports),
              [this, complete](std::size_t i) { return compute_stage_->task(*complete, i); });
    }
  }

  template <class Ports>
  void compute(const ComputeTask& task, Ports& ports) {
    const runtime::GraphLifetime::Body body(lifetime_);
    take(*task.batch);
    if (task.block.first_column == task.batch->panel().first_window_column) {
      context_.compute.add_wait(task.batch->ready);
    }
    // Only the last task of a batch may touch it after this.
    compute_stage_->run(task);
    join_tasks(*task.batch, std::get<0>(ports));
  }

  flow::continue_msg reduce(Batch& batch) {
    const runtime::GraphLifetime::Body body(lifetime_);
    take(batch);
    context_.reduce.add_wait(batch.ready);
    reduce_stage_->run(batch);
    return {};
  }

  /// Sends a batch out as tasks, or straight on when there are none.
  template <class TaskPort, class BatchPort, class MakeTask>
  void fan_out(Batch& batch, std::size_t tasks, TaskPort& task_port, BatchPort& batch_port, MakeTask make_task) {
    if (tasks == 0) {
      batch_port.try_put(give(batch));
      return;
    }
    batch.tasks_left.store(static_cast<std::int64_t>(tasks), std::memory_order_relaxed);
    give(batch);
    // The batch may be gone before the loop ends only after the last task was put.
    for (std::size_t i = 0; i < tasks; ++i) task_port.try_put(make_task(i));
  }

  template <class BatchPort>
  void join_tasks(Batch& batch, BatchPort& batch_port) {
    if (batch.tasks_left.fetch_sub(1, std::memory_order_acq_rel) == 1) batch_port.try_put(give(batch));
  }

  runtime::Handoff& handoff(Batch& batch) { return handoffs_[static_cast<std::size_t>(&batch - batches_.data())]; }
  void take(Batch& batch) { handoff(batch).take(); }
  Batch* give(Batch& batch) {
    batch.ready = runtime::Clock::now();
    handoff(batch).give();
    return &batch;
  }

  RunContext& context_;
  RunControl& control_;
  std::size_t depth_;
  std::vector<Batch> batches_;
  std::vector<runtime::Handoff> handoffs_;
  runtime::GraphLifetime lifetime_;
  runtime::Handoff source_turn_;
  std::exception_ptr error_;

  flow::graph graph_;
  flow::buffer_node<SlotToken> tokens_;
  runtime::SlotPool pool_;

  std::unique_ptr<ReadStage> read_stage_;
  std::unique_ptr<DecodeStage> decode_stage_;
  std::unique_ptr<CarryStage> carry_stage_;
  std::unique_ptr<ComputeStage> compute_stage_;
  std::unique_ptr<ReduceStage> reduce_stage_;
  runtime::IoThreads io_;
  std::unique_ptr<SourceStage> source_stage_;

  flow::input_node<StripMessage> source_;
  flow::join_node<Admission, flow::reserving> join_;
  flow::function_node<Admission, Batch*> admit_;
  ReadNode read_;
  SplitNode split_;
  DecodeNode decode_;
  CarryNode carry_;
  ComputeNode compute_;
  flow::function_node<Batch*> reduce_;
};

/// Calls `on_progress` while it lives.
class ProgressThread {
 public:
  ProgressThread(const RunContext& context, const ReduceStage& reduce, RunControl& control, std::uint64_t slides)
      : context_(context), reduce_(reduce), control_(control), slides_(slides) {
    if (control.on_progress) thread_ = std::thread([this] { loop(); });
  }
  ~ProgressThread() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  void loop() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ended_; })) {
      control_.on_progress(now());
    }
    control_.on_progress(now());
  }

  Progress now() const {
    Progress progress;
    progress.slides_total = slides_;
    progress.slides_done = reduce_.slides_done();
    progress.slides_failed = reduce_.slides_failed();
    progress.pixels = context_.pixels_done.load(std::memory_order_relaxed);
    progress.pixels_started = context_.pixels_started.load(std::memory_order_relaxed);
    progress.bytes_read = context_.read.bytes();
    progress.seconds = std::chrono::duration<double>(runtime::Clock::now() - start_).count();
    const std::array<const runtime::StageMeter*, 6> meters = {&context_.source, &context_.read,    &context_.decode,
                                                              &context_.carry,  &context_.compute, &context_.reduce};
    progress.busiest_stage = (*std::max_element(meters.begin(), meters.end(), [](auto* a, auto* b) {
                               return a->busy_seconds() < b->busy_seconds();
                             }))->name();
    return progress;
  }

  const RunContext& context_;
  const ReduceStage& reduce_;
  RunControl& control_;
  std::uint64_t slides_;
  runtime::Clock::time_point start_ = runtime::Clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::thread thread_;
};

void check_backend(const Config& config) {
  if (config.pipeline.backend == Backend::cuda) {
    throw ConfigError("pipeline.backend = \"cuda\": this build has no CUDA; use \"auto\" or \"cpu\"");
  }
  if (config.decode.device == DecodeDevice::gpu) {
    throw ConfigError("decode.device = \"gpu\": this build has no CUDA; use \"auto\" or \"cpu\"");
  }
  if (config.input.io == InputIo::cufile) {
    throw ConfigError("input.io = \"cufile\": this build has no CUDA; use \"auto\" or \"posix\"");
  }
}

StageReport report(const runtime::StageMeter& meter) {
  return {meter.name(), meter.busy_seconds(), meter.wait_seconds(), meter.items(), meter.bytes()};
}

}  // namespace

RunResult run_pipeline_with_faults(const Config& config, const std::vector<std::string>& slides, RunControl& control,
                                   const FaultInjection& faults) {
  validate(config);
  check_backend(config);
  if (config.pipeline.backend == Backend::automatic && control.on_message) {
    control.on_message("this build has no CUDA: windows are transformed on the CPU");
  }
  const int threads = config.pipeline.threads > 0 ? config.pipeline.threads : runtime::available_processors();
  RunContext context(config, threads);
  context.fault = faults.fault;
  context.fault_data = faults.data;

  RunResult result;
  result.threads = threads;
  result.backend = "cpu";
  const auto start = runtime::Clock::now();
  // An arena alone can't have more threads than the machine has processors.
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  try {
    arena.execute([&] {
      CpuPipeline pipeline(context, slides, control);
      if (control.on_message) control.on_message(std::string("transforms: ") + pipeline.engine());
      {
        const ProgressThread progress(context, pipeline.reduce_stage(), control, slides.size());
        pipeline.run();
      }
      pipeline.reduce_stage().finish(result);
    });
  } catch (const std::system_error& error) {
    throw Error(std::string("a thread can't be started: ") + error.code().message() +
                "; lower pipeline.threads or raise the system's limits");
  }
  result.seconds = std::chrono::duration<double>(runtime::Clock::now() - start).count();
  result.interrupted = control.stop_requested() && result.slides.size() < slides.size();
  for (const runtime::StageMeter* meter :
       {&context.source, &context.read, &context.decode, &context.carry, &context.compute, &context.reduce}) {
    result.stages.push_back(report(*meter));
  }
  return result;
}

void check_runnable(const Config& config) {
  validate(config);
  check_backend(config);
  make_spectrum_engine(config.analysis);
}

RunResult run_pipeline(const Config& config, const std::vector<std::string>& slides, RunControl& control) {
  return run_pipeline_with_faults(config, slides, control, {});
}

}  // namespace slidestream
