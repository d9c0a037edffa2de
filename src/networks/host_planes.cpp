#include <utility>
#include <vector>

#include "networks/tile_planes.hpp"

namespace slidestream::networks {
namespace {

template <class Sample>
class HostPlanes final : public TilePlanes {
 public:
  HostPlanes(std::shared_ptr<const Normalisation> normalisation, const PlanesSize& size)
      : normalisation_(std::move(normalisation)), area_(size.area), planes_(size.area * size.tiles * 3) {}

  // The library takes what it reads as memory that may be written to.
  void* data() const noexcept override { return const_cast<Sample*>(planes_.data()); }
  std::size_t bytes() const noexcept override { return planes_.size() * sizeof(Sample); }
  void put(std::span<const std::uint8_t> pixels) override { normalisation_->run(pixels, area_, planes_); }

 private:
  std::shared_ptr<const Normalisation> normalisation_;
  std::size_t area_;
  std::vector<Sample> planes_;
};

}  // namespace

std::unique_ptr<TilePlanes> make_host_planes(std::shared_ptr<const Normalisation> normalisation,
                                             const PlanesSize& size) {
  if (size.half) return std::make_unique<HostPlanes<std::uint16_t>>(std::move(normalisation), size);
  return std::make_unique<HostPlanes<float>>(std::move(normalisation), size);
}

}  // namespace slidestream::networks
