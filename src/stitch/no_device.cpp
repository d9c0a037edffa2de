#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

namespace slidestream {
namespace {

[[noreturn]] void refuse() { throw CudaError("this program was built without CUDA"); }

}  // namespace

void resample_area(const PixelView<MemorySpace::device>&, const ConstPixelView<MemorySpace::device>&, std::int64_t,
                   void*) {
  refuse();
}

void cut_tile(std::span<std::uint8_t>, const ConstPixelView<MemorySpace::device>&, const Rect&, void*) { refuse(); }

struct DeviceStitchBand::Memory {};

DeviceStitchBand::DeviceStitchBand(const StitchPlan& plan, const NetworkOutput&, StitchWeights) : rows_(plan) {
  refuse();
}
DeviceStitchBand::~DeviceStitchBand() = default;
void DeviceStitchBand::put(StitchTile, std::span<const float>, void*) { refuse(); }
void DeviceStitchBand::skip(StitchTile, void*) { refuse(); }
std::optional<StitchTile> DeviceStitchBand::first_wrong(void*) const { refuse(); }
void DeviceStitchBand::gather(const PixelView<MemorySpace::device>&, void*) const { refuse(); }

}  // namespace slidestream
