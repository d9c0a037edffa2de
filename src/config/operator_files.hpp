#pragma once

#include <algorithm>
#include <array>
#include <slidestream/config.hpp>
#include <string_view>

/// \file
/// What the operators write into the folder `images`: an image in `image.format`, or other files.

namespace slidestream {

enum class FilesInImages {
  none,
  image,             ///< an image in `image.format`
  image_by_network,  ///< likewise, unless the network gives vectors
  others,            ///< files in formats of their own, whatever `image.format` is
};

struct OperatorFiles {
  std::string_view name;
  FilesInImages files = FilesInImages::none;
};

/// One line an operator, in the order of `operator_names`.
inline constexpr std::array operator_files = {
    OperatorFiles{"spectrum", FilesInImages::none},
    OperatorFiles{"identity", FilesInImages::image},
    OperatorFiles{"sobel", FilesInImages::image},
    OperatorFiles{"gaussian", FilesInImages::image},
    OperatorFiles{"stain", FilesInImages::image},
    OperatorFiles{"tissue", FilesInImages::others},
    OperatorFiles{"model", FilesInImages::image_by_network},
};
static_assert(std::ranges::equal(operator_files, operator_names, {}, &OperatorFiles::name),
              "operator_files and operator_names differ");

/// None for what isn't an operator's name.
constexpr FilesInImages files_in_images(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(operator_files, name, &OperatorFiles::name);
  return found == operator_files.end() ? FilesInImages::none : found->files;
}

/// Whether an operator makes an image in `image.format`, or its network may.
constexpr bool may_make_image(std::string_view name) noexcept {
  const FilesInImages files = files_in_images(name);
  return files == FilesInImages::image || files == FilesInImages::image_by_network;
}

/// Whether an operator writes into `images`, as far as that is known before a network is loaded.
inline bool surely_writes_into_images(std::string_view name, const ModelConfig& model) noexcept {
  const FilesInImages files = files_in_images(name);
  if (files != FilesInImages::image_by_network) return files != FilesInImages::none;
  return model.output != ModelOutput::automatic && model.output != ModelOutput::vector;
}

}  // namespace slidestream
