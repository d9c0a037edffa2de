#include "stages/run_threads.hpp"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <slidestream/error.hpp>

#include "runtime/startable_threads.hpp"
#include "stages/source.hpp"

namespace slidestream {
namespace {

/// Threads that a run has beside the graph's and the networks', at most: those of lanes that read and that ask for
/// strips, of images that are written, and those that open slides, hand over results and show progress.
std::size_t other_threads(std::size_t of_graph, std::size_t devices) {
  const std::size_t lanes = std::max<std::size_t>(1, devices);
  const std::size_t reading = reading_threads(of_graph, devices) * lanes;
  const std::size_t writing = devices == 0 ? std::clamp<std::size_t>(of_graph / 2, 2, 8) : 16;
  const std::size_t of_devices = 8 * devices;
  const std::size_t opening = lanes + most_slow;
  const std::size_t asking = lanes;
  return opening + asking + reading + writing + of_devices + 2;
}

/// One of the graph's threads is the caller's. Networks have one that watches them.
std::size_t threads_needed(const RunThreads& threads, const ThreadNeeds& needs) {
  std::size_t sessions = 0;
  for (const std::size_t of_network : needs.sessions) sessions += std::min(of_network, threads.sessions);
  const std::size_t of_networks = sessions == 0 ? 0 : sessions * std::max<std::size_t>(1, needs.devices) + 1;
  return threads.graph - 1 + other_threads(threads.graph, needs.devices) + of_networks;
}

/// Tasks that end when all have come, so no thread takes two. Where some don't come, as other work of the process has
/// the workers, the others wait a while and go. Tasks may outlive who made them.
class Meeting {
 public:
  explicit Meeting(int tasks) : missing_(tasks) {}

  void come() {
    std::unique_lock lock(mutex_);
    --missing_;
    changed_.notify_all();
    wait(lock);
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    wait(lock);
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::milliseconds patience{50};

  void wait(std::unique_lock<std::mutex>& lock) {
    while (missing_ > 0 && !is_over_) {
      const int before = missing_;
      if (changed_.wait_for(lock, patience) == std::cv_status::timeout && missing_ == before) is_over_ = true;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  bool is_over_ = false;
};

/// One that is kept as long as tasks have it: oneTBB may never take one that it was given. So the list is never
/// destroyed, either.
std::shared_ptr<Meeting> new_meeting(int tasks) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<Meeting>>;
  const std::lock_guard lock(mutex);
  std::erase_if(kept, [](const std::shared_ptr<Meeting>& meeting) { return meeting.use_count() == 1; });
  return kept.emplace_back(std::make_shared<Meeting>(tasks));
}

}  // namespace

std::size_t reading_threads(std::size_t of_graph, std::size_t devices) noexcept {
  constexpr std::size_t usual = 8;
  constexpr std::size_t most_of_device = 12;
  const std::size_t few = std::clamp<std::size_t>(of_graph, 2, usual);
  return devices == 0 ? few : std::max(few, std::min(most_of_device, of_graph * 3 / 4 / devices));
}

std::optional<RunThreads> threads_within(std::size_t found, std::size_t wanted, const ThreadNeeds& needs) {
  if (threads_needed({wanted}, needs) <= found) return RunThreads{wanted};
  for (RunThreads fewer{wanted, wanted}; fewer.graph > 0; fewer = {fewer.graph - 1, fewer.graph - 1}) {
    if (threads_needed(fewer, needs) <= found) return fewer;
  }
  return std::nullopt;
}

RunThreads threads_to_be_had(int wanted, const ThreadNeeds& needs,
                             const std::function<void(const std::string&)>& on_message) {
  const RunThreads all{static_cast<std::size_t>(wanted)};
  const std::size_t found = runtime::startable_threads(threads_needed(all, needs));
  const std::optional<RunThreads> threads = threads_within(found, all.graph, needs);
  if (!threads) {
    throw ConfigError("the system lets " + std::to_string(found) + " more threads be started, and a run wants " +
                      std::to_string(threads_needed({1, 1}, needs)) +
                      " at least; raise the limit of processes or of memory");
  }
  if (!on_message) return *threads;
  if (threads->graph < all.graph) {
    on_message("the system doesn't let " + std::to_string(wanted) +
               " threads compute beside those that read and write: " + std::to_string(threads->graph) + " do");
  } else if (threads->sessions < all.sessions) {
    on_message("the system doesn't let each session of the networks have a thread: " +
               std::to_string(threads->sessions) + " of a network do at most (model.sessions)");
  }
  return *threads;
}

void start_workers(int threads) {
  const int workers = threads - 1;
  const std::shared_ptr<Meeting> meeting = new_meeting(workers);
  // An arena of one worker each: this thread starts it. Asked for several, workers start each other, and one that can't
  // ends the process or leaves the work of an arena undone.
  std::vector<std::unique_ptr<tbb::task_arena>> arenas;
  try {
    for (int worker = 0; worker < workers; ++worker) {
      arenas.push_back(std::make_unique<tbb::task_arena>(1, 0));
      arenas.back()->enqueue([meeting] { meeting->come(); });
    }
  } catch (const std::runtime_error& error) {
    meeting->end();
    // oneTBB's text names the call that failed.
    throw ConfigError(std::string("a thread can't be started: ") + error.what() +
                      "; lower pipeline.threads or raise the system's limits");
  }
  meeting->wait_for_all();
}

}  // namespace slidestream
