#include "cli/program.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>

#include "cli/command.hpp"
#include "cli/compare_command.hpp"
#include "cli/convert_command.hpp"
#include "cli/help.hpp"
#include "cli/info_command.hpp"
#include "cli/logging.hpp"
#include "cli/merge_command.hpp"
#include "cli/report_command.hpp"
#include "cli/run_command.hpp"
#include "cli/signals.hpp"
#include "cli/status_command.hpp"
#include "cli/sweep_command.hpp"
#include "cli/synth_command.hpp"
#include "config/suggest.hpp"

namespace slidestream::cli {

namespace {

const std::vector<std::string> level_names = {"error", "warn", "info", "debug"};

std::string footer() {
  std::string text = "Exit status:\n";
  for (const auto& [status, meaning] : exit_status_text) {
    text += "  " + std::string(status) + std::string(10 - std::strlen(status), ' ') + meaning + "\n";
  }
  return text +
         "\nExamples:\n"
         "  pipeline slide.svs                                one slide; results in slidestream-out/\n"
         "  pipeline slides/ --out results --maps npy         a folder, with maps\n"
         "  pipeline --config cohort.toml cohort.csv          settings and slides from files\n"
         "  pipeline slide.svs --set analysis.stride=64       one setting\n"
         "  pipeline slides/ --out results                    the same again: goes on where it stopped\n"
         "  pipeline --print-config > my.toml                 every setting, explained, to edit\n"
         "  pipeline synth --out demo.svs && pipeline demo.svs   no slide at hand";
}

/// The command line: options, what they were set to, and what is to be done.
class Program {
 public:
  Program() : app_("Spectral statistics of every window of whole-slide images", "pipeline") {
    app_.set_help_flag("-h,--help", "This text; `pipeline COMMAND --help` for a command");
    app_.set_version_flag("-V,--version", std::string("slidestream ") + version(), "The version");
    add_run();
    add_message_options(app_);
    app_.add_flag("--help-man", help_man_, "The man page")->group("");
    app_.require_subcommand(0, 1);
    app_.footer(footer());
    add_compare_command(app_, action_);
    convert_options_ = add_convert_command(app_, action_);
    add_message_options(*app_.get_subcommand("convert"));
    add_info_command(app_, action_);
    add_merge_command(app_, action_);
    add_report_command(app_, action_);
    add_status_command(app_, action_);
    add_sweep_command(app_, action_);
    add_synth_command(app_, action_);
    add_completion_command();
    set_help_format(app_);
  }

  int main(int argc, const char* const* argv) {
    if (argc <= 1) {
      std::cerr << "pipeline: " << app_.get_description() << "\n\n"
                << "  pipeline slide.svs              analyse a slide; results in slidestream-out/\n"
                << "  pipeline info slide.svs         what a slide is\n"
                << "  pipeline synth --out demo.svs   make a slide to try\n"
                << "  pipeline --help                 everything else\n";
      return exit_usage;
    }
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success&) {
      return show_help_or_version();
    } catch (const CLI::ParseError& error) {
      throw ConfigError(usage_text(error) + " (see " + full_name(named_command()) + " --help)");
    }
    set_up_messages();
    if (help_man_) {
      std::cout << man_page(app_);
      return exit_done;
    }
    if (action_) {
      if (!run_options_.inputs.empty()) {
        throw ConfigError("'" + run_options_.inputs.front() + "' stands before the command '" +
                          named_command().get_name() + "'; arguments follow it");
      }
      return action_();
    }
    refuse_unknown_command();
    return run(run_options_);
  }

 private:
  void add_run() {
    app_.add_option("slides", run_options_.inputs,
                    "Slides, folders (searched for .svs, .tif, .tiff, .btf), .list or .csv files that name "
                    "slides, or - for a list on standard input")
        ->type_name("SLIDE|DIR|LIST|-");
    constexpr std::array<KeyOption, 1> own = {
        {{"--maps", "output", "maps", "Statistics of every window as an image for each slide"}}};
    add_run_options(app_, run_options_, own);
  }

  void add_message_options(CLI::App& command) {
    command.add_option("--log-level", log_level_, "Messages that are shown")
        ->type_name("error|warn|info|debug")
        ->group("Messages");
    command.add_flag("--log-json", log_json_, "Messages as JSON, one object a line")->group("Messages");
  }

  void add_completion_command() {
    CLI::App* command = app_.add_subcommand("completion", "A script that completes options and names in your shell");
    command->add_option("shell", shell_, "Your shell")->type_name("bash|zsh|fish")->required();
    command->footer(
        "Examples:\n"
        "  source <(pipeline completion bash)\n"
        "  pipeline completion zsh > ~/.zfunc/_pipeline\n"
        "  pipeline completion fish > ~/.config/fish/completions/pipeline.fish");
    command->callback([this] {
      action_ = [this] {
        std::cout << completion_script(app_, shell_);
        return exit_done;
      };
    });
  }

  /// The subcommand that the command line named, else the program.
  const CLI::App& named_command() const {
    const auto named = app_.get_subcommands();
    return named.empty() ? app_ : *named.front();
  }

  int show_help_or_version() const {
    const CLI::App& command = named_command();
    if (command.get_help_ptr()->count() > 0) {
      std::cout << command.help();
    } else if (app_.get_help_ptr()->count() > 0) {
      std::cout << app_.help();
    } else {
      std::cout << app_.version() << '\n';
    }
    return exit_done;
  }

  std::string usage_text(const CLI::ParseError& error) const {
    if (const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error); extras == nullptr) {
      return one_line(error.what());
    }
    const std::vector<std::string> unknown = app_.remaining(true);
    const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
    const auto option = std::ranges::find_if(unknown, is_option);
    if (option == unknown.end())
      return "unexpected argument '" + one_line(unknown.empty() ? "" : unknown.front()) + "'";
    std::vector<std::string> names;
    for (const OptionText& known : options_of(named_command())) {
      names.insert(names.end(), known.names.begin(), known.names.end());
    }
    const std::string name = option->substr(0, option->find('='));
    return "unknown option '" + one_line(name) + "'; did you mean '" + nearest_name(name, names) + "'?";
  }

  void set_up_messages() {
    LogOptions options;
    options.json = log_json_;
    run_options_.log_json = log_json_;
    convert_options_->log_json = log_json_;
    options.level = run_options_.quiet || convert_options_->quiet ? spdlog::level::warn : spdlog::level::info;
    if (!log_level_.empty()) {
      if (std::ranges::find(level_names, log_level_) == level_names.end()) {
        throw ConfigError("--log-level is '" + one_line(log_level_) +
                          "'; expected error, warn, info or debug; did you mean '" +
                          nearest_name(log_level_, level_names) + "'?");
      }
      options.level = spdlog::level::from_str(log_level_);
    }
    set_up_logging(options);
  }

  /// A single word that names no file is more likely a command's name than a slide's.
  void refuse_unknown_command() const {
    if (run_options_.inputs.empty()) return;
    const std::string& word = run_options_.inputs.front();
    const bool plain = std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
    std::error_code code;
    if (!plain || word == "-" || std::filesystem::exists(word, code)) return;
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app_)) names.push_back(command->get_name());
    throw ConfigError("'" + one_line(word) + "' is neither a file nor a command; did you mean '" +
                      nearest_name(word, names) + "'?");
  }

  CLI::App app_;
  RunOptions run_options_;
  std::shared_ptr<RunOptions> convert_options_;
  std::string log_level_;
  bool log_json_ = false;
  bool help_man_ = false;
  std::string shell_;
  Action action_;
};

int guarded_main(int argc, const char* const* argv) {
  try {
    Program program;
    return program.main(argc, argv);
  } catch (const ConfigError& error) {
    spdlog::error("{}", error.what());
    return exit_usage;
  } catch (const OutputError& error) {
    spdlog::error("{}", error.what());
    return exit_usage;
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory");
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
  }
  return exit_some_failed;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  set_up_logging({});
  ignore_file_size_signal();
  const int status = guarded_main(argc, argv);
  errno = 0;
  if (!std::cout.flush()) {
    spdlog::error("standard output: {}", errno != 0 ? std::strerror(errno) : "can't be written");
    return status == exit_done ? exit_some_failed : status;
  }
  return status;
}

}  // namespace slidestream::cli
