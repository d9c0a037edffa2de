#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <slidestream/error.hpp>

#include "bindings.hpp"
#include "device_array.hpp"
#include "tiling/device_tiles.hpp"

namespace slidestream::python {

namespace {

/// One pass over slides, as Python walks it: `TileIterator` on a device.
class DeviceTileIterator {
 public:
  DeviceTileIterator(const TileStreamOptions& options, int device, int memory_mib, bool copy)
      : options_(options), copy_(copy) {
    TileStreamOptions there = options;
    there.memory_mib = memory_mib;
    const Unlocked unlocked;
    stream_ = std::make_shared<DeviceTileStream>(std::move(there), device);
  }

  using Found = std::tuple<DeviceArray, Array<std::int64_t>, Array<std::int32_t>, std::int64_t>;

  std::optional<Found> next() {
    if (!copy_) lent_hand_back();
    DeviceBatch batch;
    if (!next_batch(stream_, batch)) return std::nullopt;
    if (!copy_) lent_ = batch.pixels;
    const auto count = static_cast<std::size_t>(batch.count);
    const auto [width, height] = options_.windows.size;
    std::vector<std::int64_t> shape = options_.layout == WindowLayout::interleaved
                                          ? std::vector<std::int64_t>{options_.batch, height, width, 3}
                                          : std::vector<std::int64_t>{options_.batch, 3, height, width};
    return Found(DeviceArray(std::move(batch.pixels), std::move(shape)), array_of(std::move(batch.coords), {count, 2}),
                 array_of(std::move(batch.slides), {count}), batch.count);
  }

  void close() {
    lent_hand_back();
    const std::shared_ptr<DeviceTileStream> stream = stream_;
    const Unlocked unlocked;
    stream->close();
  }

  std::vector<std::string> take_notes() const { return stream_->take_notes(); }

 private:
  void lent_hand_back() {
    if (lent_ != nullptr) lent_->hand_back();
    lent_ = nullptr;
  }

  const TileStreamOptions options_;
  const bool copy_;
  std::shared_ptr<DeviceTileStream> stream_;
  std::shared_ptr<DeviceLease> lent_;
};

}  // namespace

void bind_device(nb::module_& module) {
  bind_device_array(module);
  module.def("usable_device", &usable_device, nb::arg("ordinal").none(), nb::call_guard<Unlocked>());
  nb::class_<DeviceTileIterator>(module, "DeviceTileIterator")
      .def(nb::init<const TileStreamOptions&, int, int, bool>(), nb::arg("options"), nb::arg("device"),
           nb::arg("memory_mib"), nb::arg("copy"))
      .def("next", &DeviceTileIterator::next)
      .def("close", &DeviceTileIterator::close)
      .def("take_notes", &DeviceTileIterator::take_notes);
}

}  // namespace slidestream::python
