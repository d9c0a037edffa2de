#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "networks/tile_planes.hpp"

namespace slidestream::networks {
namespace {

constexpr std::uint16_t half_nan = 0x7e00;

template <class Number>
void widen_numbers(std::span<const std::byte> from, std::span<float> values) noexcept {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, from.data() + i * sizeof(Number), sizeof(Number));
    values[i] = static_cast<float>(number);
  }
}

template <class Sample>
class HostPlanes final : public TilePlanes {
 public:
  HostPlanes(std::shared_ptr<const Normalisation> normalisation, const PlanesSize& size)
      : normalisation_(std::move(normalisation)),
        area_(size.area),
        planes_(size.area * size.tiles * 3),
        // Numbers that aren't: what a network leaves out is seen.
        floats_(size.value_bytes() == sizeof(float) && !is_whole(size) ? size.values : 0,
                std::numeric_limits<float>::quiet_NaN()),
        halves_(size.half_values && !is_whole(size) ? size.values : 0, half_nan),
        wholes_(is_whole(size) ? size.values * size.value_bytes() : 0),
        whole_values_(size.whole_values) {}

  // The library takes what it reads as memory that may be written to.
  void* data() const noexcept override { return const_cast<Sample*>(planes_.data()); }
  std::size_t bytes() const noexcept override { return planes_.size() * sizeof(Sample); }
  void* given() const noexcept override {
    if (!wholes_.empty()) return const_cast<std::byte*>(wholes_.data());
    if (halves_.empty()) return const_cast<float*>(floats_.data());
    return const_cast<std::uint16_t*>(halves_.data());
  }
  std::size_t given_bytes() const noexcept override {
    return floats_.size() * sizeof(float) + halves_.size() * sizeof(std::uint16_t) + wholes_.size();
  }
  void put(std::span<const std::uint8_t> pixels) override { normalisation_->run(pixels, area_, planes_); }
  void take(std::span<float> values) override {
    if (!wholes_.empty()) {
      widen_whole(wholes_, whole_values_, values);
    } else if (halves_.empty()) {
      std::ranges::copy(floats_, values.begin());
    } else {
      std::ranges::transform(halves_, values.begin(), from_half);
    }
  }

 private:
  static bool is_whole(const PlanesSize& size) noexcept { return size.whole_values != onnx::ElementType::undefined; }

  std::shared_ptr<const Normalisation> normalisation_;
  std::size_t area_;
  std::vector<Sample> planes_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
  std::vector<std::byte> wholes_;
  onnx::ElementType whole_values_;
};

}  // namespace

void widen_whole(std::span<const std::byte> from, onnx::ElementType type, std::span<float> values) noexcept {
  switch (type) {
    case onnx::ElementType::int64:
      return widen_numbers<std::int64_t>(from, values);
    case onnx::ElementType::int32:
      return widen_numbers<std::int32_t>(from, values);
    case onnx::ElementType::int16:
      return widen_numbers<std::int16_t>(from, values);
    case onnx::ElementType::uint16:
      return widen_numbers<std::uint16_t>(from, values);
    case onnx::ElementType::int8:
      return widen_numbers<std::int8_t>(from, values);
    default:
      return widen_numbers<std::uint8_t>(from, values);
  }
}

std::unique_ptr<TilePlanes> make_host_planes(std::shared_ptr<const Normalisation> normalisation,
                                             const PlanesSize& size) {
  if (size.half) return std::make_unique<HostPlanes<std::uint16_t>>(std::move(normalisation), size);
  return std::make_unique<HostPlanes<float>>(std::move(normalisation), size);
}

}  // namespace slidestream::networks
