#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace slidestream::networks {

/// A network but for the values of its weights, as a text of bytes. Networks of one text load, and take as much memory,
/// alike. Weights are tensors of real numbers that only convolutions, products of matrices and normalisations use.
/// Other tensors may decide shapes, and are in the text. Nothing where the file is damaged, very large but for its
/// weights, or has other values than weights in other files. \throws ConfigError where it can't be opened
std::optional<std::string> graph_of_network(const std::filesystem::path& file);

}  // namespace slidestream::networks
