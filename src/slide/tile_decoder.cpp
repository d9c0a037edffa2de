#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <slidestream/error.hpp>
#include <stdexcept>
#include <string>

#include "slide/jpeg2000_decoder.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/jpegls_decoder.hpp"
#include "slide/luminance.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tile_job.hpp"
#include "slide/uncompressed.hpp"

namespace slidestream {

namespace {

/// What of a frame speaks of colours, and against what the tag says.
std::string marks_text(const CodedFrame& frame) {
  const JpegMarks& marks = frame.marks;
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", its ") + what; };
  if (marks.jfif) add("JFIF header YCbCr");
  if (marks.adobe != JpegMarks::no_adobe) {
    const bool inks = frame.components == 4;
    add(std::string("Adobe marker ") + (inks               ? "four inks"
                                        : marks.adobe == 0 ? "RGB"
                                        : marks.adobe == 1 ? "YCbCr"
                                                           : "YCCK"));
  }
  if (marks.called_rgb) add("components' names RGB");
  if (marks.sampled_apart) add("components' sampling YCbCr");
  if (frame.ycbcr_is_coded) add("JP2 file YCbCr");
  if (frame.rgb_is_coded) add("component transform RGB");
  return text;
}

}  // namespace

PixelsOf check_frame(const TileJob& job, const CodedFrame& frame, const char* coded) {
  const FrameVerdict verdict = judge_frame(job.demand, frame);
  switch (verdict.fault) {
    case FrameFault::components:
      throw TileError("the " + std::string(coded) + " has " + std::to_string(frame.components) +
                      " components, which don't fit the slide's " + name(job.demand.colour));
    case FrameFault::size:
      throw TileError("decodes to " + std::to_string(frame.width) + " x " + std::to_string(frame.height) +
                      " pixels, expected " + std::to_string(job.demand.width) + " x " +
                      std::to_string(job.demand.height));
    case FrameFault::colour:
      throw TileError("its colours can't be told: PhotometricInterpretation says " +
                      std::string(job.demand.colour == Colour::rgb ? "RGB" : "YCbCr") + ", the " + coded + "'s " +
                      marks_text(frame));
    case FrameFault::none:
      break;
  }
  return verdict.pixels;
}

DecodeMemory::Lease memory_for(const TileJob& job, std::uint64_t bytes) {
  if (job.has_memory || job.limits == nullptr) return {};
  return memory_for(*job.limits, job.level_index, job.index, bytes + job.beside);
}

namespace {

std::string in_mib(std::uint64_t bytes) { return std::to_string((bytes + (1U << 20) - 1) >> 20) + " MiB"; }

using TakeMemory = DecodeMemory::Lease (DecodeMemory::*)(std::uint64_t, const std::function<bool()>&);

DecodeMemory::Lease take_memory(const Slide::Impl& slide, std::size_t level, std::int64_t tile, std::uint64_t bytes,
                                std::uint64_t held, TakeMemory take) {
  const std::uint64_t all = bytes + held;
  if (all > slide.decode_memory->size()) {
    throw_slide_error(slide.info.path, "level " + std::to_string(level) + " tile " + std::to_string(tile) + " takes " +
                                           in_mib(all) + " to decode, and decoding may take " +
                                           in_mib(slide.decode_memory->size()) + "; " +
                                           slide.decode_memory->advice(all));
  }
  DecodeMemory::Lease lease = (*slide.decode_memory.*take)(bytes, slide.give_up);
  if (!lease) throw_stopped(slide.info.path, "waited for memory to decode tile " + std::to_string(tile));
  return lease;
}

}  // namespace

DecodeMemory::Lease memory_for(const Slide::Impl& slide, std::size_t level, std::int64_t tile, std::uint64_t bytes) {
  if (slide.decode_memory == nullptr) return {};
  return take_memory(slide, level, tile, bytes, slide.decode_memory->input_held_here(), &DecodeMemory::take);
}

DecodeMemory::Lease memory_for(const Slide::Impl& slide, const std::string& what, std::uint64_t bytes,
                               const std::string& or_else) {
  if (slide.decode_memory == nullptr || bytes == 0) return {};
  if (bytes > slide.decode_memory->size()) {
    throw_slide_error(slide.info.path, what + " takes " + in_mib(bytes) + " to read, and decoding may take " +
                                           in_mib(slide.decode_memory->size()) + "; " +
                                           slide.decode_memory->advice(bytes) + or_else);
  }
  DecodeMemory::Lease lease = slide.decode_memory->take(bytes, slide.give_up);
  if (!lease) throw_stopped(slide.info.path, "waited for memory to read " + what);
  return lease;
}

DecodeMemory::Lease memory_for_input(const Slide::Impl& slide, std::size_t level, std::int64_t tile,
                                     std::uint64_t bytes) {
  if (slide.decode_memory == nullptr || slide.decode_memory->input_held_here() > 0) return {};
  return take_memory(slide, level, tile, bytes, 0, &DecodeMemory::take_input);
}

bool Patience::is_over() const {
  if (job_.limits == nullptr) return false;
  const std::function<bool()>& give_up = job_.limits->give_up;
  return give_up && std::chrono::steady_clock::now() - begin_ > std::chrono::seconds(1) && give_up();
}

void Patience::check() const {
  if (is_over()) throw_stopped(job_.limits->info.path, "decoded tile " + std::to_string(job_.index));
}

namespace {

void whiten_beyond(const TileJob& job, const HostPixels& out, std::int64_t width, std::int64_t height) {
  const auto decoded = static_cast<std::size_t>(std::clamp<std::int64_t>(width - job.from_x, 0, out.width));
  for (std::int64_t y = 0; y < out.height; ++y) {
    const std::size_t begin = job.from_y + y < height ? decoded * out.format.pixel_bytes() : 0;
    std::memset(out.data + y * out.pitch + static_cast<std::ptrdiff_t>(begin), 255, out.row_bytes() - begin);
  }
}

}  // namespace

void whiten_beyond(const TileJob& job, std::int64_t width, std::int64_t height) {
  whiten_beyond(job, job.out, width, height);
  if (job.luminance != nullptr) whiten_beyond(job, *job.luminance, width, height);
}

struct TileDecoder::Impl {
  void decode(const Slide& slide, std::size_t level_index, std::int64_t index, std::span<const std::byte> bytes,
              std::int64_t from_x, std::int64_t from_y, const HostPixels& out, const HostPixels* luminance,
              std::uint64_t beside);
  void decode(const TileJob& job, std::span<const std::byte> coded);

  JpegDecoder jpeg;
  TileScratch scratch;
  std::vector<std::byte> joined;  ///< of a tile in several pieces
  std::vector<std::uint8_t> rgb;  ///< of a tile whose luminance is that of converted colours
};

TileDecoder::TileDecoder() : impl_(std::make_unique<Impl>()) {}
TileDecoder::~TileDecoder() = default;
TileDecoder::TileDecoder(TileDecoder&&) noexcept = default;
TileDecoder& TileDecoder::operator=(TileDecoder&&) noexcept = default;

void TileDecoder::decode(const Slide& slide, std::size_t level_index, std::int64_t index,
                         std::span<const std::byte> bytes, std::int64_t from_x, std::int64_t from_y,
                         const HostPixels& out) {
  decode(slide, level_index, index, bytes, from_x, from_y, out, nullptr);
}

void TileDecoder::decode_both(const Slide& slide, std::size_t level_index, std::int64_t index,
                              std::span<const std::byte> bytes, std::int64_t from_x, std::int64_t from_y,
                              const HostPixels& rgb, const HostPixels& luminance) {
  if (rgb.format != rgb_format || luminance.format != luminance_format || rgb.width != luminance.width ||
      rgb.height != luminance.height) {
    throw std::invalid_argument("TileDecoder: not RGB and luminance of one rectangle");
  }
  // Its luminance may be a component that RGB no longer has: what the codec's own transform took in.
  const bool apart =
      slide.info().levels.at(level_index).codec == Codec::jpeg2000 && impl_of(slide).conversion == nullptr;
  decode(slide, level_index, index, bytes, from_x, from_y, rgb, apart ? nullptr : &luminance);
  if (apart) decode(slide, level_index, index, bytes, from_x, from_y, luminance, nullptr);
}

void TileDecoder::decode(const Slide& slide, std::size_t level_index, std::int64_t index,
                         std::span<const std::byte> bytes, std::int64_t from_x, std::int64_t from_y,
                         const HostPixels& out, const HostPixels* luminance) {
  const ColourConversion* const conversion = impl_of(slide).conversion.get();
  if (conversion == nullptr) return impl_->decode(slide, level_index, index, bytes, from_x, from_y, out, luminance, 0);
  HostPixels rgb = out;
  if (out.format == luminance_format) {
    luminance = &out;
    rgb.format = rgb_format;
    rgb.pitch = static_cast<std::ptrdiff_t>(rgb.row_bytes());
    impl_->rgb.resize(rgb.row_bytes() * static_cast<std::size_t>(std::max<std::int64_t>(out.height, 0)));
    rgb.data = impl_->rgb.data();
  }
  impl_->decode(slide, level_index, index, bytes, from_x, from_y, rgb, nullptr, impl_->rgb.size());
  for (std::int64_t y = 0; y < rgb.height; ++y) {
    std::uint8_t* const row = rgb.data + y * rgb.pitch;
    conversion->apply(row, rgb.width);
    if (luminance == nullptr) continue;
    interleaved_to_luminance(luminance->data + y * luminance->pitch, row, rgb.width, 3, Colour::rgb);
  }
}

void TileDecoder::Impl::decode(const Slide& slide, std::size_t level_index, std::int64_t index,
                               std::span<const std::byte> bytes, std::int64_t from_x, std::int64_t from_y,
                               const HostPixels& out, const HostPixels* luminance, std::uint64_t beside) {
  const Level& level = slide.info().levels.at(level_index);
  if (index < 0 || index >= level.columns * level.rows) throw std::out_of_range("TileDecoder: no such tile");
  const bool inside = from_x >= 0 && from_y >= 0 && out.width >= 0 && out.height >= 0 &&
                      out.width <= level.tile_width - from_x && out.height <= level.tile_height - from_y;
  if (!inside) throw std::invalid_argument("TileDecoder: the rectangle lies outside the tile");
  if (out.format != luminance_format && out.format != rgb_format) {
    throw std::invalid_argument("TileDecoder: neither 8-bit luminance nor 8-bit RGB");
  }
  if (bytes.empty()) throw TileError("has no bytes");
  const LevelCoding& coding = impl_of(slide).codings[level_index];
  DecodeMemory::Lease memory;
  std::vector<std::byte> own;
  const bool is_large = bytes.size() > most_kept_bytes && coded_piece(coding, bytes).empty();
  if (is_large) {
    memory = memory_for_input(impl_of(slide), level_index, index, bytes.size());
    own.reserve(bytes.size());
  }
  const std::span<const std::byte> coded = coded_bytes(coding, bytes, is_large ? own : joined);
  if (coded.empty()) throw TileError("has no bytes");
  const TileJob job{slide,
                    level_index,
                    level,
                    coding,
                    index,
                    demand_for(slide.coded_level(level_index), coding.tiles_say_colour, index, out.format),
                    from_x,
                    from_y,
                    out,
                    luminance,
                    &impl_of(slide),
                    beside};
  // Codecs report a lack of memory as they report damage, each in its own words. An allocation that failed left ENOMEM
  // (POSIX, malloc), whichever codec asked for it.
  errno = 0;
  try {
    decode(job, coded);
  } catch (const TileError&) {
    if (errno == ENOMEM) throw std::bad_alloc();
    throw;
  }
}

void TileDecoder::Impl::decode(const TileJob& job, std::span<const std::byte> coded) {
  switch (job.level.codec) {
    case Codec::jpeg:
      return jpeg.decode(job, coded);
    case Codec::jpeg2000:
      return decode_jpeg2000(job, coded);
    case Codec::jpegls:
      return decode_jpegls(job, coded);
    case Codec::none:
      return decode_uncompressed(job, coded);
    default:
      return impl_of(job.slide).container->decode(job, coded, scratch);
  }
}

}  // namespace slidestream
