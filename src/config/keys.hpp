#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <slidestream/config.hpp>

/// \file
/// The one list of configuration keys: files, `--set`, `--print-config`, help, the man page, shell completions and the
/// settings in corpus.json all come from it.

namespace slidestream {

/// A key's value. Names of enums are strings.
using ConfigValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>,
                                 std::vector<std::int64_t>, std::vector<double>, std::array<double, 2>>;

/// What a key takes.
enum class KeyKind {
  flag,      ///< true or false
  integer,   ///< a whole number within the bounds
  real,      ///< a number within the bounds
  text,      ///< a string
  choice,    ///< one of `choices`
  texts,     ///< a list of strings
  integers,  ///< a list of whole numbers, each within the bounds
  reals,     ///< a list of numbers, each within the bounds
  range,     ///< two numbers, the first below the second
};

/// One key of one section.
struct ConfigKey {
  std::string_view section;
  std::string_view name;
  KeyKind kind = KeyKind::text;
  std::string_view comment;              ///< meaning, unit, bounds, default, memory consequence
  std::span<const std::string> choices;  ///< of a `choice`
  std::string_view form;                 ///< what it takes, for messages; empty: what its kind does
  std::string_view empty_word;           ///< of a list: its value where it is empty, as a string; empty: [] is
  bool is_path = false;                  ///< says where something lies: stays out of files that are passed on
  bool of_machine = false;               ///< decides how results are made, not which
  bool comma_separated = false;          ///< a list whose elements hold no comma: "a,b" stands for it too
  double low = 0.0;                      ///< bounds, inclusive
  double high = 0.0;
  bool or_zero = false;  ///< 0 is a value, too, though it isn't within the bounds
  std::function<ConfigValue(const Config&)> get;
  std::function<void(Config&, const ConfigValue&)> set;  ///< the value has been checked
  /// What is wrong with a value of the right type and within the bounds; empty: nothing.
  std::function<std::string(const ConfigValue&)> check;

  std::string full_name() const { return std::string(section) + "." + std::string(name); }
};

/// All keys, section by section.
std::span<const ConfigKey> config_keys();

/// The key, or null.
const ConfigKey* find_key(std::string_view section, std::string_view name);

/// The names of all operators: "spectrum, identity, ...".
std::string operator_list();

/// Names and TOML values of a section's keys, as results record them: without paths and keys of the machine.
std::vector<std::pair<std::string, std::string>> settings_of_section(const Config& config, std::string_view section);

/// The names of the sections, in the order of `config_keys`.
std::span<const std::string> config_sections();

/// What is wrong with `value` as `key`'s, beginning with the key's full name; empty: nothing. The alternative that
/// `value` holds is the key's.
std::string complaint(const ConfigKey& key, const ConfigValue& value);

}  // namespace slidestream
