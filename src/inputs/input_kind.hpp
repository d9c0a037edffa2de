#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace slidestream {

/// What a run's inputs are.
enum class InputKind : std::uint8_t { slide, volume };

/// "slide" or "volume".
std::string name_of(InputKind kind);

/// Whether a path ends as the names of these files do, in any case. Volumes' end in .nii or .nii.gz.
bool is_named_as(InputKind kind, std::string_view path);

/// Those endings, for a message.
std::string suffixes_text(InputKind kind);

}  // namespace slidestream
