#include "cli/synth_command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/listed_files.hpp"
#include "cli/own_files.hpp"
#include "cli/shortage.hpp"
#include "config/printable.hpp"
#include "synth/synth.hpp"
#include "volume/synth_volume.hpp"

namespace slidestream::cli {

namespace {

const std::map<std::string, SynthCodec>& codecs() {
  static const std::map<std::string, SynthCodec> by_name{
      {"jpeg420", SynthCodec::jpeg_420}, {"jpeg422", SynthCodec::jpeg_422}, {"jpeg444", SynthCodec::jpeg_444},
      {"rgb", SynthCodec::jpeg_rgb},     {"grey", SynthCodec::jpeg_grey},   {"jpeg2000", SynthCodec::jpeg2000},
      {"none", SynthCodec::none}};
  return by_name;
}

const std::map<std::string, SynthFormat>& slide_formats() {
  static const std::map<std::string, SynthFormat> by_name{{"svs", SynthFormat::svs}, {"dicom", SynthFormat::dicom}};
  return by_name;
}

const std::map<std::string, SynthOffsets>& offset_tables() {
  static const std::map<std::string, SynthOffsets> by_name{
      {"none", SynthOffsets::none}, {"basic", SynthOffsets::basic}, {"extended", SynthOffsets::extended}};
  return by_name;
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

/// CLI11 would wrap a negative seed around, and take the largest for one that is larger still.
std::string whole_64_bits(const std::string& text) {
  std::uint64_t number = 0;
  return parse_number(text, number) ? "" : "'" + text + "' isn't a whole number from 0 to 18446744073709551615";
}

void parse_size(const std::string& text, SynthOptions& options) {
  const std::string_view view = text;
  const std::size_t cross = view.find('x');
  if (cross == std::string_view::npos || !parse_number(view.substr(0, cross), options.width) ||
      !parse_number(view.substr(cross + 1), options.height)) {
    throw CLI::ValidationError("--size", "'" + text + "' isn't WIDTHxHEIGHT, such as 8192x6144");
  }
}

void parse_defects(const std::string& text, SynthOptions& options) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(item.size() + 1, rest.size()));
    const std::size_t equals = item.find('=');
    const std::string_view kind = item.substr(0, equals);
    int* const count = kind == "missing"   ? &options.missing_tiles
                       : kind == "corrupt" ? &options.corrupt_tiles
                                           : nullptr;
    if (count == nullptr || equals == std::string_view::npos || !parse_number(item.substr(equals + 1), *count)) {
      throw CLI::ValidationError(
          "--defects", "'" + std::string(item) + "' isn't missing=N or corrupt=N, such as missing=3,corrupt=2");
    }
  }
}

std::string bytes_text(std::uint64_t bytes) {
  const bool gigabytes = bytes >= 1'000'000'000;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %s", gigabytes ? 2 : 1, static_cast<double>(bytes) / (gigabytes ? 1e9 : 1e6),
                gigabytes ? "GB" : "MB");
  return text;
}

volume::Extent parse_volume_size(const std::string& text) {
  volume::Extent size{};
  std::string_view rest = text;
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::string_view number = rest.substr(0, rest.find('x'));
    const bool ends = number.size() == rest.size();
    if (!parse_number(number, size[i]) || ends != (i + 1 == size.size())) {
      throw CLI::ValidationError("--volume", "'" + text + "' isn't ZxYxX, such as 172x220x156");
    }
    rest.remove_prefix(std::min(number.size() + 1, rest.size()));
  }
  return size;
}

struct Arguments {
  std::string file;
  SynthOptions options;
  std::optional<volume::Extent> volume;
  bool overwrite = false;
  bool quiet = false;
};

int write_volume(const Arguments& arguments) {
  const std::string& file = arguments.file;
  const volume::Extent& size = *arguments.volume;
  if (!file.ends_with(".nii.gz")) throw ConfigError("--out is '" + file + "'; a volume's name must end in .nii.gz");
  check_unlisted_above(file);
  check_target(file, arguments.overwrite);
  volume::write_synthetic_volume(file, size, arguments.options.seed);
  if (arguments.quiet) return exit_done;
  std::cout << printable(file) << ": " << size[0] << " x " << size[1] << " x " << size[2] << " samples (z, y, x)\n";
  return std::cout.flush() ? exit_done : exit_ended_early;
}

int write_slide(const Arguments& arguments) {
  const std::string& file = arguments.file;
  const SynthOptions& options = arguments.options;
  check_unlisted_above(file);
  check_folder_target(file, arguments.overwrite);
  const auto begin = std::chrono::steady_clock::now();
  const SynthSummary summary = write_synthetic_slide(file, options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  if (arguments.quiet) return exit_done;
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.1f s", taken.count());
  std::cout << printable(file) << ": " << options.width << " x " << options.height << " pixels, " << summary.tiles
            << " tiles, " << summary.levels << (summary.levels == 1 ? " level, " : " levels, ")
            << bytes_text(summary.bytes) << (summary.big_tiff ? " (BigTIFF)" : "") << ", in " << seconds << '\n';
  return std::cout.flush() ? exit_done : exit_ended_early;
}

}  // namespace

void add_synth_command(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<Arguments>();
  SynthOptions& options = arguments->options;

  CLI::App* synth =
      app.add_subcommand("synth", "Write a tissue-like slide of any size, for trying the program and for benchmarks");
  synth
      ->add_option("--out", arguments->file,
                   "File to write, such as demo.svs, or folder for DICOM; replaced if this program made it")
      ->required()
      ->check(not_empty)
      ->type_name("FILE");
  synth
      ->add_option_function<std::string>(
          "--format", [&options](const std::string& name) { options.format = slide_formats().at(name); },
          "A TIFF file as Aperio writes them (svs), or a folder of DICOM instances, one per level and picture; missing "
          "tiles make it sparse")
      ->check(CLI::IsMember(slide_formats()))
      ->type_name("NAME")
      ->default_str("svs");
  synth->add_option("--parts", options.parts, "DICOM: files that the largest level is divided among")
      ->capture_default_str();
  synth
      ->add_option_function<std::string>(
          "--offsets", [&options](const std::string& name) { options.offsets = offset_tables().at(name); },
          "DICOM: the table of where frames lie: none, basic, or extended")
      ->check(CLI::IsMember(offset_tables()))
      ->type_name("NAME")
      ->default_str("basic");
  synth
      ->add_option_function<std::vector<std::string>>(
          "--volume",
          [arguments](const std::vector<std::string>& text) {
            const bool plain = text.empty() || text.front().empty();
            arguments->volume = plain ? volume::head_size : parse_volume_size(text.front());
          },
          "Write a head-like volume instead, a .nii.gz file, of 172 x 220 x 156 samples along z, y, x, or of others. "
          "Of "
          "the other options it has --seed")
      ->expected(0, 1)
      ->type_name("[ZxYxX]");
  CLI::Option* width = synth->add_option("--width", options.width, "Width in pixels")->capture_default_str();
  CLI::Option* height = synth->add_option("--height", options.height, "Height in pixels")->capture_default_str();
  synth
      ->add_option_function<std::string>(
          "--size", [&options](const std::string& text) { parse_size(text, options); },
          "Width and height together, such as 65664x43264")
      ->type_name("WxH")
      ->excludes(width)
      ->excludes(height);
  synth->add_option("--tile", options.tile, "Side of the square tiles in pixels, a multiple of 16")
      ->capture_default_str();
  synth
      ->add_option_function<std::string>(
          "--codec", [&options](const std::string& name) { options.codec = codecs().at(name); },
          "How tiles are compressed: JPEG in YCbCr with chroma halved both ways (jpeg420), halved across (jpeg422) or "
          "whole (jpeg444), JPEG with red, green and blue as they are (rgb), JPEG in grey, JPEG 2000, or not at all")
      ->check(CLI::IsMember(codecs()))
      ->type_name("NAME")
      ->default_str("jpeg420");
  synth
      ->add_option("--quality", options.quality, "Quality of the compression, 1 to 100; JPEG 2000: 100 is without loss")
      ->capture_default_str();
  synth->add_option("--seed", options.seed, "Another seed gives another slide; the same options give the same file")
      ->check(whole_64_bits)
      ->capture_default_str();
  synth
      ->add_option("--distinct", options.distinct,
                   "Make only N different tiles and repeat them: a large slide in seconds. 0: every tile its own")
      ->type_name("N")
      ->capture_default_str();
  synth
      ->add_option("--levels", options.levels,
                   "Levels of the pyramid, each 4 times smaller than the one above, as far as the size allows")
      ->capture_default_str();
  synth
      ->add_option_function<std::string>(
          "--defects", [&options](const std::string& text) { parse_defects(text, options); },
          "Level-0 tiles that are missing or damaged, for trying decode.on_bad_tile: missing=3,corrupt=2")
      ->type_name("LIST");
  synth->add_option("--mpp", options.mpp, "Micrometres a pixel that the slide claims")->capture_default_str();
  synth->add_flag("--bigtiff", options.big_tiff, "Write BigTIFF even if the file is smaller than 4 GB");
  synth->add_option("-t,--threads", options.threads, "Threads that paint and compress; 0: one for every core")
      ->capture_default_str();
  synth->add_flag("--overwrite", arguments->overwrite, "Replace a file that is there and that synth didn't make");
  synth->add_flag("-q,--quiet", arguments->quiet, "Nothing but warnings and errors");
  synth->footer(
      "Examples:\n"
      "  pipeline synth --out demo.svs\n"
      "      8192 x 6144 pixels, a few MB, in seconds\n"
      "  pipeline synth --out large.svs --size 65664x43264 --distinct 300\n"
      "      as large as a real slide: about half a gigabyte, in seconds\n"
      "  pipeline synth --out bad.svs --size 4096x4096 --defects missing=3,corrupt=2\n"
      "      for trying what happens to bad tiles\n"
      "  pipeline synth --volume --out head.nii.gz\n"
      "      for trying pipeline volume");
  synth->callback([arguments, &action] {
    action = [arguments] {
      return on_storage_with_room(
          [&] { return arguments->volume ? write_volume(*arguments) : write_slide(*arguments); });
    };
  });
}

}  // namespace slidestream::cli
