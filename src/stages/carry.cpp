#include "stages/carry.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "runtime/handoff.hpp"

namespace slidestream {
namespace {

class Carry final : public CarryStage {
 public:
  // A slide holds a buffer from its first strip to its last. All such slides but the one that the source is sending
  // have a strip in a slot: slots + 1 buffers are enough.
  explicit Carry(RunContext& context)
      : context_(context),
        buffers_(static_cast<std::size_t>(context.config.pipeline.queue_depth) + 1, context.limits.carry_bytes) {}

  void run(std::vector<Batch*>& ready, Batch& batch) override {
    const runtime::Turn turn(turn_);
    const runtime::StageMeter::Busy busy(context_.carry);
    SlideRun& slide = *batch.slide;
    slide.waiting.emplace(batch.strip_index, &batch);
    for (auto next = slide.waiting.find(slide.next_in_chain); next != slide.waiting.end();
         next = slide.waiting.find(slide.next_in_chain)) {
      Batch& complete = *next->second;
      slide.waiting.erase(next);
      ++slide.next_in_chain;
      guarded(context_, "carry", complete, [&] { pass_rows(slide, complete); });
      if (complete.last) slide.carry.reset();
      ready.push_back(&complete);
    }
  }

 private:
  void pass_rows(SlideRun& slide, Batch& batch) {
    const StripPlan& strip = batch.strip;
    const std::ptrdiff_t pitch = batch.panel().pitch;
    const auto bytes = [pitch](std::int64_t rows) { return static_cast<std::size_t>(rows * pitch); };
    if (strip.y0 > strip.carry_in_y0) {
      std::memcpy(batch.own_rows - bytes(strip.y0 - strip.carry_in_y0), slide.carry.memory().data(),
                  bytes(strip.y0 - strip.carry_in_y0));
    }
    if (strip.y1 > strip.carry_out_y0) {
      if (!slide.carry) {
        auto buffer = buffers_.try_acquire();
        if (!buffer) throw std::logic_error("internal: no carry buffer is free");
        slide.carry = std::move(*buffer);
      }
      // Rows before y0 lie right before the own ones: what is passed on is contiguous.
      std::memcpy(slide.carry.memory().data(), batch.own_rows + (strip.carry_out_y0 - strip.y0) * pitch,
                  bytes(strip.y1 - strip.carry_out_y0));
      context_.carry.add(1, bytes(strip.y1 - strip.carry_out_y0));
    }
  }

  RunContext& context_;
  runtime::SlotPool buffers_;
  runtime::Handoff turn_;
};

}  // namespace

const runtime::StageContract carry_contract = {
    "carry",
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::host,
    runtime::Payload::luminance_rows,
    runtime::MemorySpace::host,
    runtime::Concurrency::serial,
};

std::unique_ptr<CarryStage> make_carry_stage(RunContext& context) { return std::make_unique<Carry>(context); }

}  // namespace slidestream
