#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <string>
#include <utility>
#include <vector>

/// \file
/// The network of `tissue.model`.

namespace slidestream::networks {

/// The name that its content has among `tissue_network_settings`.
inline constexpr const char* tissue_content_key = "tissue.model's content";

/// Opens it, on the CPU, where masks have the same bits on every machine's GPUs or none. Its settings are those of
/// [model] in MODEL.toml beside it. The one that was opened last is kept, besides that of `[model]`. Null where
/// `tissue.model` is empty. Thread-safe. \return one that gives an image of one or two channels of uint16, or labels of
/// uint16, and whose tiles have a resolution \throws ConfigError in one line that begins with "tissue.model: "
std::shared_ptr<const Network> open_tissue_network(const Config& config);

/// Names and values of what the network is: its file's name without folders, its content, its settings, and what
/// computes it. Without `tissue.model` only the name, which is empty then. Doesn't open the network. Thread-safe.
/// \throws ConfigError as above
std::vector<std::pair<std::string, std::string>> tissue_network_settings(const Config& config);

}  // namespace slidestream::networks
