#include "cli/info_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.hpp"
#include "config/dump_json.hpp"
#include "config/printable.hpp"
#include "config/quoted_text.hpp"
#include "config/suggest.hpp"
#include "output/text.hpp"
#include "slide/openslide/second_opinion.hpp"
#include "slide/srgb_conversion.hpp"
#include "slide/tile_colour.hpp"

namespace slidestream::cli {

namespace {

using Json = nlohmann::ordered_json;

struct InfoOptions {
  std::vector<std::string> inputs;
  bool json = false;
  bool check = false;
};

template <class T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json level_json(const Slide& slide, std::size_t index) {
  const Level& level = slide.info().levels[index];
  return {{"width", level.width},
          {"height", level.height},
          {"downsample", level.downsample},
          {"tiled", level.tiled},
          {"tile_width", level.tile_width},
          {"tile_height", level.tile_height},
          {"columns", level.columns},
          {"rows", level.rows},
          {"codec", name(level.codec)},
          {"colour", name(colour_of_tiles(slide, index))},
          {"said_colour", name(level.colour)}};
}

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(json_text(name));
  return list;
}

/// `taken` has the texts of others, and gets this one.
std::string free_name(std::string_view text, std::set<std::string>& taken) {
  std::string name = json_text(text);
  while (!taken.insert(name).second) name += '\'';
  return name;
}

Json properties_json(const std::map<std::string, std::string>& properties) {
  Json object = Json::object();
  std::set<std::string> taken;
  for (const auto& [key, value] : properties) object[free_name(key, taken)] = json_text(value);
  return object;
}

/// \param names  of slides before this one, whose paths mustn't look the same
Json info_json(const Slide& slide, std::set<std::string>& names) {
  const SlideInfo& info = slide.info();
  const IccProfile icc = slide.icc_profile(0);
  const std::string fault = find_srgb_conversion(slide).fault;
  Json levels = Json::array();
  for (std::size_t i = 0; i < info.levels.size(); ++i) levels.push_back(level_json(slide, i));
  return {{"path", free_name(info.path.string(), names)},
          {"file_size", info.file_size},
          {"format", json_text(info.format)},
          {"container", info.container},
          {"library", json_text(info.library)},
          {"mpp", optional_json(info.mpp)},
          {"mpp_y", optional_json(info.said_mpp_y ? info.said_mpp_y : info.mpp)},
          {"magnification", optional_json(info.magnification)},
          {"levels", std::move(levels)},
          {"icc_bytes", icc.bytes.size()},
          {"icc_name", json_text(icc.name)},
          {"srgb_fault", fault.empty() ? Json() : Json(json_text(fault))},
          {"labels", info.labels},
          {"channels", names_json(info.channels)},
          {"held_channels", info.held_channels ? Json(*info.held_channels) : Json()},
          {"associated", names_json(info.associated)},
          {"properties", properties_json(info.properties)}};
}

/// Number with as many decimals as it needs, four at most.
std::string short_number(double value) {
  std::string text = fixed(value, 4);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// "3,144 bytes, RGB, sRGB built-in", and whether `input.colour` can use it; or what is wrong with it.
std::string profile_text(const Slide& slide) {
  const IccProfile profile = slide.icc_profile(0);
  if (!profile.fault.empty()) return profile.fault;
  if (profile.bytes.empty())
    return has_profile_in_tiles(slide) ? "none but that in its JPEG tiles, which isn't read" : "none";
  std::string text = count_text(profile.bytes.size()) + " bytes, " + shown_code(profile.space);
  if (!profile.name.empty()) text += ", " + printable(profile.name);
  const std::string fault = find_srgb_conversion(slide).fault;
  return fault.empty() ? text : text + "; can't be converted to sRGB: " + printable(fault);
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + printable(name);
  return text;
}

/// With their numbers where commas are in the names, as in those of planes.
std::string listed_channels(const std::vector<std::string>& names) {
  const auto has_comma = [](const std::string& name) { return name.find(',') != std::string::npos; };
  if (std::ranges::none_of(names, has_comma)) return listed(names);
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : "; ") + std::to_string(i) + ": " + printable(names[i]);
  }
  return text;
}

/// " (the file holds only number 1)", or nothing where it holds all.
std::string held_channels_text(const SlideInfo& info) {
  if (!info.held_channels) return {};
  const std::vector<std::size_t>& numbers = *info.held_channels;
  if (numbers.empty()) return " (which of them the file holds isn't known)";
  std::string text;
  for (const std::size_t number : numbers) text += (text.empty() ? " " : ", ") + std::to_string(number);
  return std::string(" (the file holds only number") + (numbers.size() > 1 ? "s" : "") + text + ")";
}

/// Both sizes where they differ in what is shown of them.
std::string pixel_size_text(const SlideInfo& info) {
  if (!info.mpp) return "not given";
  const std::string across = short_number(*info.mpp);
  if (info.mpp_y) return across + " x " + short_number(*info.mpp_y) + " micrometres per pixel at level 0, not square";
  const std::string down = info.said_mpp_y ? short_number(*info.said_mpp_y) : across;
  if (down == across) return across + " micrometres a pixel at level 0";
  return across + " x " + down + " micrometres per pixel at level 0, taken for square";
}

/// What tiles hold, and of JPEG what the slide says where that is something else: readers that believe it show other
/// colours. Of JPEG 2000 the codestream decides.
std::string colour_text(const Slide& slide, std::size_t index) {
  const Level& level = slide.info().levels[index];
  const Colour colour = colour_of_tiles(slide, index);
  if (colour == level.colour || level.codec != Codec::jpeg) return name(colour);
  return std::string(name(colour)) + ", said to be " + name(level.colour);
}

std::string info_text(const Slide& slide, const Style& style) {
  const SlideInfo& info = slide.info();
  std::string text = style.bold(printable(info.path.string())) + "\n";
  const auto line = [&](const std::string& what, const std::string& value) {
    text += "  " + what + std::string(what.size() < 15 ? 15 - what.size() : 1, ' ') + value + "\n";
  };
  line("format", info.format + (info.container == "BigTIFF" ? ", BigTIFF" : ""));
  if (!info.library.empty()) line("read by", printable(info.library));
  line("size", bytes_text(static_cast<double>(info.file_size)) + " (" + count_text(info.file_size) + " bytes)");
  line("mpp", pixel_size_text(info));
  line("magnification", info.magnification ? short_number(*info.magnification) + " x" : "not given");
  if (info.channels.size() > 1) {
    line("channels", std::to_string(info.channels.size()) + ", of which input.channel chooses one: " +
                         listed_channels(info.channels) + held_channels_text(info));
  }
  const bool has_planes =
      std::ranges::any_of(info.levels, [](const Level& level) { return level.codec == Codec::planes; });
  if (has_planes) line("samples", "planes apart: tiles of red, of green and of blue");
  if (info.labels) line("labels", "yes, of a network or a mask: they are neither averaged nor taken for colours");
  line("colour profile", profile_text(slide));
  line("other images", info.associated.empty() ? "none" : listed(info.associated));
  Table levels({"<level", "width", "height", "downsample", "<tile", "<tiles", "<codec", "<colour"});
  for (std::size_t i = 0; i < info.levels.size(); ++i) {
    const Level& level = info.levels[i];
    const auto product = [](std::int64_t a, std::int64_t b) { return std::to_string(a) + " x " + std::to_string(b); };
    levels.add({std::to_string(i), std::to_string(level.width), std::to_string(level.height),
                short_number(level.downsample),
                product(level.tile_width, level.tile_height) + (level.tiled ? "" : " strip"),
                product(level.columns, level.rows), name(level.codec), colour_text(slide, i)});
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

/// Properties whose names are those of what may tell a patient: vendors and laboratories write what they like there.
std::string patient_properties(const SlideInfo& info) {
  constexpr std::array<std::string_view, 10> words = {"patient", "birth",    "dob",  "mrn", "accession",
                                                      "surname", "lastname", "case", "sex", "barcode"};
  std::string found;
  for (const auto& [key, value] : info.properties) {
    std::string small = key;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto is_in = [&small](std::string_view word) { return small.find(word) != std::string::npos; };
    if (!value.empty() && std::ranges::any_of(words, is_in)) found += (found.empty() ? "" : ", ") + one_line(key);
  }
  return found;
}

/// One of several channels is as good as another for saying what they are. \param mpp  which a list gives it, or 0
std::shared_ptr<const Slide> open_to_show(const std::string& path, double mpp = 0.0) {
  try {
    return Slide::open(path, {.mpp = mpp, .mpp_is_listed = mpp > 0.0});
  } catch (const SlideError&) {
    try {
      std::shared_ptr<const Slide> slide =
          Slide::open(path, {.mpp = mpp, .mpp_is_listed = mpp > 0.0, .channel = OpenOptions::any_channel});
      if (slide->info().channels.size() > 1) return slide;
    } catch (const SlideError&) {
      // The first cause is the one to tell.
    }
    throw;
  }
}

/// A line a slide. Returns whether it was read and doesn't differ.
bool check_slide(const std::string& path) {
  const auto slide = open_to_show(path);
  const SecondOpinion opinion = second_opinion(*slide, OpenOptions{}.openslide);
  std::cout << printable(path) << ": " << printable(opinion.text) << std::endl;
  return opinion.verdict != SecondOpinion::Verdict::differs;
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
  // Whatever fails, there is one document.
  const auto print = [&options](const Json& json) {
    if (options.json) std::cout << dump_json(json, 2) << '\n';
  };
  if (slides.empty()) {
    print(options.inputs.size() == 1 ? Json() : Json::array());
    return exit_some_failed;
  }
  const ExpandedInputs inputs = expand_inputs(slides);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  if (inputs.slides.empty()) throw ConfigError("no slide in " + slides.front());
  const Style style = Style::of(1);
  Json all = Json::array();
  std::set<std::string> names;
  bool first = true;
  for (const std::string& path : inputs.slides) {
    try {
      if (options.check) {
        if (!check_slide(path)) some_failed = true;
        continue;
      }
      const auto given = inputs.mpp.find(path);
      const auto slide = open_to_show(path, given == inputs.mpp.end() ? 0.0 : given->second);
      for (const std::string& warning : slide->info().warnings) spdlog::warn("{}: {}", path, warning);
      if (const std::string found = patient_properties(slide->info()); !found.empty()) {
        spdlog::warn("{}: these properties may identify a patient: {}", path, found);
      }
      if (options.json) {
        all.push_back(info_json(*slide, names));
      } else {
        std::cout << (first ? "" : "\n") << info_text(*slide, style);
        first = false;
      }
    } catch (const ConfigError&) {
      throw;
    } catch (const Error& error) {
      spdlog::error("{}", error.what());
      some_failed = true;
    }
  }
  const bool is_one = inputs.slides.size() == 1 && options.inputs.size() == 1;
  print(!is_one ? all : all.empty() ? Json() : all.front());
  return some_failed ? exit_some_failed : exit_done;
}

}  // namespace

void add_info_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "What a slide is: levels, tiles, codec, colour, mpp");
  command->add_option("slides", options->inputs, "Slides, folders, .list or .csv files")
      ->type_name("SLIDE|DIR|LIST|-")
      ->required();
  CLI::Option* json = command->add_flag(
      "--json", options->json, "As JSON: an object for one slide, null if it can't be read; a list for several");
  command
      ->add_flag("--check", options->check,
                 "Compare with OpenSlide: levels, mpp, a hundred regions; a line a slide, status 1 for a difference")
      ->excludes(json);
  command->footer(
      "Examples:\n"
      "  pipeline info slide.svs\n"
      "  pipeline info --check slides/\n"
      "  pipeline info --json slide.svs | jq .levels");
  command->callback([&action, options] { action = [options] { return show_info(*options); }; });
}

}  // namespace slidestream::cli
