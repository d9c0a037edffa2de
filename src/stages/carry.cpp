#include "stages/carry.hpp"

#include <cstring>
#include <stdexcept>
#include <utility>

#include "runtime/handoff.hpp"
#include "stages/range_payload.hpp"

namespace slidestream {
namespace {

/// Order; what else is to be done for a batch when its turn comes is the derived class's.
class Ordered : public CarryStage {
 public:
  explicit Ordered(RunContext& context) : context_(context) {}

  void run(std::vector<Batch*>& ready, Batch& batch) override {
    const runtime::Turn turn(turn_);
    const runtime::StageMeter::Busy busy(context_.carry, payload_of(batch));
    Chain& chain = *batch.chain;
    chain.waiting.emplace(batch.strip_of_chain(), &batch);
    for (auto next = chain.waiting.find(chain.next); next != chain.waiting.end();
         next = chain.waiting.find(chain.next)) {
      Batch& complete = *next->second;
      chain.waiting.erase(next);
      ++chain.next;
      guarded(context_, "carry", complete, [&] { pass_rows(complete); });
      if (complete.last) chain.carry.reset();
      ready.push_back(&complete);
    }
  }

 protected:
  virtual void pass_rows(Batch& batch) = 0;

  RunContext& context_;

 private:
  runtime::Handoff turn_;
};

class DeviceCarry final : public Ordered {
 public:
  using Ordered::Ordered;

 private:
  void pass_rows(Batch&) override { context_.carry.add(1, 0); }
};

class Carry final : public Ordered {
 public:
  // A chain holds a buffer from its first strip to its last. All chains but the one that the source is sending have a
  // strip in a slot: slots + 1 buffers are enough.
  explicit Carry(RunContext& context)
      : Ordered(context),
        buffers_(static_cast<std::size_t>(context.config.pipeline.queue_depth) + 1, context.limits.carry_bytes) {}

 private:
  void pass_rows(Batch& batch) override {
    Chain& chain = *batch.chain;
    const StripPlan& strip = batch.strip;
    const ByPlane<std::ptrdiff_t>& pitch = batch.panel().pitch;
    // Planes lie in the buffer one after the other.
    std::size_t from = 0;
    std::size_t to = 0;
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const auto bytes = static_cast<std::size_t>((strip.y0 - strip.carry_in_y0[plane]) * pitch[plane]);
      if (bytes > 0) std::memcpy(batch.own_rows[plane] - bytes, chain.carry.memory().data() + from, bytes);
      from += bytes;
    }
    for (std::size_t plane = 0; plane < plane_count; ++plane) {
      const auto bytes = static_cast<std::size_t>((strip.y1 - strip.carry_out_y0[plane]) * pitch[plane]);
      if (bytes == 0) continue;
      if (!chain.carry) {
        auto buffer = buffers_.try_acquire();
        if (!buffer) throw std::logic_error("internal: no carry buffer is free");
        chain.carry = std::move(*buffer);
      }
      // Rows before y0 lie right before the own ones: what is passed on is contiguous.
      std::memcpy(chain.carry.memory().data() + to,
                  batch.own_rows[plane] + (strip.carry_out_y0[plane] - strip.y0) * pitch[plane], bytes);
      to += bytes;
    }
    if (to > 0) context_.carry.add(1, to);
  }

  runtime::SlotPool buffers_;
};

}  // namespace

std::unique_ptr<CarryStage> make_carry_stage(RunContext& context) { return std::make_unique<Carry>(context); }

std::unique_ptr<CarryStage> make_device_carry_stage(RunContext& context) {
  return std::make_unique<DeviceCarry>(context);
}

}  // namespace slidestream
