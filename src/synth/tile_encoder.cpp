#include "synth/tile_encoder.hpp"

#include <openjpeg.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "codec/jpeg_compressor.hpp"
#include "slidestream/error.hpp"

namespace slidestream::synth {

struct TileEncoder::Impl {
  virtual ~Impl() = default;
  virtual Bytes tables() { return {}; }
  virtual Bytes encode(std::span<const std::uint8_t> rgb) = 0;
};

namespace {

struct PlainEncoder final : TileEncoder::Impl {
  Bytes encode(std::span<const std::uint8_t> rgb) override { return {rgb.begin(), rgb.end()}; }
};

JpegColour jpeg_colour(SynthCodec codec) {
  switch (codec) {
    case SynthCodec::jpeg_grey:
      return JpegColour::grey_of_rgb;
    case SynthCodec::jpeg_rgb:
      return JpegColour::rgb;
    case SynthCodec::jpeg_422:
      return JpegColour::ycbcr_422;
    case SynthCodec::jpeg_444:
      return JpegColour::ycbcr_444;
    default:
      return JpegColour::ycbcr_420;
  }
}

struct JpegEncoder final : TileEncoder::Impl {
  JpegEncoder(SynthCodec codec, int quality, int side) : compressor_(jpeg_colour(codec), quality, side), rows_(side) {}

  Bytes tables() override { return copy_of(compressor_.tables()); }

  Bytes encode(std::span<const std::uint8_t> rgb) override {
    for (std::size_t y = 0; y < rows_.size(); ++y) rows_[y] = rgb.data() + y * rows_.size() * 3;
    return copy_of(compressor_.compress(rows_));
  }

 private:
  static Bytes copy_of(std::span<const std::byte> bytes) {
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    return {first, first + bytes.size()};
  }

  JpegCompressor compressor_;
  std::vector<const std::uint8_t*> rows_;
};

/// Where OpenJPEG writes a codestream.
struct MemoryStream {
  Bytes bytes;
  std::size_t position = 0;

  static OPJ_SIZE_T write(void* from, OPJ_SIZE_T length, void* user) {
    auto& self = *static_cast<MemoryStream*>(user);
    self.bytes.resize(std::max(self.bytes.size(), self.position + length));
    std::memcpy(self.bytes.data() + self.position, from, length);
    self.position += length;
    return length;
  }
  static OPJ_OFF_T skip(OPJ_OFF_T length, void* user) {
    auto& self = *static_cast<MemoryStream*>(user);
    self.position = static_cast<std::size_t>(static_cast<OPJ_OFF_T>(self.position) + length);
    return length;
  }
  static OPJ_BOOL seek(OPJ_OFF_T position, void* user) {
    static_cast<MemoryStream*>(user)->position = static_cast<std::size_t>(position);
    return OPJ_TRUE;
  }
};

struct StreamDeleter {
  void operator()(opj_stream_t* stream) const { opj_stream_destroy(stream); }
};
struct ImageDeleter {
  void operator()(opj_image_t* image) const { opj_image_destroy(image); }
};
struct CodecDeleter {
  void operator()(opj_codec_t* codec) const { opj_destroy_codec(codec); }
};

struct Jpeg2000Encoder final : TileEncoder::Impl {
  Jpeg2000Encoder(int quality, int side) : quality_(quality), tile_(side) {}

  Bytes encode(std::span<const std::uint8_t> rgb) override {
    opj_image_cmptparm_t components[3] = {};
    for (auto& component : components) {
      component.dx = component.dy = 1;
      component.w = component.h = static_cast<OPJ_UINT32>(tile_);
      component.prec = 8;
    }
    const std::unique_ptr<opj_image_t, ImageDeleter> image(opj_image_create(3, components, OPJ_CLRSPC_SRGB));
    const std::unique_ptr<opj_codec_t, CodecDeleter> codec(opj_create_compress(OPJ_CODEC_J2K));
    if (!image || !codec) throw Error("OpenJPEG: out of memory");
    image->x1 = image->y1 = static_cast<OPJ_UINT32>(tile_);
    const auto pixels = static_cast<std::size_t>(tile_) * tile_;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      OPJ_INT32* plane = image->comps[channel].data;
      for (std::size_t i = 0; i < pixels; ++i) plane[i] = rgb[i * 3 + channel];
    }

    char comment[] = "slidestream";
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    if (quality_ < 100) {
      parameters.cp_fixed_quality = 1;
      parameters.tcp_distoratio[0] = 24.0F + 0.16F * static_cast<float>(quality_);  // dB; 36 at 75
      parameters.irreversible = 1;
    } else {  // without loss
      parameters.cp_disto_alloc = 1;
    }
    parameters.tcp_mct = 1;
    parameters.cp_comment = comment;
    while (parameters.numresolution > 1 && (tile_ >> (parameters.numresolution - 1)) < 8) --parameters.numresolution;

    MemoryStream memory;
    const std::unique_ptr<opj_stream_t, StreamDeleter> stream(opj_stream_create(1 << 16, OPJ_FALSE));
    if (!stream) throw Error("OpenJPEG: out of memory");
    opj_stream_set_write_function(stream.get(), MemoryStream::write);
    opj_stream_set_skip_function(stream.get(), MemoryStream::skip);
    opj_stream_set_seek_function(stream.get(), MemoryStream::seek);
    opj_stream_set_user_data(stream.get(), &memory, nullptr);
    if (opj_setup_encoder(codec.get(), &parameters, image.get()) != OPJ_TRUE ||
        opj_start_compress(codec.get(), image.get(), stream.get()) != OPJ_TRUE ||
        opj_encode(codec.get(), stream.get()) != OPJ_TRUE || opj_end_compress(codec.get(), stream.get()) != OPJ_TRUE) {
      throw Error("OpenJPEG can't compress a tile");
    }
    return std::move(memory.bytes);
  }

 private:
  int quality_;
  int tile_;
};

std::unique_ptr<TileEncoder::Impl> make_encoder(SynthCodec codec, int quality, int tile) {
  switch (codec) {
    case SynthCodec::none:
      return std::make_unique<PlainEncoder>();
    case SynthCodec::jpeg2000:
      return std::make_unique<Jpeg2000Encoder>(quality, tile);
    default:
      return std::make_unique<JpegEncoder>(codec, quality, tile);
  }
}

}  // namespace

TileEncoder::TileEncoder(SynthCodec codec, int quality, int tile) : impl_(make_encoder(codec, quality, tile)) {}
TileEncoder::~TileEncoder() = default;
TileEncoder::TileEncoder(TileEncoder&&) noexcept = default;
TileEncoder& TileEncoder::operator=(TileEncoder&&) noexcept = default;

Bytes TileEncoder::tables() const { return impl_->tables(); }

Bytes TileEncoder::encode(std::span<const std::uint8_t> rgb) { return impl_->encode(rgb); }

void corrupt(SynthCodec codec, Bytes& tile) {
  if (codec == SynthCodec::jpeg2000) {
    tile.resize(tile.size() / 2);
    return;
  }
  // The scan's data follow its header: SOS, length, parameters.
  std::size_t scan = 2;
  while (scan + 4 < tile.size() && tile[scan + 1] != 0xDA) scan += 2 + (tile[scan + 2] * 256U + tile[scan + 3]);
  scan += 2 + (tile[scan + 2] * 256U + tile[scan + 3]);
  const std::size_t middle = scan + (tile.size() - 2 - scan) / 2;
  tile[middle] = 0xFF;
  tile[middle + 1] = 0xD9;
}

}  // namespace slidestream::synth
