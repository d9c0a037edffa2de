#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/pipeline.hpp>
#include <slidestream/results.hpp>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace slidestream::cli {

struct RunOptions;

/// A run inside another program, which has signals and the terminal to itself.
struct EmbeddedRun {
  RunControl control;  ///< for `request_stop`
  /// As `RunControl::on_progress`, with the slides of earlier starts among the numbers. May be empty.
  std::function<void(const Progress&)> on_progress;
  bool in_memory = false;  ///< nothing is written: `result` has all that there is
  /// Computes for the operator model, in place of `model.file`. May be null.
  std::shared_ptr<const Network> network;
  /// Set when the run is broken off: slides that fail from then on stay pending in the ledger.
  std::atomic<bool> aborted{false};

  // What it came to, once `run` has returned.
  Config config;        ///< that it ran with
  RunResult result;     ///< without slides and corpus, unless it was `in_memory`
  std::string failure;  ///< one line when results couldn't all be written; else empty
  std::string stopped;  ///< why the run was stopped early on purpose, with slides left; else empty
};

/// Work of a command that is a run with ledger, progress and signals, but not of the slides' pipeline.
struct OwnWork {
  const char* name;  ///< of its command and one of its inputs, such as "volume"; in `operators.run` of its results
  std::function<ExpandedInputs(const Config&)> inputs;
  std::function<int(const Config&, const ExpandedInputs&, const RunOptions&)> dry_run;
  /// Before anything is written. \throws ConfigError
  std::function<void(const Config&)> check;
  std::function<RunResult(const Config&, const std::vector<std::string>&, RunControl&)> run;
  /// Writes more tables of results, from the ledger. \throws OutputError
  std::function<void(const Config&)> write;
};

/// What `pipeline [SLIDE ...]`, or a command that runs slides as it does, was called with.
struct RunOptions {
  std::vector<std::string> inputs;
  std::string config_file;
  std::vector<std::string> settings;
  std::string out;
  std::string file;  ///< the one file that is written, in place of a folder for results; empty: the folder
  std::vector<std::pair<std::string, std::string>> keys;  ///< set by options of their own: the key's name and value
  /// Of a command, for keys that neither the file nor any option set: names and values.
  std::vector<std::pair<std::string, std::string>> defaults;
  std::string trace;
  std::string shard;
  std::string shard_by = "path";
  std::string max_failures;
  std::string metrics;
  bool fresh = false;
  bool retry_failed = false;
  bool overwrite = false;  ///< files that this program didn't write may be replaced
  bool print_config = false;
  bool dry_run = false;
  std::string assume_gpu;  ///< a GPU's model that a dry run takes for granted
  bool quiet = false;
  bool stats = false;                   ///< the summary has a row per slide and per stage
  bool log_json = false;                ///< messages are for a program: no live line
  std::shared_ptr<const OwnWork> work;  ///< null: the slides' pipeline
  EmbeddedRun* embedded = nullptr;      ///< null: the run is the program
};

/// An option that stands for a key of the configuration.
struct KeyOption {
  const char* names;    ///< "-t,--threads"
  const char* section;  ///< of the key
  const char* key;
  const char* description;
};

/// Gives `app` an option for a key.
CLI::Option* add_key_option(CLI::App& app, RunOptions& options, const KeyOption& option);

/// Gives `app` the options of a run, and those for keys that only this command has. Where its slides are named is the
/// command's own.
void add_run_options(CLI::App& app, RunOptions& options, std::span<const KeyOption> own);

/// Defaults, below the file, below `--set`, below the options of their own. \throws ConfigError.
Config effective_config(const RunOptions& options);

}  // namespace slidestream::cli
