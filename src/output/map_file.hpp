#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <slidestream/results.hpp>

namespace slidestream {

/// A map as the bytes of a TIFF: float32, two samples a pixel (mean and standard deviation), uncompressed; BigTIFF
/// where the size asks for it. `micrometres` is the step between windows; it becomes the resolution.
/// \param micrometres_y  the step down, where pixels aren't square. \throws OutputError.
std::vector<std::byte> tiff_bytes(const WindowMap& map, std::optional<double> micrometres,
                                  std::optional<double> micrometres_y = std::nullopt);

/// Whether the file is such a TIFF of that many windows, to its last byte. Its values aren't looked at.
bool is_whole_tiff(const std::filesystem::path& file, const WindowMap& map);

}  // namespace slidestream
