#include <toml++/toml.h>
#include <algorithm>
#include <optional>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>

#include "config/keys.hpp"
#include "config/operator_files.hpp"
#include "config/positive_number.hpp"
#include "config/read_file.hpp"
#include "config/suggest.hpp"
#include "config/toml_text.hpp"

namespace slidestream {

namespace {

/// Both far above any configuration.
constexpr std::size_t largest_text = std::size_t{16} << 20;
constexpr std::size_t most_dots = 4096;

/// Where something stands, for errors: "file:line".
struct Place {
  std::string origin;
  std::size_t line = 0;  ///< 0: no lines (a setting from the command line)

  std::string text() const { return line == 0 ? origin : origin + ":" + std::to_string(line); }
};

[[noreturn]] void fail(const Place& place, const std::string& what) { throw ConfigError(place.text() + ": " + what); }

const char* kind_text(KeyKind kind) {
  switch (kind) {
    case KeyKind::flag:
      return "true or false";
    case KeyKind::integer:
      return "a whole number";
    case KeyKind::real:
      return "a number";
    case KeyKind::text:
      return "a string";
    case KeyKind::choice:
      return "a string";
    case KeyKind::texts:
      return "a list of strings";
    case KeyKind::integers:
      return "a list of whole numbers";
    case KeyKind::reals:
      return "a list of numbers";
    case KeyKind::range:
      return "two numbers, such as [0.0, 150.0]";
  }
  return "something else";
}

/// What a key takes.
std::string form_text(const ConfigKey& key) {
  return key.form.empty() ? std::string(kind_text(key.kind)) : std::string(key.form);
}

const char* type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date or time";
    case toml::node_type::none:
      break;
  }
  return "nothing";
}

std::optional<double> number_of(const toml::node& node) {
  if (const auto* integer = node.as_integer()) return static_cast<double>(integer->get());
  if (const auto* real = node.as_floating_point()) return real->get();
  return std::nullopt;
}

template <class Element, class Toml>
std::optional<ConfigValue> list_of(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::vector<Element> elements;
  for (const toml::node& item : *list) {
    const auto* value = item.as<Toml>();
    if (value == nullptr) return std::nullopt;
    elements.push_back(value->get());
  }
  return ConfigValue(std::move(elements));
}

std::optional<ConfigValue> numbers_of(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return std::nullopt;
  std::vector<double> numbers;
  for (const toml::node& item : *list) {
    const auto number = number_of(item);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return ConfigValue(std::move(numbers));
}

std::optional<ConfigValue> range_of(const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr || list->size() != 2) return std::nullopt;
  const auto low = number_of((*list)[0]);
  const auto high = number_of((*list)[1]);
  if (!low || !high) return std::nullopt;
  return ConfigValue(std::array<double, 2>{*low, *high});
}

/// The node as the type that `kind` takes; nothing when it is another.
std::optional<ConfigValue> value_of(KeyKind kind, const toml::node& node) {
  switch (kind) {
    case KeyKind::flag:
      if (const auto* flag = node.as_boolean()) return ConfigValue(flag->get());
      return std::nullopt;
    case KeyKind::integer:
      if (const auto* integer = node.as_integer()) return ConfigValue(integer->get());
      return std::nullopt;
    case KeyKind::real:
      if (const auto number = number_of(node)) return ConfigValue(*number);
      return std::nullopt;
    case KeyKind::text:
    case KeyKind::choice:
      if (const auto* text = node.as_string()) return ConfigValue(text->get());
      return std::nullopt;
    case KeyKind::texts:
      if (const auto* text = node.as_string()) return ConfigValue(std::vector<std::string>{text->get()});
      return list_of<std::string, std::string>(node);
    case KeyKind::integers:
      return list_of<std::int64_t, std::int64_t>(node);
    case KeyKind::reals:
      return numbers_of(node);
    case KeyKind::range:
      return range_of(node);
  }
  return std::nullopt;
}

/// A list with each element cut at its commas.
ConfigValue separated(const ConfigValue& value) {
  std::vector<std::string> parts;
  for (const std::string& element : std::get<std::vector<std::string>>(value)) {
    std::string_view left = element;
    while (true) {
      const auto comma = left.find(',');
      parts.emplace_back(trimmed(left.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      left.remove_prefix(comma + 1);
    }
  }
  return ConfigValue(std::move(parts));
}

void assign(Config& config, const ConfigKey& key, const ConfigValue& value, const Place& place) {
  const ConfigValue parts = key.comma_separated ? separated(value) : value;
  const std::string what = complaint(key, parts);
  if (!what.empty()) fail(place, what);
  key.set(config, parts);
}

void assign(Config& config, const ConfigKey& key, const toml::node& node, const Place& place) {
  const bool is_word = !key.empty_word.empty() && node.value<std::string_view>() == key.empty_word;
  const auto value = is_word ? ConfigValue(std::string(key.empty_word)) : value_of(key.kind, node);
  if (!value) {
    const bool right_list = node.is_array() && key.kind >= KeyKind::texts;
    fail(place, key.full_name() + " must be " + form_text(key) +
                    (right_list ? std::string() : std::string(", not ") + type_text(node)));
  }
  assign(config, key, *value, place);
}

/// The key whose name is nearest, in any section.
const ConfigKey& nearest_key(std::string_view name) {
  return *std::ranges::min_element(config_keys(), {},
                                   [&](const ConfigKey& key) { return edit_distance(name, key.name); });
}

/// The same for a name that may be "section.key" with both misspelt, or a key alone.
std::string nearest_full_name(std::string_view name) {
  if (name.find('.') == std::string_view::npos) return nearest_key(name).full_name();
  std::vector<std::string> names;
  for (const ConfigKey& key : config_keys()) names.push_back(key.full_name());
  return nearest_name(name, names);
}

/// The key that may have been meant by a name that `section` doesn't have: one of the section that begins with it or is
/// like it, or one of another section that is all but it. Null: none.
const ConfigKey* likely_key(std::string_view section, std::string_view name) {
  constexpr std::size_t least_beginning = 3;  // characters
  if (name.size() >= least_beginning) {
    const auto longer = std::ranges::find_if(config_keys(), [&](const ConfigKey& key) {
      return key.section == section && std::string_view(key.name).starts_with(name);
    });
    if (longer != config_keys().end()) return &*longer;
  }
  const ConfigKey* likely = nullptr;
  int least = 0;
  for (const ConfigKey& key : config_keys()) {
    const int distance = edit_distance(name, key.name);
    const bool own = key.section == section;
    if (own ? 2 * distance > static_cast<int>(std::max(name.size(), key.name.size())) : distance > 1) continue;
    const int cost = 2 * distance + (own ? 0 : 3);
    if (likely != nullptr && cost >= least) continue;
    likely = &key;
    least = cost;
  }
  return likely;
}

bool is_section(std::string_view name) {
  for (const std::string& section : config_sections()) {
    if (section == name) return true;
  }
  return false;
}

[[noreturn]] void unknown_section(std::string_view name, const toml::node& node, const Place& place) {
  if (node.is_table()) {
    fail(place, "unknown section '" + one_line(name) + "'" + did_you_mean(name, config_sections()));
  }
  fail(place, "key '" + one_line(name) + "' stands outside a section" + did_you_mean(nearest_key(name).full_name()));
}

/// Keys that decide nothing any more: files and ledgers of earlier versions have them.
bool is_retired(std::string_view section, std::string_view name) {
  return section == "analysis" && name == "fftw_wisdom";
}

void read_section(Config& config, std::string_view section, const toml::table& table, std::string_view origin) {
  for (const auto& [key, node] : table) {
    const Place place{std::string(origin), key.source().begin.line};
    const ConfigKey* known = find_key(section, key.str());
    if (known == nullptr && is_retired(section, key.str())) continue;
    if (known == nullptr) {
      const std::string what = "unknown key '" + one_line(key.str()) + "' in [" + std::string(section) + "]";
      const ConfigKey* meant = likely_key(section, key.str());
      if (meant == nullptr) fail(place, what);
      fail(place, what + did_you_mean(meant->section == section ? std::string(meant->name) : meant->full_name()));
    }
    assign(config, *known, node, place);
  }
}

/// Index of the last byte of the TOML string that begins at `begin`.
std::size_t end_of_string(std::string_view text, std::size_t begin) {
  const char quote = text[begin];
  const std::string triple(3, quote);
  const bool several_lines = text.substr(begin, 3) == triple;
  for (std::size_t i = begin + (several_lines ? 3 : 1); i < text.size(); ++i) {
    if (text[i] == '\\' && quote == '"') {
      ++i;
    } else if (several_lines ? text.substr(i, 3) == triple : text[i] == quote || text[i] == '\n') {
      if (!several_lines) return i;
      // One or two quotes more belong to the string's content.
      i += 2;
      for (int more = 0; more < 2 && i + 1 < text.size() && text[i + 1] == quote; ++more) ++i;
      return i;
    }
  }
  return text.size();
}

toml::table parse_toml(std::string_view text, std::string_view origin) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    fail({std::string(origin), error.source().begin.line}, one_line(error.description()));
  }
}

/// A value from the command line: bare words stand for strings, and one element for a list.
ConfigValue setting_value(const ConfigKey& key, std::string_view text, const Place& place) {
  if (!key.empty_word.empty() && (text == key.empty_word || text == '"' + std::string(key.empty_word) + '"')) {
    return ConfigValue(std::string(key.empty_word));
  }
  const bool takes_text = key.kind == KeyKind::text || key.kind == KeyKind::choice || key.kind == KeyKind::texts;
  const bool bare = text.empty() || (text.front() != '"' && text.front() != '\'' && text.front() != '[');
  if (takes_text && (bare || (key.kind != KeyKind::texts && text.front() == '['))) {
    if (key.kind == KeyKind::texts) return ConfigValue(std::vector<std::string>{std::string(text)});
    return ConfigValue(std::string(text));
  }
  refuse_deep_keys(text, place.origin);
  toml::table table;
  try {
    table = toml::parse("value = " + std::string(text));
  } catch (const toml::parse_error& error) {
    const std::string what = key.full_name() + " must be " + form_text(key);
    // A word in place of a number is an error of TOML's grammar: what the grammar wanted there tells nothing.
    fail(place, takes_text ? what + ": " + one_line(error.description()) : what + ", not '" + one_line(text) + "'");
  }
  const toml::node* node = table.get("value");
  if (node == nullptr || table.size() != 1) fail(place, "more than one value");
  if (const auto value = value_of(key.kind, *node)) return *value;
  if (key.kind == KeyKind::integers && node->is_integer()) {
    return ConfigValue(std::vector<std::int64_t>{node->as_integer()->get()});
  }
  fail(place, key.full_name() + " must be " + form_text(key) + ", not " + type_text(*node));
}

}  // namespace

void refuse_deep_keys(std::string_view text, const std::string& origin) {
  std::size_t dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '.') ++dots;
    if (text[i] == '#')
      i = std::min(text.find('\n', i), text.size());
    else if (text[i] == '"' || text[i] == '\'')
      i = end_of_string(text, i);
  }
  if (dots > most_dots) throw ConfigError(origin + ": more than " + std::to_string(most_dots) + " dots in keys");
}

Config parse_config(std::string_view toml, std::string_view origin) {
  refuse_deep_keys(toml, std::string(origin));
  const toml::table root = parse_toml(toml, origin);
  Config config;
  for (const auto& [key, node] : root) {
    const toml::table* table = node.as_table();
    const Place place{std::string(origin), key.source().begin.line};
    if (!is_section(key.str())) unknown_section(key.str(), node, place);
    if (table == nullptr) {
      fail(place, "'" + std::string(key.str()) + "' is a section, [" + std::string(key.str()) + "], not a key");
    }
    read_section(config, key.str(), *table, origin);
  }
  return config;
}

Config load_config(const std::filesystem::path& file) {
  return parse_config(read_file(file, largest_text, FileOrigin::given_or_pipe), file.string());
}

std::filesystem::path outlines_beside(const std::filesystem::path& slide) {
  return std::filesystem::path(slide).replace_extension(".geojson");
}

void read_model_file(Config& config) {
  if (!config.operators.runs("model") || config.model.network || config.model.file.empty()) return;
  const std::filesystem::path file = std::filesystem::path(config.model.file).replace_extension(".toml");
  std::error_code code;
  // A link that leads nowhere isn't no file.
  if (file == config.model.file || !std::filesystem::exists(std::filesystem::symlink_status(file, code))) return;
  // Nobody gave its name: a pipe in its place isn't waited for, wherever it is.
  const Config beside = parse_config(read_file(file, largest_text, FileOrigin::given), file.string());
  const Config defaults;
  for (const ConfigKey& key : config_keys()) {
    const ConfigValue value = key.get(beside);
    if (value == key.get(defaults)) continue;
    const bool of_machine = key.is_path || key.of_machine;
    if (key.section != "model" || of_machine) {
      throw ConfigError(file.string() + ": " + key.full_name() +
                        " can't stand beside a model, which has settings of [model] alone" +
                        (key.section == "model" ? " that are the same on every machine" : ""));
    }
    if (key.get(config) == key.get(defaults)) key.set(config, value);
  }
}

void apply_setting(Config& config, std::string_view assignment) {
  const Place place{"setting '" + one_line(assignment) + "'"};
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos) fail(place, "expected section.key=value");
  const std::string_view full = trimmed(assignment.substr(0, equals));
  const auto dot = full.find('.');
  const std::string_view section = full.substr(0, dot);
  const std::string_view name = dot == std::string_view::npos ? std::string_view() : full.substr(dot + 1);
  const ConfigKey* key = find_key(section, name);
  if (key == nullptr) {
    const std::string what = "unknown key '" + one_line(full) + "'";
    if (!is_section(section)) fail(place, what + did_you_mean(nearest_full_name(full)));
    const ConfigKey* meant = likely_key(section, name);
    fail(place, meant == nullptr ? what : what + did_you_mean(meant->full_name()));
  }
  assign(config, *key, setting_value(*key, trimmed(assignment.substr(equals + 1)), place), place);
}

void resolve_image_format(Config& config) {
  if (config.image.format != ImageFormat::automatic) return;
  // A network's features are no image; what it gives isn't known yet, and to have a format then changes nothing.
  if (std::ranges::any_of(config.operators.run, may_make_image)) config.image.format = ImageFormat::ome_tiff;
}

void validate(const Config& config) {
  for (const ConfigKey& key : config_keys()) {
    const std::string what = complaint(key, key.get(config));
    if (!what.empty()) throw ConfigError(what);
  }
  if (config.pipeline.backend == Backend::cpu && config.decode.device == DecodeDevice::gpu) {
    throw ConfigError("decode.device is gpu, but pipeline.backend is cpu");
  }
  const TissueConfig& tissue = config.tissue;
  if (tissue.model.empty()) return;
  const auto refuse = [](const char* key) {
    throw ConfigError(std::string(key) + " can't stand beside tissue.model, whose network finds tissue in its place");
  };
  if (tissue.source == TissueSource::geojson) refuse("tissue.source = \"geojson\"");
  if (tissue.method != TissueMethod::automatic) refuse("tissue.method");
  if (tissue.threshold != 0) refuse("tissue.threshold");
}

std::string to_toml(const Config& config) {
  std::string text;
  std::string_view section;
  for (const ConfigKey& key : config_keys()) {
    if (key.section != section) {
      text += (section.empty() ? "[" : "\n[") + std::string(key.section) + "]\n";
      section = key.section;
    }
    text += wrapped(key.comment, "# ", 100);
    text += std::string(key.name) + " = " + to_toml_value(key.get(config)) + "\n";
  }
  return text;
}

}  // namespace slidestream
