#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// \file
/// What help, the man page and shell completions are made from: the CLI11 app and the list of configuration keys.

namespace slidestream::cli {

/// An option as documents want it.
struct OptionText {
  std::vector<std::string> names;    ///< "-o", "--out"
  std::string value;                 ///< "DIR"; empty for a flag
  std::string description;           ///< on one line
  std::vector<std::string> choices;  ///< of a value that is one of a few names
  bool repeats = false;
};

/// The options of a command that aren't hidden, without positionals.
std::vector<OptionText> options_of(const CLI::App& command);

/// The subcommands by name, in the order in which they were added.
std::vector<const CLI::App*> commands_of(const CLI::App& app);

/// "pipeline info", or the program's name alone.
std::string full_name(const CLI::App& command);

/// Gives `app` and everything below the program's way of writing help. Of `app` itself `tasks` stands behind the
/// description.
void set_help_format(CLI::App& app, const std::string& tasks);

/// The man page as roff, section 1.
std::string man_page(const CLI::App& app);

/// A completion script. \throws ConfigError when `shell` isn't bash, zsh or fish.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// Exit statuses, for help and the man page.
inline constexpr const char* exit_status_text[][2] = {
    {"0", "all slides were done"},
    {"1",
     "some slides failed, or results differ (compare --tolerance, verify), or a ledger is damaged (status); everything "
     "else is finished and written"},
    {"2",
     "bad usage or configuration, or no slide: nothing was started; or threads, memory or the disk's room were too "
     "little before a slide was begun: the same command resumes"},
    {"3",
     "the run ended before its end (--max-failures, a full disk, too little memory, a lost GPU), or something couldn't "
     "be written; the "
     "same command does the rest"},
    {"129, 130, 143",
     "interrupted by SIGHUP, SIGINT or SIGTERM; what was done is written (a second signal stops at once)"},
};

}  // namespace slidestream::cli
