#include "map.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <slidestream/error.hpp>
#include <utility>

#include "bindings.hpp"
#include "runtime/machine.hpp"
#include "tiling/channels.hpp"

namespace slidestream::python {

namespace {

constexpr const char* broken_off = "the run was broken off";

/// A network's one session: each batch is asked for, and waited for.
class CallSession final : public NetworkSession {
 public:
  explicit CallSession(std::shared_ptr<Calls> calls) : calls_(std::move(calls)) {}
  void run(std::span<const std::uint8_t> pixels, std::span<float> values) override { calls_->compute(pixels, values); }

 private:
  std::shared_ptr<Calls> calls_;
};

std::size_t tile_pixels(const CallShape& shape) {
  return static_cast<std::size_t>(shape.tiles.side) * static_cast<std::size_t>(shape.tiles.side);
}

/// An array of any strides, as tiles x channels x height x width.
template <class T>
struct Planes {
  const T* data;
  std::int64_t shape[4];
  std::int64_t strides[4];  ///< in samples
};

template <class T>
void copy_planes(float* to, const Planes<T>& from) noexcept {
  for (std::int64_t n = 0; n < from.shape[0]; ++n) {
    for (std::int64_t c = 0; c < from.shape[1]; ++c) {
      for (std::int64_t y = 0; y < from.shape[2]; ++y) {
        const T* const row = from.data + n * from.strides[0] + c * from.strides[1] + y * from.strides[2];
        const std::int64_t step = from.strides[3];
        for (std::int64_t x = 0; x < from.shape[3]; ++x) *to++ = static_cast<float>(row[x * step]);
      }
    }
  }
}

using Values = nb::ndarray<nb::ro, nb::device::cpu, nb::ndim<4>>;

template <class T>
bool give_as(Call& call, const Values& values) {
  if (values.dtype() != nb::dtype<T>()) return false;
  Planes<T> planes = {static_cast<const T*>(values.data()), {}, {}};
  for (std::size_t i = 0; i < 4; ++i) {
    planes.shape[i] = static_cast<std::int64_t>(values.shape(i));
    planes.strides[i] = values.stride(i);
  }
  const Unlocked unlocked;
  call.give([&](std::span<float> to) { copy_planes(to.data(), planes); });
  return true;
}

/// \param values  tiles x channels x height x width, in any order in memory
void give(Call& call, const Values& values) {
  if (values.size() != call.values()) throw ConfigError("internal: an answer of another size");
  if (!give_as<std::uint8_t>(call, values) && !give_as<std::uint16_t>(call, values) && !give_as<float>(call, values)) {
    throw ConfigError("internal: an answer of other numbers");
  }
}

}  // namespace

bool Call::begin() {
  if (process_ != ::getpid()) return false;
  const std::lock_guard lock(mutex_);
  if (state_ != State::waiting) return false;
  state_ = State::answering;
  return true;
}

void Call::end(std::optional<std::string> why) {
  const std::lock_guard lock(mutex_);
  why_ = std::move(why);
  state_ = State::answered;
  changed_.notify_all();
}

void Call::abandon() {
  const std::lock_guard lock(mutex_);
  if (state_ != State::waiting) return;
  state_ = State::abandoned;
  changed_.notify_all();
}

void Call::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return state_ == State::answered || state_ == State::abandoned; });
  if (state_ == State::abandoned) throw SlideError(broken_off);
  if (why_) throw SlideError(*why_);
}

Calls::Calls(CallShape shape)
    : shape_(std::move(shape)),
      memory_(
          std::make_shared<BatchMemory>(static_cast<std::size_t>(shape_.tiles.batch) * tile_pixels(shape_) * 3, 2)) {}

std::shared_ptr<Call> Calls::next(std::chrono::milliseconds patience) {
  if (process_ != ::getpid()) return nullptr;
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [this] { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Call> call = std::move(waiting_.front());
  waiting_.pop_front();
  return call;
}

void Calls::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

void Calls::abort() {
  if (process_ != ::getpid()) return;
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  waiting_.clear();
  for (const auto& call : unanswered_) call->abandon();
}

void Calls::put_tiles(std::uint8_t* to, std::span<const std::uint8_t> pixels) const noexcept {
  if (shape_.layout == WindowLayout::interleaved) {
    std::memcpy(to, pixels.data(), pixels.size());
    return;
  }
  const std::size_t plane = tile_pixels(shape_);
  for (std::size_t tile = 0; tile < pixels.size(); tile += 3 * plane) {
    split_channels(to + tile, to + tile + plane, to + tile + 2 * plane, pixels.data() + tile,
                   static_cast<std::int64_t>(plane));
  }
}

void Calls::compute(std::span<const std::uint8_t> pixels, std::span<float> values) {
  const auto call = of_this_process<Call>(memory_->take(), values);
  put_tiles(call->pixels()->data(), pixels);
  {
    const std::lock_guard lock(mutex_);
    if (aborted_) throw SlideError(broken_off);
    waiting_.push_back(call);
    unanswered_.push_back(call);
  }
  changed_.notify_all();
  const auto forget = [&] {
    const std::lock_guard lock(mutex_);
    std::erase(unanswered_, call);
  };
  try {
    call->wait();
  } catch (...) {
    forget();
    throw;
  }
  forget();
}

std::unique_ptr<NetworkSession> Calls::session(int) const {
  return std::make_unique<CallSession>(std::const_pointer_cast<Calls>(shared_from_this()));
}

void bind_map(nb::module_& module) {
  module.def("require_memory", &runtime::require_memory, nb::arg("bytes"), nb::arg("what"),
             "Raises ConfigError where that isn't to be had.");
  nb::class_<Call>(module, "Call").def("give", &give, nb::arg("values")).def("fail", &Call::fail, nb::arg("why"));
  nb::class_<Calls>(module, "Calls")
      .def(nb::new_([](int tile, int overlap, int batch, std::optional<double> mpp, bool tissue, double tissue_share,
                       const std::string& activation, bool mixed, bool planar, const std::string& kind, int channels,
                       int scale, bool wide, std::pair<double, double> range, int ignore,
                       const std::string& description) {
             CallShape shape;
             shape.tiles = {tile, overlap, batch, mpp, tissue, tissue_share, mixed};
             shape.output.activation = activation == "softmax"   ? NetworkActivation::softmax
                                       : activation == "sigmoid" ? NetworkActivation::sigmoid
                                                                 : NetworkActivation::none;
             shape.output.kind = kind == "vector"    ? NetworkOutput::Kind::vector
                                 : kind == "classes" ? NetworkOutput::Kind::classes
                                 : kind == "labels"  ? NetworkOutput::Kind::labels
                                                     : NetworkOutput::Kind::image;
             shape.output.channels = channels;
             shape.output.scale = scale;
             shape.output.sample = wide ? SampleType::uint16 : SampleType::uint8;
             shape.output.low = static_cast<float>(range.first);
             shape.output.high = static_cast<float>(range.second);
             shape.output.ignore = ignore;
             shape.layout = planar ? WindowLayout::planar : WindowLayout::interleaved;
             shape.description = description;
             return of_this_process<Calls>(std::move(shape));
           }),
           nb::kw_only(), nb::arg("tile"), nb::arg("overlap"), nb::arg("batch"), nb::arg("mpp").none(),
           nb::arg("tissue"), nb::arg("tissue_share"), nb::arg("activation"), nb::arg("mixed"), nb::arg("planar"),
           nb::arg("kind"), nb::arg("channels"), nb::arg("scale"), nb::arg("wide"), nb::arg("range"), nb::arg("ignore"),
           nb::arg("description"))
      .def(
          "next",
          [](const std::shared_ptr<Calls>& calls,
             int milliseconds) -> std::optional<std::pair<std::shared_ptr<Call>, Array<std::uint8_t>>> {
            std::shared_ptr<Call> call;
            {
              const Unlocked unlocked;
              call = calls->next(std::chrono::milliseconds(milliseconds));
            }
            if (call == nullptr) return std::nullopt;
            const CallShape& shape = calls->shape();
            const auto batch = static_cast<std::size_t>(shape.tiles.batch);
            const auto side = static_cast<std::size_t>(shape.tiles.side);
            std::uint8_t* const data = call->pixels()->data();
            Array<std::uint8_t> pixels = shape.layout == WindowLayout::interleaved
                                             ? array_of(data, {batch, side, side, 3}, call->pixels())
                                             : array_of(data, {batch, 3, side, side}, call->pixels());
            return std::pair(std::move(call), std::move(pixels));
          },
          nb::arg("milliseconds"),
          "A batch that waits for an answer, and its tiles; None: there was none in that time.")
      .def("abort", &Calls::abort);
}

}  // namespace slidestream::python
