#include "slide/dicom/instance.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "slide/pixel_size.hpp"

namespace slidestream::dicom {

namespace {

constexpr std::uint64_t preamble_bytes = 128;
constexpr const char* prefix = "DICM";

constexpr const char* implicit_syntax = "1.2.840.10008.1.2";
constexpr const char* deflated_syntax = "1.2.840.10008.1.2.1.99";
constexpr const char* big_endian_syntax = "1.2.840.10008.1.2.2";

constexpr Tag per_frame_groups = 0x52009230;
constexpr Tag pixel_measures = 0x00289110;
constexpr Tag path_identification = 0x00480207;
constexpr Tag column_position = 0x0048021E;
constexpr Tag row_position = 0x0048021F;
constexpr Tag frame_types = 0x00400710;

/// PixelSpacing, millimetres: between rows, then between columns (PS3.3, 10.7.1.3).
struct Spacing {
  double rows = 0.0;
  double columns = 0.0;

  bool operator==(const Spacing&) const = default;
};

/// Frames' places along an axis, by the numbers that DimensionIndexValues gives to them.
class IndexedPlaces {
 public:
  void add(const std::vector<std::uint32_t>& indices, std::int64_t place) {
    if (!dimension || *dimension >= indices.size()) return;
    const auto [known, is_new] = places_.emplace(indices[*dimension], place);
    has_two_ = has_two_ || (!is_new && known->second != place);
  }

  /// Whether one number stands for two places. The same number for all of them says nothing.
  bool contradicts() const noexcept { return has_two_ && places_.size() > 1; }

  std::optional<std::size_t> dimension;  ///< of DimensionIndexSequence, from 0

 private:
  std::map<std::uint32_t, std::int64_t> places_;
  bool has_two_ = false;
};

class InstanceReader {
 public:
  InstanceReader(Reader& reader, Part part) : reader_(reader), part_(part) {}

  Instance read() {
    if (!has_prefix(reader_.bytes(0, preamble_bytes + 4))) {
      reader_.refuse("isn't a DICOM file: byte 128 isn't the beginning of DICM");
    }
    const std::uint64_t behind = read_meta();
    if (instance_.transfer_syntax == deflated_syntax || instance_.transfer_syntax == big_endian_syntax) {
      const bool is_other = !media_class_.empty() && media_class_ != whole_slide_class;
      if (part_ == Part::series && is_other) {
        instance_.sop_class = media_class_;
        return std::move(instance_);
      }
      reader_.refuse("TransferSyntaxUID (0002,0010) " + instance_.transfer_syntax + " isn't supported");
    }
    const Extent all{behind, reader_.file().size(), instance_.transfer_syntax == implicit_syntax, false};
    reader_.read_data_set(all, [this](const Element& element) { return take(element); });
    const bool has_other_icc =
        misplaced_icc_ && misplaced_icc_->length > 0 && misplaced_icc_->length != undefined_length;
    if (instance_.icc_bytes == 0 && has_other_icc) {
      instance_.icc_at = misplaced_icc_->value_at;
      instance_.icc_bytes = misplaced_icc_->length;
      instance_.has_misplaced_icc = true;
    }
    return std::move(instance_);
  }

 private:
  static constexpr std::uint64_t longest_text = 256;  ///< bytes, of what pixels don't depend on

  /// The group of elements about the file, which is explicit. \returns where the next group begins
  std::uint64_t read_meta() {
    return reader_.read_group(preamble_bytes + 4, 2, [this](const Element& element) -> std::uint64_t {
      if (element.tag == 0x00020002) media_class_ = reader_.text(element, "MediaStorageSOPClassUID");
      if (element.tag == 0x00020010) instance_.transfer_syntax = reader_.text(element, "TransferSyntaxUID");
      return 0;
    });
  }

  std::int64_t number(const Element& element, const char* keyword) { return reader_.unsigned_value(element, keyword); }

  /// Reads the elements of all items of a sequence.
  std::uint64_t read_within(const Element& sequence, const Reader::Take& take) {
    return reader_.read_items(sequence, [&](const Extent& item) { return reader_.read_data_set(item, take); });
  }

  std::uint64_t take(const Element& element) {
    Instance& to = instance_;
    if (part_ == Part::series && element.tag >= per_frame_groups) return Reader::stop;
    switch (element.tag) {
      case 0x00080008:
        to.image_type = reader_.texts(element, "ImageType");
        return 0;
      case 0x00080016:
        to.sop_class = reader_.text(element, "SOPClassUID");
        // What follows may be of any kind and length.
        return part_ == Part::series && to.sop_class != whole_slide_class ? Reader::stop : 0;
      case 0x00080018:
        to.sop_instance = reader_.text(element, "SOPInstanceUID");
        return 0;
      case 0x0020000E:
        to.series = reader_.text(element, "SeriesInstanceUID");
        return 0;
      case 0x00209161:
        to.concatenation = reader_.text(element, "ConcatenationUID");
        return 0;
      case 0x00209162:
        to.part = number(element, "InConcatenationNumber");
        return 0;
      case 0x00209163:
        to.parts = number(element, "InConcatenationTotalNumber");
        return 0;
      case 0x00209228:
        to.frames_before = number(element, "ConcatenationFrameOffsetNumber");
        return 0;
      case 0x00209222:
        return read_dimensions(element);
      case 0x00209311:
        to.organisation = reader_.text(element, "DimensionOrganizationType");
        return 0;
      case 0x00280002:
        to.samples = number(element, "SamplesPerPixel");
        return 0;
      case 0x00280004:
        to.photometric = reader_.text(element, "PhotometricInterpretation");
        return 0;
      case 0x00280006:
        to.planar = number(element, "PlanarConfiguration");
        return 0;
      case 0x00280008:
        to.frames = reader_.integer_text(element, "NumberOfFrames");
        return 0;
      case 0x00280010:
        to.tile_height = number(element, "Rows");
        return 0;
      case 0x00280011:
        to.tile_width = number(element, "Columns");
        return 0;
      case 0x00280030:
        to.has_misplaced_spacing = element.length > 0;
        return 0;
      case 0x00280100:
        to.bits_allocated = number(element, "BitsAllocated");
        return 0;
      case 0x00280101:
        to.bits_stored = number(element, "BitsStored");
        return 0;
      case 0x00280102:
        to.high_bit = number(element, "HighBit");
        return 0;
      case 0x00280103:
        to.is_signed = number(element, "PixelRepresentation");
        return 0;
      case 0x00282000:
        misplaced_icc_ = element;
        return 0;
      case 0x00281052:
        to.rescale_intercept = decimal_of(element, "RescaleIntercept");
        return 0;
      case 0x00281053:
        to.rescale_slope = decimal_of(element, "RescaleSlope");
        return 0;
      case 0x00480001:
        to.volume_mm_x = side_of_volume(element);
        return 0;
      case 0x00480002:
        to.volume_mm_y = side_of_volume(element);
        return 0;
      case 0x00480006:
        to.width = number(element, "TotalPixelMatrixColumns");
        return 0;
      case 0x00480007:
        to.height = number(element, "TotalPixelMatrixRows");
        return 0;
      case 0x00480008:
        return read_within(element, [this](const Element& inside) -> std::uint64_t {
          if (inside.tag == 0x0040072A) instance_.origin_mm_x = decimal_of(inside, "XOffsetInSlideCoordinateSystem");
          if (inside.tag == 0x0040073A) instance_.origin_mm_y = decimal_of(inside, "YOffsetInSlideCoordinateSystem");
          return 0;
        });
      case 0x00480010:
        to.shows_label = element.length <= longest_text && reader_.text(element, "SpecimenLabelInImage") == "YES";
        return 0;
      case 0x00480102:
        to.orientation = orientation_of(element);
        return 0;
      case 0x00480105:
        return read_optical_paths(element);
      case 0x00480302:
        to.optical_paths = std::max(to.optical_paths, number(element, "NumberOfOpticalPaths"));
        return 0;
      case 0x00480303:
        to.focal_planes = number(element, "TotalPixelMatrixFocalPlanes");
        return 0;
      case 0x20500020:
        to.lut_shape = reader_.text(element, "PresentationLUTShape");
        return 0;
      case 0x52009229:
        return read_within(element, [this](const Element& inside) { return take_shared(inside); });
      case per_frame_groups:
        return read_frames(element);
      case 0x7FE00001:
        to.offsets = element;
        return 0;
      case 0x7FE00002:
        to.lengths = element;
        return 0;
      case pixel_data_tag:
        to.pixels = element;
        return Reader::stop;
      default:
        return 0;
    }
  }

  /// DimensionIndexSequence. Pixels are read whatever it says.
  std::uint64_t read_dimensions(const Element& sequence) {
    std::size_t dimension = 0;
    return reader_.read_items(sequence, [this, &dimension](const Extent& item) {
      const std::size_t here = dimension++;
      return reader_.read_data_set(item, [this, here](const Element& inside) -> std::uint64_t {
        if (inside.tag != 0x00209165 || inside.length != 4) return 0;
        // Of a tag the group stands first.
        const std::uint32_t pointer = reader_.number(inside.value_at, 4);
        const std::uint32_t tag = (pointer & 0xFFFFU) << 16U | pointer >> 16U;
        if (tag == column_position) columns_.dimension = here;
        if (tag == row_position) rows_.dimension = here;
        return 0;
      });
    });
  }

  /// FrameContentSequence. Values that can't be read are none.
  std::uint64_t read_frame_content(const Element& sequence) {
    constexpr std::uint64_t most_dimensions = 16;
    return read_within(sequence, [this](const Element& inside) -> std::uint64_t {
      if (inside.tag != 0x00209157 || inside.length % 4 != 0 || inside.length > 4 * most_dimensions) return 0;
      indices_.clear();
      for (std::uint64_t at = 0; at < inside.length; at += 4) {
        indices_.push_back(reader_.number(inside.value_at + at, 4));
      }
      return 0;
    });
  }

  std::optional<double> side_of_volume(const Element& element) {
    const std::optional<double> side = length_of(element);
    instance_.has_unsound_volume = instance_.has_unsound_volume || (!side && element.length > 0);
    return side;
  }

  /// A length above 0 (FL), in the element's unit; nothing where none is said.
  std::optional<double> length_of(const Element& element) {
    const bool is_float = element.vr[0] == 0 || (element.vr[0] == 'F' && element.vr[1] == 'L');
    if (!is_float || element.length != 4) return std::nullopt;
    const auto length = std::bit_cast<float>(reader_.number(element.value_at, 4));
    return std::isfinite(length) && length > 0.0F ? std::optional<double>(length) : std::nullopt;
  }

  /// Pixels are read whatever it says: one that can't be read is none.
  std::optional<double> decimal_of(const Element& element, const char* keyword) {
    constexpr std::uint64_t longest_number = 64;
    return element.length > longest_number ? std::nullopt : decimal_number(reader_.text(element, keyword));
  }

  /// Pixels are read whatever it says: one that can't be read is none.
  std::optional<std::array<double, 6>> orientation_of(const Element& element) {
    if (element.length > longest_text) return std::nullopt;
    std::vector<std::string> values = reader_.texts(element, "ImageOrientationSlide");
    std::array<double, 6> cosines{};
    if (values.size() != cosines.size()) return std::nullopt;
    for (std::size_t i = 0; i < cosines.size(); ++i) {
      const std::optional<double> cosine = decimal_number(std::move(values[i]));
      if (!cosine) return std::nullopt;
      cosines[i] = *cosine;
    }
    return cosines;
  }

  std::uint64_t read_optical_paths(const Element& sequence) {
    instance_.optical_paths = 0;
    return reader_.read_items(sequence, [this](const Extent& item) {
      ++instance_.optical_paths;
      return reader_.read_data_set(item, [this](const Element& element) -> std::uint64_t {
        if (element.tag == 0x00282000 && instance_.icc_bytes == 0) {
          instance_.icc_at = element.value_at;
          instance_.icc_bytes = element.length;
        } else if (element.tag == 0x00480112) {
          const std::vector<double> power = reader_.decimal_texts(element, "ObjectiveLensPower");
          if (power.front() > 0.0) instance_.magnification = power.front();
        } else if (instance_.optical_paths == 1) {
          read_path_of_sequence(element);
        }
        return 0;
      });
    });
  }

  void read_path_of_sequence(const Element& element) {
    constexpr std::uint64_t most_bytes = 64;  // of SH, in any encoding
    OpticalPath& path = instance_.first_path;
    if (element.length > most_bytes) return;
    if (element.tag == 0x00220055) path.wavelength = length_of(element);
    if (element.tag == 0x00480106) path.identifier = reader_.text(element, "OpticalPathIdentifier", most_bytes);
  }

  /// The functional groups that all frames share.
  std::uint64_t take_shared(const Element& element) {
    if (element.tag == path_identification) return read_path(element);
    if (element.tag == frame_types) return read_frame_type(element);
    if (element.tag != pixel_measures) return 0;
    std::optional<Spacing> spacing;
    const std::uint64_t end = read_measures(element, spacing);
    set_spacing(spacing);
    return end;
  }

  /// WholeSlideMicroscopyImageFrameTypeSequence. Pixels are read whatever it says: one that can't be read is none.
  std::uint64_t read_frame_type(const Element& sequence) {
    return read_within(sequence, [this](const Element& inside) -> std::uint64_t {
      if (inside.tag != 0x00089007 || inside.length > longest_text) return 0;
      const std::vector<std::string> values = reader_.texts(inside, "FrameType");
      std::string& flavour = instance_.frame_flavour;
      const bool agrees = flavour.empty() || flavour == instance_.flavour();
      if (values.size() > 2 && agrees) flavour = values[2];
      return 0;
    });
  }

  /// Frames of several optical paths are several images, whatever the rest says.
  std::uint64_t read_path(const Element& sequence) {
    return read_within(sequence, [this](const Element& inside) -> std::uint64_t {
      if (inside.tag != 0x00480106) return 0;
      const std::string path = reader_.text(inside, "OpticalPathIdentifier");
      if (path.empty()) return 0;
      std::string& first = instance_.optical_path;
      if (first.empty()) first = path;
      if (path != first) instance_.optical_paths = std::max<std::int64_t>(instance_.optical_paths, 2);
      return 0;
    });
  }

  std::uint64_t read_measures(const Element& sequence, std::optional<Spacing>& to) {
    return read_within(sequence, [this, &to](const Element& inside) -> std::uint64_t {
      if (inside.tag != 0x00280030) return 0;
      if (frames_share_spacing_) {
        to = spacing_of(inside);
        return 0;
      }
      const std::vector<double> spacing = reader_.decimal_texts(inside, "PixelSpacing");
      if (spacing.size() != 2) reader_.refuse(inside, "PixelSpacing", "has no two values");
      const bool are_sizes = spacing[0] > 0.0 && spacing[1] > 0.0;
      if (are_sizes) to = {spacing[0], spacing[1]};
      instance_.has_unsound_spacing = instance_.has_unsound_spacing || !are_sizes;
      return 0;
    });
  }

  void set_spacing(const std::optional<Spacing>& spacing) {
    if (!spacing) return;
    instance_.mm_y = spacing->rows;
    instance_.mm_x = spacing->columns;
  }

  /// PerFrameFunctionalGroupsSequence. Of frames that go row by row it can say nothing new but the size of pixels; what
  /// the first ones say of their places, optical paths and pixels is kept to be compared.
  std::uint64_t read_frames(const Element& sequence) {
    has_positions_ = instance_.organisation != "TILED_FULL";
    frames_share_spacing_ = instance_.mm_x.has_value();
    std::optional<Spacing> first;
    const std::uint64_t behind = reader_.read_items(sequence, [this, &first](const Extent& item) {
      wants_place_ = has_positions_ || frame_ < Instance::most_said_places;
      if (!wants_place_ && frames_share_spacing_) return Reader::stop;
      column_.reset();
      row_.reset();
      depth_ = Instance::Position::no_depth;
      spacing_.reset();
      indices_.clear();
      const std::uint64_t end =
          reader_.read_data_set(item, [this](const Element& inside) { return take_of_frame(inside); });
      add_place();
      if (frames_share_spacing_) compare_spacing();
      if (frame_++ == 0) first = spacing_;
      instance_.spacings_differ = instance_.spacings_differ || (!frames_share_spacing_ && spacing_ != first);
      return end;
    });
    if (!frames_share_spacing_ && !instance_.spacings_differ) set_spacing(first);
    instance_.has_contrary_indices = columns_.contradicts() || rows_.contradicts();
    return behind;
  }

  /// Keeps the first frame's size of pixels that contradicts the one that all frames share.
  void compare_spacing() {
    if (!spacing_ || instance_.own_spacing) return;
    if (!are_contrary({instance_.mm_x, instance_.mm_y}, {spacing_->columns, spacing_->rows})) return;
    instance_.own_spacing = {frame_, spacing_->columns, spacing_->rows};
  }

  /// Nobody needs a frame's beside the one that all frames share: one that can't be read is none.
  std::optional<Spacing> spacing_of(const Element& element) {
    if (element.length > longest_text) return std::nullopt;
    std::vector<std::string> values = reader_.texts(element, "PixelSpacing");
    if (values.size() != 2) return std::nullopt;
    const std::optional<double> rows = decimal_number(std::move(values[0]));
    const std::optional<double> columns = decimal_number(std::move(values[1]));
    const bool are_sizes = rows && columns && *rows > 0.0 && *columns > 0.0;
    return are_sizes ? std::optional(Spacing{*rows, *columns}) : std::nullopt;
  }

  void add_place() {
    if (!has_positions_) {
      if (column_ && row_) instance_.said_places.push_back({frame_, *column_, *row_});
      return;
    }
    if (!column_) {
      reader_.refuse("frame " + std::to_string(frame_ + 1) + " has no PlanePositionSlideSequence (0048,021A)");
    }
    instance_.positions.push_back({*column_, row_.value_or(0), depth_});
    if (frame_ >= Instance::most_said_places) return;
    columns_.add(indices_, *column_);
    rows_.add(indices_, row_.value_or(0));
  }

  std::uint64_t take_of_frame(const Element& element) {
    if (element.tag == pixel_measures) return read_measures(element, spacing_);
    if (element.tag == path_identification) return read_path(element);
    if (element.tag == frame_types) return read_frame_type(element);
    if (element.tag == 0x00209111 && has_positions_ && frame_ < Instance::most_said_places) {
      return read_frame_content(element);
    }
    if (element.tag != 0x0048021A || !wants_place_) return 0;
    return read_within(element, [this](const Element& inside) -> std::uint64_t {
      if (inside.tag == column_position) {
        column_ = position_of(inside, "ColumnPositionInTotalImagePixelMatrix");
      } else if (inside.tag == row_position) {
        row_ = position_of(inside, "RowPositionInTotalImagePixelMatrix");
      } else if (inside.tag == 0x0040074A && has_positions_ && inside.length > 0) {
        depth_ = reader_.decimal_texts(inside, "ZOffsetInSlideCoordinateSystem").front();
      }
      return 0;
    });
  }

  /// Nobody needs those of frames that go row by row: one that can't be read is none.
  std::optional<std::int64_t> position_of(const Element& element, const char* keyword) {
    if (!has_positions_ && element.length != 4) return std::nullopt;
    return reader_.signed_value(element, keyword);
  }

  Reader& reader_;
  const Part part_;
  Instance instance_;
  std::string media_class_;             ///< the class by the group about the file
  std::int64_t frame_ = 0;              ///< that is read, from 0
  std::optional<std::int64_t> column_;  ///< of that frame
  std::optional<std::int64_t> row_;
  double depth_ = Instance::Position::no_depth;
  std::vector<std::uint32_t> indices_;  ///< of that frame: DimensionIndexValues
  IndexedPlaces columns_;
  IndexedPlaces rows_;
  std::optional<Element> misplaced_icc_;
  std::optional<Spacing> spacing_;
  bool has_positions_ = false;         ///< frames must say where they are
  bool wants_place_ = false;           ///< what the frame says of that is looked at
  bool frames_share_spacing_ = false;  ///< known once the frames' own groups are read
};

}  // namespace

bool has_prefix(std::span<const std::byte> first) noexcept {
  return first.size() >= preamble_bytes + 4 && std::memcmp(first.data() + preamble_bytes, prefix, 4) == 0;
}

Instance read_instance(Reader& reader, Part part) { return InstanceReader(reader, part).read(); }

}  // namespace slidestream::dicom
