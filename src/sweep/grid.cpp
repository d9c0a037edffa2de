#include "sweep/grid.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <slidestream/error.hpp>
#include <utility>

#include "config/suggest.hpp"
#include "config/toml_text.hpp"

namespace slidestream {

namespace {

constexpr std::size_t most_combinations = 10'000;

std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

bool names_a_place(const ConfigKey& key) {
  return key.full_name() == "input.slides" || key.full_name() == "output.dir";
}

const ConfigKey* key_named(const std::string& name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string::npos) return nullptr;
  return find_key(std::string_view(name).substr(0, dot), std::string_view(name).substr(dot + 1));
}

std::string short_name(const std::string& key) { return key.substr(key.find('.') + 1); }

bool same(const Config& a, const Config& b) {
  return std::ranges::all_of(sweep_keys(),
                             [&](const ConfigKey* key) { return plain_value(*key, a) == plain_value(*key, b); });
}

}  // namespace

SweepAxis parse_axis(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) {
    throw ConfigError("--over '" + one_line(text) + "': expected SECTION.KEY=VALUE,VALUE,...");
  }
  SweepAxis axis{text.substr(0, equals), split_values(text.substr(equals + 1))};
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    Config config;
    apply_setting(config, axis.key + "=" + value);
    const ConfigKey& key = *key_named(axis.key);
    if (names_a_place(key)) throw ConfigError("--over: " + axis.key + " is a place, and can't be swept");
    if (!seen.insert(plain_value(key, config)).second) {
      throw ConfigError("--over: " + axis.key + " has the value " + one_line(value) + " twice");
    }
  }
  return axis;
}

std::string plain_value(const ConfigKey& key, const Config& config) {
  const ConfigValue value = key.get(config);
  if (const auto* text = std::get_if<std::string>(&value)) return one_line(*text);
  return to_toml_value(value);
}

std::vector<const ConfigKey*> sweep_keys() {
  std::vector<const ConfigKey*> keys;
  for (const ConfigKey& key : config_keys()) {
    if (!names_a_place(key)) keys.push_back(&key);
  }
  return keys;
}

std::vector<Combination> make_grid(const Config& base, const std::vector<SweepAxis>& axes) {
  std::size_t count = 1;
  std::set<std::string> keys;
  for (const SweepAxis& axis : axes) {
    if (!keys.insert(axis.key).second) throw ConfigError("--over names " + axis.key + " twice");
    count *= axis.values.size();
    if (count > most_combinations) {
      throw ConfigError("--over: more than " + std::to_string(most_combinations) + " combinations");
    }
  }
  std::vector<Combination> grid;
  for (std::size_t i = 0; i < count; ++i) {
    Combination combination;
    combination.config = base;
    std::size_t rest = i;
    std::vector<std::string> names;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const std::string& value = axis->values[rest % axis->values.size()];
      rest /= axis->values.size();
      apply_setting(combination.config, axis->key + "=" + value);
      names.push_back(short_name(axis->key) + "=" + value);
    }
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      combination.name += (combination.name.empty() ? "" : " ") + *name;
    }
    combination.is_base = same(combination.config, base);
    grid.push_back(std::move(combination));
  }
  if (std::ranges::none_of(grid, &Combination::is_base)) grid.insert(grid.begin(), {base, true, "base"});
  return grid;
}

std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  // The generator's numbers are the standard's; those of its distributions and of std::shuffle are each library's.
  std::mt19937_64 generator(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[generator() % i]);
  return order;
}

}  // namespace slidestream
