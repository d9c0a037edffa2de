#include "cli/dry_run.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <optional>
#include <slidestream/error.hpp>
#include <system_error>

#include "cli/command.hpp"
#include "cli/own_files.hpp"
#include "cli/table.hpp"
#include "config/printable.hpp"
#include "ledger/map_files.hpp"
#include "ledger/preview.hpp"
#include "output/folders.hpp"
#include "system/denied.hpp"

namespace slidestream::cli {

namespace {

/// Rows of the table: an archive has thousands of slides, and they are alike.
constexpr std::size_t most_table_rows = 50;

std::string backend_line(const RunForecast& forecast) {
  std::string text;
  if (forecast.gpus > 0) {
    text = (forecast.gpus > 1 ? std::to_string(forecast.gpus) + " x " : "") + printable(forecast.gpu);
    if (!forecast.engine.empty()) text += ", " + printable(forecast.engine);
    if (forecast.gpus_assumed) text += " (assumed: " + printable(forecast.why) + ")";
  } else {
    text = "CPU";
    if (!forecast.why.empty()) text += " (" + printable(forecast.why) + ")";
  }
  return text + ", " + std::to_string(forecast.threads) + (forecast.threads == 1 ? " thread" : " threads");
}

std::string host_line(const RunForecast& forecast) {
  std::string text = memory_text(forecast.host_bytes()) + " at most, besides the program and its threads: ";
  text += std::to_string(forecast.slots) + (forecast.slots == 1 ? " slot of " : " slots of ") +
          memory_text(forecast.host_slot_bytes);
  if (forecast.staging_bytes > 0) text += ", " + memory_text(forecast.staging_bytes) + " pinned for copies to the GPU";
  if (forecast.carry_bytes > 0) text += ", " + memory_text(forecast.carry_bytes) + " for carried rows";
  if (forecast.results_bytes > 0) text += ", " + memory_text(forecast.results_bytes) + " for results and tiles' tables";
  if (forecast.images_bytes() > 0) text += ", " + memory_text(forecast.images_bytes()) + " for images";
  if (forecast.networks_bytes > 0) text += ", " + memory_text(forecast.networks_bytes) + " for networks";
  if (forecast.tissue_network_bytes > 0) {
    text += ", " + memory_text(forecast.tissue_network_bytes) + " for the network that finds tissue";
  }
  if (forecast.decode_bytes > 0) text += ", " + memory_text(forecast.decode_bytes) + " for decoding";
  const std::uint64_t small_levels = forecast.small_levels_bytes + forecast.opening_bytes;
  if (small_levels > 0) text += ", " + memory_text(small_levels) + " for small levels";
  if (forecast.tables_bytes > 0) text += ", " + memory_text(forecast.tables_bytes) + " for tables of slides";
  if (forecast.maps_bytes > 0) text += ", " + memory_text(forecast.maps_bytes) + " for maps";
  return text;
}

/// Of the host's memory what networks take, and of what.
std::string network_line(const NetworkForecast& network) {
  std::string text = printable(network.description) + ", tiles of " + std::to_string(network.side) + ", " +
                     std::to_string(network.batch) + " at a time; " + memory_text(network.bands_bytes) +
                     " for rows and tiles of slides, " + memory_text(network.batches_bytes) + " for batches";
  const std::string sessions = std::to_string(network.sessions) + (network.sessions == 1 ? " session" : " sessions");
  if (!network.unknown.empty()) return text + ", unknown for " + sessions + ": " + printable(network.unknown);
  if (network.session_bytes > 0) text += ", " + memory_text(network.session_bytes) + " for each of " + sessions;
  if (network.weights_bytes > 0) text += ", " + memory_text(network.weights_bytes) + " for weights";
  return text;
}

std::string gpu_line(const Config& config, const RunForecast& forecast) {
  std::string text = memory_text(forecast.gpu_bytes) + (forecast.gpus > 1 ? " of each" : "");
  const int slots = forecast.slots / forecast.gpus;
  text += "; " + std::to_string(slots) + (slots == 1 ? " slot of " : " slots of ") + memory_text(forecast.slot_bytes) +
          " for tiles";
  text += "; gpu.memory_fraction = " + fixed(config.gpu.memory_fraction, 2) + " allows " +
          memory_text(forecast.gpu_allowed_bytes) + " of " + (forecast.gpus_assumed ? "about " : "") +
          memory_text(forecast.gpu_free_bytes);
  const bool whole = config.pipeline.residency == Residency::whole;
  text += std::string("; with pipeline.residency = ") + (whole ? "\"strips\" " : "\"whole\" ") +
          memory_text(forecast.gpu_other_residency_bytes);
  if (forecast.network.device_bytes > 0) {
    text += "; the network besides at most " + memory_text(forecast.network.device_bytes);
  }
  if (!forecast.gpu_unknown.empty()) text += "; without " + forecast.gpu_unknown;
  return text;
}

std::string results_text(const Config& config, const std::optional<LedgerPreview>& begun) {
  std::string text = printable(config.output.dir);
  // What is refused skips nothing.
  if (!begun || !begun->refusal.empty()) return text;
  std::string found;
  const auto add = [&found](std::size_t count, const char* what) {
    if (count > 0) found += (found.empty() ? ": " : ", ") + std::to_string(count) + what;
  };
  add(begun->done, " done by an earlier run and skipped");
  add(begun->failed, " failed before and skipped (--retry-failed tries again)");
  add(begun->changed, " done again, for the file isn't what it was");
  return text + found;
}

void add_slide(Table& table, const RunForecast& forecast, const SlideForecast& slide, std::size_t path_width,
               const Style& style) {
  const std::string path = shortened_path(slide.path, path_width, style);
  if (!slide.error.empty()) {
    std::vector<std::string> cells = {path, "would fail"};
    cells.resize(forecast.network.description.empty() ? 8 : 10);
    table.add(std::move(cells));
    return;
  }
  std::string batches = count_text(static_cast<unsigned long long>(slide.batches));
  if (slide.fragments > 1) batches += " on " + std::to_string(slide.fragments) + " GPUs";
  if (slide.panels > 1) batches += " in " + std::to_string(slide.panels) + " panels";
  const char* const decoder = forecast.gpus == 0 ? "" : slide.decoded_on_gpu ? " (GPU)" : " (CPU)";
  std::vector<std::string> cells = {path,
                                    std::to_string(slide.width) + " x " + std::to_string(slide.height),
                                    slide.codec + decoder,
                                    bytes_text(static_cast<double>(slide.file_bytes)),
                                    count_text(static_cast<unsigned long long>(slide.windows())),
                                    batches,
                                    count_text(static_cast<unsigned long long>(slide.most_rows)),
                                    memory_text(slide.batch_bytes)};
  if (!forecast.network.description.empty()) {
    cells.push_back(count_text(static_cast<unsigned long long>(slide.network_tiles)));
    cells.push_back(count_text(static_cast<unsigned long long>(slide.network_batches)));
  }
  table.add(std::move(cells));
}

/// Where the levels of images are made on the host though GPUs compute, and might have made them.
std::string levels_text(const Config& config, const RunForecast& forecast) {
  if (forecast.gpus == 0 || forecast.output_slots == 0 || config.image.compression == ImageCompression::copy) return {};
  // A network's are put together on the host, always.
  if (!forecast.network.description.empty()) return {};
  const auto count = std::ranges::count_if(
      forecast.slides, [](const SlideForecast& slide) { return slide.error.empty() && !slide.levels_on_gpu; });
  if (count == 0) return {};
  return "levels and tiles of the images of " + count_text(static_cast<unsigned long long>(count)) +
         (count == 1 ? " slide" : " slides") +
         " are made on the host: the GPU hasn't the memory, a tile is larger than an output slot, samples aren't of 8 "
         "bits, or there are more than 13 levels\n";
}

std::string slides_text(const Config& config, const RunForecast& forecast, int width, const Style& style) {
  std::vector<std::string> titles = {"<slide", "<size", "<codec", "file", "windows", "batches", "rows", "of a slot"};
  const bool has_network = !forecast.network.description.empty();
  if (has_network) titles.insert(titles.end(), {"tiles", "network's batches"});
  Table table(titles);
  const auto path_width = static_cast<std::size_t>(std::clamp(width - 80, 16, 60));
  const std::size_t shown = std::min(forecast.slides.size(), most_table_rows);
  std::uint64_t windows = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  std::uint64_t tiles = 0;
  std::uint64_t network_batches = 0;
  std::string errors;
  for (std::size_t i = 0; i < forecast.slides.size(); ++i) {
    const SlideForecast& slide = forecast.slides[i];
    if (i < shown) add_slide(table, forecast, slide, path_width, style);
    windows += static_cast<std::uint64_t>(slide.windows());
    batches += static_cast<std::uint64_t>(slide.batches);
    bytes += slide.file_bytes;
    tiles += static_cast<std::uint64_t>(slide.network_tiles);
    network_batches += static_cast<std::uint64_t>(slide.network_batches);
    if (!slide.error.empty())
      errors += style.red("would fail") + "  " + printable(slide.path) + ": " + printable(slide.error) + "\n";
  }
  std::string text = "\n" + table.text(style);
  if (shown < forecast.slides.size()) text += "and " + std::to_string(forecast.slides.size() - shown) + " more\n";
  text += "\n" + errors + std::to_string(forecast.slides.size()) +
          (forecast.slides.size() == 1 ? " slide, " : " slides, ") + bytes_text(static_cast<double>(bytes)) + ", " +
          count_text(windows) + " windows, " + count_text(batches) + (batches == 1 ? " batch" : " batches") + "\n" +
          levels_text(config, forecast);
  if (has_network) {
    const auto batch = static_cast<std::uint64_t>(forecast.network.batch);
    if (forecast.network.mixed) network_batches = (tiles + batch - 1) / batch;
    text += std::string("the network gets ") + (forecast.network.tissue_only ? "at most " : "") + count_text(tiles) +
            (tiles == 1 ? " tile in " : " tiles in ") + count_text(network_batches) +
            (network_batches == 1 ? " batch" : " batches") +
            (forecast.network.mixed ? " or a few more, which slides share\n" : "\n");
  }
  return text;
}

}  // namespace

std::string memory_text(std::uint64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1 << 20);
  if (mib >= 1024) return fixed(mib / 1024, 2) + " GiB";
  return mib >= 1 ? fixed(mib, 1) + " MiB" : fixed(mib * 1024, 0) + " KiB";
}

std::string forecast_text(const Config& config, const RunForecast& forecast, int width, const Style& style) {
  std::string text = style.bold("on") + "       " + backend_line(forecast) + "\n";
  text += style.bold("host") + "     " + host_line(forecast) + "\n";
  if (!forecast.network.description.empty()) {
    text += style.bold("network") + "  " + network_line(forecast.network) + "\n";
  }
  if (forecast.gpus > 0) text += style.bold("GPU") + "      " + gpu_line(config, forecast) + "\n";
  if (!forecast.slides.empty()) {
    text += style.bold("touched") + "  " + memory_text(forecast.touched_bytes()) + " of the host's, by these slides\n";
    text += slides_text(config, forecast, width, style);
  }
  return text;
}

namespace {

std::string warning_of(std::uint64_t bytes, const char* more, const GroupLimits& limits) {
  if (!limits.memory || bytes <= *limits.memory) return {};
  return std::string("this run may take ") + more + memory_text(bytes) + " of memory, and its control group may have " +
         memory_text(*limits.memory) + ": the system may end it; lower pipeline.memory_mib or pipeline.threads";
}

}  // namespace

std::string memory_warning(const RunForecast& forecast, const GroupLimits& limits) {
  return warning_of(forecast.host_bytes(), "", limits);
}

std::string memory_warning(const Config& config, const std::vector<std::string>& slides, const GroupLimits& limits) {
  if (!limits.memory) return {};
  Config planned = config;
  planned.model.network = nullptr;
  std::erase(planned.operators.run, "model");
  if (planned.operators.run.empty()) planned.operators.run = {"spectrum"};
  const bool has_networks =
      config.model.network != nullptr || config.operators.runs("model") || !config.tissue.model.empty();
  try {
    std::string warning = warning_of(forecast_run(planned, {}).host_bytes(), "more than ", limits);
    if (warning.empty() || has_networks || slides.size() > most_table_rows) return warning;
    return memory_warning(forecast_run(config, slides), limits);
  } catch (const Error&) {
    // The run itself says it.
    return {};
  }
}

StartForecast forecast_start(const Config& config, const ExpandedInputs& inputs, const RunOptions& options) {
  namespace fs = std::filesystem;
  StartForecast start;
  const bool is_one_file = !options.file.empty();
  const bool anew = options.fresh || is_one_file;
  const auto begun = anew ? std::nullopt : preview_start(config, inputs.slides, inputs.canonical);
  start.results = is_one_file ? printable(options.file) : results_text(config, begun);
  if (begun && !begun->refusal.empty()) start.refusal = config.output.dir + ": " + begun->refusal;
  // Without slides nothing is to be written.
  if (inputs.slides.empty() || !start.refusal.empty()) return start;
  const fs::path folder = config.output.dir;
  std::error_code code;
  const fs::file_status there = fs::status(folder, code);
  if (!is_one_file && fs::exists(there) && !fs::is_directory(there)) {
    start.refusal = config.output.dir + ": " + std::make_error_code(std::errc::not_a_directory).message();
    return start;
  }
  const fs::path file = is_one_file ? fs::path(options.file) : folder / "slides.csv";
  if (const std::string denied = denied_at(file); !denied.empty()) {
    start.refusal = file.string() + ": " + reason_of(EACCES, file);
  }
  if (anew || !start.refusal.empty()) return start;
  const bool retries = begun && (options.retry_failed || (options.overwrite && begun->failed > 0));
  const bool has_work = !begun || retries || begun->done + begun->failed < inputs.slides.size();
  if (has_work) start.refusal = fault_of_folders(config);
  if (!start.refusal.empty()) return start;
  try {
    check_map_places(folder, map_files(config, inputs));
  } catch (const ConfigError& error) {
    start.refusal = error.what();
  }
  return start;
}

int dry_run(const Config& config, const ExpandedInputs& inputs, const RunOptions& options) {
  ForecastOptions forecast_options;
  if (!options.assume_gpu.empty()) forecast_options.assumed = gpu_model(options.assume_gpu);
  const RunForecast forecast = forecast_run(config, inputs.slides, forecast_options);
  const Style style = Style::of(1);
  const StartForecast start = forecast_start(config, inputs, options);
  std::cout << forecast_text(config, forecast, style.terminal ? terminal_width(1) : 120, style) << style.bold("results")
            << "  " << start.results << '\n';
  if (!start.refusal.empty()) throw ConfigError(start.refusal);
  if (const std::string warning = memory_warning(forecast, group_limits()); !warning.empty()) {
    spdlog::warn("{}", warning);
  }
  if (!forecast.fits_gpu()) {
    throw ConfigError("this configuration needs " + memory_text(forecast.gpu_bytes) +
                      " of a GPU's memory, and may take " + memory_text(forecast.gpu_allowed_bytes) +
                      "; lower pipeline.memory_mib or pipeline.queue_depth, or raise gpu.memory_fraction");
  }
  const bool fails = std::ranges::any_of(forecast.slides, [](const auto& slide) { return !slide.error.empty(); });
  return fails ? exit_some_failed : exit_done;
}

}  // namespace slidestream::cli
