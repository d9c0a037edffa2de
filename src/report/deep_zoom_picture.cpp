#include "report/deep_zoom_picture.hpp"

#include <csetjmp>
#include <cstdio>
// libjpeg's header needs <cstdio> before it.
#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <slidestream/error.hpp>
#include <system_error>

#include "config/read_file.hpp"
#include "report/own_file.hpp"
#include "report/picture.hpp"

namespace slidestream::report {

namespace {

namespace fs = std::filesystem;

/// More than this program's descriptions and tiles of such sides have.
constexpr std::size_t most_description_bytes = 65536;
constexpr std::size_t most_tile_bytes = std::size_t{20} << 20;

struct TileFailure {
  jpeg_error_mgr manager;
  std::jmp_buf back;
};

enum class JpegFault { none, damaged, size, progressive };

/// Nothing with a destructor lives here: an error leaves by longjmp.
JpegFault decode_tile(std::string_view bytes, JDIMENSION width, JDIMENSION height, JSAMPLE* row) {
  jpeg_decompress_struct jpeg;
  TileFailure failure;
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = [](j_common_ptr common) {
    std::longjmp(reinterpret_cast<TileFailure*>(common->err)->back, 1);
  };
  failure.manager.output_message = [](j_common_ptr) {};
  if (setjmp(failure.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return JpegFault::damaged;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  JpegFault fault = JpegFault::none;
  // Each scan of a progressive image costs a walk over all of it.
  if (jpeg.progressive_mode != FALSE || jpeg_has_multiple_scans(&jpeg) != FALSE) fault = JpegFault::progressive;
  if (jpeg.image_width != width || jpeg.image_height != height) fault = JpegFault::size;
  if (fault == JpegFault::none) {
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, &row, 1);
    jpeg_finish_decompress(&jpeg);
    if (failure.manager.num_warnings > 0) fault = JpegFault::damaged;
  }
  jpeg_destroy_decompress(&jpeg);
  return fault;
}

struct DziDescription {
  std::int64_t tile = 0;
  std::int64_t width = 0;
  std::int64_t height = 0;
};

/// The number of an attribute, 1 or more.
std::optional<std::int64_t> attribute_of(std::string_view xml, std::string_view name) {
  const std::string mark = " " + std::string(name) + "=\"";
  const std::size_t at = xml.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = xml.data() + at + mark.size();
  const char* const end = xml.data() + xml.size();
  std::int64_t number = 0;
  const auto [behind, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || behind == end || *behind != '"' || number < 1) return std::nullopt;
  return number;
}

/// What a description that this program wrote says.
DziDescription dzi_description(const fs::path& file) {
  const std::string xml = read_file(file, most_description_bytes, FileOrigin::own);
  const auto tile = attribute_of(xml, "TileSize");
  const auto width = attribute_of(xml, "Width");
  const auto height = attribute_of(xml, "Height");
  constexpr std::int64_t most_side = std::int64_t{1} << 40;
  if (!tile || !width || !height || *width > most_side || *height > most_side) {
    throw SlideError(file.string() + ": isn't the description of a Deep Zoom image");
  }
  return {*tile, *width, *height};
}

/// Pixels of a side in a level, which halves so often.
int dzi_side(std::int64_t side, int halvings) {
  return static_cast<int>((side + (std::int64_t{1} << halvings) - 1) >> halvings);
}

std::string tile_picture(const fs::path& folder, const std::string& file, std::size_t most) {
  const fs::path whole = folder / file;
  const DziDescription image = dzi_description(whole);
  const auto longer = static_cast<std::uint64_t>(std::max(image.width, image.height));
  const auto last = static_cast<int>(std::bit_width(longer - 1));  // the level of all pixels: level 0 has one
  const auto side = static_cast<std::uint64_t>(std::min<std::int64_t>(image.tile, largest_thumbnail));
  for (int level = std::min(static_cast<int>(std::bit_width(side)) - 1, last); level >= 0; --level) {
    const std::string tiles = fs::path(file).replace_extension().string() + "_files";
    const std::string name = tiles + "/" + std::to_string(level) + "/0_0.jpg";
    check_own_file(folder, name, 0);
    std::string bytes = read_file(folder / name, most_tile_bytes, FileOrigin::own);
    if (bytes.size() > most) continue;
    const std::string fault =
        fault_of_jpeg(bytes, dzi_side(image.width, last - level), dzi_side(image.height, last - level));
    if (!fault.empty()) throw SlideError(whole.string() + ": its tile " + std::to_string(level) + "/0_0.jpg " + fault);
    return bytes;
  }
  return {};
}

}  // namespace

std::string fault_of_jpeg(std::string_view bytes, int width, int height) {
  if (!bytes.starts_with("\xff\xd8\xff")) return "isn't a JPEG image";
  if (width < 1 || height < 1 || width > largest_thumbnail || height > largest_thumbnail) return "has another size";
  std::array<JSAMPLE, std::size_t{largest_thumbnail} * MAX_COMPONENTS> row{};
  switch (decode_tile(bytes, static_cast<JDIMENSION>(width), static_cast<JDIMENSION>(height), row.data())) {
    case JpegFault::none:
      return {};
    case JpegFault::damaged:
      return "is damaged";
    case JpegFault::size:
      return "has another size";
    case JpegFault::progressive:
      break;
  }
  return "is a JPEG image of several scans, which runs don't write";
}

std::string deep_zoom_picture(const fs::path& folder, const std::string& file, std::uint64_t bytes, std::size_t most) {
  check_own_file(folder, file, bytes);
  try {
    return tile_picture(folder, file, most);
  } catch (const ConfigError& error) {
    throw SlideError(error.what());
  }
}

}  // namespace slidestream::report
