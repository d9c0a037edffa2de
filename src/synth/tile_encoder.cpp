#include "synth/tile_encoder.hpp"

#include <openjpeg.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "slidestream/error.hpp"
// jpeglib.h needs <cstdio> before it.
#include <jpeglib.h>

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

/// libjpeg reports by this instead of ending the program.
struct JpegErrors {
  jpeg_error_mgr manager{};  // first: libjpeg hands out a pointer to it
  std::jmp_buf escape{};
  char message[JMSG_LENGTH_MAX] = {};
};

extern "C" {
static void escape_from_jpeg(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}
static void ignore_jpeg_message(j_common_ptr) {}
}

struct JpegEncoder final : TileEncoder::Impl {
  JpegEncoder(SynthCodec codec, int quality, int side) : rows_(side), tile_(side) {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = escape_from_jpeg;
    errors_.manager.output_message = ignore_jpeg_message;
    if (setjmp(errors_.escape) != 0) throw Error(std::string("libjpeg: ") + errors_.message);
    jpeg_create_compress(&info_);
    info_.image_width = static_cast<JDIMENSION>(side);
    info_.image_height = static_cast<JDIMENSION>(side);
    info_.input_components = 3;
    info_.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info_);
    if (codec == SynthCodec::jpeg_grey) jpeg_set_colorspace(&info_, JCS_GRAYSCALE);
    if (codec == SynthCodec::jpeg_rgb) {
      jpeg_set_colorspace(&info_, JCS_RGB);
      // Aperio's components are called 0, 1, 2: without an Adobe marker only the TIFF says that they are R, G, B.
      for (int i = 0; i < 3; ++i) info_.comp_info[i].component_id = i;
    }
    jpeg_set_quality(&info_, quality, TRUE);
    info_.write_JFIF_header = FALSE;
    info_.write_Adobe_marker = FALSE;
    if (codec == SynthCodec::jpeg_422) info_.comp_info[0].v_samp_factor = 1;
    if (codec == SynthCodec::jpeg_444) info_.comp_info[0].h_samp_factor = info_.comp_info[0].v_samp_factor = 1;
    one_table_ = codec == SynthCodec::jpeg_grey || codec == SynthCodec::jpeg_rgb;
  }
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;
  ~JpegEncoder() override {
    jpeg_destroy_compress(&info_);
    std::free(buffer_);
  }

  Bytes tables() override {
    if (setjmp(errors_.escape) != 0) throw Error(std::string("libjpeg: ") + errors_.message);
    jpeg_suppress_tables(&info_, FALSE);
    if (one_table_) {
      info_.quant_tbl_ptrs[1]->sent_table = TRUE;
      info_.dc_huff_tbl_ptrs[1]->sent_table = TRUE;
      info_.ac_huff_tbl_ptrs[1]->sent_table = TRUE;
    }
    begin_output();
    jpeg_write_tables(&info_);
    return take_output();
  }

  Bytes encode(std::span<const std::uint8_t> rgb) override {
    for (int y = 0; y < tile_; ++y) {
      // libjpeg takes pointers to mutable samples and only reads them.
      rows_[y] = const_cast<JSAMPROW>(rgb.data() + static_cast<std::size_t>(y) * tile_ * 3);
    }
    if (setjmp(errors_.escape) != 0) throw Error(std::string("libjpeg: ") + errors_.message);
    begin_output();
    jpeg_suppress_tables(&info_, TRUE);
    jpeg_start_compress(&info_, FALSE);
    while (info_.next_scanline < info_.image_height) {
      jpeg_write_scanlines(&info_, rows_.data() + info_.next_scanline, info_.image_height - info_.next_scanline);
    }
    jpeg_finish_compress(&info_);
    return take_output();
  }

 private:
  void begin_output() {
    std::free(buffer_);
    buffer_ = nullptr;
    length_ = 0;
    jpeg_mem_dest(&info_, &buffer_, &length_);
  }
  Bytes take_output() const { return {buffer_, buffer_ + length_}; }

  JpegErrors errors_;
  jpeg_compress_struct info_{};
  std::vector<JSAMPROW> rows_;
  int tile_;
  bool one_table_ = false;
  unsigned char* buffer_ = nullptr;
  unsigned long length_ = 0;
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
    parameters.cp_fixed_quality = 1;
    parameters.tcp_distoratio[0] = 24.0F + 0.16F * static_cast<float>(quality_);  // dB; 36 at 75
    parameters.irreversible = 1;
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
