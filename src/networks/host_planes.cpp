#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "networks/tile_planes.hpp"

namespace slidestream::networks {
namespace {

constexpr std::uint16_t half_nan = 0x7e00;

template <class Sample>
class HostPlanes final : public TilePlanes {
 public:
  HostPlanes(std::shared_ptr<const Normalisation> normalisation, const PlanesSize& size)
      : normalisation_(std::move(normalisation)),
        area_(size.area),
        planes_(size.area * size.tiles * 3),
        // Numbers that aren't: what a network leaves out is seen.
        floats_(size.half_values ? 0 : size.values, std::numeric_limits<float>::quiet_NaN()),
        halves_(size.half_values ? size.values : 0, half_nan) {}

  // The library takes what it reads as memory that may be written to.
  void* data() const noexcept override { return const_cast<Sample*>(planes_.data()); }
  std::size_t bytes() const noexcept override { return planes_.size() * sizeof(Sample); }
  void* given() const noexcept override {
    if (halves_.empty()) return const_cast<float*>(floats_.data());
    return const_cast<std::uint16_t*>(halves_.data());
  }
  std::size_t given_bytes() const noexcept override {
    return floats_.size() * sizeof(float) + halves_.size() * sizeof(std::uint16_t);
  }
  void put(std::span<const std::uint8_t> pixels) override { normalisation_->run(pixels, area_, planes_); }
  void take(std::span<float> values) override {
    if (halves_.empty()) {
      std::ranges::copy(floats_, values.begin());
    } else {
      std::ranges::transform(halves_, values.begin(), from_half);
    }
  }

 private:
  std::shared_ptr<const Normalisation> normalisation_;
  std::size_t area_;
  std::vector<Sample> planes_;
  std::vector<float> floats_;
  std::vector<std::uint16_t> halves_;
};

}  // namespace

std::unique_ptr<TilePlanes> make_host_planes(std::shared_ptr<const Normalisation> normalisation,
                                             const PlanesSize& size) {
  if (size.half) return std::make_unique<HostPlanes<std::uint16_t>>(std::move(normalisation), size);
  return std::make_unique<HostPlanes<float>>(std::move(normalisation), size);
}

}  // namespace slidestream::networks
