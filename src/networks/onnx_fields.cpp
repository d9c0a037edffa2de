#include "networks/onnx_fields.hpp"

#include <algorithm>
#include <limits>

namespace slidestream::networks {
namespace {

constexpr std::uint64_t block_bytes = 8192;  ///< that are read at a time
constexpr std::uint64_t begin_of_group = 3;  ///< the kind of a tag
constexpr std::uint64_t end_of_group = 4;

}  // namespace

/// Nothing where it can't be read.
std::optional<unsigned> OnnxFields::byte_at(std::uint64_t at) {
  if (at < block_at_ || at - block_at_ >= block_.size()) {
    block_.resize(std::min<std::uint64_t>(block_bytes, file_.size() - std::min(at, file_.size())));
    block_at_ = at;
    if (!file_.read(at, block_)) block_.clear();
    if (block_.empty()) return std::nullopt;
  }
  return static_cast<unsigned char>(block_[at - block_at_]);
}

std::optional<std::uint64_t> OnnxFields::number(std::uint64_t& at, std::uint64_t end) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && at < end; shift += 7) {
    const auto byte = byte_at(at);
    if (!byte) return std::nullopt;
    ++at;
    value |= static_cast<std::uint64_t>(*byte & 0x7f) << shift;
    if ((*byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> OnnxFields::tag_at(std::uint64_t& at, std::uint64_t end) {
  constexpr std::uint64_t longest_tag = 5;
  const std::uint64_t begin = at;
  const auto tag = number(at, end);
  if (!tag || at - begin > longest_tag) return std::nullopt;
  return *tag & std::numeric_limits<std::uint32_t>::max();
}

/// Passes over a group, as protocol buffers of long ago have them, and their readers skip, to its end. False where it
/// is damaged.
bool OnnxFields::skip_group(std::uint64_t field, std::uint64_t& at, std::uint64_t end, int depth) {
  if (depth > most_depth) return false;
  while (at < end) {
    const auto tag = tag_at(at, end);
    if (!tag || *tag >> 3 == 0) return false;
    if ((*tag & 7) == end_of_group) return *tag >> 3 == field;
    if (!skip_value(*tag, at, end, depth)) return false;
  }
  return false;
}

bool OnnxFields::skip_value(std::uint64_t tag, std::uint64_t& at, std::uint64_t end, int depth) {
  if ((tag & 7) == begin_of_group) return skip_group(tag >> 3, at, end, depth + 1);
  if ((tag & 7) == 0) return number(at, end).has_value();
  const auto length = length_of(tag, at, end);
  if (!length) return false;
  at += *length;
  return true;
}

std::optional<std::uint64_t> OnnxFields::length_of(std::uint64_t tag, std::uint64_t& at, std::uint64_t end) {
  std::optional<std::uint64_t> length;
  if ((tag & 7) == 1) length = 8;
  if ((tag & 7) == 5) length = 4;
  if ((tag & 7) == 2) length = number(at, end);
  return length && *length <= end - at ? length : std::nullopt;
}

}  // namespace slidestream::networks
