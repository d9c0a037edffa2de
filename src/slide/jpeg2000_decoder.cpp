#include "slide/jpeg2000_decoder.hpp"

#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "codec/ycbcr.hpp"
#include "slide/codestream.hpp"
#include "slide/file.hpp"
#include "slide/luminance.hpp"

namespace slidestream {
namespace {

struct Release {
  void operator()(opj_codec_t* codec) const noexcept { opj_destroy_codec(codec); }
  void operator()(opj_image_t* image) const noexcept { opj_image_destroy(image); }
};
struct ReleaseStream {  // opj_codec_t and opj_stream_t are both void
  void operator()(opj_stream_t* stream) const noexcept { opj_stream_destroy(stream); }
};
using CodecHandle = std::unique_ptr<opj_codec_t, Release>;
using ImageHandle = std::unique_ptr<opj_image_t, Release>;
using StreamHandle = std::unique_ptr<opj_stream_t, ReleaseStream>;

/// OpenJPEG's first complaint.
struct Complaints {
  bool decoding = false;  ///< the main header is done
  std::string first;

  void keep(const char* text) {
    if (!first.empty()) return;
    first = text;
    while (!first.empty() && first.back() == '\n') first.pop_back();
    first = without_control_characters(std::move(first));
  }
};

/// Warnings that say nothing of the samples: of the codestream's structure, which was checked before.
bool is_harmless(std::string_view warning) {
  for (const char* begin :
       {"Stream does not end with EOC", "Psot value of the current", "Empty SOT marker", "Non conformant codestream"}) {
    if (warning.starts_with(begin)) return true;
  }
  return false;
}

void on_error(const char* text, void* to) { static_cast<Complaints*>(to)->keep(text); }

/// While samples are decoded, OpenJPEG reports most damage by warnings only.
void on_warning(const char* text, void* to) {
  auto& complaints = *static_cast<Complaints*>(to);
  if (complaints.decoding && !is_harmless(text)) complaints.keep(text);
}

struct Memory {
  std::span<const std::byte> bytes;
  std::size_t position = 0;
};

OPJ_SIZE_T read_memory(void* to, OPJ_SIZE_T bytes, void* from) {
  auto& memory = *static_cast<Memory*>(from);
  const std::size_t count = std::min<std::size_t>(bytes, memory.bytes.size() - memory.position);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, memory.bytes.data() + memory.position, count);
  memory.position += count;
  return count;
}

OPJ_OFF_T skip_memory(OPJ_OFF_T bytes, void* from) {
  auto& memory = *static_cast<Memory*>(from);
  if (bytes < 0) return -1;
  const std::size_t count = std::min(static_cast<std::size_t>(bytes), memory.bytes.size() - memory.position);
  memory.position += count;
  return static_cast<OPJ_OFF_T>(count);
}

OPJ_BOOL seek_memory(OPJ_OFF_T to, void* from) {
  auto& memory = *static_cast<Memory*>(from);
  if (to < 0 || static_cast<std::size_t>(to) > memory.bytes.size()) return OPJ_FALSE;
  memory.position = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

StreamHandle open_stream(Memory& memory) {
  StreamHandle stream(opj_stream_create(std::clamp<std::size_t>(memory.bytes.size(), 1024, 65536), OPJ_TRUE));
  if (!stream) throw std::bad_alloc();
  opj_stream_set_user_data(stream.get(), &memory, nullptr);
  opj_stream_set_user_data_length(stream.get(), memory.bytes.size());
  opj_stream_set_read_function(stream.get(), read_memory);
  opj_stream_set_skip_function(stream.get(), skip_memory);
  opj_stream_set_seek_function(stream.get(), seek_memory);
  return stream;
}

void check_components(const Codestream& codestream, unsigned needed) {
  for (unsigned i = 0; i < needed; ++i) {
    const Codestream::Component& component = codestream.components[i];
    if (component.precision != 8 || component.is_signed) {
      throw TileError("JPEG 2000 samples of " + std::to_string(component.precision) + " bits, " +
                      (component.is_signed ? "signed" : "unsigned") + "; supported: 8 bits, unsigned");
    }
  }
  if (codestream.components[0].dx != 1 || codestream.components[0].dy != 1) {
    throw TileError("the JPEG 2000 codestream's first component is subsampled, which isn't supported");
  }
}

ImageHandle decode_components(const Codestream& codestream, unsigned needed) {
  const CodecHandle codec(opj_create_decompress(OPJ_CODEC_J2K));
  if (!codec) throw std::bad_alloc();
  Complaints complaints;
  opj_set_error_handler(codec.get(), on_error, &complaints);
  opj_set_warning_handler(codec.get(), on_warning, &complaints);
  const auto check = [&complaints](OPJ_BOOL fine) {
    if (fine && complaints.first.empty()) return;
    throw TileError("OpenJPEG: " + (complaints.first.empty() ? "no reason given" : complaints.first));
  };
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  check(opj_setup_decoder(codec.get(), &parameters));
  Memory memory{codestream.bytes};
  const StreamHandle stream = open_stream(memory);
  opj_image_t* raw_image = nullptr;
  const OPJ_BOOL header_read = opj_read_header(stream.get(), codec.get(), &raw_image);
  ImageHandle image(raw_image);
  check(header_read);
  if (needed == 1 && codestream.components.size() > 1) {
    const OPJ_UINT32 first = 0;
    check(opj_set_decoded_components(codec.get(), 1, &first, OPJ_FALSE));
  }
  complaints.decoding = true;
  check(opj_decode(codec.get(), stream.get(), image.get()));
  if (image->numcomps < needed) throw TileError("OpenJPEG gave fewer components than expected");
  return image;
}

/// Samples of one component, looked up by image column and row.
class Plane {
 public:
  Plane(const opj_image_comp_t& component, const Codestream& codestream)
      : component_(component), x0_(codestream.x0), y0_(codestream.y0) {
    if (component.data == nullptr || component.w == 0 || component.h == 0) {
      throw TileError("OpenJPEG gave no samples of a component");
    }
  }

  const OPJ_INT32* row(std::int64_t y) const noexcept {
    return component_.data + place(y, y0_, component_.dy, component_.h) * component_.w;
  }
  std::size_t column(std::int64_t x) const noexcept { return place(x, x0_, component_.dx, component_.w); }

 private:
  /// The sample that covers image position `at` along one side.
  static std::size_t place(std::int64_t at, std::int64_t origin, std::int64_t step, std::int64_t size) noexcept {
    const std::int64_t first = (origin + step - 1) / step;
    return static_cast<std::size_t>(std::clamp<std::int64_t>((origin + at) / step - first, 0, size - 1));
  }

  const opj_image_comp_t& component_;
  std::int64_t x0_;
  std::int64_t y0_;
};

std::uint8_t to_8_bits(OPJ_INT32 value) noexcept {
  return static_cast<std::uint8_t>(std::clamp<OPJ_INT32>(value, 0, 255));
}

void write_first(const TileJob& job, const Codestream& codestream, const opj_image_t& image, bool inverted) {
  const Plane plane(image.comps[0], codestream);
  const int flip = inverted ? 255 : 0;
  const int channels = job.out.format.channels;
  const std::int64_t end_y = std::min<std::int64_t>(job.from_y + job.out.height, image.comps[0].h);
  const std::int64_t count = std::clamp<std::int64_t>(image.comps[0].w - job.from_x, 0, job.out.width);
  for (std::int64_t y = job.from_y; y < end_y; ++y) {
    const OPJ_INT32* from = plane.row(y) + job.from_x;
    std::uint8_t* to = job.row(y);
    for (std::int64_t x = 0; x < count; ++x, to += channels) {
      std::fill_n(to, channels, static_cast<std::uint8_t>(to_8_bits(from[x]) ^ flip));
    }
  }
}

/// Pixels of `channels` samples that `convert(to, a, b, c)` makes of the first three components.
template <class Convert>
void write_three(const TileJob& job, const Codestream& codestream, const opj_image_t& image, const Convert& convert) {
  const Plane first(image.comps[0], codestream), second(image.comps[1], codestream), third(image.comps[2], codestream);
  const int channels = job.out.format.channels;
  const std::int64_t end_y = std::min<std::int64_t>(job.from_y + job.out.height, codestream.height);
  const std::int64_t end_x = std::min<std::int64_t>(job.from_x + job.out.width, codestream.width);
  for (std::int64_t y = job.from_y; y < end_y; ++y) {
    const OPJ_INT32 *a = first.row(y), *b = second.row(y), *c = third.row(y);
    std::uint8_t* to = job.row(y);
    for (std::int64_t x = job.from_x; x < end_x; ++x, to += channels) {
      convert(to, to_8_bits(a[first.column(x)]), to_8_bits(b[second.column(x)]), to_8_bits(c[third.column(x)]));
    }
  }
}

void write_pixels(const TileJob& job, const Codestream& codestream, const opj_image_t& image, PixelsOf pixels_of) {
  switch (pixels_of) {
    case PixelsOf::first:
    case PixelsOf::first_inverted:
      return write_first(job, codestream, image, pixels_of == PixelsOf::first_inverted);
    case PixelsOf::ycbcr:
      return write_three(job, codestream, image,
                         [](std::uint8_t* to, std::uint8_t y, std::uint8_t cb, std::uint8_t cr) {
                           const Rgb rgb = ycbcr_to_rgb(y, cb, cr);
                           to[0] = rgb.red;
                           to[1] = rgb.green;
                           to[2] = rgb.blue;
                         });
    case PixelsOf::rgb:
      break;
  }
  if (job.out.format == luminance_format) {
    return write_three(job, codestream, image, [](std::uint8_t* to, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
      *to = luminance(r, g, b);
    });
  }
  write_three(job, codestream, image, [](std::uint8_t* to, std::uint8_t r, std::uint8_t g, std::uint8_t b) {
    to[0] = r;
    to[1] = g;
    to[2] = b;
  });
}

}  // namespace

CodedFrame frame_of(const Codestream& codestream) noexcept {
  return {codestream.width,
          codestream.height,
          codestream.components.size(),
          codestream.irreversible_colour_transform,
          codestream.colour_transform,
          codestream.ycbcr_is_coded()};
}

std::uint64_t jpeg2000_bytes(std::uint64_t samples, std::uint64_t compressed) noexcept {
  // 32 bits per sample of the tile and of the image, and the bytes of code-blocks put together.
  return 8 * samples + 2 * compressed;
}

void decode_jpeg2000(const TileJob& job, std::span<const std::byte> bytes) {
  const Codestream codestream = parse_codestream(bytes);
  const PixelsOf pixels_of = check_frame(job, frame_of(codestream), "JPEG 2000 codestream");
  const unsigned needed = pixels_of == PixelsOf::rgb || pixels_of == PixelsOf::ycbcr ? 3 : 1;
  check_components(codestream, needed);
  std::uint64_t samples = 0;
  for (const Codestream::Component& component : codestream.components) {
    samples +=
        (std::uint64_t{codestream.width} / component.dx + 1) * (std::uint64_t{codestream.height} / component.dy + 1);
  }
  const DecodeMemory::Lease memory =
      memory_for(job, jpeg2000_bytes(samples, codestream.bytes.size()) + codestream.work_bytes);
  const ImageHandle image = decode_components(codestream, needed);
  const opj_image_comp_t& first = image->comps[0];
  if (first.w != codestream.width || first.h != codestream.height) {
    throw TileError("OpenJPEG gave an image of another size than its header's");
  }
  write_pixels(job, codestream, *image, pixels_of);
  whiten_beyond(job, codestream.width, codestream.height);
}

}  // namespace slidestream
