#include "stages/networks.hpp"

#include <deque>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "runtime/io_threads.hpp"
#include "stages/network_watch.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

using Wake = std::function<void()>;

/// A number of things, and those who wait for one.
class Room {
 public:
  explicit Room(std::size_t free) : free_(free) {}

  /// False: `wake` is called when one has become free.
  bool take(const Wake& wake) {
    const std::lock_guard lock(mutex_);
    if (free_ == 0) {
      waiting_.push_back(wake);
      return false;
    }
    --free_;
    return true;
  }
  void give_back() {
    std::deque<Wake> waiting;
    {
      const std::lock_guard lock(mutex_);
      ++free_;
      waiting.swap(waiting_);
    }
    for (const Wake& wake : waiting) wake();
  }

 private:
  std::mutex mutex_;
  std::size_t free_;          ///< guarded by mutex_
  std::deque<Wake> waiting_;  ///< guarded by mutex_
};

/// The sessions of one network, and its batches.
class Sessions {
 public:
  Sessions(const Network& network, const std::vector<int>& devices) : network_(network) {
    for (int i = 0; i < network.sessions(); ++i) {
      if (devices.empty()) sessions_.push_back(network.session(-1));
      for (const int device : devices) sessions_.push_back(network.session(device));
    }
    const std::size_t count = sessions_.size();
    places_ = std::make_unique<Room>(network_batches(count));
    threads_ = std::make_unique<runtime::IoThreads>(count);
  }

  std::unique_ptr<NetworkBatch> take(const Wake& wake) {
    if (!places_->take(wake)) return nullptr;
    std::unique_ptr<NetworkBatch> batch;
    {
      const std::lock_guard lock(mutex_);
      if (!batches_.empty()) {
        batch = std::move(batches_.back());
        batches_.pop_back();
      }
    }
    if (batch == nullptr) {
      batch = new_batch();
    }
    batch->tiles.clear();
    return batch;
  }
  void give_back(std::unique_ptr<NetworkBatch> batch) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(std::move(batch));
    }
    places_->give_back();
  }

  void submit(std::function<void()> work) { threads_->submit(std::move(work)); }

  /// On one of the threads.
  void compute(NetworkBatch& batch, const SlideImages& images, NetworkWatch& watch) {
    std::unique_ptr<NetworkSession> session;
    {
      const std::lock_guard lock(mutex_);
      session = std::move(sessions_.back());
      sessions_.pop_back();
    }
    try {
      const NetworkWatch::Running running(watch, *session, images);
      if (watch.is_over(images)) throw Error("nobody wants it any more");
      session->run({batch.pixels.get(), pixels()}, {batch.values.get(), values()});
    } catch (...) {
      batch.failure = current_cause(images.slide());
      if (batch.tiles.size() > 1) {
        batch.failure = "in a batch of tiles " + std::to_string(batch.tiles.front()) + " to " +
                        std::to_string(batch.tiles.back()) + ": " + *batch.failure;
      }
    }
    batch.interrupted = batch.failure && watch.is_over(images);
    const std::lock_guard lock(mutex_);
    sessions_.push_back(std::move(session));
  }

 private:
  std::unique_ptr<NetworkBatch> new_batch() const {
    try {
      auto batch = std::make_unique<NetworkBatch>();
      // Every byte that is read is written before.
      const auto in = network_.allocate(pixels());
      const auto out = network_.allocate(values() * sizeof(float));
      batch->pixels = {in, reinterpret_cast<std::uint8_t*>(in.get())};
      batch->values = {out, reinterpret_cast<float*>(out.get())};
      return batch;
    } catch (const std::bad_alloc&) {
      throw Error("there is no memory for a batch of " + std::to_string(network_.tiles().batch) + " tiles, " +
                  std::to_string(network_batch_bytes(network_)) + " bytes; lower model.batch");
    }
  }
  std::size_t pixels() const {
    const NetworkTiles tiles = network_.tiles();
    return static_cast<std::size_t>(tiles.batch) * static_cast<std::size_t>(tiles.side) *
           static_cast<std::size_t>(tiles.side) * 3;
  }
  std::size_t values() const {
    return static_cast<std::size_t>(network_batch_bytes(network_)) / sizeof(float) - pixels() / sizeof(float);
  }

  const Network& network_;
  std::unique_ptr<Room> places_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<NetworkSession>> sessions_;  ///< that nobody uses; guarded by mutex_
  std::vector<std::unique_ptr<NetworkBatch>> batches_;     ///< that nobody uses; guarded by mutex_
  std::unique_ptr<runtime::IoThreads> threads_;            ///< ends first
};

/// A network of a slide that has something to do.
struct Work {
  std::shared_ptr<SlideImages> images;
  std::size_t network = 0;
};

class All final : public Networks {
 public:
  explicit All(Surroundings surroundings)
      : context_(surroundings.context),
        graph_(surroundings.graph),
        lifetime_(surroundings.lifetime),
        helpers_(surroundings.helpers),
        made_(std::move(surroundings.made)),
        slides_(network_slides(context_.lanes)),
        advance_(
            graph_, flow::unlimited, [this](const Work& work) { return advance(work); }, flow::node_priority_t{4}),
        watch_(context_, graph_, [this](const std::shared_ptr<SlideImages>& images) { look_at(images); }) {
    for (const auto& op : context_.operators) {
      const Network* const network = op->network();
      sessions_.push_back(network == nullptr ? nullptr : std::make_unique<Sessions>(*network, context_.devices));
      if (network != nullptr && context_.on_message) context_.on_message(op->name() + ": " + network->description());
    }
  }

  void open(const std::shared_ptr<SlideImages>& images) override {
    for (std::size_t i = 0; i < images->networks.size(); ++i) {
      SlideNetwork& network = *images->networks[i].network;
      network.wake = [this, held = std::weak_ptr(images), i] {
        if (const auto slide = held.lock()) wake(slide, i);
      };
      network.leave = [this] { slides_.give_back(); };
    }
    if (!images->networks.empty()) watch_.add(images);
  }

  void put(const std::shared_ptr<SlideImages>& images, std::size_t network, const ConstHostView& rows,
           std::shared_ptr<runtime::Slot> slot) override {
    SlideImages::Network& of = images->networks[network];
    // It is kept until the network has come to its end, which nobody else may be waiting for.
    of.network->put(rows, std::move(slot), images);
    wake(images, network);
  }

  void look_at(const std::shared_ptr<SlideImages>& images) override {
    for (std::size_t i = 0; i < images->networks.size(); ++i) wake(images, i);
  }

 private:
  /// What a slide's network sees of the rest while it is advanced.
  class View final : public SlideNetwork::Surroundings {
   public:
    View(All& all, const Work& work) : all_(all), work_(work), of_(work.images->networks[work.network]) {}

    bool admit() override {
      if (!all_.slides_.take(of_.network->wake)) return false;
      work_.images->work().begin_anew();
      return true;
    }
    bool stopping() const override { return all_.context_.stopping(); }
    std::optional<std::string> late() const override {
      if (!all_.context_.is_late(work_.images->work())) return std::nullopt;
      return all_.context_.text_of_limit();
    }
    std::unique_ptr<NetworkBatch> take_batch() override { return sessions().take(of_.network->wake); }
    void give_back(std::unique_ptr<NetworkBatch> batch) override { sessions().give_back(std::move(batch)); }
    void run(std::unique_ptr<NetworkBatch> batch) override { all_.run(work_, std::move(batch)); }
    void made(const ConstHostView& rows, std::shared_ptr<runtime::Slot> slot) override {
      all_.made_(work_.images, *of_.image, rows, std::move(slot));
    }
    void drop() override { work_.images->drop(); }
    bool dropped() const override { return work_.images->dropped(); }
    void for_all(std::size_t count, const std::function<void(std::size_t)>& work) override {
      all_.helpers_.for_all(count, work);
    }

   private:
    Sessions& sessions() { return *all_.sessions_[of_.op]; }

    All& all_;
    const Work& work_;
    SlideImages::Network& of_;
  };

  void wake(const std::shared_ptr<SlideImages>& images, std::size_t network) {
    images->handoff.give();
    if (images->networks[network].network->signal()) advance_.try_put({images, network});
  }

  flow::continue_msg advance(const Work& work) {
    const runtime::GraphLifetime::Body body(lifetime_);
    work.images->handoff.take();
    View view(*this, work);
    SlideImages::Network& of = work.images->networks[work.network];
    std::shared_ptr<void> keeper;
    try {
      const runtime::StageMeter::Busy busy(context_.stitch);
      of.network->advance(view);
    } catch (...) {
      of.network->fail(current_cause(work.images->slide()));
      work.images->drop();
    }
    if (of.network->ended()) keeper = of.network->let_go();
    work.images->handoff.give();
    return {};
  }

  void run(const Work& work, std::unique_ptr<NetworkBatch> batch) {
    graph_.reserve_wait();
    Sessions& sessions = *sessions_[work.images->networks[work.network].op];
    try {
      work.images->handoff.give();
      const auto shared = std::make_shared<std::unique_ptr<NetworkBatch>>(std::move(batch));
      sessions.submit([this, &sessions, images = work.images, network = work.network, shared]() mutable {
        {
          const runtime::GraphLifetime::Body body(lifetime_);
          images->handoff.take();
          {
            runtime::StageMeter::Busy busy(context_.network);
            sessions.compute(**shared, *images, watch_);
            busy.add((*shared)->tiles.size(), 0);
          }
          images->networks[network].network->put(std::move(*shared));
          wake(images, network);
          images.reset();
        }
        graph_.release_wait();
      });
    } catch (...) {
      graph_.release_wait();
      throw;
    }
  }

  RunContext& context_;
  flow::graph& graph_;
  runtime::GraphLifetime& lifetime_;
  Helpers& helpers_;
  std::function<void(const std::shared_ptr<SlideImages>&, std::size_t, const ConstHostView&,
                     std::shared_ptr<runtime::Slot>)>
      made_;
  Room slides_;
  flow::function_node<Work> advance_;
  NetworkWatch watch_;
  std::vector<std::unique_ptr<Sessions>> sessions_;  ///< by operator; threads end first
};

}  // namespace

std::unique_ptr<Networks> make_networks(Networks::Surroundings surroundings) {
  return std::make_unique<All>(std::move(surroundings));
}

}  // namespace slidestream
