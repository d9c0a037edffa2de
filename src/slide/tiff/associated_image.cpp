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
#include "slide/tile_limits.hpp"

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
  std::uint64_t width() const { return image_.width; }
  std::uint64_t height() const { return image_.height; }
  bool read(std::vector<std::uint32_t>& to) {
    return TIFFRGBAImageGet(&image_, to.data(), image_.width, image_.height) == 1;
  }

 private:
  TIFFRGBAImage image_{};
  bool is_open_ = false;
};

/// What a JPEG strip or tile of the image is, by its header; nothing where that says nothing, or libtiff says more.
std::optional<JpegContent> content_of(const File& file, TiffFile& tiff, std::uint32_t index) {
  const std::uint64_t offset = TIFFGetStrileOffset(tiff.get(), index);
  const std::uint64_t length = TIFFGetStrileByteCount(tiff.get(), index);
  if (length == 0 || length > most_allocated || !file.contains(offset, length)) return {};
  std::vector<std::byte> bytes(length), picture;
  file.read(offset, bytes);
  try {
    const JpegContent content = append_picture(picture, bytes);
    return content.frame.components == 3 ? std::optional(content) : std::nullopt;
  } catch (const TileError&) {
    return {};
  }
}

/// libtiff takes the components of a JPEG for what the tag says. Where the JPEG says something else, the tag is changed
/// for this handle. \returns why that can't be told; empty: it can.
std::string correct_colours(const File& file, TiffFile& tiff) {
  std::uint16_t compression = 0, photometric = 0;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_COMPRESSION, &compression);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_PHOTOMETRIC, &photometric);
  if (compression != COMPRESSION_JPEG || (photometric != PHOTOMETRIC_RGB && photometric != PHOTOMETRIC_YCBCR))
    return {};
  const Colour tag = photometric == PHOTOMETRIC_RGB ? Colour::rgb : Colour::ycbcr;
  const bool tiled = TIFFIsTiled(tiff.get()) != 0;
  const std::uint32_t count = tiled ? TIFFNumberOfTiles(tiff.get()) : TIFFNumberOfStrips(tiff.get());
  std::optional<JpegContent> first;
  std::optional<Colour> colour;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::optional<JpegContent> content = content_of(file, tiff, i);
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

AssociatedImage TiffContainer::read_associated(std::size_t index, const std::string& name) const {
  const auto fail = [&](const std::string& cause) {
    throw_slide_error(file_.path(), "the associated image " + name + " can't be read: " + cause);
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
  if (const std::string fault = correct_colours(file_, tiff); !fault.empty()) fail(fault);
  keep_colours(tiff);
  std::string cause;
  RgbaReader reader(tiff, cause);
  if (!reader.is_open()) fail(tiff.has_message() ? tiff.message() : cause);
  if (reader.width() == 0 || reader.height() == 0 || reader.width() > most_associated_pixels / reader.height()) {
    fail("it has " + std::to_string(reader.width()) + " x " + std::to_string(reader.height()) +
         " pixels; expected 1 to 2^26");
  }
  std::vector<std::uint32_t> samples(reader.width() * reader.height());
  if (!reader.read(samples)) fail(tiff.has_message() ? tiff.message() : "its samples are damaged");
  AssociatedImage image;
  image.size = {static_cast<std::int64_t>(reader.width()), static_cast<std::int64_t>(reader.height())};
  image.pixels.reserve(3 * samples.size());
  for (const std::uint32_t sample : samples) {
    for (const std::uint32_t colour : {TIFFGetR(sample), TIFFGetG(sample), TIFFGetB(sample)}) {
      image.pixels.push_back(static_cast<std::uint8_t>(colour));
    }
  }
  return image;
}

}  // namespace slidestream
