#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <string>

/// \file
/// Networks in ONNX files, run by ONNX Runtime.

namespace slidestream::networks {

/// What a network is for.
enum class NetworkRole {
  model,   ///< the operator `model`; batches have 16 tiles where nothing else is said
  tissue,  ///< `tissue.model`; batches have one tile then, as one thread computes them
};

/// What `[model]` describes, its open settings filled in by the network's own shapes, which are held against those that
/// are set. The network of a role that was opened last is kept, so that asking again for it costs nothing.
/// \throws ConfigError in one line: no file, no library, a file that the library doesn't take, shapes that don't fit.
std::shared_ptr<const Network> open_network(const Config& config, NetworkRole role = NetworkRole::model);

/// What computes it, as it stands among the settings that decide results: "ONNX Runtime 1.32.0, CPU". Loads the
/// library, not the network. \throws ConfigError.
std::string computed_by(const Config& config);

}  // namespace slidestream::networks
