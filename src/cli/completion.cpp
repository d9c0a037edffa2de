#include <CLI/CLI.hpp>
#include <slidestream/error.hpp>

#include "cli/help.hpp"
#include "config/keys.hpp"

namespace slidestream::cli {

namespace {

std::string joined(const std::vector<std::string>& words, std::string_view separator = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : std::string(separator)) + word;
  return text;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const OptionText& option : options_of(command)) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

/// "analysis.window=" and so on, for --set.
std::vector<std::string> setting_words() {
  std::vector<std::string> words;
  for (const ConfigKey& key : config_keys()) words.push_back(key.full_name() + "=");
  return words;
}

bool takes_setting(const OptionText& option) { return option.value == "SECTION.KEY=VALUE"; }

/// Text within single quotes of a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// What a narrow column has room for.
std::string first_clause(const std::string& description) {
  return description.substr(0, std::min(description.find(". "), description.find(": ")));
}

/// The words that a command's only positional can be, such as the shells of `completion`.
std::vector<std::string> argument_words(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options(&CLI::Option::get_positional)) {
    std::string type = option->get_type_name();
    if (type.find('|') == std::string::npos || type.find("SLIDE") != std::string::npos) return {};
    std::vector<std::string> words(1);
    for (const char c : type) {
      if (c == '|') {
        words.emplace_back();
      } else {
        words.back() += c;
      }
    }
    return words;
  }
  return {};
}

std::string bash_values(const CLI::App& command, const std::string& name) {
  std::string text;
  for (const OptionText& option : options_of(command)) {
    if (option.value.empty()) continue;
    std::vector<std::string> cases;
    for (const std::string& option_name : option.names) cases.push_back(name + ":" + option_name);
    text += "    " + joined(cases, "|") + ")\n";
    if (takes_setting(option)) {
      text += "      compopt -o nospace\n      words='" + joined(setting_words()) + "' ;;\n";
    } else if (!option.choices.empty()) {
      text += "      words='" + joined(option.choices) + "' ;;\n";
    } else {
      text += "      compopt -o default; return ;;\n";
    }
  }
  return text;
}

std::string bash_script(const CLI::App& app) {
  std::string text =
      "# bash completion for pipeline\n"
      "_pipeline() {\n"
      "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\" command='' word "
      "words='' files=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$word\" in " +
      joined(command_names(app), "|") +
      ") command=\"$word\"; break ;; esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command:$previous\" in\n" +
      bash_values(app, "");
  for (const CLI::App* command : commands_of(app)) text += bash_values(*command, command->get_name());
  text +=
      "    *)\n"
      "      case \"$command:$current\" in\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::vector<std::string> arguments = argument_words(*command);
    text += "        " + command->get_name() + ":-*) words='" + joined(option_names(*command)) + "' ;;\n";
    text += "        " + command->get_name() + ":*) " +
            (arguments.empty() ? "files=yes" : "words='" + joined(arguments) + "'") + " ;;\n";
  }
  text += "        :-*) words='" + joined(option_names(app)) + "' ;;\n" +
          "        *) files=yes; [[ $COMP_CWORD == 1 ]] && words='" + joined(command_names(app)) +
          "' ;;\n"
          "      esac ;;\n"
          "  esac\n"
          "  [[ -n $files ]] && compopt -o filenames\n"
          "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\"; [[ -n $files ]] && compgen -f -- "
          "\"$current\")\n"
          "}\n"
          "complete -F _pipeline pipeline\n";
  return text;
}

std::string zsh_options(const CLI::App& command) {
  std::string text;
  for (const OptionText& option : options_of(command)) {
    std::string description;
    for (const char c : option.description) {
      if (c == '[' || c == ']' || c == ':' || c == '\\') description += '\\';
      description += c;
    }
    std::string value;
    if (takes_setting(option)) {
      value = ":setting:_pipeline_settings";
    } else if (!option.choices.empty()) {
      value = ":value:(" + joined(option.choices) + ")";
    } else if (!option.value.empty()) {
      value = ":" + option.value + ":_files";
    }
    for (const std::string& name : option.names) {
      text += "    " + quoted((option.repeats ? "*" : "") + name + "[" + description + "]" + value) + " \\\n";
    }
  }
  return text;
}

std::string zsh_script(const CLI::App& app) {
  std::string text =
      "#compdef pipeline\n"
      "_pipeline_settings() {\n"
      "  compadd -S '' -- " +
      joined(setting_words()) +
      "\n}\n"
      "_pipeline_first() {\n"
      "  (( CURRENT == 2 )) && compadd -- " +
      joined(command_names(app)) +
      "\n  _files\n"
      "}\n"
      "_pipeline() {\n"
      "  case \"${words[2]}\" in\n";
  for (const CLI::App* command : commands_of(app)) {
    const std::vector<std::string> arguments = argument_words(*command);
    text += "  " + command->get_name() + ")\n    shift words; (( CURRENT-- ))\n    _arguments -s \\\n" +
            zsh_options(*command) + "    " +
            (arguments.empty() ? "'*:slide:_files'" : quoted("1:argument:(" + joined(arguments) + ")")) + " ;;\n";
  }
  text += "  *)\n    _arguments -s \\\n" + zsh_options(app) + "    '*:slide:_pipeline_first' ;;\n  esac\n}\n";
  // Both ways of loading: as a function of $fpath, and by eval or source.
  return text + "if [[ $funcstack[1] == _pipeline ]]; then _pipeline \"$@\"; else compdef _pipeline pipeline; fi\n";
}

std::string fish_options(const CLI::App& command, const std::string& condition) {
  std::string text;
  for (const OptionText& option : options_of(command)) {
    text += "complete -c pipeline -n " + quoted(condition);
    for (const std::string& name : option.names) {
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    }
    text += " -d " + quoted(first_clause(option.description));
    if (takes_setting(option)) {
      text += " -x -a " + quoted(joined(setting_words()));
    } else if (!option.choices.empty()) {
      text += " -x -a " + quoted(joined(option.choices));
    } else if (!option.value.empty()) {
      text += " -r";
    }
    text += "\n";
  }
  return text;
}

std::string fish_script(const CLI::App& app) {
  const std::string none = "not __fish_seen_subcommand_from " + joined(command_names(app));
  std::string text = "# fish completion for pipeline\n" + fish_options(app, none);
  for (const CLI::App* command : commands_of(app)) {
    const std::string seen = "__fish_seen_subcommand_from " + command->get_name();
    text += "complete -c pipeline -n __fish_use_subcommand -a " + command->get_name() + " -d " +
            quoted(command->get_description()) + "\n" + fish_options(*command, seen);
    const std::vector<std::string> arguments = argument_words(*command);
    if (!arguments.empty()) {
      text += "complete -c pipeline -n " + quoted(seen) + " -x -a " + quoted(joined(arguments)) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  if (shell == "bash") return bash_script(app);
  if (shell == "zsh") return zsh_script(app);
  if (shell == "fish") return fish_script(app);
  throw ConfigError("no completion for '" + shell + "'; expected bash, zsh or fish");
}

}  // namespace slidestream::cli
