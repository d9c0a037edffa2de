#include "sink/dicom_head.hpp"

#include <array>
#include <cmath>
#include <span>
#include <string_view>

#include "sink/srgb_profile.hpp"

namespace slidestream {

namespace {

constexpr std::string_view whole_slide_class = "1.2.840.10008.5.1.4.1.1.77.1.6";
constexpr std::string_view jpeg_syntax = "1.2.840.10008.1.2.4.50";
constexpr std::string_view plain_syntax = "1.2.840.10008.1.2.1";
constexpr std::string_view implementation_class = "2.25.304379466583930291783427263424911327861";
constexpr std::string_view optical_path = "0";

/// Depth of the one focal plane, in micrometres: slides don't say it.
constexpr double depth_um = 1.0;

constexpr std::size_t ratio_characters = 16;

DicomItem code(std::string_view value, std::string_view scheme, std::string_view meaning) {
  DicomItem item;
  item.text(0x00080100, "SH", value);
  item.text(0x00080102, "SH", scheme);
  item.text(0x00080104, "LO", meaning);
  return item;
}

/// (0002,eeee), behind the preamble.
std::vector<std::byte> file_meta(const DicomUids& uids, const DicomLevel& level) {
  DicomItem meta;
  constexpr std::array version = {std::byte{0}, std::byte{1}};
  meta.bytes(0x00020001, "OB", version);
  meta.text(0x00020002, "UI", whole_slide_class);
  meta.text(0x00020003, "UI", uids.instance);
  meta.text(0x00020010, "UI", level.jpeg ? jpeg_syntax : plain_syntax);
  meta.text(0x00020012, "UI", implementation_class);
  meta.text(0x00020013, "SH", "SLIDESTREAM");
  const std::vector<std::byte> rest = meta.encoded();
  DicomItem length;
  length.uint32(0x00020000, static_cast<std::uint32_t>(rest.size()));
  std::vector<std::byte> all = length.encoded();
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

class DicomHeadMaker {
 public:
  DicomHeadMaker(const PyramidLayout& layout, const ImageDescription& description, const DicomAttributes& attributes,
                 const DicomUids& uids, const DicomLevel& level)
      : layout_(layout), description_(description), attributes_(attributes), uids_(uids), level_(level) {}

  DicomItem make() {
    add_patient_and_study();
    add_series_and_equipment();
    add_pixels();
    add_whole_slide();
    add_specimen();
    add_optical_path();
    add_dimensions();
    set_.merge(attributes_.image);
    if (level_.jpeg && level_.extended) {
      set_.bytes(0x7FE00001, "OV", table(level_.offsets));
      set_.bytes(0x7FE00002, "OV", table(level_.lengths));
    }
    return std::move(set_);
  }

 private:
  /// Of patient and study, what must be there without being known.
  void add_patient_and_study() {
    set_.text(0x00100010, "PN", "");
    set_.text(0x00100020, "LO", "");
    set_.text(0x00100030, "DA", "");
    set_.text(0x00100040, "CS", "");
    set_.text(0x0020000D, "UI", uids_.study);
    set_.text(0x00080020, "DA", "");
    set_.text(0x00080030, "TM", "");
    set_.text(0x00080090, "PN", "");
    set_.text(0x00200010, "SH", "");
    set_.text(0x00080050, "SH", "");
  }

  void add_series_and_equipment() {
    const std::string creator = description_.creator.empty() ? "slidestream" : description_.creator;
    set_.text(0x00080005, "CS", "ISO_IR 192");
    set_.text(0x00080016, "UI", whole_slide_class);
    set_.text(0x00080018, "UI", uids_.instance);
    set_.text(0x00080060, "CS", "SM");
    set_.text(0x0020000E, "UI", uids_.series);
    set_.text(0x00200011, "IS", "1");
    set_.text(0x00200013, "IS", std::to_string(level_.level + 1));
    set_.text(0x00200052, "UI", uids_.frame_of_reference);
    set_.text(0x00201040, "LO", "SLIDE_CORNER");
    set_.text(0x00080070, "LO", "slidestream");
    set_.text(0x00081090, "LO", "slidestream");
    set_.text(0x00181000, "LO", "none");
    set_.text(0x00181020, "LO", creator);
    // These must be there, and the clock would make other bytes of the same input.
    set_.text(0x00080023, "DA", "19700101");
    set_.text(0x00080033, "TM", "000000");
    set_.text(0x0008002A, "DT", "19700101000000");
  }

  void add_pixels() {
    const int samples = description_.format.channels;
    const auto side = static_cast<std::uint16_t>(layout_.tile());
    set_.uint16(0x00280002, static_cast<std::uint16_t>(samples));
    set_.text(0x00280004, "CS", level_.photometric);
    if (samples > 1) set_.uint16(0x00280006, 0);
    set_.text(0x00280008, "IS", std::to_string(level_.frames));
    set_.uint16(0x00280010, side);
    set_.uint16(0x00280011, side);
    set_.uint16(0x00280100, 8);
    set_.uint16(0x00280101, 8);
    set_.uint16(0x00280102, 7);
    set_.uint16(0x00280103, 0);
    set_.text(0x00280301, "CS", "NO");
    add_losses();
    if (samples > 1) return;
    set_.text(0x20500020, "CS", "IDENTITY");
    set_.text(0x00281052, "DS", "0");
    set_.text(0x00281053, "DS", "1");
  }

  /// Of the source, and of this image behind it.
  void add_losses() {
    std::string ratios;
    std::string methods;
    const auto add = [&](double ratio, std::string_view method) {
      std::string text = decimal_text(std::round(ratio * 1000.0) / 1000.0);
      text.resize(ratio_characters, ' ');
      ratios += (ratios.empty() ? "" : "\\") + text;
      methods += (methods.empty() ? "" : "\\") + std::string(method);
    };
    if (description_.lossy && !level_.copied) add(description_.lossy->ratio, description_.lossy->method);
    if (level_.jpeg) add(level_.ratio, "ISO_10918_1");
    set_.text(0x00282110, "CS", ratios.empty() ? "00" : "01");
    if (ratios.empty()) return;
    set_.text(0x00282112, "DS", ratios);
    set_.text(0x00282114, "CS", methods);
  }

  void add_whole_slide() {
    const Size size = layout_.size(level_.level);
    const Size whole = layout_.size(0);
    const double mm_x = *description_.mpp / 1000.0;
    const double mm_y = description_.mpp_y.value_or(*description_.mpp) / 1000.0;
    const double width = mm_x * static_cast<double>(whole.width);
    const double height = mm_y * static_cast<double>(whole.height);
    const std::string type = std::string("DERIVED\\PRIMARY\\VOLUME\\") + (level_.level == 0 ? "NONE" : "RESAMPLED");
    set_.text(0x00080008, "CS", type);
    set_.float32(0x00480001, static_cast<float>(width));
    set_.float32(0x00480002, static_cast<float>(height));
    set_.float32(0x00480003, static_cast<float>(depth_um));
    set_.uint32(0x00480006, static_cast<std::uint32_t>(size.width));
    set_.uint32(0x00480007, static_cast<std::uint32_t>(size.height));
    // Rows go down the slide's Y axis, and columns down its X axis: the image's first pixel is furthest from the
    // origin.
    DicomItem origin;
    origin.decimal(0x0040072A, height);
    origin.decimal(0x0040073A, width);
    set_.sequence(0x00480008, {origin});
    set_.text(0x00480102, "DS", "0\\-1\\0\\-1\\0\\0");
    set_.text(0x00089206, "CS", "VOLUME");
    set_.text(0x00480010, "CS", "NO");
    set_.text(0x00480011, "CS", "AUTO");
    set_.text(0x00480012, "CS", "NO");
    set_.uint32(0x00480302, 1);
    set_.uint32(0x00480303, 1);
    set_.sequence(0x00400555, {});

    DicomItem measures;
    measures.decimal(0x00180050, depth_um / 1000.0);
    const std::array spacing = {std::ldexp(mm_y, level_.level), std::ldexp(mm_x, level_.level)};
    measures.decimals(0x00280030, spacing);
    DicomItem frame_type;
    frame_type.text(0x00089007, "CS", type);
    DicomItem path;
    path.text(0x00480106, "SH", optical_path);
    DicomItem shared;
    shared.sequence(0x00289110, {measures});
    shared.sequence(0x00400710, {frame_type});
    shared.sequence(0x00480207, {path});
    set_.sequence(0x52009229, {shared});
  }

  void add_specimen() {
    set_.text(0x00400512, "LO", uids_.container);
    set_.sequence(0x00400513, {});
    set_.sequence(0x00400518, {code("433466003", "SCT", "Microscope slide")});
    DicomItem specimen;
    specimen.text(0x00400551, "LO", attributes_.container.empty() ? uids_.container : attributes_.container);
    specimen.text(0x00400554, "UI", uids_.specimen);
    specimen.sequence(0x00400562, {});
    specimen.sequence(0x00400610, {});
    specimen.merge(attributes_.specimen);
    set_.sequence(0x00400560, {specimen});
  }

  void add_optical_path() {
    DicomItem path;
    path.text(0x00480106, "SH", optical_path);
    path.sequence(0x00220016, {code("111744", "DCM", "Brightfield illumination")});
    path.sequence(0x00480108, {code("414298005", "SCT", "Full Spectrum")});
    if (description_.magnification) path.decimal(0x00480112, *description_.magnification);
    if (description_.format.channels > 1) {
      const bool own = !description_.icc.empty();
      path.bytes(0x00282000, "OB", own ? std::span<const std::byte>(description_.icc) : srgb_profile());
      if (!own) path.text(0x00282002, "CS", "SRGB");
    }
    set_.sequence(0x00480105, {path});
  }

  void add_dimensions() {
    DicomItem organisation;
    organisation.text(0x00209164, "UI", uids_.dimensions);
    set_.sequence(0x00209221, {organisation});
    set_.text(0x00209311, "CS", "TILED_FULL");
  }

  /// A table of one number a frame; 0 where it isn't known yet.
  std::vector<std::byte> table(const std::vector<std::uint64_t>& numbers) const {
    std::vector<std::byte> bytes;
    bytes.reserve(8 * level_.frames);
    for (const std::uint64_t number : numbers) append_number(bytes, number);
    bytes.resize(8 * level_.frames);
    return bytes;
  }

  const PyramidLayout& layout_;
  const ImageDescription& description_;
  const DicomAttributes& attributes_;
  const DicomUids& uids_;
  const DicomLevel& level_;
  DicomItem set_;
};

/// What begins the pixels: their element, and the basic offset table.
void append_pixels(std::vector<std::byte>& to, const DicomLevel& level, std::uint64_t raw_bytes) {
  append_number(to, std::uint32_t{0x00107FE0});
  to.insert(to.end(), {std::byte{'O'}, std::byte{'B'}, std::byte{0}, std::byte{0}});
  append_number(to, level.jpeg ? ~std::uint32_t{0} : static_cast<std::uint32_t>(raw_bytes));
  if (!level.jpeg) return;
  append_number(to, std::uint32_t{0xE000FFFE});
  append_number(to, static_cast<std::uint32_t>(level.extended ? 0 : 4 * level.frames));
  if (level.extended) return;
  const std::size_t end = to.size() + static_cast<std::size_t>(4 * level.frames);
  for (const std::uint64_t offset : level.offsets) append_number(to, static_cast<std::uint32_t>(offset));
  to.resize(end);
}

}  // namespace

std::vector<std::byte> dicom_head(const PyramidLayout& layout, const ImageDescription& description,
                                  const DicomAttributes& attributes, const DicomUids& uids, const DicomLevel& level) {
  constexpr std::size_t preamble = 128;
  std::vector<std::byte> head(preamble);
  for (const char letter : std::string_view("DICM")) head.push_back(static_cast<std::byte>(letter));
  for (const auto& part :
       {file_meta(uids, level), DicomHeadMaker(layout, description, attributes, uids, level).make().encoded()}) {
    head.insert(head.end(), part.begin(), part.end());
  }
  const auto frame = static_cast<std::uint64_t>(layout.tile()) * static_cast<std::uint64_t>(layout.tile()) *
                     static_cast<std::uint64_t>(description.format.channels);
  append_pixels(head, level, frame * level.frames);
  return head;
}

}  // namespace slidestream
