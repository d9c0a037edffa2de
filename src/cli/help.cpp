#include "cli/help.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "config/toml_text.hpp"

namespace slidestream::cli {

namespace {

constexpr std::size_t page_columns = 100;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// What an option takes: CLI11 has it as "none|npy|tiff" where we wrote it, and as "NAME:{a,b}" where it checks names.
/// The first may have colons of its own: "4:2:0|4:4:4".
struct Type {
  std::string name;
  std::vector<std::string> choices;
  bool choices_in_name = false;
};

Type type_of(const CLI::Option& option) {
  if (option.get_type_size() == 0) return {};
  const std::string text = option.get_type_name();
  Type type;
  type.name = text.substr(0, text.find('|') == std::string::npos ? text.find(':') : text.find(":{"));
  const std::size_t open = text.find('{');
  const std::size_t close = text.find('}');
  if (type.name.find('|') != std::string::npos) {
    type.choices = split(type.name, '|');
    type.choices_in_name = true;
  } else if (open != std::string::npos && close != std::string::npos && open < close) {
    type.choices = split(std::string_view(text).substr(open + 1, close - open - 1), ',');
  }
  if (type.name == "INT" || type.name == "UINT") type.name = "N";
  return type;
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

/// The description on one line, with the choices and the default that it doesn't show itself.
std::string description_of(const CLI::Option& option) {
  std::string text = option.get_description();
  std::ranges::replace(text, '\n', ' ');
  const Type type = type_of(option);
  if (!type.choices.empty() && !type.choices_in_name) {
    std::string names;
    for (const std::string& choice : type.choices) names += (names.empty() ? "" : ", ") + choice;
    text += ". One of " + names;
  }
  if (!option.get_default_str().empty()) text += ". Default " + option.get_default_str();
  return text;
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string tasks) : tasks_(std::move(tasks)) { column_width(34); }

  std::string make_usage(const CLI::App* app, std::string) const override {
    std::string text = "Usage: " + full_name(*app);
    for (const CLI::Option* option : app->get_options(&CLI::Option::get_positional)) {
      const std::string type = option->get_type_name();
      const std::string shown = type.find('|') == std::string::npos ? type : type.substr(0, type.find('|'));
      const bool several = option->get_expected_max() > 1;
      text += option->get_required() ? " " + shown + (several ? " ..." : "") : " [" + shown + (several ? " ...]" : "]");
    }
    text += " [OPTION ...]\n";
    for (const CLI::App* command : commands_of(*app)) {
      text += "       " + full_name(*app) + " " + command->get_name() + " ...\n";
    }
    return text;
  }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const override {
    std::string text =
        app->get_description() + "\n\n" + (tasks_.empty() ? "" : tasks_ + "\n") + make_usage(app, std::move(name));
    const auto positionals = app->get_options(&CLI::Option::get_positional);
    if (!positionals.empty()) text += make_group("Arguments", true, positionals);
    for (const std::string& group : app->get_groups()) {
      const auto options = app->get_options(
          [&group](const CLI::Option* option) { return option->get_group() == group && option->nonpositional(); });
      if (!group.empty() && !options.empty()) text += make_group(group, false, options);
    }
    const auto commands = commands_of(*app);
    if (!commands.empty()) text += "\nCommands:\n";
    for (const CLI::App* command : commands) text += make_subcommand(command);
    return text + "\n" + app->get_footer() + "\n";
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    std::string text = "\n" + group + ":\n";
    for (const CLI::Option* option : options) text += make_option(option, is_positional);
    return text;
  }

  // A name and its type are on one line, the positional's own name says nothing more.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    if (is_positional) return option->get_type_name();
    std::string text;
    for (const std::string& name : names_of(*option)) text += (text.empty() ? "" : ", ") + name;
    return text;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() || option->get_type_size() == 0 ? "" : " " + type_of(*option).name;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = wrapped(description_of(*option), "", page_columns - get_column_width());
    text.pop_back();
    return text;
  }

 private:
  std::string tasks_;  ///< behind the description
};

}  // namespace

std::vector<OptionText> options_of(const CLI::App& command) {
  std::vector<OptionText> options;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty() || !option->nonpositional()) continue;
    OptionText text;
    text.names = names_of(*option);
    Type type = type_of(*option);
    text.value = std::move(type.name);
    text.choices = std::move(type.choices);
    text.description = description_of(*option);
    text.repeats = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll && !text.value.empty();
    options.push_back(std::move(text));
  }
  return options;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const CLI::App* command : app.get_subcommands(std::function<bool(const CLI::App*)>())) {
    if (!command->get_name().empty() && !command->get_group().empty()) commands.push_back(command);
  }
  return commands;
}

std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? "pipeline" : full_name(*command.get_parent()) + " " + command.get_name();
}

void set_help_format(CLI::App& app, const std::string& tasks) {
  app.formatter(std::make_shared<HelpFormatter>(tasks));
  const auto formatter = std::make_shared<HelpFormatter>("");
  for (CLI::App* command : app.get_subcommands(std::function<bool(CLI::App*)>())) command->formatter(formatter);
}

}  // namespace slidestream::cli
