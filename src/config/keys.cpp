#include "config/keys.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <slidestream/statistic.hpp>

#include "config/input_keys.hpp"
#include "config/key_makers.hpp"
#include "config/model_keys.hpp"
#include "config/suggest.hpp"
#include "config/tissue_keys.hpp"
#include "config/toml_text.hpp"
#include "config/volume_keys.hpp"

namespace slidestream {

namespace {

ConfigKey devices_key(std::string_view comment) {
  ConfigKey key;
  key.section = "gpu";
  key.name = "devices";
  key.kind = KeyKind::integers;
  key.comment = comment;
  key.high = 1023;
  key.get = [](const Config& config) {
    return ConfigValue(std::vector<std::int64_t>(config.gpu.devices.begin(), config.gpu.devices.end()));
  };
  key.set = [](Config& config, const ConfigValue& value) {
    config.gpu.devices.clear();
    for (const std::int64_t device : std::get<std::vector<std::int64_t>>(value)) {
      config.gpu.devices.push_back(static_cast<int>(device));
    }
  };
  key.check = [](const ConfigValue& value) {
    auto devices = std::get<std::vector<std::int64_t>>(value);
    std::ranges::sort(devices);
    const auto twice = std::ranges::adjacent_find(devices);
    return twice == devices.end() ? std::string() : "names device " + std::to_string(*twice) + " twice";
  };
  return key;
}

ConfigKey window_key() {
  ConfigKey key = integer("analysis", "window", &Config::analysis, &AnalysisConfig::window, 8, 4096,
                          "Side N of windows, in pixels: even, 8 to 4096. Default 256.");
  key.check = [](const ConfigValue& value) {
    return std::get<std::int64_t>(value) % 2 == 0 ? std::string() : std::string("must be even");
  };
  return key;
}

ConfigKey range_key() {
  ConfigKey key = plain(
      "analysis", "range", KeyKind::range, &Config::analysis, &AnalysisConfig::range,
      "Histogram's ends [low, high), in dB, or |F| with linear. End bins take values outside. Default [0.0, 150.0].");
  key.check = [](const ConfigValue& value) {
    const auto& [low, high] = std::get<std::array<double, 2>>(value);
    // A bin's width is the difference over as many as 65,536 bins, and the scale is its reciprocal.
    if (!(low < high)) return std::string("is empty: the first number must be below the second");
    if (!std::isfinite(high - low) || high - low < 1e-30) return std::string("can't be divided into bins");
    return std::string();
  };
  return key;
}

ConfigKey white_key() {
  ConfigKey key = plain("stain", "white", KeyKind::reals, &Config::stain, &StainConfig::white,
                        "Colour of clear glass: red, green and blue, 1 to 255, such as [242, 242, 244]. \"auto\": each "
                        "slide's background, else 240. Default \"auto\".");
  key.empty_word = "auto";
  key.form = "\"auto\" or [red, green, blue]";
  key.get = [](const Config& config) {
    return config.stain.white.empty() ? ConfigValue(std::string("auto")) : ConfigValue(config.stain.white);
  };
  key.set = [](Config& config, const ConfigValue& value) {
    const auto* numbers = std::get_if<std::vector<double>>(&value);
    config.stain.white = numbers == nullptr ? std::vector<double>() : *numbers;
  };
  key.low = 1.0;
  key.high = 255.0;
  key.check = [](const ConfigValue& value) {
    const auto& numbers = std::get<std::vector<double>>(value);
    const bool are_whole = std::ranges::all_of(numbers, [](double v) { return v == std::floor(v); });
    if (numbers.empty() || (numbers.size() == 3 && are_whole)) return std::string();
    return std::string("is no colour; expected \"auto\" or three whole numbers, for red, green and blue");
  };
  return key;
}

/// UIDs have up to 64 characters: what makes them unique needs 24 of them, and a dot.
std::string uid_root_complaint(const ConfigValue& value) {
  constexpr std::size_t most = 39;
  const std::string& root = std::get<std::string>(value);
  if (root.empty()) return {};
  bool is_uid = root.size() > 2 && root[0] <= '2' && root[1] == '.';
  for (std::size_t at = 0; is_uid && at <= root.size();) {
    const std::size_t end = std::min(root.find('.', at), root.size());
    const std::string part = root.substr(at, end - at);
    is_uid = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos &&
             (part.size() == 1 || part.front() != '0');
    at = end + 1;
  }
  if (!is_uid) return "isn't a UID: numbers with dots between them, such as 1.2.826.0.1.3680043.2";
  return root.size() <= most ? std::string() : "has more than " + std::to_string(most) + " characters";
}

ConfigKey uid_root_key() {
  ConfigKey key = plain(
      "dicom", "uid_root", KeyKind::text, &Config::dicom, &DicomConfig::uid_root,
      "Prefix of DICOM UIDs, at most 39 characters, before a number from the content. Empty: 2.25. Default \"\".");
  key.check = uid_root_complaint;
  return key;
}

ConfigKey tile_key() {
  ConfigKey key = integer("image", "tile", &Config::image, &ImageConfig::tile, 0, 4096,
                          "Side of tiles, in pixels: a multiple of 16 up to 4096. 0: 256, 1024 for ome-zarr, the "
                          "slide's own if copied. Memory: some rows of tiles per level and image. Default 0.");
  key.check = [](const ConfigValue& value) {
    return std::get<std::int64_t>(value) % 16 == 0 ? std::string() : std::string("must be a multiple of 16");
  };
  return key;
}

std::string choices_text(std::span<const std::string> choices) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i > 0) text += i + 1 == choices.size() ? " or " : ", ";
    text += choices[i];
  }
  return text;
}

/// "'x'; expected a, b or c; did you mean 'b'?"
std::string not_among(const std::string& name, std::span<const std::string> choices) {
  return "'" + one_line(name) + "'; expected " + choices_text(choices) + did_you_mean(name, choices);
}

/// Lives as long as the program: a key only looks at its description.
const std::string& run_description() {
  static const std::string text =
      "Operators to compute in one pass over each slide: " + operator_list() +
      "; at least one, each once. Settings: in the section of their name, the spectrum's in [analysis]. "
      "Default [\"spectrum\"].";
  return text;
}

ConfigKey run_key() {
  ConfigKey key =
      plain("operators", "run", KeyKind::texts, &Config::operators, &OperatorsConfig::run, run_description());
  key.comma_separated = true;
  key.check = [](const ConfigValue& value) {
    static const std::vector<std::string> names(operator_names.begin(), operator_names.end());
    const auto& run = std::get<std::vector<std::string>>(value);
    if (run.empty()) return "is empty; expected " + choices_text(names);
    // Ledgers of volumes have it. No operator has that name.
    if (run.size() == 1 && run.front() == "volume") return std::string();
    for (auto name = run.begin(); name != run.end(); ++name) {
      if (std::ranges::find(names, *name) == names.end()) return "names " + not_among(*name, names);
      if (std::find(run.begin(), name, *name) != name) return "names '" + *name + "' twice";
    }
    return std::string();
  };
  return key;
}

ConfigKey dir_key() {
  ConfigKey key =
      path("output", "dir", &Config::output, &OutputConfig::dir, "Folder for results. Default \"slidestream-out\".");
  key.check = [](const ConfigValue& value) {
    return std::get<std::string>(value).empty() ? std::string("can't be empty") : std::string();
  };
  return key;
}

/// A statistic is asked for by its name.
ConfigKey statistic_key(const Statistic& statistic) {
  ConfigKey key;
  key.section = "analysis";
  key.name = statistic.name;
  key.kind = KeyKind::flag;
  key.comment = statistic.comment;
  const std::string name(statistic.name);
  key.get = [name](const Config& config) {
    return ConfigValue(std::ranges::find(config.analysis.statistics, name) != config.analysis.statistics.end());
  };
  key.set = [name](Config& config, const ConfigValue& value) {
    std::erase(config.analysis.statistics, name);
    if (std::get<bool>(value)) config.analysis.statistics.push_back(name);
  };
  return key;
}

std::vector<ConfigKey> make_keys() {
  static const std::vector<std::string> backend_names = {"auto", "cpu", "cuda"};
  static const std::vector<std::string> split_names = {"auto", "never", "always"};
  static const std::vector<std::string> residency_names = {"strips", "whole"};
  static const std::vector<std::string> value_names = {"log1p_db", "db", "linear"};
  static const std::vector<std::string> colour_names = {"rgb", "luminance"};
  static const std::vector<std::string> sobel_names = {"uint8", "float32"};
  static const std::vector<std::string> stain_names = {"normalised", "hematoxylin", "eosin"};
  static const std::vector<std::string> map_names = {"none", "npy", "tiff"};
  static const std::vector<std::string> csv_names = {"plain", "spreadsheet"};
  static const std::vector<std::string> image_names = {"auto", "none", "ome-tiff", "ome-zarr", "dzi", "dicom"};
  static const std::vector<std::string> copy_level_names = {"exact", "shrink-on-load"};
  static const std::vector<std::string> compression_names = {"auto", "jpeg", "none", "zstd", "blosc-lz4", "copy"};
  static const std::vector<std::string> subsampling_names = {"4:2:0", "4:2:2", "4:4:4"};
  static const std::vector<std::string> weight_names = {"tent", "cosine", "none"};
  static const std::vector<std::string> edge_names = {"auto", "shift", "mirror"};
  static const std::vector<std::string> stitch_mode_names = {"strict", "lenient"};
  static const std::vector<std::string> journal_names = {"auto", "wal", "rollback"};
  constexpr auto million = std::int64_t{1} << 20;
  std::vector<ConfigKey> keys = {
      choice("pipeline", "backend", &Config::pipeline, &PipelineConfig::backend, backend_names,
             "Where operators compute: cpu, or cuda, which fails without GPUs. auto: cuda if there are GPUs and all "
             "operators support them. Default auto."),
      integer("pipeline", "strip_height", &Config::pipeline, &PipelineConfig::strip_height, 1, million,
              "Rows per strip, rounded to rows of tiles. Ignored if GPUs decode and batch_strips is 0. Memory: rows x "
              "width bytes per channel, in a slot. Default 1024."),
      integer("pipeline", "batch_strips", &Config::pipeline, &PipelineConfig::batch_strips, 0, 4096,
              "Strips per slot; 0: 1, or as many rows as decoding GPUs need. Default 0."),
      choice("pipeline", "residency", &Config::pipeline, &PipelineConfig::residency, residency_names,
             "How much of a slide is on its GPU. strips: batches in flight. whole: the level in one batch, which must "
             "fit a slot; needs GPUs, ignores batch_strips and split_slides. Default strips."),
      integer("pipeline", "queue_depth", &Config::pipeline, &PipelineConfig::queue_depth, 1, 1024,
              "Batches in flight (slots) per GPU or for the CPU. Memory: all slots divide memory_mib. "
              "Default 4."),
      integer("pipeline", "threads", &Config::pipeline, &PipelineConfig::threads, 0, 1024,
              "Threads; 0: one per processor of this process. Memory: a few MiB each. Default 0."),
      integer("pipeline", "memory_mib", &Config::pipeline, &PipelineConfig::memory_mib, 1, 16 * million,
              "Memory of all slots, in MiB. On the CPU it includes carried rows and images. On GPUs it is for "
              "compressed tiles, with as much host memory for slides that the CPU decodes; images take half. Strips "
              "are split to fit. Decoding takes up to a quarter more, or 8 MiB per thread if larger. Default 640."),
      devices_key("Numbers of CUDA devices; empty: all. Default []."),
      real(
          "gpu", "memory_fraction", &Config::gpu, &GpuConfig::memory_fraction, 0.01, 1.0,
          "Largest share of each GPU's free memory at the start, 0.01 to 1, without networks for slides. Default 0.8."),
      choice("gpu", "split_slides", &Config::gpu, &GpuConfig::split_slides, split_names,
             "Whether GPUs share slides: never, always, or auto: if no more slides are left than GPUs. Images aren't "
             "shared. Default auto."),
      integer("gpu", "staging_mib", &Config::gpu, &GpuConfig::staging_mib, 0, 65536,
              "Pinned host memory for tiles to all GPUs, in MiB (docs/tuning.md). 0: a third of the last-level cache, "
              "64 to 128, at least 48 per GPU. Default 0."),
      run_key(),
      window_key(),
      integer("analysis", "stride", &Config::analysis, &AnalysisConfig::stride, 1, million,
              "Windows' step, in pixels, at least 1. Default 128."),
      integer("analysis", "smoothing_radius", &Config::analysis, &AnalysisConfig::smoothing_radius, 0, 16,
              "Radius of the Gaussian, in pixels, at most 16; 0: no smoothing. Default 3."),
      real("analysis", "smoothing_sigma", &Config::analysis, &AnalysisConfig::smoothing_sigma, 0.01, 1000.0,
           "Standard deviation of the Gaussian, in pixels, 0.01 to 1000. Default 1.4."),
      choice("analysis", "value", &Config::analysis, &AnalysisConfig::value, value_names,
             "Value of a coefficient F. log1p_db: 20 log10(1 + |F|). db: 20 log10(max(|F|, 1e-6)). linear: |F|. "
             "Default log1p_db."),
      integer("analysis", "bins", &Config::analysis, &AnalysisConfig::bins, 1, 65536,
              "Histogram's bins, 1 to 65536. Memory: 8 bytes per bin and slide, up to 28 per bin and thread. "
              "Default 1500."),
      range_key(),
      choice("identity", "colour", &Config::identity, &IdentityConfig::colour, colour_names,
             "Colour of the pixels: rgb or luminance. Default rgb."),
      choice("sobel", "output", &Config::sobel, &SobelConfig::output, sobel_names,
             "Samples: uint8 (rounded) or float32, of sqrt((Gx^2 + Gy^2) / 32), 0 to 255. Default uint8."),
      integer("gaussian", "radius", &Config::gaussian, &GaussianConfig::radius, 0, 16,
              "Radius of the Gaussian, in pixels, at most 16; 0: unchanged pixels. Default 3."),
      real("gaussian", "sigma", &Config::gaussian, &GaussianConfig::sigma, 0.01, 1000.0,
           "Standard deviation of the Gaussian, in pixels, 0.01 to 1000. Default 1.4."),
      choice("gaussian", "colour", &Config::gaussian, &GaussianConfig::colour, colour_names,
             "Pixels to smooth: rgb (each channel) or luminance. Default rgb."),
      choice("stain", "output", &Config::stain, &StainConfig::output, stain_names,
             "Stains in the image, in the reference's colours: normalised (both), hematoxylin or eosin. "
             "Default normalised."),
      path("stain", "reference", &Config::stain, &StainConfig::reference,
           "Slide with the reference stains; empty: published ones (Macenko 2009). Memory: as for "
           "tissue.source. Default \"\"."),
      white_key(),
      real("stain", "mpp", &Config::stain, &StainConfig::mpp, 0.1, 10.0,
           "Micrometres per pixel, 0.1 to 10, where stains are fitted. Default 1.0."),
      choice("image", "format", &Config::image, &ImageConfig::format, image_names,
             "Images: ome-tiff (.ome.tif), ome-zarr (a folder .ome.zarr), dzi (Deep Zoom with a page, .dzi and "
             ".view.html), dicom (a folder .dicom, a file per level), or none: refuses operators that make images. "
             "auto: ome-tiff. Default auto."),
      choice("image", "compression", &Config::image, &ImageConfig::compression, compression_names,
             "Compression by format (docs/images.md): jpeg (lossy), none, zstd, blosc-lz4, or copy: the slide's own "
             "JPEG tiles, jpeg for smaller levels. auto: jpeg if possible, else lossless. Default auto."),
      choice("image", "copy_levels", &Config::image, &ImageConfig::copy_levels, copy_level_names,
             "Smaller levels of copied tiles. exact: means of pixels. shrink-on-load: by libjpeg at half size: faster, "
             "nearly equal, only on the CPU for convert or identity alone. Default exact."),
      integer("image", "quality", &Config::image, &ImageConfig::quality, 1, 100, "JPEG quality, 1 to 100. Default 85."),
      choice("image", "subsampling", &Config::image, &ImageConfig::subsampling, subsampling_names,
             "JPEG's colour differences: 4:2:0, 4:2:2 or 4:4:4. Copied tiles keep theirs. Default 4:2:0."),
      tile_key(),
      integer(
          "image", "levels", &Config::image, &ImageConfig::levels, 0, 32,
          "Levels, each half as wide and high; 0: down to one tile. dzi takes only 0, down to one pixel. Default 0."),
      integer("image", "zarr_version", &Config::image, &ImageConfig::zarr_version, 2, 3,
              "Zarr version: 2 (OME-Zarr 0.4, a file per chunk) or 3 (0.5, a file per row of chunks). Default 2."),
      path("dicom", "attributes", &Config::dicom, &DicomConfig::attributes,
           "TOML or JSON file with attributes by DICOM keyword, such as PatientID = \"1\" (docs/images.md). Default "
           "\"\"."),
      uid_root_key(),
      choice("stitch", "weights", &Config::stitch, &StitchConfig::weights, weight_names,
             "Weights of overlapping tiles: tent (linear), cosine (smooth) or none (each keeps its half). "
             "Default tent."),
      choice("stitch", "edge", &Config::stitch, &StitchConfig::edge, edge_names,
             "Last tile of a row or column. shift: moved into the image. mirror: with pixels outside mirrored. auto: "
             "mirror for vectors, else shift. Default auto."),
      // What is left of slides that fail is all that these decide.
      of_machine(choice("stitch", "mode", &Config::stitch, &StitchConfig::mode, stitch_mode_names,
                        "Failed tile. strict: its slide fails. lenient: then too, but its image is finished with a "
                        "hole, under its partial name. Default strict.")),
      of_machine(integer("stitch", "deadline_seconds", &Config::stitch, &StitchConfig::deadline_seconds, 0, 86400,
                         "With lenient: seconds from a slide's first rows in the network. Later tiles are absent. 0: "
                         "no limit. Default 0.")),
      of_machine(
          integer("stitch", "memory_mib", &Config::stitch, &StitchConfig::memory_mib, 1, 16 * million,
                  "Host memory for stitching one slide, in MiB, besides pipeline.memory_mib (docs/stitching.md). "
                  "Slides that need more fail. tissue.model may take as much. Default 2048.")),
      dir_key(),
      choice("output", "maps", &Config::output, &OutputConfig::maps, map_names,
             "Maps of windows' means and standard deviations: none, npy (maps/SLIDE.npy) or tiff (.tif). "
             "Memory: 8 bytes per window of each slide in flight. Default none."),
      integer("output", "checkpoint_seconds", &Config::output, &OutputConfig::checkpoint_seconds, 0, 86400,
              "Seconds between updates of the result files; 0: only at the end. Default 60."),
      of_machine(choice("output", "csv", &Config::output, &OutputConfig::csv, csv_names,
                        "CSV cells. plain: unchanged. spreadsheet: text with a leading =, +, -, @, tab or return gets "
                        "a ' in front; control characters become spaces. Default plain.")),
      of_machine(flag("output", "portable_names", &Config::output, &OutputConfig::portable_names,
                      "File names valid on Windows: refused characters, and a dot or space at the end, become _; "
                      "device names such as CON get a _. Default true.")),
      choice("output", "journal", &Config::output, &OutputConfig::journal, journal_names,
             "Journal of run.sqlite: wal or rollback. auto: rollback on network file systems, else wal. "
             "Default auto."),
  };
  const std::vector<ConfigKey> input = input_keys();
  const std::vector<ConfigKey> tissue = tissue_keys();
  const std::vector<ConfigKey> model = model_keys();
  const std::vector<ConfigKey> volume = volume_keys();
  keys.insert(keys.begin(), input.begin(), input.end());
  keys.insert(std::ranges::find(keys, "image", &ConfigKey::section), volume.begin(), volume.end());
  keys.insert(std::ranges::find(keys, "volume", &ConfigKey::section), model.begin(), model.end());
  keys.insert(std::ranges::find(keys, "model", &ConfigKey::section), tissue.begin(), tissue.end());
  auto behind = std::ranges::find(keys, "range", &ConfigKey::name) + 1;
  for (const Statistic& statistic : statistics()) behind = keys.insert(behind, statistic_key(statistic)) + 1;
  return keys;
}

std::string bound_text(const ConfigKey& key, double bound) {
  // Lists of numbers that aren't whole have whole bounds, or one like 1e-6.
  const bool whole = key.kind != KeyKind::real && bound == std::trunc(bound);
  return whole ? std::to_string(static_cast<std::int64_t>(bound)) : to_toml_number(bound);
}

std::string outside(const ConfigKey& key, const std::string& shown, double value) {
  // Written so that NaN is outside.
  if ((value >= key.low && value <= key.high) || (key.or_zero && value == 0.0)) return {};
  return " is " + shown + "; expected " + (key.or_zero ? "0, or " : "") + bound_text(key, key.low) + " to " +
         bound_text(key, key.high);
}

std::string bounds_complaint(const ConfigKey& key, const ConfigValue& value) {
  if (key.kind == KeyKind::integer) {
    const auto number = std::get<std::int64_t>(value);
    return outside(key, std::to_string(number), static_cast<double>(number));
  }
  if (key.kind == KeyKind::real) {
    const double number = std::get<double>(value);
    return outside(key, to_toml_number(number), number);
  }
  if (key.kind == KeyKind::integers) {
    for (const std::int64_t number : std::get<std::vector<std::int64_t>>(value)) {
      std::string text = outside(key, std::to_string(number), static_cast<double>(number));
      if (!text.empty()) return " holds" + text.substr(3);
    }
  }
  if (key.kind == KeyKind::reals) {
    for (const double number : std::get<std::vector<double>>(value)) {
      std::string text = outside(key, to_toml_number(number), number);
      if (!text.empty()) return " holds" + text.substr(3);
    }
  }
  // The system ends a path at a NUL: it would be another file's.
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (key.kind == KeyKind::text && has_nul(std::get<std::string>(value))) return " contains a NUL";
  if (key.kind == KeyKind::texts && std::ranges::any_of(std::get<std::vector<std::string>>(value), has_nul)) {
    return " contains a NUL";
  }
  if (key.kind == KeyKind::choice) {
    const auto& name = std::get<std::string>(value);
    if (std::ranges::find(key.choices, name) == key.choices.end()) {
      return " is " + not_among(name, key.choices);
    }
  }
  return {};
}

}  // namespace

std::span<const ConfigKey> config_keys() {
  static const std::vector<ConfigKey> keys = make_keys();
  return keys;
}

std::span<const std::string> config_sections() {
  static const std::vector<std::string> sections = [] {
    std::vector<std::string> names;
    for (const ConfigKey& key : config_keys()) {
      if (names.empty() || names.back() != key.section) names.emplace_back(key.section);
    }
    return names;
  }();
  return sections;
}

std::string operator_list() {
  std::string all;
  for (const std::string_view name : operator_names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

const ConfigKey* find_key(std::string_view section, std::string_view name) {
  for (const ConfigKey& key : config_keys()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

std::vector<std::pair<std::string, std::string>> settings_of_section(const Config& config, std::string_view section) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const ConfigKey& key : config_keys()) {
    if (key.section != section || key.is_path || key.of_machine) continue;
    settings.emplace_back(key.full_name(), to_toml_value(key.get(config)));
  }
  return settings;
}

std::string complaint(const ConfigKey& key, const ConfigValue& value) {
  if (!key.empty_word.empty() && std::holds_alternative<std::string>(value)) return {};
  std::string what = bounds_complaint(key, value);
  if (what.empty() && key.check) {
    what = key.check(value);
    if (!what.empty()) what.insert(0, " ");
  }
  return what.empty() ? what : key.full_name() + what;
}

}  // namespace slidestream
