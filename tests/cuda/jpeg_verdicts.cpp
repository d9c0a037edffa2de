#include "cuda/jpeg_verdicts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>

#include "codec/jpeg_stream.hpp"
#include "cuda/jpeg_by_hand.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/test_images.hpp"

namespace slidestream::test {
namespace {

using cuda::JpegReason;

constexpr std::array<Colour, 4> colours = {Colour::grey, Colour::grey_inverted, Colour::rgb, Colour::ycbcr};
constexpr std::array<std::array<std::uint8_t, 4>, 4> identifiers = {
    {{1, 2, 3, 4}, {0, 1, 2, 3}, {'R', 'G', 'B', 'A'}, {1, 1, 2, 2}}};
constexpr std::size_t doubled = 3;
/// Numbers of components' quantisation tables. No other choice has seven values, so that all of them meet.
constexpr std::array<std::array<int, 4>, 7> quantisations = {
    {{0, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 0, 1}, {1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 1}}};

enum class Expected { anything, accepted, refused };

/// A tile, and what must become of it.
struct Case {
  std::string name;
  Bytes bytes;
  TileDemand demand;
  bool vouched = false;                  ///< the GPU's way must vouch for it
  Expected on_cpu = Expected::anything;  ///< the CPU's verdict
  int from_x = 0;                        ///< the rectangle that is wanted
  int from_y = 0;
  int width = 0;
  int height = 0;
};

/// What came of all of them.
struct Counts {
  std::size_t all = 0;
  std::size_t vouched = 0;
  std::size_t refused = 0;
};

void check(const std::vector<Case>& cases, const Bytes& tables, const GpuWay& decode, const PixelFormat& format,
           Counts& counts) {
  for (std::size_t first = 0; first < cases.size(); first += most_tiles_at_once) {
    const std::size_t end = std::min(cases.size(), first + most_tiles_at_once);
    std::vector<DeviceTile> tiles;
    for (std::size_t i = first; i < end; ++i) {
      const Case& c = cases[i];
      tiles.push_back({&c.bytes, c.demand, c.from_x, c.from_y, c.width, c.height});
      tiles.back().demand.format = format;
    }
    const std::vector<DeviceResult> results = decode(tiles, tables);
    for (std::size_t i = first; i < end; ++i) {
      const Case& c = cases[i];
      const DeviceResult& gpu = results[i - first];
      const bool vouched = gpu.reason == JpegReason::none;
      const std::optional<std::vector<std::uint8_t>> cpu =
          decode_with_libjpeg(c.bytes, tiles[i - first].demand, tables);
      ++counts.all;
      counts.vouched += vouched ? 1 : 0;
      counts.refused += cpu ? 0 : 1;
      const auto check_that = [&](bool holds, const char* what) {
        const std::string tile = std::string(name(c.demand.colour)) + ", " + c.name;
        CHECK_MESSAGE(holds, std::string(what) << ": " << tile << "; flagged: " << std::string(describe(gpu.reason)));
      };
      check_that(gpu.reason != JpegReason::no_room, "there must be room");
      check_that(!vouched || cpu, "vouched for, and refused by the CPU");
      check_that(!vouched || !cpu || gpu.pixels == part_of(*cpu, tiles[i - first]), "vouched for with other pixels");
      check_that(vouched || !c.vouched, "not vouched for");
      check_that(c.on_cpu == Expected::anything || cpu.has_value() == (c.on_cpu == Expected::accepted),
                 "another verdict of the CPU than expected");
    }
  }
}

/// What the design says of colours and numbers of components, said once more.
bool fits(Colour colour, std::size_t components) {
  if (colour == Colour::grey || colour == Colour::grey_inverted) return components <= 2;
  return components != 2;
}

/// Whether three components have different sampling factors.
bool are_sampled_apart(const JpegByHand& options) {
  const auto& factors = jpeg_samplings()[options.sampling].factors;
  return factors[0] != factors[1] || factors[0] != factors[2];
}

/// Whether three components have the names and the tables of Y, Cb and Cr.
bool are_coded_as_ycbcr(const JpegByHand& options) {
  const std::array<int, 4>& tables = options.quantisation;
  // From 0 or 1.
  const bool counted =
      options.ids[0] <= 1 && options.ids[1] == options.ids[0] + 1 && options.ids[2] == options.ids[0] + 2;
  return counted && tables[0] != tables[1] && tables[1] == tables[2];
}

/// What three components are by the tag, or by what the tile says where that counts: nothing where it can't be told.
/// Said once more, as a table.
std::optional<Colour> told(const JpegByHand& options, Colour tag) {
  const bool rgb_names = options.ids[0] == 'R', jfif_names = options.ids[0] == 1;
  const bool apart = are_sampled_apart(options);
  switch (options.adobe) {
    case 0:
      return options.jfif || apart ? std::nullopt : std::optional(Colour::rgb);
    case 1:
      return rgb_names ? std::nullopt : std::optional(Colour::ycbcr);
    case 2:
      return std::nullopt;
    default:
      break;
  }
  if (options.jfif) return rgb_names ? std::nullopt : std::optional(Colour::ycbcr);
  if (rgb_names) return tag == Colour::rgb && !apart ? std::optional(Colour::rgb) : std::nullopt;
  if (are_coded_as_ycbcr(options)) return Colour::ycbcr;
  if (tag == Colour::rgb && apart) return jfif_names ? std::optional(Colour::ycbcr) : std::nullopt;
  return tag;
}

/// What components are for the slide; nothing where the tile must be refused.
std::optional<Colour> colour_for(const JpegByHand& options, const TileDemand& demand) {
  const bool grey = demand.colour == Colour::grey || demand.colour == Colour::grey_inverted;
  if (grey || options.ids.size() < 3) return demand.colour;
  if (options.ids.size() != 3) return std::nullopt;  // four components: `samples` isn't theirs here
  if (demand.tiles_say_colour) return told(options, demand.colour);
  const bool ycbcr = are_sampled_apart(options) || (are_coded_as_ycbcr(options) && options.adobe != 0);
  return ycbcr ? Colour::ycbcr : demand.colour;
}

bool is_ordinary(const JpegByHand& options, Colour colour, bool distinct) {
  const std::size_t components = options.ids.size();
  const bool coding = options.process == JpegProcess::baseline || options.process == JpegProcess::extended;
  const bool tables = options.tables != JpegTables::no_huffman && options.tables != JpegTables::none;
  if (!coding || !tables || !fits(colour, components) || !distinct) return false;
  if (components == 1) return jpeg_samplings()[options.sampling].first_is_densest;
  if (components != 3) return false;
  return colour == Colour::rgb ? options.sampling == 0 : jpeg_samplings()[options.sampling].first_is_densest;
}

/// What the CPU must accept though no GPU decodes it: other processes, and RGB that is sampled more thinly.
bool is_known(const JpegByHand& options, Colour colour, bool distinct) {
  const std::size_t components = options.ids.size();
  const bool coding = options.process != JpegProcess::twelve_bits && options.process != JpegProcess::lossless;
  const bool sampling = jpeg_samplings()[options.sampling].first_is_densest && (components < 4 || options.sampling < 4);
  return coding && sampling && distinct && options.tables == JpegTables::inside && fits(colour, components);
}

void add_whole(std::vector<Case>& cases, Case c) {
  c.width = static_cast<int>(c.demand.inside_width);
  c.height = static_cast<int>(c.demand.inside_height);
  cases.push_back(std::move(c));
}

/// A whole tile, and what must become of it.
Case case_of(const JpegByHand& options, const Bytes& made, Colour tag, bool tiles_say, bool distinct) {
  const std::size_t components = options.ids.size();
  TileDemand demand = whole_tile(tag, options.width, options.height);
  demand.tiles_say_colour = tiles_say;
  const std::optional<Colour> colour = colour_for(options, demand);
  const bool ordinary = colour && is_ordinary(options, *colour, distinct);
  const bool known = colour && is_known(options, *colour, distinct);
  const Expected on_cpu = ordinary || known                   ? Expected::accepted
                          : !colour || !fits(tag, components) ? Expected::refused
                                                              : Expected::anything;
  return {describe(options) + (tiles_say ? ", tiles say" : ""), made, demand, ordinary, on_cpu};
}

/// All combinations with JPEGTables in one place; `number` counts over all of them.
void add_combinations(std::vector<Case>& cases, JpegTables tables, std::size_t step, std::size_t& number) {
  JpegByHand options;
  options.tables = tables;
  for (std::size_t components = 1; components <= 4; ++components) {
    for (std::size_t ids = 0; ids < identifiers.size(); ++ids) {
      options.ids.assign(identifiers[ids].begin(), identifiers[ids].begin() + static_cast<std::ptrdiff_t>(components));
      for (int process = 0; process < jpeg_processes; ++process) {
        options.process = static_cast<JpegProcess>(process);
        for (options.sampling = 0; options.sampling < jpeg_samplings().size(); ++options.sampling) {
          for (options.adobe = -1; options.adobe <= 2; ++options.adobe) {
            options.restart_interval = static_cast<int>(number % 3);
            options.jfif = number / 8 % 5 == 4;
            options.quantisation = quantisations[number / 8 % quantisations.size()];
            std::optional<Bytes> made;
            for (const Colour tag : colours) {
              for (const bool tiles_say : {false, true}) {
                if (number++ % step != 0) continue;
                if (!made) made = make_jpeg(options);
                const bool distinct = ids != doubled || components == 1;
                add_whole(cases, case_of(options, *made, tag, tiles_say, distinct));
              }
            }
          }
        }
      }
    }
  }
}

/// A few bytes of a header changed, removed, added, or a segment repeated, dropped or moved.
Bytes mutate_header(const Bytes& jpeg, std::mt19937& random) {
  std::vector<Bytes> segments = jpeg_segments(jpeg);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  if (below(8) == 0) {
    const std::size_t from = below(segments.size());
    const std::size_t to = below(segments.size());
    const Bytes moved = segments[from];
    if (below(2) == 0) segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(from));
    segments.insert(segments.begin() + static_cast<std::ptrdiff_t>(std::min(to, segments.size())), moved);
    return join_segments(segments);
  }
  const std::size_t changes = 1 + below(3);
  for (std::size_t i = 0; i < changes; ++i) {
    // Frame and scan headers as often as tables, which are longer; of the scan the first bytes.
    Bytes& segment = segments[below(segments.size())];
    if (segment.size() < 4) continue;
    const std::size_t at = below(std::min<std::size_t>(segment.size(), 24));
    switch (below(8)) {
      case 0:
        segment.erase(segment.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        segment.insert(segment.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::byte>(random()));
        break;
      case 2:
        segment[at] = static_cast<std::byte>(random());
        break;
      case 3:
        segment[at] = static_cast<std::byte>(below(5));
        break;
      case 4:
        segment[at] = segment[below(segment.size())];
        break;
      default:
        segment[at] ^= static_cast<std::byte>(1U << below(8));
    }
  }
  return join_segments(segments);
}

JpegByHand random_ordinary(std::mt19937& random, JpegTables tables) {
  JpegByHand options;
  options.tables = tables;
  if (random() % 3 == 0) options.ids = {1};
  options.sampling = random() % 9;
  options.quantisation = quantisations[random() % quantisations.size()];
  options.adobe = static_cast<int>(random() % 4) - 1;
  options.jfif = random() % 4 == 0;
  options.restart_interval = static_cast<int>(random() % 3);
  return options;
}

}  // namespace

void check_combinations(const GpuWay& decode, const PixelFormat& format, std::size_t step) {
  Counts counts;
  std::size_t number = 0;
  for (int place = 0; place < jpeg_table_places; ++place) {
    const auto tables = static_cast<JpegTables>(place);
    std::vector<Case> cases;
    add_combinations(cases, tables, step, number);
    check(cases, make_jpeg_tables(tables), decode, format, counts);
  }
  MESSAGE(counts.all << " tiles, " << counts.vouched << " vouched for, " << counts.refused << " refused");
  CHECK(counts.vouched > counts.all / 50);
  CHECK(counts.refused > counts.all / 3);
}

void check_colours(const GpuWay& decode, const PixelFormat& format) {
  std::vector<Case> cases;
  JpegByHand options;
  std::size_t number = 0, rgb = 0, ycbcr = 0, refused = 0;
  for (std::size_t ids = 0; ids < doubled; ++ids) {
    options.ids.assign(identifiers[ids].begin(), identifiers[ids].begin() + 3);
    for (options.adobe = -1; options.adobe <= 2; ++options.adobe) {
      for (const bool jfif : {false, true}) {
        options.jfif = jfif;
        for (const std::size_t sampling : {0, 2}) {
          options.sampling = sampling;
          for (const auto& quantisation : quantisations) {
            options.quantisation = quantisation;
            const Bytes made = make_jpeg(options);
            const Picture as_rgb = decode_jpeg_components(made), as_ycbcr = decode_jpeg_rgb(made);
            REQUIRE(as_rgb.data != as_ycbcr.data);  // the test can tell
            for (const Colour tag : {Colour::rgb, Colour::ycbcr}) {
              for (const bool tiles_say : {false, true}) {
                Case c = case_of(options, made, tag, tiles_say, true);
                CAPTURE(c.name);
                CAPTURE(name(tag));
                const std::optional<Colour> expected = colour_for(options, c.demand);
                Bytes picture;
                CHECK((colour_of_jpeg(tag, append_picture(picture, made).marks, tiles_say) == expected));
                TileDemand demand = c.demand;
                demand.format = format;
                const std::optional<std::vector<std::uint8_t>> cpu = decode_with_libjpeg(made, demand);
                REQUIRE(cpu.has_value() == expected.has_value());
                const bool luminance = format == luminance_format;
                if (expected == Colour::rgb) {
                  CHECK(*cpu == (luminance ? formula(as_rgb) : as_rgb.data));
                } else if (expected) {
                  CHECK(*cpu == (luminance ? decode_jpeg_grey(made).data : as_ycbcr.data));
                }
                rgb += expected == Colour::rgb ? 1 : 0;
                ycbcr += expected == Colour::ycbcr ? 1 : 0;
                refused += expected ? 0 : 1;
                ++number;
                add_whole(cases, std::move(c));
              }
            }
          }
        }
      }
    }
  }
  Counts counts;
  check(cases, {}, decode, format, counts);
  CHECK(counts.all == number);
  CHECK(counts.refused == refused);
  CHECK(counts.vouched == rgb + ycbcr);
  MESSAGE(number << " tiles, " << rgb << " RGB, " << ycbcr << " YCbCr, " << refused << " refused");
}

void check_sizes(const GpuWay& decode, const PixelFormat& format) {
  std::vector<Case> cases;
  constexpr int width = 48;
  constexpr int height = 32;
  for (const Colour colour : colours) {
    JpegByHand options;
    options.ids = colour == Colour::rgb ? std::vector<std::uint8_t>{1, 2, 3} : std::vector<std::uint8_t>{1};
    if (colour == Colour::rgb) options.quantisation = {0, 0, 0, 0};
    if (colour == Colour::ycbcr) options = {.ids = {1, 2, 3}, .sampling = 2};
    for (const int frame_width : {1, 32, 39, 40, 41, 47, 48, 49, 56, 96}) {
      for (const int frame_height : {1, 23, 24, 25, 31, 32, 33, 40, 64}) {
        options.width = frame_width;
        options.height = frame_height;
        Bytes made = make_jpeg(options);
        const std::string frame = std::to_string(frame_width) + " x " + std::to_string(frame_height);
        for (const int inside_width : {40, width}) {
          for (const int inside_height : {24, height}) {
            const bool right = frame_width >= inside_width && frame_width <= width && frame_height >= inside_height &&
                               frame_height <= height;
            Case c{"a frame of " + frame, made, {colour, width, height, inside_width, inside_height}};
            c.vouched = right;
            c.on_cpu = right ? Expected::accepted : Expected::refused;
            add_whole(cases, c);
            for (const auto& [x, y, w, h] : {std::array{0, 0, 40, 8}, {0, 16, 40, 8}, {8, 3, 9, 5}, {0, 0, 1, 1}}) {
              c.from_x = x;
              c.from_y = y;
              c.width = w;
              c.height = h;
              cases.push_back(c);
            }
          }
        }
      }
    }
    // A height that comes with a DNL marker, which libjpeg doesn't take.
    options.width = width;
    options.height = height;
    std::vector<Bytes> segments = jpeg_segments(make_jpeg(options));
    for (Bytes& segment : segments) {
      if (segment[1] == std::byte{0xC0}) segment[5] = segment[6] = std::byte{0};
    }
    Case c{"height in DNL", join_segments(segments), whole_tile(colour, width, height)};
    c.on_cpu = Expected::refused;
    add_whole(cases, c);
    constexpr unsigned dnl[] = {0xFF, 0xDC, 0, 4, 0, height};
    for (const unsigned byte : dnl) c.bytes.insert(c.bytes.end() - 2, static_cast<std::byte>(byte));
    add_whole(cases, c);
  }
  Counts counts;
  check(cases, {}, decode, format, counts);
  MESSAGE(counts.all << " tiles, " << counts.vouched << " vouched for, " << counts.refused << " refused");
}

void check_header_mutants(const GpuWay& decode, const PixelFormat& format, std::size_t count) {
  std::mt19937 random(17);
  Counts counts;
  for (const JpegTables place : {JpegTables::inside, JpegTables::outside, JpegTables::both, JpegTables::split}) {
    std::vector<Case> cases;
    while (cases.size() < count / 4) {
      const JpegByHand options = random_ordinary(random, place);
      const Bytes made = make_jpeg(options);
      for (int i = 0; i < 8; ++i) {
        const Colour colour =
            options.ids.size() == 3 && i % 2 == 0 ? Colour::ycbcr : colours[random() % colours.size()];
        TileDemand demand = whole_tile(colour, options.width, options.height);
        demand.tiles_say_colour = i % 4 < 2;
        add_whole(cases, {"mutant of " + describe(options), mutate_header(made, random), demand});
      }
    }
    const Bytes tables = make_jpeg_tables(place);
    check(cases, tables, decode, format, counts);
    // Mutants of JPEGTables, with sound tiles. Where they are damaged, the slide fails before any tile is looked at.
    for (std::size_t i = 0; i < count / 100 && !tables.empty(); ++i) {
      const Bytes mutant = mutate_header(tables, random);
      if (!jpeg_tables_hold_a_table(mutant.size()) || !damage_of_jpeg_tables(mutant).empty()) continue;
      cases.clear();
      for (const Colour colour : colours) {
        const JpegByHand options = random_ordinary(random, place);
        add_whole(cases, {"mutant of JPEGTables, " + describe(options), make_jpeg(options),
                          whole_tile(colour, options.width, options.height)});
      }
      check(cases, mutant, decode, format, counts);
    }
  }
  MESSAGE(counts.all << " tiles, " << counts.vouched << " vouched for, " << counts.refused << " refused");
  CHECK(counts.vouched > counts.all / 20);
  CHECK(counts.refused > counts.all / 4);
}

}  // namespace slidestream::test
