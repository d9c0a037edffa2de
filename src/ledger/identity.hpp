#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <slidestream/config.hpp>

namespace slidestream {

/// What tells a slide's file from another, or from itself after a change.
struct SlideIdentity {
  std::uint64_t size = 0;
  std::int64_t modified = 0;          ///< nanoseconds since 1970
  std::optional<std::uint64_t> hash;  ///< XXH64 of the content, where it was asked for

  bool same_file_state(const SlideIdentity& other) const noexcept {
    return size == other.size && modified == other.modified;
  }
};

/// Size and time of the file; nothing where it can't be looked at.
std::optional<SlideIdentity> look_at(const std::string& path);

/// Whether the file's content is another than it was: what `before` says against `now`. `policy` says when the content
/// itself is read, through `path`; it fills `now.hash` in then.
bool has_changed(const SlideIdentity& before, SlideIdentity& now, ContentHashPolicy policy, const std::string& path);

}  // namespace slidestream
