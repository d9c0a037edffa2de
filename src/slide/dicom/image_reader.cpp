#include "slide/dicom/image_reader.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "slide/dicom/concatenation.hpp"
#include "slide/dicom/contradictions.hpp"
#include "slide/dicom/data_set.hpp"
#include "slide/dicom/frame_colours.hpp"
#include "slide/dicom/frames.hpp"
#include "slide/dicom/instance.hpp"
#include "slide/level_coding.hpp"
#include "slide/level_factor.hpp"

namespace slidestream::dicom {

namespace {

/// Reads one image: its level, and where its tiles lie.
class ImageReader {
 public:
  ImageReader(Slide::Impl& slide, const OpenOptions& options, OpenBudget& budget)
      : slide_(slide), options_(options), budget_(budget) {}

  /// \param files  of the image, in order; they go to the slide
  void read(const std::vector<OpenFile*>& files) {
    level_ = level_of(*files.front(), options_);
    budget_.take_level(static_cast<std::uint64_t>(level_.columns) * static_cast<std::uint64_t>(level_.rows));
    coding_.samples = static_cast<int>(files.front()->instance.samples);
    coding_.in_items = files.front()->instance.is_encapsulated();
    coding_.tiles.resize(static_cast<std::size_t>(level_.columns * level_.rows));
    std::int64_t before = 0;
    for (OpenFile* file : files) {
      check_part(*file, before, files.front()->instance);
      add_frames(*file);
      add_line(compare_places(*file, level_));
      before += file->instance.frames;
    }
    const Instance& first = files.front()->instance;
    if (first.organisation == "TILED_FULL" && before != level_.columns * level_.rows) {
      Refusal{*files.front()}("NumberOfFrames (0028,0008) is " + std::to_string(before) + " in all parts, and " +
                              std::to_string(level_.columns) + " x " + std::to_string(level_.rows) +
                              " tiles are TILED_FULL");
    }
    add_line(compare_count(files, level_, coding_));
    for (const OpenFile* file : files) {
      add_line(compare_lut_shape(file->instance));
      add_line(compare_rescale(file->instance));
      add_line(compare_indices(file->instance));
    }
    if (first.has_misplaced_icc) {
      add_line(
          "its ICC profile (0028,2000) lies outside of OpticalPathSequence (0048,0105), where it belongs: it counts");
    }
    add_line(compare_doubles(doubles_, first_double_, level_));
    // Labels and the like may lie in any way.
    if (first.flavour() == "VOLUME") {
      for (const OpenFile* file : files) add_line(compare_orientation(file->instance));
      add_line(compare_orientations(files));
    }
    add_line(compare_colour(level_, first.photometric, coding_, slide_.files, budget_));
    if (!slide_.info.levels.empty()) {
      level_.downsample = level_factor(slide_.info.levels.front().width, level_.width);
    }
    slide_.info.levels.push_back(level_);
    slide_.codings.push_back(std::move(coding_));
  }

 private:
  /// A contradiction is one line, however many levels have it.
  void add_line(std::string line) {
    std::vector<std::string>& lines = slide_.info.warnings;
    if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
  }

  void check_part(const OpenFile& file, std::int64_t before, const Instance& first) const {
    const Refusal refuse(file);
    const Level own = level_of(file, options_);
    if (own.width != level_.width || own.height != level_.height || own.tile_width != level_.tile_width ||
        own.tile_height != level_.tile_height || own.codec != level_.codec || own.colour != level_.colour) {
      refuse("isn't coded like the part of its image before it");
    }
    check_organisation(file, first);
    if (have_different_paths(first, file.instance)) refuse.require(2, 1, "the number of optical paths");
    if (file.instance.frames_before != before) {
      refuse("ConcatenationFrameOffsetNumber (0020,9228) is " + std::to_string(file.instance.frames_before) +
             ", and the parts before have " + std::to_string(before) + " frames");
    }
    if (file.instance.frames > options_.max_tiles) {
      refuse("NumberOfFrames (0028,0008) " + std::to_string(file.instance.frames) + " is above input.max_tiles " +
             std::to_string(options_.max_tiles));
    }
  }

  /// Where frame `index` of an instance belongs.
  std::int64_t tile_of(const OpenFile& file, std::int64_t index) const {
    const Instance& instance = file.instance;
    if (instance.organisation == "TILED_FULL") return instance.frames_before + index;
    if (instance.positions.empty()) return 0;
    const Instance::Position& said = instance.positions[static_cast<std::size_t>(index)];
    const std::int64_t x = said.column - 1;
    const std::int64_t y = said.row - 1;
    if (x < 0 || y < 0 || x >= level_.width || y >= level_.height || x % level_.tile_width != 0 ||
        y % level_.tile_height != 0) {
      Refusal{file}("frame " + std::to_string(index + 1) + " is at column " + std::to_string(said.column) + ", row " +
                    std::to_string(said.row) + ", which isn't on the grid of tiles");
    }
    return y / level_.tile_height * level_.columns + x / level_.tile_width;
  }

  /// Frames at one place and several depths are several focal planes, whatever the rest says. A plane of its own may
  /// have another depth at each place.
  void note_depth(const OpenFile& file, std::size_t frame, std::size_t tile) {
    if (file.instance.positions.empty()) return;
    depths_.resize(coding_.tiles.size(), Instance::Position::no_depth);
    const double depth = file.instance.positions[frame].depth;
    // No frame begins where a file does.
    const bool has_frame = coding_.tiles[tile].offset != 0;
    if (has_frame && depth != depths_[tile]) Refusal{file}.require(2, 1, "the number of focal planes");
    depths_[tile] = depth;
  }

  void add_frames(OpenFile& file) {
    const Instance& instance = file.instance;
    const Refusal refuse(file);
    const bool is_full = instance.organisation == "TILED_FULL";
    // A single tile can only be at one place.
    const bool is_single = instance.positions.empty() && instance.frames == 1 && coding_.tiles.size() == 1;
    if (!is_full && !is_single && static_cast<std::int64_t>(instance.positions.size()) != instance.frames) {
      refuse("PerFrameFunctionalGroupsSequence (5200,9230) describes " + std::to_string(instance.positions.size()) +
             " frames, and NumberOfFrames (0028,0008) is " + std::to_string(instance.frames));
    }
    if (is_full && instance.frames > level_.columns * level_.rows - instance.frames_before) {
      refuse("NumberOfFrames (0028,0008) is " + std::to_string(instance.frames) + ", and the image has " +
             std::to_string(level_.columns) + " x " + std::to_string(level_.rows) + " tiles");
    }
    Reader reader(*file.file, file.name, budget_);
    std::vector<TileRange> ranges = frame_ranges(reader, instance);
    add_line(compare_length(instance));
    const std::uint64_t size = file.file->size();
    const std::uint64_t begin = slide_.files.add(std::move(file.file));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      TileRange& range = ranges[i];
      const bool is_inside = range.offset <= size && range.length <= size - range.offset;
      // What lies outside its own file must not be found in the next one.
      range.offset = is_inside ? begin + range.offset : nowhere;
      const auto tile = static_cast<std::size_t>(tile_of(file, static_cast<std::int64_t>(i)));
      note_depth(file, i, tile);
      if (coding_.tiles[tile].offset != 0 && doubles_++ == 0) first_double_ = static_cast<std::int64_t>(tile);
      coding_.tiles[tile] = range;
    }
  }

  /// In no file.
  static constexpr std::uint64_t nowhere = std::uint64_t{1} << 62;

  Slide::Impl& slide_;
  const OpenOptions& options_;
  OpenBudget& budget_;
  Level level_;
  LevelCoding coding_;
  std::vector<double> depths_;     ///< of the frame at each place; empty unless frames say where they are
  std::int64_t doubles_ = 0;       ///< frames at places that an earlier frame has
  std::int64_t first_double_ = 0;  ///< the tile of the first of them
};

}  // namespace

void read_image(Slide::Impl& slide, const OpenOptions& options, OpenBudget& budget,
                const std::vector<OpenFile*>& files) {
  ImageReader(slide, options, budget).read(files);
}

}  // namespace slidestream::dicom
