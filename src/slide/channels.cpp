#include "slide/channels.hpp"

#include <algorithm>

#include "slide/file.hpp"

namespace slidestream {
namespace {

constexpr std::size_t most_named = 8;

/// " (DAPI, FITC)", " (0: DAPI, z 0; 1: DAPI, z 1)", or nothing.
std::string names_text(const Channels& channels) {
  std::string text;
  for (std::size_t i = 0; i < std::min(channels.names.size(), most_named); ++i) {
    if (i > 0) text += channels.are_planes ? "; " : ", ";
    if (channels.are_planes) text += std::to_string(i) + ": ";
    text += short_name(channels.names[i]);
  }
  if (text.empty()) return text;
  const char* more = channels.are_planes ? "; ..." : ", ...";
  return " (" + text + (channels.names.size() > most_named ? more : "") + ")";
}

/// "0 to 2", or "1, 3".
std::string range_text(const Channels& channels) {
  if (channels.numbers.empty()) return channels.held == 1 ? "0" : "0 to " + std::to_string(channels.held - 1);
  std::string text;
  for (std::size_t i = 0; i < std::min(channels.numbers.size(), most_named); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(channels.numbers[i]);
  }
  return text + (channels.numbers.size() > most_named ? ", ..." : "");
}

bool is_held(const Channels& channels, std::size_t number) {
  if (channels.is_unknown) return false;
  if (channels.numbers.empty()) return number < channels.held;
  return std::ranges::find(channels.numbers, number) != channels.numbers.end();
}

/// "0 lies in a.tif, 2 in c.tif", or nothing where no other file is known.
std::string elsewhere_text(const Channels& channels) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [number, file] : channels.elsewhere) {
    if (is_held(channels, number)) continue;
    if (named == most_named) return text + ", ...";
    text += (named == 0 ? "" : ", ") + std::to_string(number) + (named == 0 ? " lies in " : " in ") + file;
    ++named;
  }
  return text;
}

/// ", of which the file holds 1, and 0 lies in a.tif, 2 in c.tif", or nothing where it holds all.
std::string held_text(const Channels& channels) {
  if (channels.held == channels.count) return {};
  std::string text = ", of which the file holds ";
  if (!channels.numbers.empty()) {
    text += range_text(channels);
  } else {
    text += "the first" + (channels.held == 1 ? "" : " " + std::to_string(channels.held));
  }
  const std::string elsewhere = elsewhere_text(channels);
  return elsewhere.empty() ? text : text + ", and " + elsewhere;
}

}  // namespace

std::string short_name(const std::string& name) {
  constexpr std::size_t most_bytes = 64;
  if (name.size() <= most_bytes) return name;
  std::size_t end = most_bytes - 3;
  // Not within a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "...";
}

std::vector<std::string> channel_names(const Channels& channels) {
  if (channels.count == 1 || channels.names.size() == channels.count) return channels.names;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < channels.count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::optional<std::vector<std::size_t>> held_channels(const Channels& channels) {
  if (channels.is_unknown) return std::vector<std::size_t>();
  if (channels.held == channels.count) return std::nullopt;
  std::vector<std::size_t> held = channels.numbers;
  for (std::size_t i = held.size(); i < channels.held; ++i) held.push_back(i);
  return held;
}

std::size_t chosen_channel(const std::filesystem::path& path, const Channels& channels, const OpenOptions& options) {
  const std::string several = std::to_string(channels.count) + " channels" + names_text(channels);
  const std::string held = held_text(channels);
  const std::string key = options.channel_name;
  if (options.channel == OpenOptions::any_channel) return channels.numbers.empty() ? 0 : channels.numbers.front();
  if (channels.is_unknown) {
    const std::string files = elsewhere_text(channels);
    throw_slide_error(path, "has " + several + ", which lie in other files by its OME-XML" +
                                (files.empty() ? "" : " (" + files + ")") +
                                ", and which of them this file is isn't known");
  }
  if (options.channel < 0) {
    if (channels.count == 1) return 0;
    throw_slide_error(path, "has " + several +
                                (channels.rgb && channels.held > 1 ? ", the first three of them RGB" : "") + held +
                                "; set " + key + " to choose one, " + range_text(channels));
  }
  const auto chosen = static_cast<std::size_t>(options.channel);
  if (channels.count == 1 && channels.rgb) {
    throw_slide_error(path, key + " is " + std::to_string(options.channel) + ", but its pixels are RGB; leave it out");
  }
  if (is_held(channels, chosen)) return chosen;
  if (const auto file = channels.elsewhere.find(chosen); file != channels.elsewhere.end()) {
    throw_slide_error(path, key + " is " + std::to_string(options.channel) + ", which lies in " + file->second +
                                "; this file holds " + range_text(channels));
  }
  throw_slide_error(path, key + " is " + std::to_string(options.channel) + "; it has " +
                              (channels.count == 1 ? std::string("one channel, 0") : several + held));
}

}  // namespace slidestream
