#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace slidestream::report {

/// The largest level of a Deep Zoom image that is one tile of at most `largest_thumbnail` pixels and `most` bytes, as
/// its JPEG file. Empty: none is as small. What its description says chooses the levels, and each tile is decoded to
/// see that it is such an image. Links aren't followed.
/// \param folder  of the results. \param file  NAME.dzi, as the ledger names it. \param bytes  as `check_own_file`
/// \throws SlideError in one line that names the image and the cause
std::string deep_zoom_picture(const std::filesystem::path& folder, const std::string& file, std::uint64_t bytes,
                              std::size_t most);

/// What keeps bytes from being a sequential JPEG image of these sides that decodes without a complaint; empty: nothing.
/// \param width  pixels, `largest_thumbnail` at most, as the height
std::string fault_of_jpeg(std::string_view bytes, int width, int height);

}  // namespace slidestream::report
