#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "config/keys.hpp"

/// \file
/// Keys of the usual kinds: where their values are in `Config`, and what is said of them.

namespace slidestream {

template <class Section, class Number>
ConfigKey integer(std::string_view section, std::string_view name, Section Config::*part, Number Section::*member,
                  std::int64_t low, std::int64_t high, std::string_view comment) {
  ConfigKey key;
  key.section = section;
  key.name = name;
  key.kind = KeyKind::integer;
  key.comment = comment;
  key.low = static_cast<double>(low);
  key.high = static_cast<double>(high);
  key.get = [=](const Config& config) { return ConfigValue(static_cast<std::int64_t>(config.*part.*member)); };
  key.set = [=](Config& config, const ConfigValue& value) {
    config.*part.*member = static_cast<Number>(std::get<std::int64_t>(value));
  };
  return key;
}

template <class Section>
ConfigKey real(std::string_view section, std::string_view name, Section Config::*part, double Section::*member,
               double low, double high, std::string_view comment) {
  ConfigKey key;
  key.section = section;
  key.name = name;
  key.kind = KeyKind::real;
  key.comment = comment;
  key.low = low;
  key.high = high;
  key.get = [=](const Config& config) { return ConfigValue(config.*part.*member); };
  key.set = [=](Config& config, const ConfigValue& value) { config.*part.*member = std::get<double>(value); };
  return key;
}

/// Nothing between -1, which stands for something else, and 0.
inline ConfigKey or_minus_one(ConfigKey key) {
  key.check = [](const ConfigValue& value) {
    const double number = std::get<double>(value);
    return number == -1.0 || number >= 0.0 ? std::string() : std::string("must be -1, or 0 or more");
  };
  return key;
}

/// Strings and lists: the member's type is the value's.
template <class Section, class Member>
ConfigKey plain(std::string_view section, std::string_view name, KeyKind kind, Section Config::*part,
                Member Section::*member, std::string_view comment) {
  ConfigKey key;
  key.section = section;
  key.name = name;
  key.kind = kind;
  key.comment = comment;
  key.get = [=](const Config& config) { return ConfigValue(config.*part.*member); };
  key.set = [=](Config& config, const ConfigValue& value) { config.*part.*member = std::get<Member>(value); };
  return key;
}

template <class Section>
ConfigKey flag(std::string_view section, std::string_view name, Section Config::*part, bool Section::*member,
               std::string_view comment) {
  return plain(section, name, KeyKind::flag, part, member, comment);
}

template <class Section>
ConfigKey path(std::string_view section, std::string_view name, Section Config::*part, std::string Section::*member,
               std::string_view comment) {
  ConfigKey key = plain(section, name, KeyKind::text, part, member, comment);
  key.is_path = true;
  return key;
}

/// `names` in the order of the enum's values.
template <class Section, class Enum>
ConfigKey choice(std::string_view section, std::string_view name, Section Config::*part, Enum Section::*member,
                 std::span<const std::string> names, std::string_view comment) {
  ConfigKey key;
  key.section = section;
  key.name = name;
  key.kind = KeyKind::choice;
  key.comment = comment;
  key.choices = names;
  key.get = [=](const Config& config) {
    const auto index = static_cast<std::size_t>(config.*part.*member);
    return ConfigValue(index < names.size() ? names[index] : std::to_string(index));
  };
  key.set = [=](Config& config, const ConfigValue& value) {
    const auto found = std::ranges::find(names, std::get<std::string>(value));
    config.*part.*member = static_cast<Enum>(found - names.begin());
  };
  return key;
}

/// A key that decides how results are made, not which.
inline ConfigKey of_machine(ConfigKey key) {
  key.of_machine = true;
  return key;
}

/// Micrometres per pixel, or 0 where they aren't set.
template <class Section>
ConfigKey micrometres(std::string_view section, std::string_view name, Section Config::*part, double Section::*member,
                      std::string_view comment) {
  ConfigKey key = real(section, name, part, member, 0.001, 1000.0, comment);
  key.or_zero = true;
  return key;
}

}  // namespace slidestream
