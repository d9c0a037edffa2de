#include "cli/program.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <slidestream/error.hpp>
#include <slidestream/pipeline.hpp>
#include <span>
#include <string_view>

#include "cli/command.hpp"
#include "cli/compare_command.hpp"
#include "cli/convert_command.hpp"
#include "cli/help.hpp"
#include "cli/info_command.hpp"
#include "cli/logging.hpp"
#include "cli/merge_command.hpp"
#include "cli/report_command.hpp"
#include "cli/run_command.hpp"
#include "cli/short_commands.hpp"
#include "cli/shortage.hpp"
#include "cli/signals.hpp"
#include "cli/status_command.hpp"
#include "cli/sweep_command.hpp"
#include "cli/synth_command.hpp"
#include "cli/terminate_handler.hpp"
#include "cli/under_way.hpp"
#include "cli/verify_command.hpp"
#include "cli/volume_command.hpp"
#include "config/keys.hpp"
#include "config/suggest.hpp"

namespace slidestream::cli {

namespace {

const std::vector<std::string> level_names = {"error", "warn", "info", "debug"};

constexpr const char* tasks_text =
    "Tasks:\n"
    "  pipeline convert slide.svs slide.ome.tif              convert to OME-TIFF, OME-Zarr, Deep Zoom or DICOM\n"
    "  pipeline stain slides/ -o normalised                  normalise stains\n"
    "  pipeline tissue slides/ -o found                      find tissue\n"
    "  pipeline features slides/ --model net.onnx -o vectors extract features\n"
    "  pipeline segment slides/ --model net.onnx -o classes  segment\n"
    "  pipeline volume scans/ --networks nets/ -o labels     label volumes (NIfTI)\n"
    "  pipeline slides/ -o spectra                           analyse spectra\n";

constexpr const char* operators_text =
    "Operators (--operators):\n"
    "  spectrum   the distribution of the Fourier magnitudes of all windows: histogram, percentiles, maps\n"
    "  identity   pixels as they are\n"
    "  sobel      steepness of the luminance\n"
    "  gaussian   smoothed pixels\n"
    "  stain      stains normalised to a reference, or one stain alone\n"
    "  tissue     a mask of the tissue and its outlines\n"
    "  model      what a network in an ONNX file gives: an image, classes, or features\n"
    "Formats (image.format):\n"
    "  ome-tiff   a tiled pyramid in one file\n"
    "  ome-zarr   a pyramid in a folder of chunks\n"
    "  dzi        a folder of JPEG files for browsers, with a page that shows them\n"
    "  dicom      a folder of DICOM files, one per level\n";

std::string footer() {
  std::string text = std::string(operators_text) + "\nExit status:\n";
  for (const auto& [status, meaning] : exit_status_text) {
    text += "  " + std::string(status) + std::string(15 - std::strlen(status), ' ') + meaning + "\n";
  }
  return text +
         "\nExamples:\n"
         "  pipeline slide.svs                                one slide; results in slidestream-out/\n"
         "  pipeline slides/ --operators stain,tissue -o out  several operators in one pass\n"
         "  pipeline slides/ --out results --maps npy         a folder, with maps\n"
         "  pipeline --config cohort.toml cohort.csv          settings and slides from files\n"
         "  pipeline slide.svs --set analysis.stride=64       one setting\n"
         "  pipeline slides/ --out results                    the same again: goes on where it stopped\n"
         "  pipeline --print-config > my.toml                 every setting, explained, to edit\n"
         "  pipeline synth --out demo.svs && pipeline demo.svs   no slide at hand";
}

/// Of `--name=`, as an empty variable makes it, CLI11 takes the next word for the value; of `-n=value` the sign, too.
/// \throws ConfigError
void check_values(std::span<const char* const> words) {
  for (const std::string_view word : words) {
    if (word == "--") return;
    const std::size_t sign = word.find('=');
    const std::string name = one_line(word.substr(0, sign));
    if (word.starts_with("--") && sign > 2 && sign + 1 == word.size()) throw ConfigError(name + ": can't be empty");
    if (sign == 2 && std::isalpha(static_cast<unsigned char>(word[1])) != 0 && word.front() == '-') {
      throw ConfigError("'" + one_line(word) + "' has a = behind a short option; expected '" + name + " " +
                        one_line(word.substr(sign + 1)) + "'");
    }
  }
}

/// The command line: options, what they were set to, and what is to be done.
class Program {
 public:
  Program()
      : app_(
            "Streams whole-slide pathology images through operators: convert, normalise, find tissue, extract "
            "features, "
            "segment, analyse",
            "pipeline") {
    app_.set_help_flag("-h,--help", "This text; `pipeline COMMAND --help` for a command");
    app_.set_version_flag("-V,--version", std::string("slidestream ") + version(), "The version");
    add_run();
    add_message_options(app_);
    app_.add_flag("--help-man", help_man_, "The man page")->group("");
    app_.require_subcommand(0, 1);
    app_.footer(footer());
    const auto runs = add_short_commands(app_, action_);
    command_options_.insert(command_options_.end(), runs.begin(), runs.end());
    command_options_.push_back(add_convert_command(app_, action_));
    command_options_.push_back(add_volume_command(app_, action_));
    for (const char* name : {"stain", "tissue", "features", "segment", "convert", "volume"}) {
      add_message_options(*app_.get_subcommand(name));
    }
    add_info_command(app_, action_);
    add_compare_command(app_, action_);
    add_merge_command(app_, action_);
    add_report_command(app_, action_);
    add_status_command(app_, action_);
    add_sweep_command(app_, action_);
    add_synth_command(app_, action_);
    add_verify_command(app_, action_);
    add_completion_command();
    set_help_format(app_, tasks_text);
  }

  int main(int argc, const char* const* argv) {
    if (argc <= 1) {
      std::cerr << "pipeline: " << app_.get_description() << "\n\n"
                << "  pipeline convert a.svs a.ome.tif  a slide as OME-TIFF\n"
                << "  pipeline tissue a.svs -o found    where its tissue is\n"
                << "  pipeline a.svs                    its spectrum; results in slidestream-out/\n"
                << "  pipeline info a.svs               what a slide is\n"
                << "  pipeline synth --out demo.svs     make a slide to try\n"
                << "  pipeline --help                   everything else\n";
      return exit_usage;
    }
    check_values(std::span<const char* const>(argv, static_cast<std::size_t>(argc)).subspan(1));
    try {
      app_.parse(argc, argv);
    } catch (const CLI::Success&) {
      return show_help_or_version();
    } catch (const CLI::ParseError& error) {
      throw ConfigError(usage_text(error) + " (see " + full_name(command_at_fault()) + " --help)");
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
    app_.add_option(
            "slides", run_options_.inputs,
            "Slides, folders (searched for .svs, .tif, .tiff, .btf, DICOM and OpenSlide's), .list or .csv files that "
            "name slides, or - for a list on standard input")
        ->type_name("SLIDE|DIR|LIST|-");
    const std::string computed = "What is computed: " + operator_list();
    const std::array<KeyOption, 2> own = {
        {{"--operators", "operators", "run", computed.c_str()},
         {"--maps", "output", "maps", "Statistics of every window as an image for each slide"}}};
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

  /// The one that arguments which nobody knows were given to: what stands before a subcommand's name is the program's.
  const CLI::App& command_at_fault() const { return app_.remaining(false).empty() ? named_command() : app_; }

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

  /// An option that has more values than it takes; null: none has.
  const CLI::Option* given_too_often() const {
    const auto options = named_command().get_options();
    const auto found = std::ranges::find_if(options, [](const CLI::Option* option) {
      return option->nonpositional() && option->get_type_size() > 0 &&
             option->get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
             static_cast<long long>(option->count()) > option->get_items_expected_max();
    });
    return found == options.end() ? nullptr : *found;
  }

  std::string usage_text(const CLI::ParseError& error) const {
    const CLI::App& command = command_at_fault();
    const std::vector<std::string> unknown = command.remaining(true);
    const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
    const auto option = std::ranges::find_if(unknown, is_option);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
      if (const CLI::Option* const often = given_too_often(); often != nullptr) {
        return often->get_name() + " is given " + std::to_string(often->count()) + " times; expected once";
      }
    }
    // CLI11 misses an argument before it says that a word is none.
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                            (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && option != unknown.end());
    if (!is_unknown) return one_line(error.what());
    if (option == unknown.end())
      return "unexpected argument '" + one_line(unknown.empty() ? "" : unknown.front()) + "'";
    std::error_code code;
    if (std::filesystem::exists(*option, code)) {
      return "unknown option '" + one_line(*option) + "'; the file of this name is ./" + one_line(*option);
    }
    std::vector<std::string> names;
    for (const OptionText& known : options_of(command)) {
      names.insert(names.end(), known.names.begin(), known.names.end());
    }
    const std::string name = option->substr(0, option->find('='));
    return "unknown option '" + one_line(name) + "'" + did_you_mean(name, names);
  }

  void set_up_messages() {
    LogOptions options;
    options.json = log_json_;
    run_options_.log_json = log_json_;
    bool quiet = run_options_.quiet;
    for (const auto& command : command_options_) {
      command->log_json = log_json_;
      quiet = quiet || command->quiet;
    }
    options.level = quiet ? spdlog::level::warn : spdlog::level::info;
    if (!log_level_.empty()) {
      if (std::ranges::find(level_names, log_level_) == level_names.end()) {
        throw ConfigError("--log-level is '" + one_line(log_level_) + "'; expected error, warn, info or debug" +
                          did_you_mean(log_level_, level_names));
      }
      options.level = spdlog::level::from_str(log_level_);
    }
    set_up_logging(options);
  }

  /// A first word that names no file is more likely a command's name than a slide's: where it is near one of them, or
  /// stands alone.
  void refuse_unknown_command() const {
    if (run_options_.inputs.empty()) return;
    const std::string& word = run_options_.inputs.front();
    const auto is_of_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    };
    std::error_code code;
    if (!std::ranges::all_of(word, is_of_name) || word == "-" || std::filesystem::exists(word, code)) return;
    std::vector<std::string> names;
    for (const CLI::App* command : commands_of(app_)) names.push_back(command->get_name());
    std::string small = word;
    std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::string nearest = nearest_name(small, names);
    const bool is_near = 2 * edit_distance(small, nearest) <= static_cast<int>(nearest.size());
    // An operator's name that is a command, too, is guessed as one.
    if (nearest != small && std::ranges::find(operator_names, small) != operator_names.end()) {
      throw ConfigError("'" + one_line(word) + "' is neither a file nor a command; did you mean '--operators " + small +
                        "'?");
    }
    if (!is_near && run_options_.inputs.size() > 1) return;
    std::string all;
    for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
    throw ConfigError("'" + one_line(word) + "' is neither a file nor a command; " +
                      (is_near ? "did you mean '" + nearest + "'?" : "commands are " + all));
  }

  CLI::App app_;
  RunOptions run_options_;
  std::vector<std::shared_ptr<RunOptions>> command_options_;  ///< of those that run slides
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
    return failed_status();
  } catch (const OutputError& error) {
    spdlog::error("{}", error.what());
    return failed_status();
  } catch (const SlideError& error) {
    spdlog::error("{}", error.what());
    return exit_some_failed;
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
  } catch (const std::bad_alloc&) {
    has_ended_in_shortage = true;
    spdlog::error("{}{}", memory_shortage, slides_under_way().noted());
    return failed_status();
  } catch (const std::exception& error) {
    if (is_thread_shortage(error)) {
      has_ended_in_shortage = true;
      spdlog::error("{}{}", thread_shortage, slides_under_way().noted());
      return failed_status();
    }
    spdlog::error("internal error: {}", error.what());
  }
  return exit_ended_early;
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  set_terminate_handler();
  prepare_unwinding();
  set_up_logging({});
  ignore_file_size_signal();
  const int status = guarded_main(argc, argv);
  // A refusal comes before any document.
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  if (status == exit_usage && std::ranges::find(words, std::string_view("--json")) != words.end())
    std::cout << "null\n";
  errno = 0;
  if (!std::cout.flush()) {
    spdlog::error("standard output: {}", errno != 0 ? std::strerror(errno) : "can't be written");
    return status == exit_done ? exit_ended_early : status;
  }
  return status;
}

}  // namespace slidestream::cli
