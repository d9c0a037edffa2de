#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <vector>

/// \file
/// Slides of several channels. One channel is read, as grey, and `OpenOptions::channel` says which: without it such a
/// slide is refused, so that no channel is lost without a word.

namespace slidestream {

/// What a slide has several of.
struct Channels {
  std::size_t count = 1;           ///< from 0 on; of planes in several depths or times all of them
  std::size_t held = 1;            ///< the first of them, which lie in this file
  std::vector<std::string> names;  ///< as many, or none
  bool rgb = false;                ///< red, green and blue are the first three, or the only channel's pixels
  bool are_planes = false;         ///< of several depths or times, so that a name alone doesn't tell the number
  /// Which ones lie in this file, in their order, where they aren't the first; then there are `held` of them.
  std::vector<std::size_t> numbers = {};
  std::map<std::size_t, std::string> elsewhere = {};  ///< other files, by the numbers of those that lie there
  bool is_unknown = false;  ///< which of them this file is: it is said that all lie in other files
};

/// A name, or its beginning: at most 64 bytes. Files may have names of any length.
std::string short_name(const std::string& name);

/// Names as a slide lists them: its own, or numbers.
std::vector<std::string> channel_names(const Channels& channels);

/// The numbers of those in this file, as `SlideInfo` has them.
std::optional<std::vector<std::size_t>> held_channels(const Channels& channels);

/// The number of the channel that is read: where any will do, of the first in this file. \throws SlideError where there
/// are several and `options.channel` is -1, or where it is none of those in this file, or these aren't known
std::size_t chosen_channel(const std::filesystem::path& path, const Channels& channels, const OpenOptions& options);

}  // namespace slidestream
