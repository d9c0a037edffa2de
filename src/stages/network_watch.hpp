#pragma once

#include <oneapi/tbb/flow_graph.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <slidestream/network.hpp>
#include <thread>
#include <vector>

#include "stages/images/slide_images.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {

/// Looks some times a second whether the run was told to stop, and which slides have taken longer than one may. What
/// networks compute for these alone is interrupted, and they are woken, to end.
class NetworkWatch {
 public:
  using Wake = std::function<void(const std::shared_ptr<SlideImages>&)>;

  /// `tick` is called each time.
  NetworkWatch(const RunContext& context, tbb::flow::graph& graph, Wake wake, std::function<void()> tick);
  ~NetworkWatch();
  NetworkWatch(const NetworkWatch&) = delete;
  NetworkWatch& operator=(const NetworkWatch&) = delete;

  /// Looks no more: at the return nobody is being woken.
  void end() noexcept;

  /// A slide whose networks begin. Thread-safe.
  void add(const std::shared_ptr<SlideImages>& images);

  /// Whether nobody wants what networks would give for the slide. Thread-safe.
  bool is_over(const SlideImages& images) const { return context_.stopping() || context_.is_late(images.work()); }

  /// While it lives the session is interrupted when `is_over` says so, which any thread asks. Made and ended by the
  /// thread that runs it.
  class Running {
   public:
    Running(NetworkWatch& watch, NetworkSession& session, std::function<bool()> is_over);
    ~Running();
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    friend class NetworkWatch;
    NetworkWatch& watch_;
    NetworkSession& session_;
    std::function<bool()> is_over_;
  };

 private:
  struct Watched {
    std::weak_ptr<SlideImages> images;
    bool woken = false;
  };

  void look();

  const RunContext& context_;
  tbb::flow::graph& graph_;
  Wake wake_;
  std::function<void()> tick_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ends_ = false;              ///< guarded by mutex_
  std::vector<Watched> slides_;    ///< guarded by mutex_
  std::vector<Running*> running_;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace slidestream
