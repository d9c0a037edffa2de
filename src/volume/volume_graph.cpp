#include "volume/volume_graph.hpp"

#include <oneapi/tbb/flow_graph.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <slidestream/error.hpp>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/device_full.hpp"
#include "runtime/handoff.hpp"
#include "runtime/stage_meter.hpp"
#include "system/release_memory.hpp"
#include "volume/fragment_runs.hpp"
#include "volume/schedule.hpp"
#include "volume/volume_made.hpp"
#include "volume/volume_read.hpp"
#include "volume/volume_run.hpp"
#include "volume/volume_work.hpp"

namespace slidestream::volume {
namespace {

namespace flow = tbb::flow;

constexpr std::size_t usual_in_flight = 8;
constexpr std::size_t readers = 2;
/// Of each, as volumes end at about the same time.
constexpr std::size_t writers = 8;

using Work = std::shared_ptr<VolumeWork>;

class Graph final : public VolumeGraph {
 public:
  Graph(const Config& config, const std::vector<std::string>& paths, RunControl& control,
        const VolumeNetworks& networks, std::size_t workers, runtime::Clock::duration longest_wait)
      : config_(config),
        paths_(paths),
        control_(control),
        networks_(networks),
        workers_(workers * std::max<std::size_t>(networks.gpus(), 1)),
        in_flight_(config.volume.in_flight > 0 ? static_cast<std::size_t>(config.volume.in_flight) : usual_in_flight),
        longest_wait_(longest_wait),
        runs_of_fragments_(config, networks, control),
        schedule_(make_schedule(config, networks, workers)),
        loaded_(std::max<std::size_t>(networks.gpus(), 1), Networks(networks.count())),
        open_(
            graph_, flow::serial, [this](const Work& work) { return body([&] { open(work); }); }, high),
        read_(
            graph_, readers, [this](const Work& work) { return body([&] { read(work); }); }, high),
        load_(
            graph_, std::max<std::size_t>(networks.gpus(), 1),
            [this](const ScheduleLoad& step) { return body([&] { load_ahead(step); }); }, low),
        compute_(
            graph_, workers_, [this](const Step& step) { return body([&] { compute(step); }); }, low),
        fuse_(
            graph_, writers, [this](const Work& work) { return body([&] { fuse(work); }); }, high),
        write_(
            graph_, writers, [this](const Work& work) { return body([&] { write(work); }); }, high),
        end_(
            graph_, flow::serial, [this](const Work& work) { return body([&] { end(work); }); }, high) {}

  void run() override {
    lifetime_.begin();
    {
      const std::lock_guard lock(mutex_);
      pump();
    }
    graph_.wait_for_all();
    // Orders the workers' last steps in the graph before its destruction, where ThreadSanitizer can see it too.
    graph_.reserve_wait();
    graph_.release_wait();
    lifetime_.end();
    if (error_) std::rethrow_exception(error_);
  }

  void watch() override { runs_of_fragments_.watch(); }

  Progress progress() const override {
    Progress progress;
    progress.slides_total = paths_.size();
    progress.slides_done = done_;
    progress.slides_failed = failed_;
    progress.pixels = voxels_done_;
    progress.pixels_started = voxels_started_;
    progress.bytes_read = read_meter_.bytes();
    progress.bytes_written = write_meter_.bytes();
    const auto all = meters();
    progress.busiest_stage =
        (*std::ranges::max_element(all, {}, [](const auto* meter) { return meter->busy_seconds(); }))->name();
    return progress;
  }

  std::vector<const runtime::StageMeter*> meters() const {
    return {&open_meter_, &read_meter_, &compute_meter_, &fuse_meter_, &write_meter_};
  }

  void finish(RunResult& result) override {
    std::ranges::sort(ended_, {}, &VolumeWork::number);
    for (const Work& work : ended_) result.slides.push_back(std::move(work->result));
    for (const runtime::StageMeter* meter : meters()) {
      StageReport& stage = result.stages.emplace_back();
      stage = {meter->name(), meter->busy_seconds(), meter->wait_seconds(), meter->items(), meter->bytes()};
      stage.parallel = static_cast<int>(at_a_time(meter));
    }
  }

 private:
  static constexpr flow::node_priority_t low{1};
  static constexpr flow::node_priority_t high{2};

  using Networks = std::vector<std::shared_ptr<const LoadedNetwork>>;
  struct Step {
    Work work;
    ScheduleStep step;
  };

  template <class Do>
  flow::continue_msg body(const Do& work) noexcept {
    const runtime::GraphLifetime::Body in_graph(lifetime_);
    try {
      work();
    } catch (...) {
      abort(std::current_exception());
    }
    return {};
  }

  /// The run ends, with the first of such errors.
  void abort(const std::exception_ptr& error) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    control_.request_stop();
  }

  std::size_t at_a_time(const runtime::StageMeter* stage) const noexcept {
    if (stage == &read_meter_) return readers;
    if (stage == &compute_meter_) return workers_;
    return stage == &open_meter_ ? 1 : writers;
  }

  /// Nobody uses them: their memory is free when this returns.
  void unload(std::size_t place, const std::vector<std::size_t>& networks) {
    for (const std::size_t network : networks) loaded_[place][network].reset();
  }

  /// Begins what there is memory for; the caller has `mutex_`.
  void pump() {
    if (control_.stop_requested()) return;
    if (candidate_ != nullptr && admitted_ < in_flight_) {
      if (const auto way = schedule_.admit(candidate_->number, candidate_->bytes)) {
        unload(0, *way);
        ++admitted_;
        candidate_->admitted = true;
        works_.push_back(candidate_);
        read_.try_put(std::exchange(candidate_, nullptr));
        is_opening_ = false;
      }
    }
    if (!is_opening_ && next_ < paths_.size()) {
      is_opening_ = true;
      open_.try_put(std::make_shared<VolumeWork>(next_, paths_[next_]));
      ++next_;
    }
    while (auto step = schedule_.next()) {
      const auto work = *std::ranges::find(works_, step->task.volume, &VolumeWork::number);
      unload(step->place, step->unload);
      compute_.try_put({work, std::move(*step)});
    }
    while (const auto step = schedule_.next_load()) {
      unload(step->place, step->unload);
      load_.try_put(*step);
    }
  }

  std::shared_ptr<const LoadedNetwork> load(std::size_t number, std::size_t place) {
    auto network = networks_.load(number, place);
    const std::lock_guard lock(mutex_);
    loaded_[place][number] = network;
    schedule_.loaded(number, place);
    pump();
    return network;
  }

  void open(const Work& work) {
    const runtime::StageMeter::Busy busy(open_meter_);
    work->result.path = work->path;
    guarded(*work, "open", [&] {
      if (control_.on_start) control_.on_start(work->path);
      work->result.backend = networks_.gpus() > 0 ? "cuda" : "cpu";
      work->result.sums.histogram.assign(static_cast<std::size_t>(config_.analysis.bins), 0);
      std::error_code code;
      const std::uintmax_t bytes = std::filesystem::file_size(work->path, code);
      if (!code) work->result.file_bytes = bytes;
      work->file = std::make_unique<NiftiFile>(work->path);
      const NiftiHeader& header = work->header = work->file->header();
      work->result.width = header.size[0];
      work->result.height = header.size[1];
      work->result.codec = "nifti-" + std::to_string(header.version);
      work->result.colour = name_of(header.type);
      work->bytes = bytes_of_volume(config_, networks_, header, schedule_.most_for_volume());
      name_made(*work, config_, control_);
      voxels_started_ += static_cast<std::uint64_t>(header.voxels());
    });
    const std::lock_guard lock(mutex_);
    if (work->has_failed()) {
      is_opening_ = false;
      end_.try_put(work);
    } else {
      candidate_ = work;
    }
    pump();
  }

  void read(const Work& work) {
    {
      runtime::StageMeter::Busy busy(read_meter_);
      guarded(*work, "read", [&] {
        read_volume(*work, config_, networks_, control_);
        busy.add(1, work->result.file_bytes);
      });
    }
    const std::lock_guard lock(mutex_);
    if (work->has_failed()) {
      leave(work);
      end_.try_put(work);
    } else if (work->file == nullptr) {
      schedule_.ready(work->number);
    }
    pump();
  }

  void load_ahead(const ScheduleLoad& step) {
    try {
      load(step.network, step.place);
    } catch (const runtime::DeviceFullError& error) {
      tell_full(step.place, error.what());
      const std::lock_guard lock(mutex_);
      unload(step.place, schedule_.full_ahead(step.network, step.place));
      pump();
    }
  }

  void compute(const Step& step) {
    const FragmentTask& task = step.step.task;
    const std::size_t place = step.step.place;
    bool is_loaded = !step.step.load;
    bool is_left = false;
    runtime::Clock::time_point alone_since = {};
    do {
      try {
        std::shared_ptr<const LoadedNetwork> network;
        if (is_loaded) {
          const std::lock_guard lock(mutex_);
          network = loaded_[place][task.network];
        } else {
          network = load(task.network, place);
          is_loaded = true;
        }
        is_left = control_.stop_requested();
        if (is_left || step.work->has_failed()) break;
        runtime::StageMeter::Busy busy(compute_meter_);
        guarded(*step.work, "compute", [&] {
          is_left = !runs_of_fragments_.compute(*step.work, step.step, std::move(network));
          if (!is_left) voxels_done_ += step.work->voxels_of(task.fragment);
        });
        if (!is_left) busy.add(1, 0);
        break;
      } catch (const runtime::DeviceFullError& error) {
        tell_full(place, error.what());
        if (!waits_here(step, is_loaded, alone_since, error.what())) return;
      }
      is_left = control_.stop_requested();
    } while (!is_left && !step.work->has_failed());
    if (!is_left) ask_closed();
    const std::lock_guard lock(mutex_);
    if (!is_loaded) schedule_.not_loaded(task.network, place);
    if (step.work->has_failed()) schedule_.drop(task.volume);
    const bool is_last = schedule_.done(task, place);
    // A volume that was stopped has no result: the next start does it.
    if (is_left) incomplete_.push_back(task.volume);
    if (is_last && step.work->has_failed()) {
      leave(step.work);
      end_.try_put(step.work);
    } else if (is_last && std::ranges::find(incomplete_, task.volume) == incomplete_.end()) {
      fuse_.try_put(step.work);
    }
    pump();
  }

  /// Once for each GPU.
  void tell_full(std::size_t place, const std::string& cause) {
    networks_.drop_memory(place);
    {
      const std::lock_guard lock(mutex_);
      if (!told_full_.insert(place).second) return;
    }
    warn(control_, gpu_text(place) + " is full, and fragments wait for its memory: " + cause);
  }

  std::string gpu_text(std::size_t place) const { return "GPU " + std::to_string(networks_.gpu(place)); }

  /// Where a fragment found its GPU full. \return false: it went back to those that wait, for memory that others of the
  /// run have. Where nothing else of the run is on the GPU it is to be tried again; after some time it goes to another
  /// GPU and this one is closed, or its volume fails.
  bool waits_here(const Step& step, bool is_loaded, runtime::Clock::time_point& alone_since, const std::string& cause) {
    const FragmentTask& task = step.step.task;
    const std::size_t place = step.step.place;
    {
      const std::lock_guard lock(mutex_);
      if (control_.stop_requested() || step.work->has_failed()) return true;
      const ScheduleFull full = schedule_.full(task, place, is_loaded);
      unload(place, full.unload);
      if (!full.alone) return pump(), false;
      if (!full.unload.empty()) return true;
    }
    if (alone_since == runtime::Clock::time_point{}) alone_since = runtime::Clock::now();
    if (runtime::Clock::now() - alone_since < longest_wait_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return true;
    }
    std::unique_lock lock(mutex_);
    const auto way = schedule_.close(task, place, is_loaded);
    if (!way) {
      step.work->fail("compute", networks_.file(task.network) + ": " + gpu_text(place) + " stays full: " + cause);
      return true;
    }
    unload(place, *way);
    closed_[place] = runtime::Clock::now();
    pump();
    lock.unlock();
    warn(control_, gpu_text(place) + " stays full, and others compute until it has room");
    return false;
  }

  /// Opens GPUs that were closed and have room again; the caller pumps. As long as a fragment waits for one, another
  /// GPU computes, and asks here.
  void ask_closed() {
    std::vector<std::size_t> places;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [place, asked] : closed_) {
        if (runtime::Clock::now() - asked < longest_wait_) continue;
        asked = runtime::Clock::now();
        places.push_back(place);
      }
    }
    for (const std::size_t place : places) {
      if (!networks_.has_room(place)) continue;
      {
        const std::lock_guard lock(mutex_);
        if (closed_.erase(place) == 0) continue;
        schedule_.open(place);
      }
      warn(control_, gpu_text(place) + " has room again");
    }
  }

  void fuse(const Work& work) {
    // Fragments are done with them, and what fusion takes beside its planes has their room.
    release_memory(work->samples);
    {
      const runtime::StageMeter::Busy busy(fuse_meter_);
      guarded(*work, "fuse", [&] {
        if (config_.volume.fusion == VolumeFusion::blend) {
          make_image(*work);
        } else {
          make_labels(*work, networks_.sample());
        }
      });
    }
    work->fusion.reset();
    const std::lock_guard lock(mutex_);
    write_.try_put(work);
  }

  void write(const Work& work) {
    {
      runtime::StageMeter::Busy busy(write_meter_);
      if (!work->has_failed()) guarded(*work, "write", [&] { write_made(*work, networks_.sample(), busy); });
    }
    release_memory(work->made);
    const std::lock_guard lock(mutex_);
    end_.try_put(work);
  }

  /// Also of volumes that failed. One at a time.
  void end(const Work& work) {
    work->result.done = !work->has_failed();
    work->result.seconds = std::chrono::duration<double>(runtime::Clock::now() - work->begun).count();
    ++(work->result.done ? done_ : failed_);
    if (control_.on_slide) control_.on_slide(work->result);
    if (control_.on_pause) control_.on_pause();
    const std::lock_guard lock(mutex_);
    if (work->admitted) leave(work);
    ended_.push_back(work);
    pump();
  }

  /// The volume's memory is free, or is about to be; the caller has `mutex_`.
  void leave(const Work& work) {
    release_memory(work->samples);
    work->fusion.reset();
    work->file.reset();
    schedule_.release(work->number);
    std::erase(works_, work);
    work->admitted = false;
    --admitted_;
  }

  /// Failures of a volume are its own; results that can't be written end the run.
  template <class Do>
  void guarded(VolumeWork& work, const char* stage, const Do& work_on) {
    try {
      work_on();
    } catch (const OutputError&) {
      throw;
    } catch (const CudaError&) {
      throw;
    } catch (const std::bad_alloc&) {
      work.fail(stage, "there is no memory for it");
    } catch (const std::exception& error) {
      work.fail(stage, error.what());
    }
  }

  const Config& config_;
  const std::vector<std::string>& paths_;
  RunControl& control_;
  const VolumeNetworks& networks_;
  const std::size_t workers_;
  const std::size_t in_flight_;
  const runtime::Clock::duration longest_wait_;  ///< for a GPU that is full
  FragmentRuns runs_of_fragments_;
  runtime::StageMeter open_meter_{"open"};
  runtime::StageMeter read_meter_{"read"};
  runtime::StageMeter compute_meter_{"compute"};
  runtime::StageMeter fuse_meter_{"fuse"};
  runtime::StageMeter write_meter_{"write"};
  std::atomic<std::uint64_t> voxels_started_ = 0;
  std::atomic<std::uint64_t> voxels_done_ = 0;
  std::atomic<std::uint64_t> done_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;

  std::mutex mutex_;  ///< of what follows, up to the graph
  Schedule schedule_;
  std::vector<Networks> loaded_;                              ///< by GPU; null where one isn't
  std::set<std::size_t> told_full_;                           ///< GPUs
  std::map<std::size_t, runtime::Clock::time_point> closed_;  ///< GPUs, and when they were closed, or asked for room
  std::vector<Work> works_;                                   ///< admitted ones
  std::vector<Work> ended_;
  std::vector<std::size_t> incomplete_;  ///< volumes with a fragment that a stop left out
  std::size_t next_ = 0;                 ///< to be opened
  std::size_t admitted_ = 0;
  bool is_opening_ = false;  ///< one is being opened, or is the candidate
  Work candidate_;           ///< opened, and waits for memory; null: none
  std::exception_ptr error_;

  runtime::GraphLifetime lifetime_;
  flow::graph graph_;
  flow::function_node<Work> open_;
  flow::function_node<Work> read_;
  flow::function_node<ScheduleLoad> load_;
  flow::function_node<Step> compute_;
  flow::function_node<Work> fuse_;
  flow::function_node<Work> write_;
  flow::function_node<Work> end_;
};

}  // namespace

std::unique_ptr<VolumeGraph> make_volume_graph(const Config& config, const std::vector<std::string>& paths,
                                               RunControl& control, const VolumeNetworks& networks, std::size_t workers,
                                               runtime::Clock::duration longest_wait) {
  return std::make_unique<Graph>(config, paths, control, networks, workers, longest_wait);
}

}  // namespace slidestream::volume
