#include <algorithm>
#include <array>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "codec/jpeg_stream.hpp"
#include "slide/file.hpp"
#include "slide/tiff/level_tags.hpp"
#include "slide/tiff/tiff_container.hpp"
#include "slide/tile_job.hpp"
#include "slide/tile_limits.hpp"
#include "slide/webp_tables.hpp"

namespace slidestream {

namespace {

/// For each single allocation of libtiff: a strip is at most as large as the image.
constexpr std::uint64_t most_allocated = 4 * most_associated_pixels;
/// Its directory, and strips that are as large as its pixels at most.
constexpr std::uint64_t most_read_for_image = TiffFile::most_directory_bytes + 2 * most_allocated;

/// libtiff's reader of any image as RGBA, with its state.
class RgbaReader {
 public:
  RgbaReader(TiffFile& tiff, std::string& cause) {
    std::array<char, 1024> text{};
    is_open_ =
        TIFFRGBAImageOK(tiff.get(), text.data()) == 1 && TIFFRGBAImageBegin(&image_, tiff.get(), 1, text.data()) == 1;
    if (is_open_) image_.req_orientation = ORIENTATION_TOPLEFT;
    if (!is_open_) cause = text.data();
  }
  ~RgbaReader() {
    if (is_open_) TIFFRGBAImageEnd(&image_);
  }
  RgbaReader(const RgbaReader&) = delete;
  RgbaReader& operator=(const RgbaReader&) = delete;

  bool is_open() const { return is_open_; }
  bool read(std::vector<std::uint32_t>& to) {
    return TIFFRGBAImageGet(&image_, to.data(), image_.width, image_.height) == 1;
  }

 private:
  TIFFRGBAImage image_{};
  bool is_open_ = false;
};

/// The image's strips or tiles.
class Parts {
 public:
  static constexpr std::uint32_t most = std::uint32_t{1} << 20;
  static constexpr std::uint64_t most_bytes = 2 * most_allocated;

  Parts(const File& file, TiffFile& tiff) : file_(file), tiff_(tiff) {
    const bool tiled = TIFFIsTiled(tiff.get()) != 0;
    count_ = tiled ? TIFFNumberOfTiles(tiff.get()) : TIFFNumberOfStrips(tiff.get());
    decoded_ = tiled ? TIFFTileSize64(tiff.get()) : TIFFStripSize64(tiff.get());
    TIFFGetField(tiff.get(), tiled ? TIFFTAG_TILEWIDTH : TIFFTAG_IMAGEWIDTH, &width_);
    for (std::uint32_t i = 0; i < std::min(count_, most + 1); ++i) {
      const std::uint64_t length = length_of(i);
      longest_ = std::max(longest_, length);
      all_ += length;
    }
  }

  std::uint32_t count() const { return count_; }
  /// Of the longest, in the file.
  std::uint64_t longest() const { return longest_; }
  /// Of all, which may share bytes.
  std::uint64_t all() const { return all_; }
  /// Of one, decoded.
  std::uint64_t decoded() const { return decoded_; }
  /// Of each, in pixels.
  std::uint32_t width() const { return width_; }

  /// Nothing where libtiff won't read it.
  void read(std::uint32_t index, std::vector<std::byte>& bytes) const {
    bytes.resize(length_of(index));
    if (!bytes.empty()) file_.read(TIFFGetStrileOffset(tiff_.get(), index), bytes);
  }

 private:
  /// 0 where libtiff won't read it.
  std::uint64_t length_of(std::uint32_t index) const {
    const std::uint64_t length = TIFFGetStrileByteCount(tiff_.get(), index);
    const bool is_there = file_.contains(TIFFGetStrileOffset(tiff_.get(), index), length);
    return length > most_allocated || !is_there ? 0 : length;
  }

  const File& file_;
  TiffFile& tiff_;
  std::uint32_t count_ = 0;
  std::uint32_t width_ = 0;
  std::uint64_t longest_ = 0, all_ = 0, decoded_ = 0;
};

/// What decoding the image takes, besides its pixels in RGB and tables of WebP: words of its pixels; a part as it is
/// stored, twice, and decoded, with as much of its codec's own.
std::uint64_t bytes_to_decode(const Parts& parts, std::uint64_t pixels) {
  constexpr std::uint64_t state = std::uint64_t{1} << 20;  // of a codec, whatever the image
  return 4 * pixels + 2 * parts.longest() + 4 * std::min(parts.decoded(), most_allocated) + state;
}

/// What a JPEG strip or tile of the image is, by its header; nothing where that says nothing, or libtiff says more.
std::optional<JpegContent> content_of(const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return {};
  std::vector<std::byte> picture;
  try {
    const JpegContent content = append_picture(picture, bytes);
    return content.frame.components == 3 ? std::optional(content) : std::nullopt;
  } catch (const TileError&) {
    return {};
  }
}

/// libtiff takes the components of a JPEG for what the tag says. Where the JPEG says something else, the tag is changed
/// for this handle. \returns why that can't be told; empty: it can.
std::string correct_colours(TiffFile& tiff, const Parts& parts) {
  std::uint16_t compression = 0, photometric = 0;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  if (compression != COMPRESSION_JPEG || (photometric != PHOTOMETRIC_RGB && photometric != PHOTOMETRIC_YCBCR))
    return {};
  const Colour tag = photometric == PHOTOMETRIC_RGB ? Colour::rgb : Colour::ycbcr;
  std::optional<JpegContent> first;
  std::optional<Colour> colour;
  std::vector<std::byte> bytes_of_part;
  for (std::uint32_t i = 0; i < parts.count(); ++i) {
    parts.read(i, bytes_of_part);
    const std::optional<JpegContent> content = content_of(bytes_of_part);
    if (!content) continue;
    const std::optional<Colour> own = colour_of_jpeg(tag, content->marks);
    if (!own) return "its colours can't be told from PhotometricInterpretation and the JPEG's markers";
    if (colour && *colour != *own) return "its parts have different colours by the JPEG's markers";
    if (!first) first = content;
    colour = own;
  }
  if (!colour || *colour == tag) return {};
  const bool ycbcr = *colour == Colour::ycbcr;
  TIFFSetField(tiff.get(), TIFFTAG_PHOTOMETRIC, ycbcr ? PHOTOMETRIC_YCBCR : PHOTOMETRIC_RGB);
  if (ycbcr) {
    const JpegFrame::Component& densest = first->frame.sampling.front();
    TIFFSetField(tiff.get(), TIFFTAG_YCBCRSUBSAMPLING, densest.horizontal, densest.vertical);
  }
  return {};
}

/// libtiff multiplies colours by an opacity that isn't associated with them. Here colours stay as stored, so that it is
/// called associated for this handle.
void keep_colours(TiffFile& tiff) {
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  if (TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) != 1 || count == 0) return;
  std::vector<std::uint16_t> changed(kinds, kinds + count);
  std::ranges::replace(changed, EXTRASAMPLE_UNASSALPHA, EXTRASAMPLE_ASSOCALPHA);
  TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, count, changed.data());
}

/// libtiff mirrors an image whose first pixel is at another corner, and doesn't turn one.
std::string fault_of_orientation(TiffFile& tiff) {
  std::uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (orientation >= ORIENTATION_TOPLEFT && orientation <= ORIENTATION_BOTLEFT) return {};
  return "its Orientation " + std::to_string(orientation) + " isn't supported; supported: 1 to 4";
}

}  // namespace

AssociatedImage TiffContainer::read_associated(const Slide::Impl& slide, std::size_t index) const {
  const std::string name = "the associated image " + slide.info.associated.at(index);
  const auto fail = [&](const std::string& cause) {
    throw_slide_error(file_.path(), name + " can't be read: " + cause);
  };
  TiffFile tiff(file_, most_allocated, most_read_for_image);
  if (!tiff.set_directory(associated_.at(index))) fail(tiff.message());
  std::uint16_t compression = 0;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_COMPRESSION, &compression);
  // Other codecs may end the process, as libjbig does where memory is short. liblerc takes memory for what a strip
  // claims, and no label or macro image is of it.
  const bool is_lerc = compression == COMPRESSION_LERC;
  if (is_lerc || (compression != COMPRESSION_JPEG && !codec_of_libtiff(compression))) {
    fail("its compression " + std::to_string(compression) + " isn't supported");
  }
  if (const std::string fault = fault_of_orientation(tiff); !fault.empty()) fail(fault);
  std::uint32_t width = 0, height = 0;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  if (width == 0 || height == 0 || width > most_associated_pixels / height) {
    fail("it has " + std::to_string(width) + " x " + std::to_string(height) + " pixels; expected 1 to 2^26");
  }
  const Parts parts(file_, tiff);
  // Parts may share bytes, so that a small file could ask for any time.
  if (parts.count() > Parts::most) fail("it has " + std::to_string(parts.count()) + " parts; expected 2^20 at most");
  if (parts.all() > Parts::most_bytes) fail("its parts have more than 2^29 bytes");
  const std::uint64_t bytes = bytes_to_decode(parts, std::uint64_t{width} * height);
  DecodeMemory::Lease memory = memory_for(slide, name, bytes);
  if (compression == COMPRESSION_WEBP) {
    std::uint64_t tables = 0;
    std::vector<std::byte> bytes_of_part;
    for (std::uint32_t i = 0; i < parts.count(); ++i) {
      parts.read(i, bytes_of_part);
      const std::uint64_t part_width = webp_width(bytes_of_part);
      if (!bytes_of_part.empty() && part_width != parts.width()) {
        fail("a part's WebP is " + std::to_string(part_width) + " pixels wide, expected " +
             std::to_string(parts.width()));
      }
      tables = std::max(tables, webp_table_bytes(bytes_of_part));
    }
    memory = {};
    memory = memory_for(slide, name, bytes + tables);
  }
  if (const std::string fault = correct_colours(tiff, parts); !fault.empty()) fail(fault);
  keep_colours(tiff);
  std::string cause;
  RgbaReader reader(tiff, cause);
  if (!reader.is_open()) fail(tiff.has_message() ? tiff.message() : cause);
  std::vector<std::uint32_t> samples(std::size_t{width} * height);
  if (!reader.read(samples)) fail(tiff.has_message() ? tiff.message() : "its samples are damaged");
  AssociatedImage image;
  image.size = {width, height};
  image.pixels.reserve(3 * samples.size());
  for (const std::uint32_t sample : samples) {
    for (const std::uint32_t colour : {TIFFGetR(sample), TIFFGetG(sample), TIFFGetB(sample)}) {
      image.pixels.push_back(static_cast<std::uint8_t>(colour));
    }
  }
  return image;
}

}  // namespace slidestream
