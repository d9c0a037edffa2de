#include <slidestream/error.hpp>

#include "tiling/device_tiles.hpp"

namespace slidestream {

namespace {

[[noreturn]] void refuse() { throw CudaError("no GPU can be used: slidestream was built without CUDA"); }

}  // namespace

struct DeviceTileStream::Impl {};
struct DeviceRegionReader::Impl {};

int usable_device(std::optional<int>) { refuse(); }

// NOLINTNEXTLINE(performance-unnecessary-value-param): taken where there are devices
DeviceTileStream::DeviceTileStream(TileStreamOptions, int) { refuse(); }
DeviceTileStream::~DeviceTileStream() = default;
TileStream::State DeviceTileStream::next(DeviceBatch&, std::chrono::milliseconds) { refuse(); }
void DeviceTileStream::close() noexcept {}
std::vector<std::string> DeviceTileStream::take_notes() { return {}; }

DeviceRegionReader::DeviceRegionReader(int) { refuse(); }
DeviceRegionReader::~DeviceRegionReader() = default;
std::shared_ptr<DeviceLease> DeviceRegionReader::read(const Slide&, const Resolution&, std::int64_t, std::int64_t,
                                                      const Size&, std::uint8_t, BadTilePolicy) {
  refuse();
}
std::vector<std::string> DeviceRegionReader::take_notes() { return {}; }

}  // namespace slidestream
