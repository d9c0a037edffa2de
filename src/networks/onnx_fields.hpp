#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "networks/onnx_files.hpp"

namespace slidestream::networks {

/// Reads the fields of protocol buffers in a network's file as ONNX Runtime does. What is large is passed over.
class OnnxFields {
 public:
  explicit OnnxFields(const NetworkFile& file) : file_(file) {}

 protected:
  static constexpr int most_depth = 100;  ///< graphs lie in graphs

  std::optional<std::uint64_t> number(std::uint64_t& at, std::uint64_t end);
  /// A tag as ONNX Runtime's reader has it: of five bytes at most, and of their bits the lower 32. Nothing where it is
  /// longer, which ends that reader.
  std::optional<std::uint64_t> tag_at(std::uint64_t& at, std::uint64_t end);
  /// Passes over the value behind a tag that isn't of a message.
  bool skip_value(std::uint64_t tag, std::uint64_t& at, std::uint64_t end, int depth);
  /// Of the value behind a tag, in bytes; nothing where it goes beyond the end, or is of a kind without one.
  std::optional<std::uint64_t> length_of(std::uint64_t tag, std::uint64_t& at, std::uint64_t end);
  const NetworkFile& file() const noexcept { return file_; }

 private:
  std::optional<unsigned> byte_at(std::uint64_t at);
  bool skip_group(std::uint64_t field, std::uint64_t& at, std::uint64_t end, int depth);

  const NetworkFile& file_;
  std::string block_;  ///< of the file, that was read last
  std::uint64_t block_at_ = 0;
};

}  // namespace slidestream::networks
