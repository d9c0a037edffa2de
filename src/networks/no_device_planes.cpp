#include <slidestream/error.hpp>

#include "networks/device_scores.hpp"
#include "networks/network_gpus.hpp"
#include "networks/tile_planes.hpp"

namespace slidestream::networks {

std::unique_ptr<TilePlanes> make_device_planes(const Normalisation&, const PlanesSize&, int) {
  throw Error("this program was built without CUDA");
}

std::shared_ptr<std::byte[]> pinned_memory(std::size_t, int) { throw Error("this program was built without CUDA"); }

std::unique_ptr<DeviceScores> make_device_scores(const ScoresSize&, int) {
  throw Error("this program was built without CUDA");
}

NetworkGpus find_gpus() { return {{}, "this program was built without CUDA"}; }

std::uint64_t free_memory(int) { throw Error("this program was built without CUDA"); }

}  // namespace slidestream::networks
