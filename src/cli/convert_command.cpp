#include "cli/convert_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/image_file.hpp"
#include "cli/run_command.hpp"
#include "config/keys.hpp"
#include "sink/image_formats.hpp"

namespace slidestream::cli {

namespace {

constexpr std::array<KeyOption, 6> key_options = {{
    {"--compression", "image", "compression", "How tiles are compressed"},
    {"-Q,--quality", "image", "quality", "Quality of JPEG, 1 to 100"},
    {"--subsampling", "image", "subsampling",
     "Resolution of JPEG's colour differences, whatever the quality; default 4:2:0"},
    {"--tile", "image", "tile", "Side of the tiles in pixels, a multiple of 16"},
    {"--levels", "image", "levels", "Levels that are written, 0 for all down to one tile"},
    {"--level", "input", "level", "Level of the slide that is converted, 0 for full resolution"},
}};

std::vector<std::string> formats() {
  std::vector<std::string> names;
  for (const std::string& name : find_key("image", "format")->choices) {
    if (name != "none" && name != "auto") names.push_back(name);
  }
  return names;
}

bool is_asked_for(const RunOptions& options, std::string_view key) {
  return std::ranges::any_of(options.keys, [&](const auto& each) { return each.first == key; }) ||
         std::ranges::any_of(options.settings, [&](const std::string& setting) {
           return setting.substr(0, setting.find_first_of(" =")) == key;
         });
}

/// Says so where a setting of JPEG is asked for, and nothing is compressed so.
void warn_of_unused_jpeg(const RunOptions& options) {
  std::vector<std::string_view> asked;
  for (const std::string_view key : {"image.quality", "image.subsampling"}) {
    if (is_asked_for(options, key)) asked.push_back(key);
  }
  if (asked.empty()) return;
  const ImageConfig image = effective_config(options).image;
  const bool by_format = image.compression == ImageCompression::automatic;
  const bool is_jpeg = by_format
                           ? traits_of(image.format).compression(image, rgb_format) == TileCompression::jpeg
                           : image.compression == ImageCompression::jpeg || image.compression == ImageCompression::copy;
  if (is_jpeg) return;
  const std::string compression =
      find_key("image", "compression")->choices[static_cast<std::size_t>(image.compression)];
  for (const std::string_view key : asked) {
    spdlog::warn("{} is JPEG's, and decides nothing here: {} is without loss", key,
                 by_format ? name_of(image.format) : "image.compression = \"" + compression + "\"");
  }
}

/// What makes a run a conversion. A configuration may be one for analyses as well; who sets it here means something
/// else.
/// \param format  empty: as the file's name says, or else OME-TIFF.
int convert(RunOptions options, std::string format) {
  const bool to_file = options.out.empty() && options.inputs.size() == 2;
  if (to_file) {
    // A folder's name may end so.
    std::string& name = options.inputs.back();
    name.resize(std::min(name.size(), name.find_last_not_of('/') + 1));
  }
  if (to_file && options.inputs.back().empty()) throw ConfigError("where to? The name of the file to write is empty");
  if (format.empty()) format = image_format_for(to_file ? options.inputs.back() : "");
  constexpr std::array<std::string_view, 2> fixed = {"operators.run", "output.maps"};
  for (const std::string& setting : options.settings) {
    const std::string key = setting.substr(0, setting.find_first_of(" ="));
    if (std::find(fixed.begin(), fixed.end(), key) == fixed.end()) continue;
    throw ConfigError(key +
                      " can't be set here: `pipeline convert` writes pixels as they are, and `pipeline SLIDE -s " +
                      key + "=... -s image.format=" + format + "` makes what is asked for");
  }
  options.keys.insert(options.keys.end(),
                      {{"operators.run", "identity"}, {"output.maps", "none"}, {"image.format", format}});
  warn_of_unused_jpeg(options);
  if (to_file) {
    options.file = options.inputs.back();
    options.inputs.pop_back();
    const bool runs_long = options.fresh || options.retry_failed || !options.max_failures.empty() ||
                           !options.metrics.empty() || !options.shard.empty();
    if (runs_long) {
      throw ConfigError(
          "--fresh, --retry-failed, --max-failures, --metrics and --shard are for a folder: name one with "
          "--out in place of " +
          options.file);
    }
  } else if (effective_config(options).output.dir == Config{}.output.dir && options.out.empty() &&
             !options.print_config) {
    throw ConfigError(
        "where to? Name a folder with --out DIR, or convert one slide to a file: pipeline convert "
        "slide.svs slide.ome.tif");
  }
  return run(options);
}

}  // namespace

std::shared_ptr<RunOptions> add_convert_command(CLI::App& app, Action& action) {
  struct Arguments {
    RunOptions run;
    std::string format;
  };
  const auto arguments = std::make_shared<Arguments>();
  RunOptions& options = arguments->run;
  CLI::App* command = app.add_subcommand("convert", "Write slides as images that other programs read");
  command
      ->add_option(
          "slides", options.inputs,
          "Slides, folders, .list or .csv files, as for a run, with --out. Without it: one slide, and the file "
          "to write (.ome.tif, .ome.zarr, .dzi, .dicom)")
      ->type_name("SLIDE|DIR|LIST|-");
  command
      ->add_option("--to", arguments->format,
                   "Format of the images (image.format). Default: as the file's name says, else ome-tiff")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(formats()))
      ->group("Run");
  add_run_options(*command, options, key_options);
  command->footer(
      "With --out it is a run like any other: images lie in DIR/images, the same command goes on where it stopped, "
      "and\n"
      "statuses are those of `pipeline --help`. With a file nothing else is written: it has its name when it is whole, "
      "and\n"
      "takes the place of one that was there. Until then it is FILE.partial.ome.tif, which viewers can open.\n\n"
      "Examples:\n"
      "  pipeline convert slide.svs slide.ome.tif                        one slide, one file\n"
      "  pipeline convert slide.svs small.ome.tif --level 1 -Q 75        a smaller level, compressed more\n"
      "  pipeline convert slides/ --to ome-tiff --out converted          a folder\n"
      "  pipeline convert slide.svs slide.dzi                            for a browser: open slide.view.html\n"
      "  pipeline convert slide.svs slide.dicom                          a folder of DICOM files, one per level\n"
      "  pipeline convert slides/ --out exact --compression zstd         without loss\n"
      "  pipeline convert slides/ --out same --compression copy          the slides' own JPEG tiles, no second loss");
  command->callback(
      [&action, arguments] { action = [arguments] { return convert(arguments->run, arguments->format); }; });
  return {arguments, &options};
}

}  // namespace slidestream::cli
