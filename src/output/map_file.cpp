#include "output/map_file.hpp"

#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstring>
#include <limits>
#include <memory>
#include <slidestream/error.hpp>
#include <system_error>

namespace slidestream {

namespace {

/// A file in memory, for libtiff: what reaches the disk goes through AtomicFile like every other result.
struct MemoryFile {
  std::vector<std::byte> bytes;
  std::size_t at = 0;

  static MemoryFile& of(thandle_t handle) { return *static_cast<MemoryFile*>(handle); }

  static tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
    MemoryFile& file = of(handle);
    const std::size_t left = file.bytes.size() - std::min(file.at, file.bytes.size());
    const std::size_t count = std::min(left, static_cast<std::size_t>(size));
    if (count > 0) std::memcpy(to, file.bytes.data() + file.at, count);
    file.at += count;
    return static_cast<tmsize_t>(count);
  }
  static tmsize_t write(thandle_t handle, void* from, tmsize_t size) {
    MemoryFile& file = of(handle);
    const std::size_t end = file.at + static_cast<std::size_t>(size);
    if (end > file.bytes.size()) file.bytes.resize(end);
    if (size > 0) std::memcpy(file.bytes.data() + file.at, from, static_cast<std::size_t>(size));
    file.at = end;
    return size;
  }
  static toff_t seek(thandle_t handle, toff_t offset, int whence) {
    MemoryFile& file = of(handle);
    const std::size_t base = whence == SEEK_CUR ? file.at : whence == SEEK_END ? file.bytes.size() : 0;
    file.at = base + static_cast<std::size_t>(offset);
    return file.at;
  }
  static int close(thandle_t) { return 0; }
  static toff_t size(thandle_t handle) { return of(handle).bytes.size(); }
};

int note_complaint(TIFF* /*tiff*/, void* noted, const char* /*module*/, const char* /*format*/, va_list /*values*/) {
  *static_cast<bool*>(noted) = true;
  return 1;
}

struct CloseTiff {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
};

}  // namespace

std::vector<std::byte> tiff_bytes(const WindowMap& map, std::optional<double> micrometres,
                                  std::optional<double> micrometres_y) {
  constexpr std::uint64_t rows_per_strip = 64;
  constexpr std::uint64_t largest_classic = std::uint64_t{3} << 30;
  const auto row_floats = static_cast<std::size_t>(map.columns) * 2;
  const std::uint64_t bytes = map.values.size() * sizeof(float);
  if (map.columns > std::numeric_limits<std::uint32_t>::max() || map.rows > std::numeric_limits<std::uint32_t>::max()) {
    throw OutputError("a map of " + std::to_string(map.columns) + " x " + std::to_string(map.rows) +
                      " windows is too large for TIFF");
  }
  MemoryFile file;
  file.bytes.reserve(bytes + 65536);
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFClientOpen("map", bytes > largest_classic ? "w8m" : "wm", &file,
                                                             MemoryFile::read, MemoryFile::write, MemoryFile::seek,
                                                             MemoryFile::close, MemoryFile::size, nullptr, nullptr));
  if (!tiff) throw OutputError("libtiff can't make a file in memory");
  TIFF* out = tiff.get();
  const std::uint16_t other_sample = EXTRASAMPLE_UNSPECIFIED;
  TIFFSetField(out, TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(map.columns));
  TIFFSetField(out, TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(map.rows));
  TIFFSetField(out, TIFFTAG_BITSPERSAMPLE, 32);
  TIFFSetField(out, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_IEEEFP);
  TIFFSetField(out, TIFFTAG_SAMPLESPERPIXEL, 2);
  TIFFSetField(out, TIFFTAG_EXTRASAMPLES, 1, &other_sample);
  TIFFSetField(out, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(out, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(out, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  TIFFSetField(out, TIFFTAG_ROWSPERSTRIP, static_cast<std::uint32_t>(rows_per_strip));
  TIFFSetField(out, TIFFTAG_IMAGEDESCRIPTION, "mean and standard deviation of every window");
  if (micrometres && *micrometres > 0) {
    TIFFSetField(out, TIFFTAG_RESOLUTIONUNIT, RESUNIT_CENTIMETER);
    TIFFSetField(out, TIFFTAG_XRESOLUTION, 1e4 / *micrometres);
    TIFFSetField(out, TIFFTAG_YRESOLUTION, 1e4 / micrometres_y.value_or(*micrometres));
  }
  std::vector<float> row(row_floats);
  for (std::int64_t y = 0; y < map.rows; ++y) {
    // libtiff takes a buffer that it may change.
    std::copy_n(map.values.data() + static_cast<std::size_t>(y) * row_floats, row_floats, row.data());
    if (TIFFWriteScanline(out, row.data(), static_cast<std::uint32_t>(y), 0) != 1) {
      throw OutputError("libtiff can't write a map's row");
    }
  }
  if (TIFFWriteDirectory(out) != 1) throw OutputError("libtiff can't write a map's directory");
  return std::move(file.bytes);
}

bool is_whole_tiff(const std::filesystem::path& file, const WindowMap& map) {
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> options(TIFFOpenOptionsAlloc(),
                                                                                 &TIFFOpenOptionsFree);
  bool complained = false;
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), note_complaint, &complained);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_complaint, &complained);
  const std::unique_ptr<TIFF, CloseTiff> tiff(TIFFOpenExt(file.c_str(), "rm", options.get()));
  if (!tiff || complained) return false;
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  if (width != map.columns || height != map.rows) return false;
  std::error_code code;
  const std::uint64_t size = std::filesystem::file_size(file, code);
  std::uint64_t bytes = 0;
  for (std::uint32_t strip = 0; strip < TIFFNumberOfStrips(tiff.get()); ++strip) {
    const std::uint64_t offset = TIFFGetStrileOffset(tiff.get(), strip);
    const std::uint64_t count = TIFFGetStrileByteCount(tiff.get(), strip);
    if (offset > size || count > size - offset) return false;
    bytes += count;
  }
  return !complained && bytes == std::uint64_t{width} * height * 2 * sizeof(float);
}

}  // namespace slidestream
