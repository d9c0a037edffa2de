#include "cli/volume_command.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/dry_run.hpp"
#include "cli/run_command.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "config/printable.hpp"
#include "ledger/ledger_view.hpp"
#include "ledger/schema.hpp"
#include "output/atomic_file.hpp"
#include "output/text.hpp"
#include "output/views.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_networks.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::array<KeyOption, 3> volume_options = {{
    {"--networks", "volume", "networks", "The network, or a folder with one per fragment"},
    {"--fusion", "volume", "fusion", "How fragments that overlap become one volume"},
    {"--memory", "volume", "memory_mib", "Memory that may be taken, in MiB; 0 for four fifths of what is available"},
}};

ExpandedInputs inputs_of_volumes(const Config& config) {
  ExpandedInputs inputs = volume::volume_inputs(config.input.slides, config.output.dir);
  for (const std::string& warning : inputs.warnings) spdlog::warn("{}", warning);
  const std::string refusal = volume::no_volume_text(config.input.slides, inputs);
  if (!refusal.empty()) throw ConfigError(refusal);
  return inputs;
}

/// "volume.voxels.7" is of label 7; nothing for other figures.
std::optional<std::string_view> label_of(std::string_view figure) {
  const std::string_view begin = volume::label_figure;
  if (!figure.starts_with(begin)) return std::nullopt;
  return figure.substr(begin.size());
}

std::string networks_text(const Config& config, const volume::VolumeNetworks& networks, const Style& style) {
  std::uint64_t loaded = 0;
  std::uint64_t run = 0;
  for (const volume::NetworkNeeds& needs : networks.needs()) {
    loaded += needs.loaded;
    run = std::max(run, needs.run);
  }
  const std::size_t workers = volume::fragments_at_a_time(config, networks);
  const std::size_t count = networks.count();
  std::string text = style.bold("networks") + " " + std::to_string(count) + ", " + printable(networks.description()) +
                     "; " + memory_text(loaded) + (count == 1 ? " loaded, " : " for all of them, ");
  if (networks.gpus() > 0) {
    const auto& budgets = networks.gpu_memory().budgets;
    text += memory_text(*std::ranges::min_element(budgets)) + " of a GPU may be taken; " +
            memory_text(networks.bytes_beside_gpu()) + " of the host";
  } else {
    text += memory_text(run) + " more";
  }
  return text + " for each of " + std::to_string(workers) + (workers == 1 ? " fragment" : " fragments") + " at a time" +
         (networks.gpus() > 1 ? " on each" : "") + "\n" + style.bold("memory") + "   " +
         memory_text(volume::memory_budget(config)) + " may be taken; what doesn't fit waits\n";
}

/// Adds a volume's row. \param most  bytes that it may take. \return what it would fail by; empty: nothing
std::string add_volume(Table& table, const Config& config, const volume::VolumeNetworks& networks, std::uint64_t most,
                       const std::string& path, const std::string& shown) {
  try {
    const volume::NiftiFile file(path);
    const volume::NiftiHeader& header = file.header();
    const std::uint64_t bytes = volume::bytes_of_volume(config, networks, header, most);
    table.add({shown,
               std::to_string(header.size[0]) + " x " + std::to_string(header.size[1]) + " x " +
                   std::to_string(header.size[2]),
               volume::name_of(header.type), std::to_string(volume::fragments_of(config)), memory_text(bytes)});
    return {};
  } catch (const Error& error) {
    table.add({shown, "would fail", "", "", ""});
    return error.what();
  }
}

int dry_run_of_volumes(const Config& config, const ExpandedInputs& inputs, const RunOptions& options) {
  if (!options.assume_gpu.empty()) {
    throw ConfigError("--assume-gpu: what networks of volumes take is measured on a GPU that is there");
  }
  const volume::VolumeNetworks networks(config);
  const Style style = Style::of(1);
  std::cout << networks_text(config, networks, style);
  constexpr std::size_t longest_path = 60;
  bool fails = false;
  if (!inputs.slides.empty()) {
    Table table({"<volume", "<x, y, z", "<samples", "fragments", "memory"});
    const std::uint64_t most =
        volume::make_schedule(config, networks, volume::fragments_at_a_time(config, networks)).most_for_volume();
    std::string errors;
    for (const std::string& path : inputs.slides) {
      const std::string error =
          add_volume(table, config, networks, most, path, shortened_path(path, longest_path, style));
      if (error.empty()) continue;
      fails = true;
      const std::string named = error.starts_with(path + ": ") ? error : path + ": " + error;
      errors += style.red("would fail") + "  " + printable(named) + "\n";
    }
    std::cout << "\n" << table.text(style) << "\n" << errors;
  }
  const StartForecast start = forecast_start(config, inputs, options);
  std::cout << style.bold("results") << "  " << start.results << '\n';
  volume::check_budget(config, networks);
  if (!start.refusal.empty()) throw ConfigError(start.refusal);
  return fails ? exit_some_failed : exit_done;
}

void check_maps(const Config& config) {
  if (config.output.maps != MapFormat::none) throw ConfigError("output.maps is for spectra of slides, not for volumes");
}

int run_over_volumes(RunOptions options) {
  for (const std::string& setting : options.settings) {
    const std::string key = setting.substr(0, setting.find_first_of(" ="));
    if (key == "operators.run") {
      throw ConfigError(
          "operators.run can't be set here: operators are for slides, and `pipeline volume` has networks");
    }
  }
  options.work = work_of_volumes();
  const Config config = effective_config(options);
  if (config.volume.networks.empty() && !options.print_config) {
    throw ConfigError("which network? Name its ONNX file, or a folder: pipeline volume SCAN.nii.gz --networks DIR");
  }
  check_maps(config);
  return run(options);
}

}  // namespace

std::shared_ptr<const OwnWork> work_of_volumes() {
  const auto networks = std::make_shared<std::optional<volume::VolumeNetworks>>();
  auto work = std::make_shared<OwnWork>();
  work->name = "volume";
  work->inputs = inputs_of_volumes;
  work->dry_run = dry_run_of_volumes;
  work->check = [networks](const Config& config) {
    check_maps(config);
    networks->emplace(config);
    volume::check_budget(config, **networks);
  };
  work->run = [networks](const Config& config, const std::vector<std::string>& volumes, RunControl& control) {
    return volume::run_volumes(config, **networks, volumes, control);
  };
  work->write = write_labels;
  return work;
}

void write_labels(const Config& config) {
  const fs::path folder = config.output.dir;
  if (!writes_labels(config)) return;
  LedgerView view(folder / ledger_name, static_cast<std::size_t>(config.analysis.bins));
  AtomicFile file(folder / labels_name, LinkTarget::anything);
  file.write(std::string(labels_header) + "\r\n");
  const auto cell = [&](const std::string& text) {
    return csv_field(config.output.csv == CsvCells::plain ? text : spreadsheet_text(text));
  };
  view.for_each([&](const SlideResult& volume) {
    double mm3 = std::numeric_limits<double>::quiet_NaN();
    for (const NamedValue& value : volume.values) {
      if (value.name == "volume.voxel_mm3") mm3 = value.value;
    }
    std::string text;
    for (const NamedValue& value : volume.values) {
      const auto label = label_of(value.name);
      if (!label) continue;
      text += cell(volume.path) + "," + std::string(*label) + "," +
              std::to_string(static_cast<std::uint64_t>(value.value)) + "," +
              (std::isnan(mm3) ? std::string() : to_decimal(value.value * mm3)) + "\r\n";
    }
    file.write(text);
  });
  file.commit();
}

std::shared_ptr<RunOptions> add_volume_command(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("volume", "Run networks over 3-D images (NIfTI), a fragment at a time");
  command
      ->add_option(
          "volumes", options->inputs,
          "Volumes, folders (searched for .nii and .nii.gz), .list or .csv files that name volumes, or - for a "
          "list on standard input")
      ->type_name("VOLUME|DIR|LIST|-");
  add_run_options(*command, *options, volume_options);
  command->footer(
      "Writes images/NAME.labels.nii.gz, or images/NAME.image.nii.gz with --fusion blend, and labels.csv with the mm^3 "
      "of\n"
      "each label. The same command goes on where it stopped.\n\n"
      "Examples:\n"
      "  pipeline volume scans/ --networks nets/ -o labels          27 networks, one per fragment\n"
      "  pipeline volume a.nii.gz --networks unet.onnx -o labels \\\n"
      "      -s volume.fragment=[64,64,64] -s volume.grid=[4,4,3]   one network for all fragments\n"
      "  pipeline volume a.nii.gz --networks sr.onnx --fusion blend -s model.range=[0,4095] -o sharper");
  command->callback([&action, options] { action = [options] { return run_over_volumes(*options); }; });
  return options;
}

}  // namespace slidestream::cli
