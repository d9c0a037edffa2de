#include "synth/aperio_file.hpp"

#include <cstdio>
#include <cstdlib>

namespace slidestream::synth {

namespace {

constexpr std::uint16_t compression_aperio_rgb = 33005;  // JPEG 2000, RGB
constexpr std::uint32_t picture_rows_per_strip = 16;

std::uint16_t compression_of(SynthCodec codec) {
  switch (codec) {
    case SynthCodec::none:
      return COMPRESSION_NONE;
    case SynthCodec::jpeg2000:
      return compression_aperio_rgb;
    default:
      return COMPRESSION_JPEG;
  }
}

std::uint16_t photometric_of(SynthCodec codec) {
  switch (codec) {
    case SynthCodec::jpeg_grey:
      return PHOTOMETRIC_MINISBLACK;
    case SynthCodec::jpeg_420:
    case SynthCodec::jpeg_422:
    case SynthCodec::jpeg_444:
      return PHOTOMETRIC_YCBCR;
    default:
      return PHOTOMETRIC_RGB;
  }
}

/// As Aperio says what a picture is.
std::uint32_t subfile_of(Beside which) {
  switch (which) {
    case Beside::label:
      return 1;
    case Beside::macro:
      return 9;
    case Beside::thumbnail:
      break;
  }
  return 0;
}

}  // namespace

Picture::Picture(int across, int down, std::uint8_t grey)
    : width(across), height(down), rgb(static_cast<std::size_t>(across) * down * 3, grey) {}

AperioFile::AperioFile(const std::filesystem::path& file, const SynthOptions& options, bool big_tiff)
    : options_(options), file_(file) {
  const char* mode = big_tiff ? "w8l" : "w4l";
#if TIFFLIB_VERSION >= 20221213
  // This file's errors are reported by exceptions and must not appear on stderr.
  const auto quiet = [](TIFF*, void*, const char*, const char*, va_list) { return 1; };
  const std::unique_ptr<TIFFOpenOptions, decltype(&TIFFOpenOptionsFree)> opening(TIFFOpenOptionsAlloc(),
                                                                                 &TIFFOpenOptionsFree);
  check(opening != nullptr);
  TIFFOpenOptionsSetErrorHandlerExtR(opening.get(), quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(opening.get(), quiet, nullptr);
  tiff_.reset(TIFFClientOpenExt(file.c_str(), mode, this, read_some, write_some, seek, close, file_size, nullptr,
                                nullptr, opening.get()));
#else
  tiff_.reset(
      TIFFClientOpen(file.c_str(), mode, this, read_some, write_some, seek, close, file_size, nullptr, nullptr));
#endif
  check(tiff_ != nullptr);
}

AperioFile::~AperioFile() = default;

void AperioFile::check(bool fine) const {
  if (!fine) file_.fail("libtiff refuses");
}

template <typename... Values>
void AperioFile::set(std::uint32_t tag, Values... values) {
  check(TIFFSetField(tiff_.get(), tag, values...) == 1);
}

void AperioFile::begin_level(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> tables,
                             const std::string& description) {
  const SynthCodec codec = options_.codec;
  const std::uint16_t photometric = photometric_of(codec);
  set(TIFFTAG_SUBFILETYPE, 0U);
  set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(width));
  set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(height));
  set(TIFFTAG_BITSPERSAMPLE, 8);
  set(TIFFTAG_SAMPLESPERPIXEL, codec == SynthCodec::jpeg_grey ? 1 : 3);
  set(TIFFTAG_COMPRESSION, static_cast<int>(compression_of(codec)));
  set(TIFFTAG_PHOTOMETRIC, static_cast<int>(photometric));
  set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  set(TIFFTAG_TILEWIDTH, static_cast<std::uint32_t>(options_.tile));
  set(TIFFTAG_TILELENGTH, static_cast<std::uint32_t>(options_.tile));
  set(TIFFTAG_IMAGEDEPTH, 1U);
  set(TIFFTAG_IMAGEDESCRIPTION, description.c_str());
  if (!tables.empty()) {
    set(TIFFTAG_JPEGTABLES, static_cast<std::uint32_t>(tables.size()), static_cast<const void*>(tables.data()));
  }
  // Aperio writes this tag with RGB-coded JPEG too, where it means nothing.
  const bool halved = codec == SynthCodec::jpeg_420 || codec == SynthCodec::jpeg_rgb;
  if (photometric == PHOTOMETRIC_YCBCR || codec == SynthCodec::jpeg_rgb) {
    set(TIFFTAG_YCBCRSUBSAMPLING, halved || codec == SynthCodec::jpeg_422 ? 2 : 1, halved ? 2 : 1);
  }
}

void AperioFile::write_tile(std::int64_t index, std::span<const std::uint8_t> bytes) {
  // libtiff takes a mutable pointer and only reads.
  const auto length = static_cast<tmsize_t>(bytes.size());
  check(TIFFWriteRawTile(tiff_.get(), static_cast<std::uint32_t>(index), const_cast<std::uint8_t*>(bytes.data()),
                         length) == length);
}

void AperioFile::end_level() { check(TIFFWriteDirectory(tiff_.get()) == 1); }

void AperioFile::write_picture(Beside which, const Picture& picture, const std::string& description) {
  set(TIFFTAG_SUBFILETYPE, subfile_of(which));
  set(TIFFTAG_IMAGEWIDTH, static_cast<std::uint32_t>(picture.width));
  set(TIFFTAG_IMAGELENGTH, static_cast<std::uint32_t>(picture.height));
  set(TIFFTAG_BITSPERSAMPLE, 8);
  set(TIFFTAG_SAMPLESPERPIXEL, 3);
  set(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  set(TIFFTAG_ROWSPERSTRIP, picture_rows_per_strip);
  set(TIFFTAG_IMAGEDEPTH, 1U);
  set(TIFFTAG_IMAGEDESCRIPTION, description.c_str());
  if (which != Beside::label) {
    set(TIFFTAG_COMPRESSION, COMPRESSION_JPEG);
    set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_YCBCR);
    set(TIFFTAG_YCBCRSUBSAMPLING, 2, 2);
    set(TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
  } else {
    set(TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    set(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    set(TIFFTAG_PREDICTOR, PREDICTOR_HORIZONTAL);
  }
  std::vector<std::uint8_t> row(static_cast<std::size_t>(picture.width) * 3);
  for (int y = 0; y < picture.height; ++y) {
    // A copy: libtiff's predictor works in place.
    row.assign(picture.at(0, y), picture.at(0, y) + row.size());
    check(TIFFWriteScanline(tiff_.get(), row.data(), static_cast<std::uint32_t>(y)) == 1);
  }
  check(TIFFWriteDirectory(tiff_.get()) == 1);
}

void AperioFile::publish() {
  tiff_.reset();
  if (file_.failure() != 0) file_.fail("");
  file_.publish();
}

tmsize_t AperioFile::read_some(thandle_t handle, void* to, tmsize_t length) {
  auto& self = *static_cast<AperioFile*>(handle);
  const auto wanted = static_cast<std::size_t>(length);
  if (self.position_ + wanted > self.file_.size()) return 0;
  if (!self.file_.read(self.position_, {static_cast<std::uint8_t*>(to), wanted})) return -1;
  self.position_ += wanted;
  return length;
}

tmsize_t AperioFile::write_some(thandle_t handle, void* from, tmsize_t length) {
  auto& self = *static_cast<AperioFile*>(handle);
  const auto bytes = static_cast<std::size_t>(length);
  if (!self.file_.write(self.position_, {static_cast<const std::uint8_t*>(from), bytes})) return -1;
  self.position_ += bytes;
  return length;
}

toff_t AperioFile::seek(thandle_t handle, toff_t offset, int whence) {
  auto& self = *static_cast<AperioFile*>(handle);
  const std::uint64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? self.position_ : self.file_.size();
  self.position_ = base + offset;
  return self.position_;
}

int AperioFile::close(thandle_t) { return 0; }

toff_t AperioFile::file_size(thandle_t handle) { return static_cast<AperioFile*>(handle)->file_.size(); }

}  // namespace slidestream::synth
