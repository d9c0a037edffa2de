#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "slide/dicom/data_set.hpp"

namespace slidestream::dicom {

/// A frame's size of pixels that contradicts the one that all frames share.
struct OwnSpacing {
  std::int64_t frame = 0;  ///< of the file, from 0
  double mm_x = 0.0;       ///< millimetres
  double mm_y = 0.0;
};

/// What an item of OpticalPathSequence says that only one path has.
struct OpticalPath {
  std::string identifier;            ///< empty: it doesn't say
  std::optional<double> wavelength;  ///< of the illumination, nanometres
};

/// What is read of one file of a series. Nothing of it is about a patient.
struct Instance {
  std::string transfer_syntax;
  std::string sop_class;
  std::string sop_instance;
  std::string series;
  std::vector<std::string> image_type;
  std::string frame_flavour;  ///< by the first FrameType that isn't ImageType's, else by any; empty: none says it
  std::string organisation;   ///< "TILED_FULL", "TILED_SPARSE", or empty

  // Parts of an image that several files hold.
  std::string concatenation;       ///< UID; empty: the file is the whole image
  std::int64_t part = 1;           ///< from 1
  std::int64_t parts = 0;          ///< 0: it doesn't say
  std::int64_t frames_before = 0;  ///< frames in the parts before

  std::int64_t width = 0;  ///< of the image, pixels; 0: it doesn't say
  std::int64_t height = 0;
  std::int64_t tile_width = 0;
  std::int64_t tile_height = 0;
  std::int64_t frames = 1;
  std::int64_t samples = 0;
  std::int64_t bits_allocated = 0;
  std::int64_t bits_stored = 0;
  std::int64_t high_bit = 7;  ///< as it must be; some files don't say it
  std::int64_t planar = 0;
  std::int64_t is_signed = 0;
  std::string photometric;
  std::string lut_shape;                ///< PresentationLUTShape; empty: it doesn't say
  std::optional<double> rescale_slope;  ///< of all pixels; nothing where none is said
  std::optional<double> rescale_intercept;
  std::int64_t focal_planes = 1;
  std::int64_t optical_paths = 1;
  std::string optical_path;    ///< identifier of the frames' path; empty: they don't say it
  OpticalPath first_path;      ///< by OpticalPathSequence
  std::optional<double> mm_x;  ///< size of a pixel, millimetres
  std::optional<double> mm_y;
  std::optional<OwnSpacing> own_spacing;  ///< of the first such frame
  bool spacings_differ = false;           ///< frames say several sizes, or some of them none: there is none then
  bool has_unsound_spacing = false;       ///< one of two values that aren't both above 0, where it counts
  bool has_unsound_volume = false;        ///< a side that is said can't be read
  bool has_misplaced_spacing = false;     ///< PixelSpacing outside of the functional groups
  std::optional<double> volume_mm_x;      ///< size of the image, millimetres
  std::optional<double> volume_mm_y;
  std::optional<double> origin_mm_x;  ///< TotalPixelMatrixOriginSequence: where the first pixel lies on the glass
  std::optional<double> origin_mm_y;
  /// ImageOrientationSlide: cosines of the first row's direction, then of the first column's, to X, Y and Z.
  std::optional<std::array<double, 6>> orientation;
  std::optional<double> magnification;
  std::uint64_t icc_at = 0;
  std::uint64_t icc_bytes = 0;     ///< 0: no profile
  bool has_misplaced_icc = false;  ///< it lies outside of OpticalPathSequence
  bool shows_label = false;        ///< SpecimenLabelInImage

  /// Where a frame says that it is.
  struct Position {
    static constexpr double no_depth = std::numeric_limits<double>::infinity();

    std::int64_t column = 0;  ///< of its first pixel in the image, from 1
    std::int64_t row = 0;
    double depth = no_depth;  ///< micrometres
  };
  std::vector<Position> positions;  ///< of each frame; empty unless the frames say them

  /// Where a frame of TILED_FULL says that its first pixel is, though its number tells that.
  struct SaidPlace {
    std::int64_t frame = 0;  ///< of the file, from 0
    std::int64_t column = 0;
    std::int64_t row = 0;

    bool operator==(const SaidPlace&) const = default;
  };
  static constexpr std::int64_t most_said_places = 4096;
  bool has_contrary_indices = false;   ///< DimensionIndexValues of the first such frames, against `positions`
  std::vector<SaidPlace> said_places;  ///< by the first `most_said_places` frames; not all may say it

  std::optional<Element> offsets;  ///< the extended offset table
  std::optional<Element> lengths;
  std::optional<Element> pixels;

  /// "VOLUME", "LABEL", ...; empty: it doesn't say.
  std::string flavour() const { return image_type.size() > 2 ? image_type[2] : std::string(); }
  /// Pixels of the image. 0: it doesn't say.
  std::uint64_t area() const noexcept { return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height); }
  bool is_encapsulated() const noexcept { return pixels && pixels->length == undefined_length; }
};

/// SOPClassUID of whole-slide images.
constexpr const char* whole_slide_class = "1.2.840.10008.5.1.4.1.1.77.1.6";

/// What a file's instance is to be read for.
enum class Part {
  series,  ///< which series and image it is of: all before the frames' own descriptions. Of another class, that alone
  whole,
};

/// Whether a file begins as DICOM files do: "DICM" at byte 128.
bool has_prefix(std::span<const std::byte> first) noexcept;

/// Reads a file. \throws SlideError that names the element and what is wrong with it; what the reader's budget does
Instance read_instance(Reader& reader, Part part);

}  // namespace slidestream::dicom
