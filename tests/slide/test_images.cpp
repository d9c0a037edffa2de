#include "slide/test_images.hpp"

#include <openjpeg.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <random>
#include <slidestream/error.hpp>
#include <stdexcept>

#include "slide/jpeg_writer.hpp"

namespace slidestream::test {
namespace {

void set_up(jpeg_compress_struct& jpeg, const JpegOptions& options, int samples) {
  using Coding = JpegOptions::Coding;
  jpeg.input_components = samples;
  switch (options.coding) {
    case Coding::grey:
      jpeg.in_color_space = JCS_GRAYSCALE;
      break;
    case Coding::unknown:
      jpeg.in_color_space = JCS_UNKNOWN;
      break;
    default:
      jpeg.in_color_space = JCS_RGB;
  }
  jpeg_set_defaults(&jpeg);
  if (options.coding == Coding::rgb) jpeg_set_colorspace(&jpeg, JCS_RGB);
  jpeg.write_Adobe_marker = FALSE;
  jpeg.write_JFIF_header = FALSE;
  if (options.coding == Coding::ycbcr) {
    jpeg.comp_info[0].h_samp_factor = options.horizontal;
    jpeg.comp_info[0].v_samp_factor = options.vertical;
    for (int i = 1; i < 3; ++i) {
      jpeg.comp_info[i].h_samp_factor = options.chroma_horizontal;
      jpeg.comp_info[i].v_samp_factor = options.chroma_vertical;
    }
  }
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.arith_code = options.arithmetic;
  if (options.progressive) jpeg_simple_progression(&jpeg);
  jpeg.restart_interval = static_cast<unsigned>(options.restart_interval);
}

/// `choose` may change what the header made of the decompressor.
template <class Choose>
Picture decode_jpeg(const Bytes& bytes, const Choose& choose) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = throw_jpeg_error;
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  choose(jpeg);
  jpeg_start_decompress(&jpeg);
  Picture picture{
      static_cast<int>(jpeg.output_width), static_cast<int>(jpeg.output_height), jpeg.output_components, {}};
  picture.data.resize(static_cast<std::size_t>(picture.width * picture.height * picture.samples));
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = picture.data.data() + jpeg.output_scanline * static_cast<unsigned>(picture.width * picture.samples);
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_destroy_decompress(&jpeg);
  return picture;
}

struct MemoryStream {
  Bytes bytes;
  std::size_t position = 0;
};

opj_stream_t* open_stream(MemoryStream& memory, bool reading) {
  opj_stream_t* stream = opj_stream_create(1 << 16, reading);
  opj_stream_set_user_data(stream, &memory, nullptr);
  opj_stream_set_user_data_length(stream, memory.bytes.size());
  opj_stream_set_read_function(stream, [](void* to, OPJ_SIZE_T size, void* user) -> OPJ_SIZE_T {
    auto& m = *static_cast<MemoryStream*>(user);
    const std::size_t count = std::min<std::size_t>(size, m.bytes.size() - m.position);
    std::copy_n(m.bytes.data() + m.position, count, static_cast<std::byte*>(to));
    m.position += count;
    return count == 0 ? static_cast<OPJ_SIZE_T>(-1) : count;
  });
  opj_stream_set_write_function(stream, [](void* from, OPJ_SIZE_T size, void* user) -> OPJ_SIZE_T {
    auto& m = *static_cast<MemoryStream*>(user);
    if (m.bytes.size() < m.position + size) m.bytes.resize(m.position + size);
    std::copy_n(static_cast<const std::byte*>(from), size, m.bytes.data() + m.position);
    m.position += size;
    return size;
  });
  opj_stream_set_skip_function(stream, [](OPJ_OFF_T by, void* user) -> OPJ_OFF_T {
    static_cast<MemoryStream*>(user)->position += static_cast<std::size_t>(by);
    return by;
  });
  opj_stream_set_seek_function(stream, [](OPJ_OFF_T to, void* user) -> OPJ_BOOL {
    static_cast<MemoryStream*>(user)->position = static_cast<std::size_t>(to);
    return OPJ_TRUE;
  });
  return stream;
}

/// Decodes a bare codestream; `component` < 0: all, with the colour transform.
Picture decode_jpeg2000(const Bytes& bytes, int component) {
  MemoryStream memory{bytes};
  opj_codec_t* codec = opj_create_decompress(OPJ_CODEC_J2K);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_setup_decoder(codec, &parameters);
  opj_stream_t* stream = open_stream(memory, true);
  opj_image_t* image = nullptr;
  bool fine = opj_read_header(stream, codec, &image) != 0;
  const auto only = static_cast<OPJ_UINT32>(component);
  if (fine && component >= 0) fine = opj_set_decoded_components(codec, 1, &only, OPJ_FALSE) != 0;
  fine = fine && opj_decode(codec, stream, image) != 0;
  if (!fine) throw std::runtime_error("the test's codestream can't be decoded");
  const int samples = component >= 0 ? 1 : static_cast<int>(image->numcomps);
  Picture picture{static_cast<int>(image->comps[0].w), static_cast<int>(image->comps[0].h), samples, {}};
  for (int i = 0; i < picture.width * picture.height; ++i) {
    for (int s = 0; s < samples; ++s) {
      picture.data.push_back(static_cast<std::uint8_t>(std::clamp(image->comps[s].data[i], 0, 255)));
    }
  }
  opj_image_destroy(image);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  return picture;
}

opj_image_t* to_image(const Picture& picture, const Jpeg2000Options& options) {
  std::vector<opj_image_cmptparm_t> parameters(static_cast<std::size_t>(picture.samples));
  for (int s = 0; s < picture.samples; ++s) {
    opj_image_cmptparm_t& p = parameters[static_cast<std::size_t>(s)];
    p.dx = static_cast<OPJ_UINT32>(s > 0 ? options.chroma_dx : 1);
    p.dy = static_cast<OPJ_UINT32>(s > 0 ? options.chroma_dy : 1);
    p.w = (static_cast<OPJ_UINT32>(picture.width) + p.dx - 1) / p.dx;
    p.h = (static_cast<OPJ_UINT32>(picture.height) + p.dy - 1) / p.dy;
    p.prec = static_cast<OPJ_UINT32>(options.precision);
    p.sgnd = options.is_signed;
  }
  opj_image_t* image = opj_image_create(static_cast<OPJ_UINT32>(picture.samples), parameters.data(),
                                        picture.samples >= 3 ? OPJ_CLRSPC_SRGB : OPJ_CLRSPC_GRAY);
  image->x1 = static_cast<OPJ_UINT32>(picture.width);
  image->y1 = static_cast<OPJ_UINT32>(picture.height);
  for (int s = 0; s < picture.samples; ++s) {
    const opj_image_comp_t& component = image->comps[s];
    for (OPJ_UINT32 y = 0; y < component.h; ++y) {
      for (OPJ_UINT32 x = 0; x < component.w; ++x) {
        const int value = picture.at(static_cast<int>(x * component.dx), static_cast<int>(y * component.dy))[s];
        component.data[y * component.w + x] = options.is_signed ? value - 128 : value;
      }
    }
  }
  return image;
}

}  // namespace

Picture make_picture(int width, int height, int samples, unsigned seed) {
  Picture picture{width, height, samples, {}};
  std::mt19937 random(seed);
  const double phase = 0.7 * seed;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int s = 0; s < samples; ++s) {
        const double wave = std::sin(0.11 * x + phase + s) + std::cos(0.07 * y * (s + 1) - phase);
        const double noise = static_cast<double>(random() % 31) - 15.0;
        picture.data.push_back(static_cast<std::uint8_t>(std::clamp(130.0 + 50.0 * wave + noise, 0.0, 255.0)));
      }
    }
  }
  return picture;
}

Picture make_stained_picture(int width, int height, unsigned seed) {
  std::mt19937 random(seed);
  const auto noise = [&] { return static_cast<double>(random() >> 8) / (1 << 24); };
  const double turn = 0.02 * static_cast<double>(seed % 5);
  const double colours[2][3] = {{0.6 + turn, 0.7, 0.35}, {0.25, 0.85 - turn, 0.45}};
  Picture picture = {width, height, 3, std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3))};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const bool tissue = std::sin(x / 17.0) + std::cos(y / 13.0) > 0.0;
      const double amounts[2] = {tissue ? 1.6 * noise() : 0.0, tissue ? noise() : 0.0};
      for (int c = 0; c < 3; ++c) {
        const double density = amounts[0] * colours[0][c] + amounts[1] * colours[1][c];
        picture.data[static_cast<std::size_t>((y * width + x) * 3 + c)] =
            static_cast<std::uint8_t>(245.0 * std::exp(-density));
      }
    }
  }
  return picture;
}

Picture cut(const Picture& picture, int x, int y, int width, int height) {
  Picture part{width, height, picture.samples, {}};
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      const std::uint8_t* from =
          picture.at(std::min(x + column, picture.width - 1), std::min(y + row, picture.height - 1));
      part.data.insert(part.data.end(), from, from + picture.samples);
    }
  }
  return part;
}

Picture reduced(const Picture& picture, int by) {
  Picture to{(picture.width + by - 1) / by, (picture.height + by - 1) / by, picture.samples, {}};
  for (int y = 0; y < picture.height; y += by) {
    for (int x = 0; x < picture.width; x += by) {
      for (int s = 0; s < picture.samples; ++s) {
        int sum = 0;
        int count = 0;
        for (int v = y; v < std::min(y + by, picture.height); ++v) {
          for (int u = x; u < std::min(x + by, picture.width); ++u, ++count) sum += picture.at(u, v)[s];
        }
        to.data.push_back(static_cast<std::uint8_t>((2 * sum + count) / (2 * count)));
      }
    }
  }
  return to;
}

Bytes to_bytes(const Picture& picture) {
  const auto* first = reinterpret_cast<const std::byte*>(picture.data.data());
  return Bytes(first, first + picture.data.size());
}

Bytes encode_jpeg(const Picture& picture, const JpegOptions& options) {
  JpegWriter writer;
  writer.jpeg.image_width = static_cast<JDIMENSION>(picture.width);
  writer.jpeg.image_height = static_cast<JDIMENSION>(picture.height);
  set_up(writer.jpeg, options, picture.samples);
  if (options.without_tables) jpeg_suppress_tables(&writer.jpeg, TRUE);
  jpeg_start_compress(&writer.jpeg, options.without_tables ? FALSE : TRUE);
  for (int y = 0; y < picture.height; ++y) {
    auto* row = const_cast<JSAMPROW>(picture.at(0, y));
    jpeg_write_scanlines(&writer.jpeg, &row, 1);
  }
  jpeg_finish_compress(&writer.jpeg);
  return writer.take();
}

Bytes encode_jpeg_tables(const JpegOptions& options) {
  JpegWriter writer;
  writer.jpeg.image_width = writer.jpeg.image_height = 16;
  set_up(writer.jpeg, options, options.coding == JpegOptions::Coding::grey ? 1 : 3);
  jpeg_write_tables(&writer.jpeg);
  return writer.take();
}

Picture decode_jpeg_grey(const Bytes& bytes) {
  return decode_jpeg(bytes, [](jpeg_decompress_struct& jpeg) {
    if (jpeg.num_components == 3) jpeg.jpeg_color_space = JCS_YCbCr;
    jpeg.out_color_space = JCS_GRAYSCALE;
    jpeg.dct_method = JDCT_ISLOW;
  });
}

Picture decode_jpeg_rgb(const Bytes& bytes, bool rgb_coded) {
  return decode_jpeg(bytes, [rgb_coded](jpeg_decompress_struct& jpeg) {
    if (jpeg.num_components == 3) jpeg.jpeg_color_space = rgb_coded ? JCS_RGB : JCS_YCbCr;
    jpeg.out_color_space = JCS_RGB;
  });
}

Picture decode_jpeg_components(const Bytes& bytes) {
  return decode_jpeg(bytes, [](jpeg_decompress_struct& jpeg) {
    jpeg.jpeg_color_space = jpeg.out_color_space = jpeg.num_components == 3 ? JCS_RGB : JCS_UNKNOWN;
    jpeg.dct_method = JDCT_ISLOW;
  });
}

Bytes encode_jpeg2000(const Picture& picture, const Jpeg2000Options& options) {
  opj_image_t* image = to_image(picture, options);
  opj_cparameters_t parameters;
  opj_set_default_encoder_parameters(&parameters);
  parameters.irreversible = options.irreversible;
  parameters.tcp_mct = options.colour_transform && picture.samples >= 3 ? 1 : 0;
  parameters.tcp_numlayers = options.layers;
  for (int layer = 0; layer < options.layers; ++layer) {
    const int before_last = options.layers - 1 - layer;
    const bool all = !options.irreversible && before_last == 0;
    parameters.tcp_rates[layer] = all ? 0 : options.rate * static_cast<float>(1 << before_last);
  }
  parameters.cp_disto_alloc = 1;
  parameters.numresolution = options.levels + 1;
  parameters.cblockw_init = options.block_width;
  parameters.cblockh_init = options.block_height;
  parameters.prog_order = static_cast<OPJ_PROG_ORDER>(options.progression);
  parameters.mode = options.block_style;
  parameters.csty |= (options.sop_markers ? 2 : 0) | (options.eph_markers ? 4 : 0);
  if (!options.precincts.empty()) {
    parameters.csty |= 1;
    parameters.res_spec = static_cast<int>(options.precincts.size());
    for (std::size_t i = 0; i < options.precincts.size(); ++i) {
      parameters.prcw_init[i] = parameters.prch_init[i] = options.precincts[i];
    }
  }
  if (options.tile_parts != 0) {
    parameters.tp_on = 1;
    parameters.tp_flag = options.tile_parts;
  }
  if (options.tile_size > 0) {
    parameters.tile_size_on = OPJ_TRUE;
    parameters.cp_tdx = parameters.cp_tdy = options.tile_size;
  }
  opj_codec_t* codec = opj_create_compress(options.jp2 ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K);
  MemoryStream memory;
  opj_stream_t* stream = open_stream(memory, false);
  const char* const lengths[] = {"PLT=YES", "TLM=YES", nullptr};
  const bool fine = opj_setup_encoder(codec, &parameters, image) &&
                    (!options.packet_lengths || opj_encoder_set_extra_options(codec, lengths)) &&
                    opj_start_compress(codec, image, stream) && opj_encode(codec, stream) &&
                    opj_end_compress(codec, stream);
  opj_stream_destroy(stream);
  opj_destroy_codec(codec);
  opj_image_destroy(image);
  if (!fine) throw std::runtime_error("the test's picture can't be encoded");
  return memory.bytes;
}

Bytes with_coding_in_tile(Bytes codestream) {
  constexpr unsigned char cod = 0x52, sot = 0x90;
  const auto find = [&codestream](unsigned char marker) {
    const std::array bytes = {std::byte{0xFF}, std::byte{marker}};
    const auto found = std::search(codestream.begin(), codestream.end(), bytes.begin(), bytes.end());
    if (found == codestream.end()) throw std::runtime_error("the test's codestream lacks a marker");
    return static_cast<std::size_t>(found - codestream.begin());
  };
  const std::size_t at = find(cod);
  const auto begin = codestream.begin() + static_cast<std::ptrdiff_t>(at);
  const Bytes coding(begin, begin + 2 + std::to_integer<std::ptrdiff_t>(codestream[at + 3]));
  codestream[at + 8] ^= std::byte{1};
  const std::size_t part = find(sot);
  std::size_t length = coding.size();
  for (std::size_t i = 6; i < 10; ++i) length += std::to_integer<std::size_t>(codestream[part + i]) << (8 * (9 - i));
  for (std::size_t i = 6; i < 10; ++i) codestream[part + i] = static_cast<std::byte>(length >> (8 * (9 - i)));
  codestream.insert(codestream.begin() + static_cast<std::ptrdiff_t>(part + 12), coding.begin(), coding.end());
  return codestream;
}

Picture decode_jpeg2000_component(const Bytes& codestream, unsigned component) {
  return decode_jpeg2000(codestream, static_cast<int>(component));
}
Picture decode_jpeg2000_rgb(const Bytes& codestream) { return decode_jpeg2000(codestream, -1); }

std::vector<std::uint8_t> formula(const Picture& picture) {
  std::vector<std::uint8_t> grey;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t* p = picture.at(x, y);
      grey.push_back(static_cast<std::uint8_t>((19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 32768) >> 16));
    }
  }
  return grey;
}

std::vector<std::uint8_t> rgb_of(const Picture& picture) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      for (int c = 0; c < 3; ++c) rgb.push_back(picture.at(x, y)[picture.samples < 3 ? 0 : c]);
    }
  }
  return rgb;
}

std::vector<std::uint8_t> sample(const Picture& picture, int s) {
  std::vector<std::uint8_t> values;
  for (std::size_t i = static_cast<std::size_t>(s); i < picture.data.size();
       i += static_cast<std::size_t>(picture.samples)) {
    values.push_back(picture.data[i]);
  }
  return values;
}

std::vector<std::uint8_t> read_level(const Slide& slide, std::size_t level) {
  const Level& l = slide.info().levels.at(level);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(l.width * l.height));
  read_luminance(slide, level, 0, 0, {pixels.data(), l.width, l.width, l.height});
  return pixels;
}

std::vector<std::uint8_t> read_level_rgb(const Slide& slide, std::size_t level) {
  const Level& l = slide.info().levels.at(level);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(3 * l.width * l.height));
  read_rgb(slide, level, 0, 0, {pixels.data(), 3 * l.width, l.width, l.height, rgb_format});
  return pixels;
}

std::string open_error(const std::filesystem::path& path, const OpenOptions& options) {
  try {
    Slide::open(path, options);
    return "";
  } catch (const SlideError& error) {
    return error.what();
  }
}

std::string read_error(const std::filesystem::path& path) {
  try {
    read_level(*Slide::open(path));
    return "";
  } catch (const SlideError& error) {
    return error.what();
  }
}

}  // namespace slidestream::test
