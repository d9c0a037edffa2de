#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// \file
/// The files that a network lies in.

namespace slidestream::networks {

/// Those besides its own that hold its weights, as it names them: relative to its folder, sorted, each once. Found in
/// the file's protocol buffers (onnx.proto: TensorProto.external_data) without loading what is large. Whatever ONNX
/// Runtime reads is found, groups and unknown fields passed over; where it is damaged, those in front of the damage
/// are, and ONNX Runtime refuses the file.
std::vector<std::string> weight_files(const std::filesystem::path& file);

/// The networks of volumes that `path` names: itself, or of a folder all files that end in .onnx, sorted by name.
/// \throws ConfigError naming a folder without one
std::vector<std::string> volume_networks(const std::string& path);

/// Wants a network's file and those that its weights lie in to be there, files, and these in its folder, as ONNX says
/// (TensorProto.external_data, `location`). \throws ConfigError naming the network's file and the cause.
void check_network_files(const std::string& file);

/// One of these, whole.
struct WeightFile {
  std::string name;  ///< as the network names it
  std::string bytes;
};

/// Reads them. \throws ConfigError naming one that can't be read.
std::vector<WeightFile> read_weight_files(const std::filesystem::path& file);

/// What the system says of a network's files. Where all is the same at two times, nobody wrote to them in between.
struct NetworkState {
  std::string written;  ///< numbers, sizes and times of the last writing, which who writes can put back
  std::string changed;  ///< times of the last change, which nobody can; a new name or other permissions are one, too

  bool operator==(const NetworkState&) const = default;
  NetworkState& operator+=(const NetworkState& other);
};

/// Of the network's file and of these.
NetworkState state_of_network(const std::filesystem::path& file);

/// A digest of the network's file and of these. \throws ConfigError as `check_network_files`, and naming one that can't
/// be read.
std::string content_of_network(const std::filesystem::path& file);

/// Bytes of all of them; those that aren't there count nothing.
std::uint64_t bytes_of_network(const std::filesystem::path& file);

}  // namespace slidestream::networks
