#include "stages/networks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "planning/network_plan.hpp"
#include "stages/network/network_admission.hpp"
#include "stages/network/network_batches.hpp"
#include "stages/network_sessions.hpp"
#include "stages/network_watch.hpp"

namespace slidestream {
namespace {

namespace flow = tbb::flow;

/// A network of a slide that has something to do.
struct Work {
  std::shared_ptr<SlideImages> images;
  std::size_t network = 0;
};

/// A batch that isn't full goes when nothing was added for so long.
constexpr std::chrono::seconds longest_wait{10};

class All final : public Networks {
 public:
  explicit All(Surroundings surroundings)
      : context_(surroundings.context),
        graph_(surroundings.graph),
        lifetime_(surroundings.lifetime),
        helpers_(surroundings.helpers),
        made_(std::move(surroundings.made)),
        slides_(network_slides(context_.lanes), tiles_aside(context_), [this] { flush_shared({}); }),
        advance_(
            graph_, flow::unlimited, [this](const Work& work) { return advance(work); }, flow::node_priority_t{4}),
        watch_(
            context_, graph_, [this](const std::shared_ptr<SlideImages>& images) { look_at(images); },
            [this] { tick(); }) {
    for (const auto& op : context_.operators) {
      const Network* const network = op->network();
      if (network == nullptr) {
        sessions_.push_back(nullptr);
        continue;
      }
      sessions_.push_back(std::make_unique<NetworkSessions>(*network, context_, watch_));
      if (network->tiles().mixed) sessions_.back()->shared = filler_for(*sessions_.back(), *network);
      if (context_.on_message) context_.on_message(op->name() + ": " + network->description());
    }
    const std::lock_guard lock(tick_mutex_);
    ready_ = true;
  }

  ~All() override {
    const std::lock_guard lock(tick_mutex_);
    ready_ = false;
  }
  All(const All&) = delete;
  All& operator=(const All&) = delete;

  void close() noexcept override {
    closed_.store(true);
    watch_.end();
  }

  void open(const std::shared_ptr<SlideImages>& images, std::size_t slide) override {
    for (std::size_t i = 0; i < images->networks.size(); ++i) {
      SlideImages::Network& of = images->networks[i];
      of.slide = slide;
      NetworkSessions& sessions = *sessions_[of.op];
      if (sessions.shared == nullptr) of.filler = filler_for(sessions, *context_.operators[of.op]->network());
      SlideNetwork& network = *of.network;
      network.wake = [this, held = std::weak_ptr(images), i] {
        if (const auto woken = held.lock()) wake(woken, i);
      };
      of.place = std::make_shared<NetworkAdmission::Place>();
      of.place->tiles = network.plan().stitch.tiles();
      of.place->small = of.place->tiles < context_.operators[of.op]->network()->tiles().batch;
      network.leave = [this, place = of.place] { slides_.leave(*place); };
    }
    if (!images->networks.empty()) return watch_.add(images);
    // Its networks failed before: other slides mustn't wait for its tiles.
    nothing_of(slide);
  }

  void when_let_in(const std::shared_ptr<SlideImages>& images, const std::function<void()>& go) override {
    if (images->networks.empty()) return go();
    images->work().hold();
    {
      const std::lock_guard lock(bands_mutex_);
      auto& waiting = images->networks.front().bands;
      waiting.push_back(go);
      if (waiting.size() > 1) return;  // who put the first one in goes on with all, in their order
    }
    let_in(images);
  }

  void nothing_of(std::size_t slide) override {
    for (const auto& sessions : sessions_) {
      if (sessions != nullptr) nothing_of(*sessions, slide);
    }
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
      if (!all_.slides_.take(*of_.place, of_.network->wake)) return false;
      work_.images->work().begin_anew();
      return true;
    }
    bool stopping() const override { return all_.context_.stopping(); }
    std::optional<std::string> late() const override {
      if (!all_.context_.is_late(work_.images->work())) return std::nullopt;
      return all_.context_.text_of_limit();
    }
    double seconds() const override { return work_.images->work().seconds(); }
    void waits(bool for_others) override {
      // Another network of the slide may be at work.
      if (work_.images->networks.size() > 1) return;
      for_others ? work_.images->work().pause() : work_.images->work().go_on();
    }
    void parks(bool in_batches) override { all_.slides_.park(*of_.place, in_batches); }
    BatchFiller::Places take_places(std::span<const std::int64_t> tiles,
                                    const std::shared_ptr<BatchPart>& before) override {
      return filler().take(work_.images, work_.network, tiles, before,
                           [this] { return sessions().take(of_.network->wake); });
    }
    void written(const BatchFiller::Places& places) override { filler().written(places); }
    void no_more_tiles() override {
      if (of_.filler != nullptr) return of_.filler->flush();
      all_.nothing_of(sessions(), of_.slide);
      all_.slides_.all_given(*of_.place);
    }
    void give_back(const std::shared_ptr<BatchPart>& part) override { sessions().give_back(*part); }
    void made(const ConstHostView& rows, std::shared_ptr<runtime::Slot> slot) override {
      all_.made_(work_.images, *of_.image, rows, std::move(slot));
    }
    void drop() override { work_.images->drop(); }
    void drop_own() override { work_.images->drop_network(work_.network); }
    bool dropped() const override { return work_.images->dropped() || of_.dropped->load(); }
    void for_all(std::size_t count, const std::function<void(std::size_t)>& work) override {
      all_.helpers_.for_all(count, work);
    }

   private:
    NetworkSessions& sessions() { return *all_.sessions_[of_.op]; }
    BatchFiller& filler() { return of_.filler != nullptr ? *of_.filler : *sessions().shared; }

    All& all_;
    const Work& work_;
    SlideImages::Network& of_;
  };

  /// Lets the bands go on that wait for the slide to be let in, if it is; else it is called again.
  void let_in(const std::shared_ptr<SlideImages>& images) {
    for (const SlideImages::Network& of : images->networks) {
      if (!slides_.take(*of.place, [this, images] { let_in(images); })) return;
    }
    const std::lock_guard lock(bands_mutex_);
    auto& waiting = images->networks.front().bands;
    for (const auto& go : waiting) go();
    waiting.clear();
  }

  /// Slides that were opened and never begun may be let go after the graph's end, by any thread: then nothing goes on.
  void wake(const std::shared_ptr<SlideImages>& images, std::size_t network) {
    images->handoff.give();
    if (!images->networks[network].network->signal()) return;
    graph_.reserve_wait();
    if (!closed_.load()) advance_.try_put({images, network});
    graph_.release_wait();
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
    } catch (const std::bad_alloc&) {
      // No slide's fault: it stays to be done.
      context_.on_fatal(std::current_exception());
      work.images->drop();
      of.network->advance(view);
    } catch (...) {
      of.network->fail(current_cause(work.images->slide()));
      work.images->drop_network(work.network);
      of.network->advance(view);  // lets go of everything, which others may wait for
    }
    if (of.network->ended()) keeper = of.network->let_go();
    work.images->handoff.give();
    return {};
  }

  std::unique_ptr<BatchFiller> filler_for(NetworkSessions& sessions, const Network& network) {
    return std::make_unique<BatchFiller>(network.tiles(),
                                         [this, &sessions](const std::shared_ptr<BatchFiller::Filling>& filling) {
                                           if (const auto sent = sessions.close(*filling)) run(sessions, sent);
                                         });
  }

  static std::int64_t tiles_aside(const RunContext& context) {
    std::int64_t all = 0;
    for (const auto& op : context.operators) {
      if (op->network() != nullptr) all += network_tiles_aside(*op->network(), context.lanes);
    }
    return all;
  }

  void nothing_of(NetworkSessions& sessions, std::size_t slide) {
    if (sessions.nothing_of(slide) && sessions.shared != nullptr) sessions.shared->flush();
  }

  /// What slides share goes as it is, where nothing was added for so long.
  void flush_shared(runtime::Clock::duration unchanged) {
    for (const auto& sessions : sessions_) {
      if (sessions != nullptr && sessions->shared != nullptr) sessions->shared->flush(unchanged);
    }
  }

  void tick() {
    const std::lock_guard lock(tick_mutex_);
    if (ready_) flush_shared(longest_wait);
  }

  void run(NetworkSessions& sessions, const std::shared_ptr<SentBatch>& sent) {
    graph_.reserve_wait();
    try {
      const auto tell = [this](const BatchShare& share) { wake(share.images, share.network); };
      for (const BatchShare& share : sent->shares) share.images->handoff.give();
      // Whose time it is now depends on whether it is theirs alone.
      if (sessions.shared != nullptr) std::ranges::for_each(sent->shares, tell);
      sessions.submit([this, &sessions, batch = sent, tell]() mutable {
        {
          const runtime::GraphLifetime::Body body(lifetime_);
          std::size_t tiles = 0;
          for (const BatchShare& share : batch->shares) {
            share.images->handoff.take();
            for (const auto& part : share.parts) tiles += part->tiles.size();
          }
          {
            runtime::StageMeter::Busy busy(context_.network);
            sessions.compute(*batch, {tell, [&](BatchShare& share) {
                                        SlideNetwork& network = *share.images->networks[share.network].network;
                                        for (auto& part : share.parts) network.put(std::move(part));
                                        tell(share);
                                        share.images.reset();
                                      }});
            busy.add(tiles, 0);
          }
          batch.reset();
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
  NetworkAdmission slides_;
  std::mutex bands_mutex_;  ///< of `SlideImages::Network::bands`
  std::mutex tick_mutex_;
  bool ready_ = false;  ///< for ticks; guarded by tick_mutex_
  std::atomic<bool> closed_{false};
  flow::function_node<Work> advance_;
  NetworkWatch watch_;
  std::vector<std::unique_ptr<NetworkSessions>> sessions_;  ///< by operator; threads end first
};

}  // namespace

std::unique_ptr<Networks> make_networks(Networks::Surroundings surroundings) {
  return std::make_unique<All>(std::move(surroundings));
}

}  // namespace slidestream
