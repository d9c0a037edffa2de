#include "cli/run_options.hpp"

#include <CLI/CLI.hpp>
#include <string_view>

#include "cli/command.hpp"
#include "cli/image_file.hpp"
#include "config/keys.hpp"

namespace slidestream::cli {

namespace {

/// What a key takes, as options show it: "none|npy|tiff", or "N".
std::string type_of(const ConfigKey& key) {
  std::string text;
  for (const std::string& choice : key.choices) text += (text.empty() ? "" : "|") + choice;
  if (!text.empty()) return text;
  if (key.comma_separated) return "NAME,...";
  return key.kind == KeyKind::text ? (key.is_path ? "FILE" : "TEXT") : "N";
}

/// `--trace a.svs b.svs` mustn't write over a slide.
std::string json_file(const std::string& file) { return file.ends_with(".json") ? "" : "must end in .json"; }

void add_archive_options(CLI::App& app, RunOptions& options) {
  const std::string group = "Long runs";
  app.add_flag("--retry-failed", options.retry_failed,
               "Try slides again that failed in an earlier run of the same command")
      ->group(group);
  app.add_flag("--fresh", options.fresh,
               "Move an earlier run in the folder for results aside, to its earlier-N, and start anew")
      ->group(group);
  app.add_option("--max-failures", options.max_failures,
                 "Stop, with status 3, when so many slides have failed since the start, or such a share of all")
      ->type_name("N|P%")
      ->check(not_empty)
      ->group(group);
  app.add_option(
         "--metrics", options.metrics,
         "Write how far the run is every few seconds, for Prometheus: a file in node_exporter's textfile folder. If it "
         "can't be written later, a warning says so once, and the exit status stays as it is")
      ->type_name("FILE.prom")
      ->check([](const std::string& file) { return file.ends_with(".prom") ? "" : "must end in .prom"; })
      ->group(group);
  app.add_option("--shard", options.shard,
                 "Do one of N parts of the slides: I from 1 to N; `pipeline merge` joins them")
      ->type_name("I/N")
      ->check(not_empty)
      ->group(group);
  app.add_option("--shard-by", options.shard_by,
                 "What parts are made by: the path, or the size for parts of equal bytes")
      ->type_name("path|size")
      ->check(CLI::IsMember({"path", "size"}))
      ->group(group);
}

}  // namespace

CLI::Option* add_key_option(CLI::App& app, RunOptions& options, const KeyOption& option) {
  const ConfigKey& key = *find_key(option.section, option.key);
  const std::string name = key.full_name();
  return app
      .add_option_function<std::string>(
          option.names, [&options, name](const std::string& value) { options.keys.emplace_back(name, value); },
          std::string(option.description) + " (" + name + ")")
      ->type_name(type_of(key));
}

void add_run_options(CLI::App& app, RunOptions& options, std::span<const KeyOption> own) {
  const std::string group = "Run";
  app.add_option("-c,--config", options.config_file, "Configuration file (TOML)")
      ->type_name("FILE")
      ->check(not_empty)
      ->group(group);
  app.add_option("-s,--set", options.settings, "One setting, over the file's; may be repeated")
      ->type_name("SECTION.KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("-o,--out", options.out, "Folder for results (output.dir)")
      ->type_name("DIR")
      ->check(not_empty)
      ->group(group);
  for (const KeyOption& option : own) add_key_option(app, options, option)->group(group);
  add_key_option(app, options, {"--backend", "pipeline", "backend", "Where slides are worked on"})->group(group);
  add_key_option(app, options, {"-t,--threads", "pipeline", "threads", "Threads of the run, 0 for all"})->group(group);
  app.add_option("--trace", options.trace, "Record when every stage worked and what every GPU did, for ui.perfetto.dev")
      ->type_name("FILE.json")
      ->check(json_file)
      ->group(group);
  app.add_flag("--overwrite", options.overwrite, "Replace files that are there and that this program didn't write")
      ->group(group);
  add_archive_options(app, options);
  app.add_flag("--print-config", options.print_config, "Write the effective configuration, every key explained")
      ->group(group);
  app.add_flag("--dry-run", options.dry_run, "Say what would be done and the memory it takes; start nothing")
      ->group(group);
  app.add_option("--assume-gpu", options.assume_gpu, "With --dry-run: as if the GPUs were these, here or not")
      ->type_name("a40|a100|h100|h200")
      ->check(not_empty)
      ->group(group);
  app.add_flag("--stats", options.stats, "At the end also a row per slide, and what each stage did")->group("Messages");
  app.add_flag("-q,--quiet", options.quiet, "Nothing but warnings and errors")->group("Messages");
}

namespace {

/// Where nothing else was said.
void set_defaults(Config& config, const std::vector<std::pair<std::string, std::string>>& defaults) {
  const Config plain;
  for (const auto& [name, value] : defaults) {
    const auto dot = name.find('.');
    const ConfigKey& key = *find_key(name.substr(0, dot), name.substr(dot + 1));
    if (key.get(config) == key.get(plain)) apply_setting(config, name + "=" + value);
  }
}

}  // namespace

Config effective_config(const RunOptions& options) {
  Config config = options.config_file.empty() ? Config{} : load_config(options.config_file);
  for (const std::string& setting : options.settings) apply_setting(config, setting);
  for (const auto& [key, value] : options.keys) apply_setting(config, key + "=" + value);
  // Paths are taken as they are, whatever TOML would make of them.
  if (!options.out.empty()) config.output.dir = options.out;
  if (!options.inputs.empty()) config.input.slides = options.inputs;
  if (options.embedded != nullptr) config.model.network = options.embedded->network;
  read_model_file(config);
  set_defaults(config, options.defaults);
  if (!options.file.empty() && config.image.format == ImageFormat::automatic) {
    apply_setting(config, "image.format=" + image_format_for(options.file));
  }
  resolve_image_format(config);
  validate(config);
  return config;
}

}  // namespace slidestream::cli
