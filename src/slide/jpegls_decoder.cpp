#include "slide/jpegls_decoder.hpp"

#ifdef SLIDESTREAM_HAVE_CHARLS
#include <charls/charls.h>
#endif

#include <cstdint>
#include <memory>
#include <new>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "slide/uncompressed.hpp"

namespace slidestream {

#ifdef SLIDESTREAM_HAVE_CHARLS

namespace {

struct ReleaseDecoder {
  void operator()(charls_jpegls_decoder* decoder) const noexcept { charls_jpegls_decoder_destroy(decoder); }
};

void check_charls(charls_jpegls_errc error) {
  if (error != charls::jpegls_errc::success) throw TileError("CharLS: " + std::string(charls_get_error_message(error)));
}

/// CharLS 2.4 may never return where bytes end without a marker. A byte behind it makes an item even.
bool ends_with_marker(std::span<const std::byte> bytes) {
  if (!bytes.empty() && bytes.back() == std::byte{0}) bytes = bytes.first(bytes.size() - 1);
  const std::size_t size = bytes.size();
  return size >= 2 && bytes[size - 2] == std::byte{0xFF} && bytes[size - 1] == std::byte{0xD9};
}

void check_jpegls_frame(const TileJob& job, const charls_frame_info& frame) {
  if (frame.bits_per_sample != 8) {
    throw TileError("JPEG-LS samples of " + std::to_string(frame.bits_per_sample) + " bits; supported: 8");
  }
  if (frame.component_count != job.coding.samples) {
    throw TileError("the JPEG-LS image has " + std::to_string(frame.component_count) +
                    " components, and the slide has " + std::to_string(job.coding.samples) + " samples");
  }
  if (frame.width != job.level.tile_width || frame.height != job.level.tile_height) {
    throw TileError("decodes to " + std::to_string(frame.width) + " x " + std::to_string(frame.height) +
                    " pixels, expected " + std::to_string(job.level.tile_width) + " x " +
                    std::to_string(job.level.tile_height));
  }
}

}  // namespace

bool decodes_jpegls() noexcept { return true; }

void decode_jpegls(const TileJob& job, std::span<const std::byte> bytes) {
  if (!ends_with_marker(bytes)) throw TileError("the JPEG-LS image has no end");
  const std::unique_ptr<charls_jpegls_decoder, ReleaseDecoder> decoder(charls_jpegls_decoder_create());
  if (!decoder) throw std::bad_alloc();
  check_charls(charls_jpegls_decoder_set_source_buffer(decoder.get(), bytes.data(), bytes.size()));
  check_charls(charls_jpegls_decoder_read_header(decoder.get()));
  charls_frame_info frame{};
  check_charls(charls_jpegls_decoder_get_frame_info(decoder.get(), &frame));
  check_jpegls_frame(job, frame);
  charls_interleave_mode mode{};
  check_charls(charls_jpegls_decoder_get_interleave_mode(decoder.get(), &mode));

  const std::size_t pixels = static_cast<std::size_t>(frame.width) * frame.height;
  const auto samples = static_cast<std::size_t>(frame.component_count);
  const bool apart = samples > 1 && mode == charls::interleave_mode::none;
  const DecodeMemory::Lease memory = memory_for(job, (apart ? 2 : 1) * pixels * samples);
  std::vector<std::byte> decoded(pixels * samples);
  check_charls(charls_jpegls_decoder_decode_to_buffer(decoder.get(), decoded.data(), decoded.size(), 0));
  if (apart) {
    std::vector<std::byte> interleaved(decoded.size());
    for (std::size_t s = 0; s < samples; ++s) {
      for (std::size_t i = 0; i < pixels; ++i) interleaved[samples * i + s] = decoded[s * pixels + i];
    }
    decoded.swap(interleaved);
  }
  write_interleaved(job, decoded.data());
}

#else

bool decodes_jpegls() noexcept { return false; }

void decode_jpegls(const TileJob&, std::span<const std::byte>) {
  throw TileError("is JPEG-LS, and this program was built without CharLS");
}

#endif

}  // namespace slidestream
