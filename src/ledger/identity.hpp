#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <slidestream/config.hpp>

namespace slidestream {

/// What tells a slide's file from another, or from itself after a change.
struct SlideIdentity {
  std::uint64_t size = 0;  ///< bytes, of all files of the slide
  /// Nanoseconds since 1970; of a slide of several files, a digest of their names, sizes and times.
  std::int64_t modified = 0;
  std::optional<std::uint64_t> hash;  ///< XXH64 of the content, where it was asked for
  std::optional<std::uint64_t> side;  ///< of what is read besides the file (`SideInputs`)

  /// Whether file and side inputs are the same, as far as size and time tell it of the file.
  bool same_state(const SlideIdentity& other) const noexcept {
    return size == other.size && modified == other.modified && side == other.side;
  }
};

/// Size and time of the slide's files; nothing where one of them can't be looked at. \throws DescriptorError when none
/// is to be had for some seconds: which files the slide has can't be said then
std::optional<SlideIdentity> look_at(const std::string& path);

/// XXH64 of the content of the slide's files; nothing where one of them can't be read.
/// \throws DescriptorError as `look_at` does
std::optional<std::uint64_t> content_of(const std::string& path);

/// Whether the file's content is another than it was, or what is read besides it: what `before` says against `now`.
/// `policy` says when the file's content itself is read, through `path`; it fills `now.hash` in then.
bool has_changed(const SlideIdentity& before, SlideIdentity& now, ContentHashPolicy policy, const std::string& path);

}  // namespace slidestream
