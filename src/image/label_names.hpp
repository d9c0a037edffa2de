#pragma once

#include <array>
#include <string_view>

/// \file
/// How images of this program say that they hold labels: the writer's and the reader's words.

namespace slidestream {

/// Namespace of the annotation in the OME-XML of images that this program wrote.
inline constexpr std::string_view own_annotation = "slidestream";

/// Names of the one channel of an image of labels.
inline constexpr const char* channel_of_classes = "classes";
inline constexpr const char* channel_of_labels = "labels";
inline constexpr const char* channel_of_mask = "tissue";
inline constexpr std::array<std::string_view, 3> label_channels = {channel_of_classes, channel_of_labels,
                                                                   channel_of_mask};

}  // namespace slidestream
