#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sink/file_calls.hpp"

/// \file
/// The files that a network lies in.

namespace slidestream::networks {

/// A network's own file, or one that its weights lie in, open to be read while this lives: the same one, whatever
/// stands in its place by now. A FIFO or a device there is refused, and nobody waits for it.
class NetworkFile {
 public:
  /// \throws ConfigError naming the file and the cause
  explicit NetworkFile(const std::filesystem::path& file);

  /// Bytes at opening.
  std::uint64_t size() const noexcept { return size_; }
  /// Fills `bytes` from byte `at`. False where the file ends before, or can't be read.
  bool read(std::uint64_t at, std::string& bytes) const noexcept;
  /// What a library of this process opens this very file by.
  std::string open_name() const;

 private:
  OpenFile open_;
  std::uint64_t size_ = 0;
};

/// Those besides its own that hold its weights, as it names them: relative to its folder, sorted, each once. Found in
/// the file's protocol buffers (onnx.proto: TensorProto.external_data) without loading what is large. Whatever ONNX
/// Runtime reads is found, groups and unknown fields passed over; where it is damaged, those in front of the damage
/// are, and ONNX Runtime refuses the file. None where it can't be opened.
std::vector<std::string> weight_files(const std::filesystem::path& file);

/// The networks of volumes that `path` names: itself, or of a folder all files that end in .onnx, in order
/// (`in_order`). \throws ConfigError naming a folder without one, and as `in_order`
std::vector<std::string> volume_networks(const std::string& path);

/// Wants a network's file and those that its weights lie in to be there, files, and these in its folder, as ONNX says
/// (TensorProto.external_data, `location`). \throws ConfigError naming the network's file and the cause.
void check_network_files(const std::string& file);

/// What a network's tensors take up of one of these: its bytes up to the end of the last tensor. All of them where a
/// tensor's length isn't said.
struct WeightFile {
  std::string name;  ///< as the network names it
  std::string bytes;
};

struct Weights {
  std::vector<WeightFile> files;
  bool has_inner = false;  ///< some are of nodes' attributes, or of functions: ONNX Runtime may read these by itself
};

/// Reads them. \param folder  where the network lies. \throws ConfigError naming one that can't be read.
Weights read_weights(const NetworkFile& network, const std::filesystem::path& folder);

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

/// Bytes of the network's file, and those of the others that tensors take up; files that aren't there count nothing.
std::uint64_t bytes_of_network(const std::filesystem::path& file);

}  // namespace slidestream::networks
