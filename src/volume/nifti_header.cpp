#include "volume/nifti_header.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <slidestream/error.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace slidestream::volume {
namespace {

constexpr int metres = 1;
constexpr int micrometres = 3;

static_assert(std::endian::native == std::endian::little, "written files have the low byte first");

constexpr std::size_t size_1 = 348;
constexpr std::size_t size_2 = 540;
constexpr std::size_t extension_flag = 4;
constexpr std::int64_t most_voxels = std::int64_t{1} << 40;
constexpr int intent_label = 1002;
/// Bytes in front of the samples: the header, and extensions.
constexpr std::uint64_t most_before = std::uint64_t{1} << 30;

/// Where the fields lie that both versions have, with other sizes.
struct Layout {
  std::size_t dim, datatype, bitpix, pixdim, vox_offset, slope, inter, units, qform, sform, quatern, qoffset, srow,
      intent, dim_info;
};
constexpr Layout layout_1 = {40, 70, 72, 76, 108, 112, 116, 123, 252, 254, 256, 268, 280, 68, 39};
constexpr Layout layout_2 = {16, 12, 14, 104, 168, 176, 184, 500, 344, 348, 352, 376, 400, 504, 524};

/// NIfTI's code of a type.
struct TypeCode {
  int code;
  ScalarType type;
  const char* name;
};
constexpr std::array<TypeCode, 10> type_codes = {{{2, ScalarType::uint8, "uint8"},
                                                  {256, ScalarType::int8, "int8"},
                                                  {512, ScalarType::uint16, "uint16"},
                                                  {4, ScalarType::int16, "int16"},
                                                  {768, ScalarType::uint32, "uint32"},
                                                  {8, ScalarType::int32, "int32"},
                                                  {1280, ScalarType::uint64, "uint64"},
                                                  {1024, ScalarType::int64, "int64"},
                                                  {16, ScalarType::float32, "float32"},
                                                  {64, ScalarType::float64, "float64"}}};

/// Types that aren't read, for messages.
std::string name_of_code(int code) {
  constexpr std::array<std::pair<int, std::string_view>, 8> others = {{{1, "single bits"},
                                                                       {32, "complex64"},
                                                                       {128, "RGB"},
                                                                       {1536, "float128"},
                                                                       {1792, "complex128"},
                                                                       {2048, "complex256"},
                                                                       {2304, "RGBA"},
                                                                       {0, "no type"}}};
  const auto found = std::ranges::find(others, code, &std::pair<int, std::string_view>::first);
  return found != others.end() ? std::string(found->second) : "the unknown type " + std::to_string(code);
}

template <class Number>
Number swapped(Number value) noexcept {
  std::array<std::byte, sizeof(Number)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  std::ranges::reverse(bytes);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Fields of one version in one byte order. A number's type in the file is the version's.
class Fields {
 public:
  Fields(std::span<const std::byte> bytes, int version, bool swap)
      : bytes_(bytes), version_(version), swap_(swap), at_(version == 1 ? layout_1 : layout_2) {}

  const Layout& at() const noexcept { return at_; }

  template <class Number>
  Number get(std::size_t offset) const noexcept {
    Number value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return swap_ ? swapped(value) : value;
  }
  /// Number `i` of a list of real numbers, or of sizes.
  double real(std::size_t offset, std::size_t i = 0) const noexcept {
    return version_ == 1 ? get<float>(offset + 4 * i) : get<double>(offset + 8 * i);
  }
  std::int64_t dim(std::size_t i) const noexcept {
    return version_ == 1 ? get<std::int16_t>(at_.dim + 2 * i) : get<std::int64_t>(at_.dim + 8 * i);
  }
  int code(std::size_t offset) const noexcept {
    return version_ == 1 ? get<std::int16_t>(offset) : get<std::int32_t>(offset);
  }
  int byte(std::size_t offset) const noexcept { return std::to_integer<int>(bytes_[offset]); }

 private:
  std::span<const std::byte> bytes_;
  int version_;
  bool swap_;
  const Layout& at_;
};

/// Version and byte order by the header's own size; nothing where it has neither size.
std::optional<std::pair<int, bool>> find_kind(std::span<const std::byte> bytes) noexcept {
  std::int32_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  for (const bool swap : {false, true}) {
    const auto found = static_cast<std::size_t>(swap ? swapped(size) : size);
    if (found == size_1 || found == size_2) return std::pair(found == size_1 ? 1 : 2, swap);
  }
  return std::nullopt;
}

std::pair<int, bool> kind_of(std::span<const std::byte> bytes) {
  if (const auto kind = find_kind(bytes)) return *kind;
  if (bytes.size() < sizeof(std::int32_t))
    throw Error("no NIfTI file: it has " + std::to_string(bytes.size()) + " bytes");
  throw Error("no NIfTI file: it doesn't begin with 348 or 540, the size of a header");
}

void check_magic(std::span<const std::byte> bytes, int version) {
  const auto text = [&](std::size_t offset, std::size_t length) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()) + offset, length);
  };
  using namespace std::string_view_literals;
  const bool single = version == 1 ? text(344, 4) == "n+1\0"sv : text(4, 8) == "n+2\0\r\n\x1a\n"sv;
  if (single) return;
  if (version == 1 ? text(344, 4) == "ni1\0"sv : text(4, 4) == "ni2\0"sv) {
    throw Error("its samples lie in another file (.img); expected one file that holds both");
  }
  throw Error("no NIfTI file: its magic bytes are wrong");
}

void read_size(const Fields& fields, NiftiHeader& header) {
  const std::int64_t dimensions = fields.dim(0);
  if (dimensions < 1 || dimensions > 7) {
    throw Error("its header says " + std::to_string(dimensions) + " dimensions; expected 3");
  }
  std::int64_t voxels = 1;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(dimensions); ++i) {
    const std::int64_t side = fields.dim(i);
    if (side < 1)
      throw Error("its header says " + std::to_string(side) + " samples along dimension " + std::to_string(i));
    if (i > 3 && side > 1) {
      throw Error("it has " + std::to_string(side) + " volumes along dimension " + std::to_string(i) +
                  "; expected one 3-D volume");
    }
    if (side > most_voxels / voxels) throw Error("its header says more than 2^40 samples");
    voxels *= side;
    if (i <= 3) header.size[i - 1] = side;
  }
}

void read_type(const Fields& fields, NiftiHeader& header) {
  const int code = fields.get<std::int16_t>(fields.at().datatype);
  const auto found = std::ranges::find(type_codes, code, &TypeCode::code);
  if (found == type_codes.end())
    throw Error("its samples are " + name_of_code(code) + "; expected one real number each");
  header.type = found->type;
  const int bits = fields.get<std::int16_t>(fields.at().bitpix);
  const auto expected = static_cast<int>(8 * bytes_of(header.type));
  if (bits != expected) {
    throw Error("its header says " + std::to_string(bits) + " bits per sample of " + found->name + "; expected " +
                std::to_string(expected));
  }
}

void read_scaling(const Fields& fields, NiftiHeader& header) {
  const double slope = fields.real(fields.at().slope);
  const double inter = fields.real(fields.at().inter);
  // The format's definition: 0 means unscaled. NaN means the same for other readers.
  if (slope == 0.0 || !std::isfinite(slope)) return;
  if (!std::isfinite(inter)) throw Error("its header has a slope, but scl_inter is no finite number");
  header.scaled = slope != 1.0 || inter != 0.0;
  header.slope = slope;
  header.inter = inter;
}

void read_offset(const Fields& fields, std::size_t header_size, NiftiHeader& header) {
  const std::size_t at = fields.at().vox_offset;
  const double offset = header.version == 1 ? fields.get<float>(at) : static_cast<double>(fields.get<std::int64_t>(at));
  constexpr double most = 9e15;
  if (!(offset >= 0.0 && offset <= most) || offset != std::floor(offset)) {
    throw Error("its header says that samples begin at an impossible byte (vox_offset)");
  }
  // Some writers leave 0, and mean the first byte that can be one. Of others inside the header readers disagree.
  const std::uint64_t least = header_size + extension_flag;
  header.offset = offset == 0.0 ? least : static_cast<std::uint64_t>(offset);
  if (header.offset >= least && header.offset <= most_before) return;
  throw Error("its header says that samples begin at byte " + std::to_string(header.offset) +
              " (vox_offset); expected " + std::to_string(least) + " to " + std::to_string(most_before));
}

void read_geometry(const Fields& fields, NiftiGeometry& geometry) {
  const Layout& at = fields.at();
  for (std::size_t i = 0; i < 4; ++i) geometry.pixdim[i] = fields.real(at.pixdim, i);
  for (std::size_t i = 0; i < 3; ++i) geometry.quatern[i] = fields.real(at.quatern, i);
  for (std::size_t i = 0; i < 3; ++i) geometry.qoffset[i] = fields.real(at.qoffset, i);
  for (std::size_t i = 0; i < 12; ++i) geometry.srow[i] = fields.real(at.srow, i);
  geometry.qform_code = fields.code(at.qform);
  geometry.sform_code = fields.code(at.sform);
  geometry.dim_info = fields.byte(at.dim_info);
}

/// Writes fields as `Fields` reads them, low byte first.
class FieldWriter {
 public:
  FieldWriter(std::vector<std::byte>& bytes, int version)
      : bytes_(bytes), version_(version), at_(version == 1 ? layout_1 : layout_2) {}

  const Layout& at() const noexcept { return at_; }

  template <class Number>
  void put(std::size_t offset, std::type_identity_t<Number> value) noexcept {
    std::memcpy(bytes_.data() + offset, &value, sizeof(Number));
  }
  void real(std::size_t offset, double value, std::size_t i = 0) noexcept {
    if (version_ == 1) {
      put<float>(offset + 4 * i, static_cast<float>(value));
    } else {
      put<double>(offset + 8 * i, value);
    }
  }
  void dim(std::size_t i, std::int64_t value) noexcept {
    if (version_ == 1) {
      put<std::int16_t>(at_.dim + 2 * i, static_cast<std::int16_t>(value));
    } else {
      put<std::int64_t>(at_.dim + 8 * i, value);
    }
  }
  void code(std::size_t offset, int value) noexcept {
    if (version_ == 1) {
      put<std::int16_t>(offset, static_cast<std::int16_t>(value));
    } else {
      put<std::int32_t>(offset, value);
    }
  }

 private:
  std::vector<std::byte>& bytes_;
  int version_;
  const Layout& at_;
};

void write_geometry(FieldWriter& fields, const NiftiGeometry& geometry) {
  const Layout& at = fields.at();
  for (std::size_t i = 0; i < 4; ++i) fields.real(at.pixdim, geometry.pixdim[i], i);
  for (std::size_t i = 0; i < 3; ++i) fields.real(at.quatern, geometry.quatern[i], i);
  for (std::size_t i = 0; i < 3; ++i) fields.real(at.qoffset, geometry.qoffset[i], i);
  for (std::size_t i = 0; i < 12; ++i) fields.real(at.srow, geometry.srow[i], i);
  fields.code(at.qform, geometry.qform_code);
  fields.code(at.sform, geometry.sform_code);
  fields.put<std::uint8_t>(at.dim_info, static_cast<std::uint8_t>(geometry.dim_info));
}

/// The vectors from a voxel to the next along x, y, z.
using Axes = std::array<std::array<double, 3>, 3>;

double length_of(const std::array<double, 3>& axis) {
  return std::sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2]);
}

Axes axes_of_sform(const std::array<double, 12>& rows) {
  Axes axes{};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) axes[i][k] = rows[4 * k + i];
  }
  return axes;
}

/// By the format's definition (nifti1.h, method 2).
Axes axes_of_qform(const std::array<double, 3>& quatern, const std::array<double, 4>& pixdim) {
  const auto [b, c, d] = quatern;
  const double a = std::sqrt(std::max(0.0, 1.0 - (b * b + c * c + d * d)));
  Axes axes = {{{a * a + b * b - c * c - d * d, 2.0 * (b * c + a * d), 2.0 * (b * d - a * c)},
                {2.0 * (b * c - a * d), a * a + c * c - b * b - d * d, 2.0 * (c * d + a * b)},
                {2.0 * (b * d + a * c), 2.0 * (c * d - a * b), a * a + d * d - c * c - b * b}}};
  for (std::size_t i = 0; i < 3; ++i) {
    const double side = std::abs(pixdim[i + 1]) * (i == 2 && pixdim[0] < 0.0 ? -1.0 : 1.0);
    for (double& part : axes[i]) part *= side;
  }
  return axes;
}

/// Whether b, c, d are of a unit quaternion, but for the rounding of float32.
bool is_rotation(const std::array<double, 3>& quatern) {
  constexpr double most = 1.0 + 3.0 * std::numeric_limits<float>::epsilon();
  const auto [b, c, d] = quatern;
  return b * b + c * c + d * d <= most;
}

/// Sides in millimetres, and where the axes lead: L or R, A or P, S or I.
std::string text_of(const Axes& axes, double scale) {
  std::ostringstream text;
  std::string ways;
  for (std::size_t i = 0; i < 3; ++i) {
    text << (i == 0 ? "" : " x ") << length_of(axes[i]) * scale;
    const auto longest =
        std::ranges::max_element(axes[i], [](double one, double other) { return std::abs(one) < std::abs(other); });
    const auto along = static_cast<std::size_t>(longest - axes[i].begin());
    ways += std::string_view(*longest > 0.0 ? "RAS" : "LPI")[along];
  }
  text << " mm, axes " << ways;
  return text.str();
}

}  // namespace

std::size_t bytes_of(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::uint8:
    case ScalarType::int8:
      return 1;
    case ScalarType::uint16:
    case ScalarType::int16:
      return 2;
    case ScalarType::uint32:
    case ScalarType::int32:
    case ScalarType::float32:
      return 4;
    case ScalarType::uint64:
    case ScalarType::int64:
    case ScalarType::float64:
      return 8;
  }
  return 8;
}

std::string name_of(ScalarType type) { return std::ranges::find(type_codes, type, &TypeCode::type)->name; }

std::array<double, 3> NiftiGeometry::spacing_mm() const noexcept {
  std::array<double, 3> lengths{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double x = srow[i];
    const double y = srow[4 + i];
    const double z = srow[8 + i];
    double length = sform_code > 0 ? std::sqrt(x * x + y * y + z * z) : std::abs(pixdim[i + 1]);
    if (units == metres) length *= 1e3;
    if (units == micrometres) length *= 1e-3;
    lengths[2 - i] = length;
  }
  return lengths;
}

double NiftiGeometry::voxel_mm3() const noexcept {
  double volume = 0.0;
  if (sform_code > 0) {
    const auto m = [this](std::size_t row, std::size_t column) { return srow[row * 4 + column]; };
    volume = m(0, 0) * (m(1, 1) * m(2, 2) - m(1, 2) * m(2, 1)) - m(0, 1) * (m(1, 0) * m(2, 2) - m(1, 2) * m(2, 0)) +
             m(0, 2) * (m(1, 0) * m(2, 1) - m(1, 1) * m(2, 0));
  } else {
    volume = pixdim[1] * pixdim[2] * pixdim[3];
  }
  if (units == metres) volume *= 1e9;
  if (units == micrometres) volume *= 1e-9;
  volume = std::abs(volume);
  return std::isfinite(volume) && volume > 0.0 ? volume : std::numeric_limits<double>::quiet_NaN();
}

std::string NiftiGeometry::doubt() const {
  constexpr double most_difference = 0.01;
  constexpr double least_cosine = 0.7071;
  if (qform_code <= 0) return {};
  if (!is_rotation(quatern)) {
    std::ostringstream text;
    text << "its qform is no rotation (quatern_b, c, d = " << quatern[0] << ", " << quatern[1] << ", " << quatern[2]
         << "): it is copied as it is, and other readers may refuse it";
    return text.str();
  }
  if (sform_code <= 0) return {};
  const Axes sform = axes_of_sform(srow);
  const Axes qform = axes_of_qform(quatern, pixdim);
  bool contradicts = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const double by_sform = length_of(sform[i]);
    const double by_qform = length_of(qform[i]);
    // One that says nothing contradicts nothing.
    if (!(std::isfinite(by_sform) && std::isfinite(by_qform) && by_sform > 0.0 && by_qform > 0.0)) return {};
    double product = 0.0;
    for (std::size_t k = 0; k < 3; ++k) product += sform[i][k] * qform[i][k];
    contradicts = contradicts || std::abs(by_sform - by_qform) > most_difference * std::max(by_sform, by_qform) ||
                  product < least_cosine * by_sform * by_qform;
  }
  if (!contradicts) return {};
  const double scale = units == metres ? 1e3 : units == micrometres ? 1e-3 : 1.0;
  return "its sform (" + text_of(sform, scale) + ") contradicts its qform (" + text_of(qform, scale) +
         "): the sform counts";
}

std::uint64_t NiftiHeader::sample_bytes() const noexcept {
  return static_cast<std::uint64_t>(voxels()) * bytes_of(type);
}

bool begins_as_nifti(std::span<const std::byte> bytes) noexcept { return find_kind(bytes).has_value(); }

NiftiHeader parse_nifti(std::span<const std::byte> bytes) {
  NiftiHeader header;
  std::tie(header.version, header.swapped) = kind_of(bytes);
  const std::size_t size = header.version == 1 ? size_1 : size_2;
  if (bytes.size() < size) {
    throw Error("cut short: a header has " + std::to_string(size) + " bytes, and " + std::to_string(bytes.size()) +
                " are there");
  }
  check_magic(bytes, header.version);
  const Fields fields(bytes, header.version, header.swapped);
  read_size(fields, header);
  read_type(fields, header);
  read_scaling(fields, header);
  read_offset(fields, size, header);
  read_geometry(fields, header.geometry);
  constexpr int of_space = 7;
  const std::size_t units = fields.at().units;
  header.geometry.units = (header.version == 1 ? fields.byte(units) : fields.code(units)) & of_space;
  return header;
}

std::vector<std::byte> nifti_head(const NiftiHeader& like, ScalarType type, bool labels) {
  const std::size_t size = like.version == 1 ? size_1 : size_2;
  std::vector<std::byte> bytes(size + extension_flag);
  FieldWriter fields(bytes, like.version);
  const Layout& at = fields.at();
  fields.put<std::int32_t>(0, static_cast<std::int32_t>(size));
  constexpr std::string_view magic_1("n+1\0", 4);
  constexpr std::string_view magic_2("n+2\0\r\n\x1a\n", 8);
  if (like.version == 1) {
    std::memcpy(bytes.data() + 344, magic_1.data(), magic_1.size());
    fields.put<char>(38, 'r');  // "regular", as Analyze 7.5 wants it
  } else {
    std::memcpy(bytes.data() + 4, magic_2.data(), magic_2.size());
  }
  fields.dim(0, 3);
  for (std::size_t i = 1; i <= 7; ++i) fields.dim(i, i <= 3 ? like.size[i - 1] : 1);
  const int code = std::ranges::find(type_codes, type, &TypeCode::type)->code;
  fields.put<std::int16_t>(at.datatype, static_cast<std::int16_t>(code));
  fields.put<std::int16_t>(at.bitpix, static_cast<std::int16_t>(8 * bytes_of(type)));
  if (like.version == 1) {
    fields.put<float>(at.vox_offset, static_cast<float>(bytes.size()));
    fields.put<std::uint8_t>(at.units, static_cast<std::uint8_t>(like.geometry.units));
  } else {
    fields.put<std::int64_t>(at.vox_offset, static_cast<std::int64_t>(bytes.size()));
    fields.code(at.units, like.geometry.units);
  }
  fields.real(at.slope, 1.0);
  if (labels) fields.code(at.intent, intent_label);
  write_geometry(fields, like.geometry);
  return bytes;
}

}  // namespace slidestream::volume
