#include "stages/pipeline.hpp"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <slidestream/error.hpp>

#include "operators/registry.hpp"
#include "operators/stain/stain_operator.hpp"
#include "planning/operator_needs.hpp"
#include "runtime/forked.hpp"
#include "stages/carry.hpp"
#include "stages/compute.hpp"
#include "stages/emit.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/lane.hpp"
#include "stages/reduce.hpp"
#include "stages/run/run_context.hpp"
#include "stages/run/small_levels.hpp"
#include "stages/run_threads.hpp"

namespace slidestream {

namespace {

namespace flow = tbb::flow;

/// The stages of one run and the graph that joins them: lanes side by side, and one reduce stage behind them all.
class Graph {
 public:
  /// `gpus` is null on the CPU.
  Graph(RunContext& context, const std::vector<std::string>& slides, RunControl& control, GpuSet* gpus)
      : context_(context),
        control_(control),
        emit_stage_(make_emit()),
        read_stage_(make_read_stage(context)),
        decode_stage_(make_decode_stage(context)),
        reduce_stage_(make_reduce_stage(context, delivery_)),
        opener_(context.lanes + most_slow),
        source_stage_(make_source_stage(context, slides, control, opener_)),
        reduce_(
            graph_, flow::serial, [this](Batch* batch) { return reduce(*batch); }, flow::node_priority_t{3}),
        delivery_(
            slides.size(), context.lanes, {control.on_slide, control.on_pause},
            [this](const std::exception_ptr& error) { abort(error); }, graph_, lifetime_) {
    const Lane::Shared shared = {context, graph_, lifetime_, *source_stage_, *decode_stage_, *read_stage_, reduce_};
    if (gpus == nullptr) {
      carry_stage_ = make_carry_stage(context);
      compute_stage_ = make_compute_stage(context);
      lanes_.push_back(make_cpu_lane(shared, *carry_stage_, *compute_stage_, emit_stage_.get()));
      transforms_ = compute_stage_->description();
    } else {
      for (std::size_t i = 0; i < context.lanes; ++i)
        lanes_.push_back(make_gpu_lane(shared, i, *gpus, emit_stage_.get()));
      transforms_ = gpus->description();
    }
  }

  ~Graph() {
    if (emit_stage_ != nullptr) emit_stage_->close();
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void run() {
    lifetime_.begin();
    try {
      if (emit_stage_ != nullptr) emit_stage_->start();
      for (const auto& lane : lanes_) lane->start();
    } catch (...) {
      // Tasks of what was started refer to the stages: they end first.
      abort(std::current_exception());
    }
    graph_.wait_for_all();
    // Who watches slides may have found work in the last moment. From here on nobody gives the graph any.
    if (emit_stage_ != nullptr) emit_stage_->close();
    graph_.wait_for_all();
    // Orders the workers' last steps in the graph before its destruction, where ThreadSanitizer can see it too.
    graph_.reserve_wait();
    graph_.release_wait();
    lifetime_.end();
    const std::lock_guard lock(error_mutex_);
    if (error_) std::rethrow_exception(error_);
  }

  const Delivery& delivery() const { return delivery_; }
  /// After `run`.
  void finish(RunResult& result) {
    reduce_stage_->finish(result);
    delivery_.finish(result);
  }
  const std::string& transforms() const { return transforms_; }

 private:
  /// Before the source, which opens slides at once.
  std::unique_ptr<EmitStage> make_emit() {
    if (!context_.makes_files) return nullptr;
    context_.on_output_failure = [this](const std::exception_ptr& error) {
      context_.output_failed.store(true);
      abort(error);
    };
    auto stage = make_emit_stage(
        {context_, graph_, lifetime_, delivery_, [this](Batch& batch) { lanes_[batch.lane]->with_band(batch); },
         [this](Batch& batch, std::size_t parcel) { lanes_[batch.lane]->with_parcel(batch, parcel); }});
    context_.emit = stage.get();
    return stage;
  }

  /// The run ends, with the first of such errors.
  void abort(const std::exception_ptr& error) {
    {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = error;
    }
    control_.request_stop();
  }

  flow::continue_msg reduce(Batch& batch) {
    const runtime::GraphLifetime::Body body(lifetime_);
    batch.handoff.take();
    context_.reduce.add_wait(batch.ready);
    reduce_stage_->run(batch);
    return {};
  }

  RunContext& context_;
  RunControl& control_;
  runtime::GraphLifetime lifetime_;
  std::mutex error_mutex_;
  std::exception_ptr error_;  ///< guarded by error_mutex_
  std::string transforms_;

  flow::graph graph_;
  std::unique_ptr<EmitStage> emit_stage_;  ///< null where no operator makes files; outlives whoever has a slide
  std::unique_ptr<ReadStage> read_stage_;
  std::unique_ptr<DecodeStage> decode_stage_;
  std::unique_ptr<CarryStage> carry_stage_;      ///< of the CPU's lane
  std::unique_ptr<ComputeStage> compute_stage_;  ///< of the CPU's lane
  std::unique_ptr<ReduceStage> reduce_stage_;
  runtime::IoThreads opener_;
  std::unique_ptr<SourceStage> source_stage_;

  flow::function_node<Batch*> reduce_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  Delivery delivery_;  ///< has slots of the lanes
};

/// Calls `on_progress` while it lives.
class ProgressThread {
 public:
  ProgressThread(const RunContext& context, const Delivery& delivery, RunControl& control, std::uint64_t slides)
      : context_(context), delivery_(delivery), control_(control), slides_(slides) {
    if (control.on_progress) thread_ = std::thread([this] { loop(); });
  }
  ~ProgressThread() { join(); }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// The last call. \throws what one of the calls threw.
  void end() {
    join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void join() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void loop() noexcept {
    try {
      std::unique_lock lock(mutex_);
      while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return ended_; })) {
        control_.on_progress(now());
      }
      control_.on_progress(now());
    } catch (...) {
      error_ = std::current_exception();
      control_.request_stop();
    }
  }

  Progress now() const {
    Progress progress;
    progress.slides_total = slides_;
    progress.slides_done = delivery_.slides_done();
    progress.slides_failed = delivery_.slides_failed();
    progress.pixels = context_.pixels_done.load(std::memory_order_relaxed);
    progress.pixels_started = context_.pixels_started.load(std::memory_order_relaxed);
    progress.bytes_read = context_.read.bytes();
    context_.images.tell(progress);
    progress.seconds = std::chrono::duration<double>(runtime::Clock::now() - start_).count();
    const auto meters = context_.meters();
    progress.busiest_stage = (*std::max_element(meters.begin(), meters.end(), [](auto* a, auto* b) {
                               return a->busy_seconds() < b->busy_seconds();
                             }))->name();
    return progress;
  }

  const RunContext& context_;
  const Delivery& delivery_;
  RunControl& control_;
  std::uint64_t slides_;
  runtime::Clock::time_point start_ = runtime::Clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

/// The devices that windows are transformed on; none: the CPU. \throws ConfigError when the configuration wants what
/// isn't there. `why` is set when `auto` found none.
std::vector<int> choose_backend(const Config& config, const Operators& operators, std::string& why) {
  check_images(config, operators);
  GpuChoice choice;
  if (config.pipeline.backend != Backend::cpu) {
    choice.why_none = why_not_on_gpus(config, operators);
    if (choice.why_none.empty()) choice = choose_gpus(config);
  }
  if (config.pipeline.backend == Backend::cuda && choice.devices.empty()) {
    throw ConfigError("pipeline.backend = \"cuda\": " + choice.why_none + "; use \"auto\" or \"cpu\"");
  }
  if (config.decode.device == DecodeDevice::gpu && choice.devices.empty()) {
    throw ConfigError("decode.device = \"gpu\": " +
                      (config.pipeline.backend == Backend::cpu ? "the run computes on the CPU" : choice.why_none) +
                      "; use \"auto\" or \"cpu\"");
  }
  if (config.pipeline.residency == Residency::whole && choice.devices.empty()) {
    throw ConfigError("pipeline.residency = \"whole\": " +
                      (config.pipeline.backend == Backend::cpu ? "the run computes on the CPU" : choice.why_none) +
                      "; use \"strips\"");
  }
  why = choice.why_none;
  return choice.devices;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    return current_cause({});
  }
}

StageReport report(const runtime::StageMeter& meter) {
  return {meter.name(), meter.busy_seconds(), meter.wait_seconds(), meter.items(), meter.bytes()};
}

ThreadNeeds thread_needs(const Operators& operators, std::size_t devices) {
  ThreadNeeds needs{devices};
  for (const auto& op : operators) {
    if (op->network() != nullptr) needs.sessions.push_back(static_cast<std::size_t>(op->network()->sessions()));
  }
  return needs;
}

}  // namespace

RunResult run_pipeline_with_faults(const Config& config, const std::vector<std::string>& slides, RunControl& control,
                                   const FaultInjection& faults) {
  runtime::require_whole_process();
  validate(config);
  std::string why_no_gpu;
  Operators operators = !faults.operators.empty()    ? faults.operators
                        : !control.operators.empty() ? control.operators
                                                     : operators::make_operators(config);
  const std::string about_images = check_images(config, operators);
  if (!about_images.empty() && control.on_message) control.on_message(about_images);
  const std::vector<int> devices = choose_backend(config, operators, why_no_gpu);
  if (!why_no_gpu.empty() && control.on_message) {
    control.on_message(why_no_gpu + ": the run computes on the CPU");
  }
  const RunThreads to_be_had =
      threads_to_be_had(threads_of(config), thread_needs(operators, devices.size()), control.on_message);
  const int threads = static_cast<int>(to_be_had.graph);
  RunContext context(config, threads, std::move(operators));
  context.devices = devices;
  context.most_sessions = to_be_had.sessions;
  context.slides = slides.size();
  context.fault = faults.fault;
  context.fault_data = faults.data;
  context.time_to_end = faults.time_to_end.value_or(context.time_to_end);
  context.on_message = control.on_message;
  context.on_warning = control.on_warning ? control.on_warning : control.on_message;
  context.on_unwritten = control.on_unwritten;
  if (context.on_warning && !slides.empty()) {
    const std::string doubt = operators::doubt_of_stain_reference(config);
    if (!doubt.empty()) context.on_warning(doubt);
  }
  context.stop_requested = [&control] { return control.stop_requested(); };

  RunResult result;
  result.threads = threads;
  std::mutex fatal_mutex;
  context.on_fatal = [&](const std::exception_ptr& error) {
    const std::lock_guard lock(fatal_mutex);
    if (result.failure.empty()) {
      result.failure = message_of(error);
      result.lacks_memory = lacks_memory(error);
    }
    control.request_stop();
  };
  const runtime::Work work;
  // An arena alone can't have more threads than the machine has processors.
  const tbb::global_control parallelism(tbb::global_control::max_allowed_parallelism,
                                        static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  try {
    std::unique_ptr<GpuSet> gpus;
    if (!devices.empty()) {
      context.backend = "cuda";
      context.lanes = devices.size();
      context.lane_loads = std::vector<LaneLoad>(devices.size());
      context.carried_on_device = true;
      gpus = make_gpu_set(context, devices);
      context.limits = gpus->limits();
      context.gpus = gpus.get();
    }
    result.backend = context.backend;
    result.devices = static_cast<int>(devices.size());
    start_workers(threads);
    arena.execute([&] {
      Graph graph(context, slides, control, gpus.get());
      if (control.on_message && context.spectrum) control.on_message("transforms: " + graph.transforms());
      const auto start = runtime::Clock::now();
      {
        ProgressThread progress(context, graph.delivery(), control, slides.size());
        graph.run();
        progress.end();
      }
      result.seconds = std::chrono::duration<double>(runtime::Clock::now() - start).count();
      graph.finish(result);
    });
  } catch (const std::system_error& error) {
    throw ConfigError(std::string("a thread can't be started: ") + error.code().message() +
                      "; lower pipeline.threads or raise the system's limits");
  }
  result.interrupted = control.stop_requested() && result.slides.size() < slides.size();
  for (const runtime::StageMeter* meter : context.meters()) result.stages.push_back(report(*meter));
  for (StageReport& stage : result.stages) {
    const bool on_device = context.lanes_are_devices() && (stage.name == "upload" || stage.name == "compute");
    stage.parallel = on_device ? result.devices : threads;
  }
  return result;
}

void check_runnable(const Config& config) {
  validate(config);
  operators::check_stain_reference(config);
  std::string why;
  const Operators operators = operators::make_operators(config);
  tissue_network_of(config, operators);
  const std::vector<int> devices = choose_backend(config, operators, why);
  if (devices.empty()) {
    for (const auto& op : readers_of(operators)) op->host_description();
    return;
  }
  check_gpus(config, devices);
}

void wake_up(const Config& config) noexcept {
  try {
    validate(config);
    std::string why;
    wake_gpus(choose_backend(config, operators::make_operators(config), why));
  } catch (const std::exception&) {
    // What can't be run is told by `check_runnable`.
  }
}

RunResult run_pipeline(const Config& config, const std::vector<std::string>& slides, RunControl& control) {
  return run_pipeline_with_faults(config, slides, control, {});
}

}  // namespace slidestream
