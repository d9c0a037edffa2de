#include "cuda/colour/loaded_colours.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "cuda/colour/every_colour.hpp"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

LoadedColours::LoadedColours(std::span<std::byte> device, std::span<std::byte> pinned)
    : device_(device), pinned_(pinned) {
  if (device.size() < ConversionMemory::device_bytes || pinned.size() < ConversionMemory::pinned_bytes) {
    throw std::length_error("too little memory for a conversion of colours");
  }
}

DeviceColours LoadedColours::load(std::shared_ptr<const ColourConversion> conversion, bool every, cudaStream_t stream) {
  if (conversion == nullptr) return {};
  if (loaded_ == nullptr || (loaded_ != conversion && !(*loaded_ == *conversion))) {
    loaded_.reset();
    write_colour_program(*conversion, pinned_);
    SLIDESTREAM_CUDA(cudaMemcpyAsync(device_.data(), pinned_.data(), colour_program_bytes(*conversion),
                                     cudaMemcpyHostToDevice, stream));
    colours_ = {};
    colours_.program = reinterpret_cast<const ColourProgram*>(device_.data());
    colours_.is_matrix = conversion->steps().is_matrix_alone();
    if (colours_.is_matrix) {
      std::ranges::copy(std::get<ColourMatrix>(conversion->steps().then.front()).factors, colours_.factors);
    }
  }
  loaded_ = std::move(conversion);
  if (colours_.every == nullptr && (every || !colours_.is_matrix)) {
    auto* const all = reinterpret_cast<std::uint32_t*>(device_.data() + ColourProgram::most_bytes);
    make_every_colour(colours_.program, all, stream);
    colours_.every = all;
  }
  return colours_;
}

}  // namespace slidestream::cuda
