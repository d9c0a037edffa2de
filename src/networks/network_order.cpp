#include "networks/network_order.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <map>
#include <set>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>

#include "config/suggest.hpp"

namespace slidestream::networks {
namespace {

/// A number of any length: its digits without leading zeros.
struct Number {
  std::string text;

  bool operator==(const Number&) const = default;
  std::strong_ordering operator<=>(const Number& other) const {
    const auto by_length = text.size() <=> other.text.size();
    return std::is_neq(by_length) ? by_length : text <=> other.text;
  }
};

struct Named {
  std::vector<Number> numbers;
  std::string plain;  ///< the name with its numbers without leading zeros
  std::string name;

  // clang-tidy 14 sees a 0 in what the compiler makes.
  auto operator<=>(const Named&) const = default;  // NOLINT(modernize-use-nullptr)
};

Named named(const std::string& name) {
  constexpr std::string_view digits = "0123456789";
  Named found;
  found.name = name;
  std::size_t at = 0;
  while (at < name.size()) {
    const std::size_t begin = std::min(name.find_first_of(digits, at), name.size());
    found.plain += name.substr(at, begin - at);
    at = std::min(name.find_first_not_of(digits, begin), name.size());
    if (begin == at) break;
    const std::size_t first = std::min(name.find_first_not_of('0', begin), at - 1);
    found.numbers.push_back({name.substr(first, at - first)});
    found.plain += found.numbers.back().text;
  }
  return found;
}

/// Which numbers tell networks apart: of those that differ among the names the first ones, as many as that takes.
std::vector<std::size_t> telling_places(const std::vector<Named>& networks) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < networks.front().numbers.size(); ++place) {
    const auto is_as_first = [&](const Named& network) {
      return network.numbers[place] == networks.front().numbers[place];
    };
    if (std::ranges::all_of(networks, is_as_first)) continue;
    places.push_back(place);
    std::set<std::vector<Number>> different;
    for (const Named& network : networks) {
      std::vector<Number> told;
      told.reserve(places.size());
      for (const std::size_t i : places) told.push_back(network.numbers[i]);
      different.insert(std::move(told));
    }
    if (different.size() == networks.size()) break;
  }
  return places;
}

/// \throws ConfigError where the numbers that tell networks apart don't count from 0 or 1 without a gap
void check_numbers(const std::string& folder, const std::vector<Named>& networks) {
  std::size_t combinations = 1;
  std::string sides;
  for (const std::size_t place : telling_places(networks)) {
    std::map<Number, std::string> values;
    for (const Named& network : networks) values.try_emplace(network.numbers[place], network.name);
    const std::size_t first = values.begin()->first.text == "0" ? 0 : 1;
    std::size_t next = first;
    for (const auto& [number, name] : values) {
      if (number.text == std::to_string(next++)) continue;
      const std::string missing = next - 1 == first ? "0 or 1" : std::to_string(next - 1);
      throw ConfigError(folder + ": no network has the number " + missing + ", and " + one_line(name) +
                        " comes next; expected one for each fragment, counted from 0 or 1");
    }
    combinations *= values.size();
    sides += (sides.empty() ? "" : " x ") + std::to_string(values.size());
  }
  if (combinations == networks.size()) return;
  throw ConfigError(folder + ": " + std::to_string(networks.size()) + " networks, and the numbers in their names are " +
                    "those of " + sides + "; expected one for each fragment");
}

}  // namespace

std::vector<std::string> in_order(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<Named> networks;
  networks.reserve(names.size());
  for (const std::string& name : names) networks.push_back(named(name));
  std::ranges::sort(networks);
  for (std::size_t i = 1; i < networks.size(); ++i) {
    const Named& one = networks[i - 1];
    const Named& other = networks[i];
    if (one.numbers.size() == other.numbers.size()) continue;
    throw ConfigError(folder + ": " + one_line(one.name) + " and " + one_line(other.name) +
                      " don't have as many numbers in their names, which order the networks of fragments");
  }
  const bool are_told_apart = networks.size() > 1 && networks.front().numbers != networks.back().numbers;
  for (std::size_t i = 1; i < networks.size(); ++i) {
    const Named& one = networks[i - 1];
    const Named& other = networks[i];
    if (are_told_apart ? one.numbers != other.numbers : one.plain != other.plain) continue;
    throw ConfigError(folder + ": " + one_line(one.name) + " and " + one_line(other.name) +
                      " have the same numbers in their names, which order the networks of fragments");
  }
  if (are_told_apart) check_numbers(folder, networks);
  std::vector<std::string> ordered;
  ordered.reserve(networks.size());
  for (Named& network : networks) ordered.push_back(std::move(network.name));
  return ordered;
}

}  // namespace slidestream::networks
