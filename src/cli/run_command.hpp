#pragma once

#include <memory>
#include <string>
#include <vector>

#include <slidestream/config.hpp>

namespace CLI {
class App;
}

namespace slidestream::cli {

/// What `pipeline [SLIDE ...]` was called with.
struct RunOptions {
  std::vector<std::string> inputs;
  std::string config_file;
  std::vector<std::string> settings;
  std::string out;
  std::string maps;
  std::string backend;
  std::string threads;
  std::string trace;
  std::string shard;
  std::string shard_by = "path";
  std::string max_failures;
  std::string metrics;
  bool fresh = false;
  bool retry_failed = false;
  bool print_config = false;
  bool dry_run = false;
  std::string assume_gpu;  ///< a GPU's model that a dry run takes for granted
  bool quiet = false;
  bool log_json = false;  ///< messages are for a program: no live line
};

/// Gives `app` the options of a run.
std::shared_ptr<RunOptions> add_run_options(CLI::App& app);

/// Defaults, below the file, below `--set`, below the options of their own. \throws ConfigError.
Config effective_config(const RunOptions& options);

/// Runs the pipeline as the options say; returns the exit status. \throws ConfigError, OutputError when nothing was
/// started.
int run(const RunOptions& options);

}  // namespace slidestream::cli
