#include "cuda/jpeg_by_hand.hpp"

#include <algorithm>
#include <random>
#include <utility>

#include "slide/jpeg_writer.hpp"

namespace slidestream::test {
namespace {

constexpr unsigned sof0 = 0xC0, sof1 = 0xC1, sof3 = 0xC3, dht = 0xC4, sof15 = 0xCF, dac = 0xCC, sos = 0xDA, dqt = 0xDB,
                   app14 = 0xEE;

unsigned marker_of(const Bytes& segment) { return std::to_integer<unsigned>(segment[1]); }

bool is_frame(unsigned marker) { return marker >= sof0 && marker <= sof15 && marker != dht && marker != dac; }

/// Whether libjpeg-turbo can code a scan of such components.
bool can_be_coded(const JpegSampling& sampling, std::size_t components) {
  int blocks = 0;
  for (std::size_t i = 0; i < components; ++i) {
    const auto& [h, v] = sampling.factors[i];
    if (h < 1 || v < 1 || h > 4 || v > 4) return false;
    blocks += h * v;
  }
  return components == 1 || blocks <= 10;
}

void fill_component(jpeg_compress_struct& jpeg, jvirt_barray_ptr array, const jpeg_component_info& component,
                    std::mt19937& random) {
  const auto small = [&random](int most) {
    return static_cast<JCOEF>(static_cast<int>(random() % (2U * most + 1)) - most);
  };
  for (JDIMENSION y = 0; y < component.height_in_blocks; ++y) {
    JBLOCKARRAY rows = jpeg.mem->access_virt_barray(reinterpret_cast<j_common_ptr>(&jpeg), array, y, 1, TRUE);
    for (JDIMENSION x = 0; x < component.width_in_blocks; ++x) {
      JCOEF* block = rows[0][x];
      block[0] = small(40);
      for (int i = 0; i < 4; ++i) block[1 + random() % 63] = small(4);
    }
  }
}

/// The second set of tables has other values for quantisation, and Huffman's tables in each other's place.
void set_tables(jpeg_compress_struct& jpeg, bool second) {
  jpeg_set_quality(&jpeg, second ? 50 : 80, TRUE);
  if (!second) return;
  std::swap(jpeg.dc_huff_tbl_ptrs[0], jpeg.dc_huff_tbl_ptrs[1]);
  std::swap(jpeg.ac_huff_tbl_ptrs[0], jpeg.ac_huff_tbl_ptrs[1]);
}

Bytes code(const JpegByHand& options, const JpegSampling& sampling) {
  JpegWriter writer;
  jpeg_compress_struct& jpeg = writer.jpeg;
  jpeg.image_width = static_cast<JDIMENSION>(options.width);
  jpeg.image_height = static_cast<JDIMENSION>(options.height);
  jpeg.input_components = static_cast<int>(options.ids.size());
  jpeg.in_color_space = JCS_UNKNOWN;
  jpeg_set_defaults(&jpeg);
  set_tables(jpeg, options.tables == JpegTables::both);
  int across = 1;
  int down = 1;
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    jpeg_component_info& component = jpeg.comp_info[i];
    component.component_id = options.ids[i];
    component.h_samp_factor = sampling.factors[i][0];
    component.v_samp_factor = sampling.factors[i][1];
    component.quant_tbl_no = options.quantisation[i];
    component.dc_tbl_no = component.ac_tbl_no = i == 0 ? 0 : 1;
    across = std::max(across, component.h_samp_factor);
    down = std::max(down, component.v_samp_factor);
  }
  jpeg.arith_code = options.process == JpegProcess::arithmetic;
  if (options.process == JpegProcess::progressive) jpeg_simple_progression(&jpeg);
  jpeg.restart_interval = static_cast<unsigned>(options.restart_interval);
  const auto blocks = [](int size, int factor, int most) {
    const int samples = (size * factor + most - 1) / most;
    return static_cast<JDIMENSION>(((samples + 7) / 8 + factor - 1) / factor * factor);
  };
  std::vector<jvirt_barray_ptr> arrays;
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    const auto& [h, v] = sampling.factors[i];
    // A few blocks more: the last MCUs reach beyond the component.
    arrays.push_back(jpeg.mem->request_virt_barray(reinterpret_cast<j_common_ptr>(&jpeg), JPOOL_IMAGE, TRUE,
                                                   blocks(options.width, h, across) + 4,
                                                   blocks(options.height, v, down) + 4, static_cast<JDIMENSION>(v)));
  }
  jpeg_write_coefficients(&jpeg, arrays.data());
  std::mt19937 random(7);
  for (std::size_t i = 0; i < arrays.size(); ++i) fill_component(jpeg, arrays[i], jpeg.comp_info[i], random);
  jpeg_finish_compress(&jpeg);
  return writer.take();
}

/// What the frame header says, as asked for rather than as coded.
void change_frame(Bytes& frame, const JpegByHand& options, const JpegSampling& sampling) {
  if (options.process == JpegProcess::extended || options.process == JpegProcess::twelve_bits) {
    frame[1] = static_cast<std::byte>(sof1);
  }
  if (options.process == JpegProcess::twelve_bits) frame[4] = std::byte{12};
  if (options.process == JpegProcess::lossless) frame[1] = static_cast<std::byte>(sof3);
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    frame[11 + 3 * i] = static_cast<std::byte>(sampling.factors[i][0] << 4 | sampling.factors[i][1]);
  }
}

bool keeps(JpegTables tables, unsigned marker) {
  if (marker == dht)
    return tables != JpegTables::outside && tables != JpegTables::no_huffman && tables != JpegTables::none;
  if (marker == dqt) return tables != JpegTables::outside && tables != JpegTables::split && tables != JpegTables::none;
  return true;
}

Bytes adobe_marker(int transform) {
  constexpr unsigned bytes[] = {0xFF, app14, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0};
  Bytes segment;
  for (const unsigned byte : bytes) segment.push_back(static_cast<std::byte>(byte));
  segment.push_back(static_cast<std::byte>(transform));
  return segment;
}

Bytes jfif_header() {
  constexpr unsigned bytes[] = {0xFF, 0xE0, 0, 16, 'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};
  Bytes segment;
  for (const unsigned byte : bytes) segment.push_back(static_cast<std::byte>(byte));
  return segment;
}

}  // namespace

const std::vector<JpegSampling>& jpeg_samplings() {
  static const std::vector<JpegSampling> samplings = {
      {{{{1, 1}, {1, 1}, {1, 1}, {1, 1}}}, true},  {{{{2, 1}, {1, 1}, {1, 1}, {1, 1}}}, true},
      {{{{2, 2}, {1, 1}, {1, 1}, {1, 1}}}, true},  {{{{1, 2}, {1, 1}, {1, 1}, {1, 1}}}, true},
      {{{{4, 1}, {1, 1}, {1, 1}, {1, 1}}}, true},  {{{{4, 2}, {1, 1}, {1, 1}, {1, 1}}}, true},
      {{{{1, 4}, {1, 1}, {1, 1}, {1, 1}}}, true},  {{{{3, 1}, {1, 1}, {1, 1}, {1, 1}}}, true},
      {{{{2, 1}, {2, 1}, {2, 1}, {2, 1}}}, true},  {{{{2, 2}, {2, 2}, {2, 2}, {2, 2}}}, false},
      {{{{3, 2}, {2, 1}, {1, 1}, {1, 1}}}, false}, {{{{1, 1}, {2, 2}, {1, 1}, {1, 1}}}, false},
      {{{{2, 1}, {1, 2}, {1, 1}, {1, 1}}}, false}, {{{{2, 2}, {2, 1}, {1, 2}, {1, 1}}}, false},
      {{{{0, 1}, {1, 1}, {1, 1}, {1, 1}}}, false}, {{{{1, 1}, {1, 1}, {5, 1}, {1, 1}}}, false},
      {{{{4, 4}, {1, 1}, {1, 1}, {1, 1}}}, false},
  };
  return samplings;
}

std::vector<Bytes> jpeg_segments(const Bytes& jpeg) {
  std::vector<Bytes> segments;
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    const auto begin = jpeg.begin() + static_cast<std::ptrdiff_t>(at);
    if (jpeg[at + 1] == static_cast<std::byte>(sos)) {
      segments.emplace_back(begin, jpeg.end());
      break;
    }
    const std::size_t length =
        2 + (std::to_integer<std::size_t>(jpeg[at + 2]) << 8 | std::to_integer<std::size_t>(jpeg[at + 3]));
    segments.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(length));
    at += length;
  }
  return segments;
}

Bytes join_segments(const std::vector<Bytes>& segments) {
  Bytes jpeg = {std::byte{0xFF}, std::byte{0xD8}};
  for (const Bytes& segment : segments) jpeg.insert(jpeg.end(), segment.begin(), segment.end());
  return jpeg;
}

Bytes make_jpeg(const JpegByHand& options) {
  const JpegSampling& wanted = jpeg_samplings()[options.sampling];
  const bool coded = can_be_coded(wanted, options.ids.size());
  std::vector<Bytes> made;
  if (options.jfif) made.push_back(jfif_header());
  if (options.adobe >= 0) made.push_back(adobe_marker(options.adobe));
  for (Bytes& segment : jpeg_segments(code(options, coded ? wanted : jpeg_samplings()[0]))) {
    if (!keeps(options.tables, marker_of(segment))) continue;
    if (is_frame(marker_of(segment))) change_frame(segment, options, wanted);
    if (marker_of(segment) == sos && options.process == JpegProcess::lossless) {
      // The first predictor.
      const std::size_t start = 5 + 2 * options.ids.size();
      segment[start] = std::byte{1};
      segment[start + 1] = std::byte{0};
    }
    made.push_back(std::move(segment));
  }
  return join_segments(made);
}

Bytes make_jpeg_tables(JpegTables tables) {
  if (tables != JpegTables::outside && tables != JpegTables::both && tables != JpegTables::split) return {};
  std::vector<Bytes> kept;
  for (const Bytes& segment : jpeg_segments(code({}, jpeg_samplings()[0]))) {
    const unsigned marker = marker_of(segment);
    if (marker == dqt || (marker == dht && tables != JpegTables::split)) kept.push_back(segment);
  }
  kept.push_back({std::byte{0xFF}, std::byte{0xD9}});
  return join_segments(kept);
}

std::string describe(const JpegByHand& options) {
  constexpr const char* processes[] = {"baseline", "extended", "progressive", "arithmetic", "12 bits", "lossless"};
  constexpr const char* places[] = {"inside", "outside", "both", "split", "no Huffman", "none"};
  std::string text = processes[static_cast<int>(options.process)];
  text += ", ids";
  for (const unsigned id : options.ids) text += ' ' + std::to_string(id);
  text += ", sampling";
  for (std::size_t i = 0; i < options.ids.size(); ++i) {
    const auto& [h, v] = jpeg_samplings()[options.sampling].factors[i];
    text += ' ' + std::to_string(h) + 'x' + std::to_string(v);
  }
  text += ", quantised by";
  for (std::size_t i = 0; i < options.ids.size(); ++i) text += ' ' + std::to_string(options.quantisation[i]);
  text += options.jfif ? ", JFIF" : "";
  return text + ", Adobe " + std::to_string(options.adobe) + ", tables " + places[static_cast<int>(options.tables)];
}

}  // namespace slidestream::test
