#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "slide/level_coding.hpp"
#include "slide/open_budget.hpp"
#include "slide/tiff/level_planes.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// The codec of a tile that libtiff decodes, by its tag Compression, but for JPEG. Nothing where it is none of those
/// that are supported, whatever libtiff was built with.
std::optional<Codec> codec_of_libtiff(std::uint64_t compression) noexcept;

/// What a description calls the samples of a pixel.
struct SampleNames {
  std::vector<std::string> names;  ///< of all samples, or none
  bool are_channels = false;       ///< whatever the tags say of colours
};

/// Reads and checks everything about the level of one directory. Gives its planes, where samples lie apart. Tags that
/// change what pixels look like, and that no reader here applies, become `warnings`.
/// \param is_aperios  whether Aperio wrote the file, as any of its images says
/// \throws SlideError that names the tag, its value, and what is supported; what `budget` does
LevelPlanes read_level(const RawTiff& raw, OpenBudget& budget, const RawDirectory& directory, const File& file,
                       const OpenOptions& options, bool is_aperios, Level& level, LevelCoding& coding,
                       std::vector<std::string>& warnings, const SampleNames& said = {});

}  // namespace slidestream
