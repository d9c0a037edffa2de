#include "cli/info_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>

#include "cli/table.hpp"
#include "config/printable.hpp"

namespace slidestream::cli {

namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  std::vector<std::string> inputs;
  bool json = false;
};

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json level_json(const Level& level) {
  return {{"width", level.width},
          {"height", level.height},
          {"downsample", level.downsample},
          {"tiled", level.tiled},
          {"tile_width", level.tile_width},
          {"tile_height", level.tile_height},
          {"columns", level.columns},
          {"rows", level.rows},
          {"compression", level.compression},
          {"codec", name(level.codec)},
          {"colour", name(level.colour)}};
}

Json info_json(const Slide& slide) {
  const SlideInfo& info = slide.info();
  const std::size_t icc_bytes = slide.icc_profile(0).bytes.size();
  Json levels = Json::array();
  for (const Level& level : info.levels) levels.push_back(level_json(level));
  return {{"path", info.path.string()},     {"file_size", info.file_size},
          {"format", info.format},          {"big_tiff", info.big_tiff},
          {"mpp", optional_json(info.mpp)}, {"magnification", optional_json(info.magnification)},
          {"levels", std::move(levels)},    {"icc_bytes", icc_bytes},
          {"associated", info.associated},  {"properties", info.properties}};
}

/// Number with as many decimals as it needs, four at most.
std::string short_number(double value) {
  std::string text = fixed(value, 4);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// "3,144 bytes, RGB", or why it can't be used.
std::string profile_text(const IccProfile& profile) {
  if (!profile.fault.empty()) return profile.fault;
  return profile.bytes.empty() ? "none" : count_text(profile.bytes.size()) + " bytes, " + printable(profile.space);
}

std::string info_text(const Slide& slide, const Style& style) {
  const SlideInfo& info = slide.info();
  std::string text = style.bold(printable(info.path.string())) + "\n";
  const auto line = [&](const std::string& what, const std::string& value) {
    text += "  " + what + std::string(what.size() < 15 ? 15 - what.size() : 1, ' ') + value + "\n";
  };
  line("format", info.format + (info.big_tiff ? ", BigTIFF" : ""));
  line("size", bytes_text(static_cast<double>(info.file_size)) + " (" + count_text(info.file_size) + " bytes)");
  line("mpp", info.mpp ? short_number(*info.mpp) + " micrometres a pixel at level 0" : "not given");
  line("magnification", info.magnification ? short_number(*info.magnification) + " x" : "not given");
  line("colour profile", profile_text(slide.icc_profile(0)));
  std::string associated;
  for (const std::string& image : info.associated) associated += (associated.empty() ? "" : ", ") + printable(image);
  line("other images", associated.empty() ? "none" : associated);
  Table levels({"<level", "width", "height", "downsample", "<tile", "<tiles", "<codec", "<colour", "compression"});
  for (std::size_t i = 0; i < info.levels.size(); ++i) {
    const Level& level = info.levels[i];
    const auto product = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    levels.add(
        {std::to_string(i), std::to_string(level.width), std::to_string(level.height), short_number(level.downsample),
         product(level.tile_width, level.tile_height) + (level.tiled ? "" : " strip"),
         product(level.columns, level.rows), name(level.codec), name(level.colour), std::to_string(level.compression)});
  }
  text += "\n" + levels.text(style, "  ");
  if (info.properties.empty()) return text;
  Table properties({"<property", "<value"});
  for (const auto& [key, value] : info.properties) properties.add({printable(key), printable(value)});
  return text + "\n" + properties.text(style, "  ");
}

/// What an image is that slidestream writes and doesn't read, and what does; empty for anything else.
std::string kind_of_other_image(const std::filesystem::path& path) {
  const auto has = [&path](const char* file) {
    std::error_code code;
    return std::filesystem::is_regular_file(path / file, code);
  };
  const bool zarr3 = has("zarr.json");
  if (zarr3 || has(".zattrs")) {
    return std::string("an OME-Zarr image (zarr ") + (zarr3 ? "3" : "2") +
           "), which isn't read here; napari, QuPath and the Python package ome-zarr do";
  }
  std::error_code code;
  if (path.extension() != ".dzi" || !std::filesystem::is_regular_file(path, code)) return {};
  return "a Deep Zoom image, which isn't read here; a browser shows it with the page NAME.view.html beside it, "
         "OpenSeadragon on a server";
}

int show_info(const InfoOptions& options) {
  bool some_failed = false;
  std::vector<std::string> slides;
  for (const std::string& input : options.inputs) {
    const std::string kind = kind_of_other_image(input);
    if (kind.empty()) {
      slides.push_back(input);
    } else {
      spdlog::error("{}: {}", input, kind);
      some_failed = true;
    }
  }
  if (slides.empty()) return exit_some_failed;
  const ExpandedInputs inputs = expand_inputs(slides);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty()) throw ConfigError("no slide in " + slides.front());
  const Style style = Style::of(1);
  Json all = Json::array();
  bool first = true;
  for (const std::string& path : inputs.slides) {
    try {
      const auto slide = Slide::open(path);
      if (options.json) {
        all.push_back(info_json(*slide));
      } else {
        std::cout << (first ? "" : "\n") << info_text(*slide, style);
        first = false;
      }
    } catch (const Error& error) {
      spdlog::error("{}", error.what());
      some_failed = true;
    }
  }
  if (options.json && !all.empty()) {
    const Json& shown = inputs.slides.size() == 1 ? all.front() : all;
    std::cout << shown.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  }
  return some_failed ? exit_some_failed : exit_done;
}

}  // namespace

void add_info_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "What a slide is: levels, tiles, codec, colour, mpp");
  command->add_option("slides", options->inputs, "Slides, folders, .list or .csv files")
      ->type_name("SLIDE|DIR|LIST|-")
      ->required();
  command->add_flag("--json", options->json, "As JSON: an object for one slide, a list of them for several");
  command->footer(
      "Examples:\n"
      "  pipeline info slide.svs\n"
      "  pipeline info --json slide.svs | jq .levels");
  command->callback([&action, options] { action = [options] { return show_info(*options); }; });
}

}  // namespace slidestream::cli
