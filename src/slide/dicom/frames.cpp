#include "slide/dicom/frames.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace slidestream::dicom {

namespace {

constexpr std::uint64_t item_header = 8;
constexpr std::uint64_t close_headers = 1024;      ///< bytes from one header to the next
constexpr std::uint64_t close_window = 64 * 1024;  ///< bytes that are read at a time then
/// The longest frame that a table may tell of: a tile that is longer is refused when it is read.
constexpr std::uint64_t longest_frame = std::uint64_t{1} << 40;

class FrameFinder {
 public:
  FrameFinder(Reader& reader, const Instance& instance)
      : reader_(reader), instance_(instance), frames_(static_cast<std::uint64_t>(instance.frames)) {}

  std::vector<TileRange> find() {
    const Element& pixels = *instance_.pixels;
    if (!instance_.is_encapsulated()) return uncompressed(pixels);
    // The first item is the basic offset table.
    const Item table = item_at(pixels.value_at);
    if (table.is_end) reader_.refuse("PixelData (7FE0,0010) has no item");
    first_ = table.value_at + table.length;
    if (instance_.offsets && instance_.offsets->length > 0) return by_extended_table(*instance_.offsets);
    if (table.length > 0) return by_basic_table(table);
    return by_items();
  }

 private:
  struct Item {
    std::uint64_t value_at = 0;
    std::uint64_t length = 0;
    bool is_end = false;  ///< the sequence's delimiter
  };

  Item item_at(std::uint64_t at) {
    if (!reader_.file().contains(at, item_header)) {
      reader_.refuse("the file ends at byte " + std::to_string(reader_.file().size()) +
                     " inside PixelData (7FE0,0010)");
    }
    const std::span<const std::byte> bytes = header_at(at);
    const auto number = [&](std::size_t from, unsigned count) {
      std::uint32_t value = 0;
      for (std::size_t i = from + count; i-- > from;) value = value << 8 | std::to_integer<std::uint32_t>(bytes[i]);
      return value;
    };
    const Tag tag = number(0, 2) << 16 | number(2, 2);
    if (tag == sequence_end_tag) return {at + item_header, 0, true};
    if (tag != item_tag) {
      reader_.refuse("PixelData (7FE0,0010) has " + tag_text(tag) + " at byte " + std::to_string(at) +
                     " in place of an item");
    }
    const Item item{at + item_header, number(4, 4), false};
    if (item.length == undefined_length || !reader_.file().contains(item.value_at, item.length)) {
      reader_.refuse("PixelData (7FE0,0010) has an item of " + std::to_string(item.length) + " bytes at byte " +
                     std::to_string(at) + ", which lies outside the file");
    }
    return item;
  }

  /// Few bytes at a time, for what lies between headers is no concern here; many where headers lie close together.
  std::span<const std::byte> header_at(std::uint64_t at) {
    if (at < window_at_ || at + item_header > window_at_ + window_.size()) {
      const bool is_close = at >= last_header_ && at - last_header_ <= close_headers;
      const std::uint64_t wanted = is_close ? close_window : item_header;
      // `item_at` has looked whether the header lies within the file.
      window_.resize(static_cast<std::size_t>(std::min(wanted, reader_.file().size() - at)));
      reader_.read_apart(at, window_);
      window_at_ = at;
    }
    last_header_ = at;
    return std::span<const std::byte>(window_).subspan(static_cast<std::size_t>(at - window_at_), item_header);
  }

  [[noreturn]] void refuse_count(const std::string& what, std::uint64_t found) {
    reader_.refuse(what + " has " + std::to_string(found) + " entries, and NumberOfFrames (0028,0008) is " +
                   std::to_string(frames_));
  }

  std::vector<TileRange> uncompressed(const Element& pixels) {
    const auto frame = static_cast<std::uint64_t>(instance_.tile_width * instance_.tile_height * instance_.samples);
    // Both are far below 2^32.
    if (pixels.length / frame < frames_ || !reader_.file().contains(pixels.value_at, frame * frames_)) {
      reader_.refuse("PixelData (7FE0,0010) of " + std::to_string(pixels.length) + " bytes holds less than " +
                     std::to_string(frames_) + " frames of " + std::to_string(frame) +
                     " bytes, or the file ends before");
    }
    std::vector<TileRange> ranges;
    ranges.reserve(frames_);
    for (std::uint64_t i = 0; i < frames_; ++i) ranges.push_back({pixels.value_at + i * frame, frame});
    return ranges;
  }

  std::vector<std::uint64_t> numbers(std::uint64_t at, std::uint64_t count, unsigned bytes_each) {
    constexpr std::uint64_t at_a_time = 4096;
    std::vector<std::uint64_t> found;
    found.reserve(count);
    while (found.size() < count) {
      const std::uint64_t some = std::min(count - found.size(), at_a_time);
      const std::span<const std::byte> bytes =
          reader_.bytes(at + found.size() * bytes_each, static_cast<std::size_t>(some * bytes_each));
      for (std::uint64_t i = 0; i < some; ++i) {
        std::uint64_t value = 0;
        for (std::size_t byte = bytes_each; byte-- > 0;) {
          value = value << 8 | std::to_integer<std::uint64_t>(bytes[i * bytes_each + byte]);
        }
        found.push_back(value);
      }
    }
    return found;
  }

  /// Frames lie one behind the other (PS3.5, A.4): bytes that frames share would be decoded once for each.
  void check_order(const std::vector<std::uint64_t>& at, std::uint64_t i, const char* table) {
    if (i == 0 || at[i] > at[i - 1]) return;
    reader_.refuse("entry " + std::to_string(i + 1) + " of " + table + " isn't behind the one before it");
  }

  std::vector<TileRange> by_extended_table(const Element& offsets) {
    if (offsets.length != 8 * frames_) refuse_count("ExtendedOffsetTable (7FE0,0001)", offsets.length / 8);
    if (!instance_.lengths || instance_.lengths->length != 8 * frames_) {
      refuse_count("ExtendedOffsetTableLengths (7FE0,0002)", instance_.lengths ? instance_.lengths->length / 8 : 0);
    }
    const std::vector<std::uint64_t> at = numbers(offsets.value_at, frames_, 8);
    const std::vector<std::uint64_t> length = numbers(instance_.lengths->value_at, frames_, 8);
    std::vector<TileRange> ranges;
    ranges.reserve(frames_);
    for (std::uint64_t i = 0; i < frames_; ++i) {
      check_order(at, i, "ExtendedOffsetTable (7FE0,0001)");
      // Lengths leave out the byte that makes them even. What can't be is left for the tile to say.
      std::uint64_t bytes = item_header + std::min(length[i], longest_frame) + length[i] % 2;
      // wsidicom 0.31 counts the item's header, too: no frame reaches into the next one.
      if (i + 1 < frames_) bytes = std::min(bytes, at[i + 1] - at[i]);
      ranges.push_back({first_ + std::min(at[i], longest_frame << 8), bytes});
    }
    return ranges;
  }

  std::vector<TileRange> by_basic_table(const Item& table) {
    if (table.length != 4 * frames_) refuse_count("the basic offset table", table.length / 4);
    const std::vector<std::uint64_t> at = numbers(table.value_at, frames_, 4);
    std::vector<TileRange> ranges;
    ranges.reserve(frames_);
    for (std::uint64_t i = 0; i < frames_; ++i) {
      check_order(at, i, "the basic offset table");
      if (i > 0) ranges.back().length = at[i] - at[i - 1];
      ranges.push_back({first_ + at[i], 0});
    }
    ranges.back().length = end_of_items(ranges.back().offset) - ranges.back().offset;
    return ranges;
  }

  /// Where the items from this one on end.
  std::uint64_t end_of_items(std::uint64_t at) {
    for (Item item = item_at(at); !item.is_end; item = item_at(at)) at = item.value_at + item.length;
    return at;
  }

  std::vector<TileRange> by_items() {
    std::vector<TileRange> ranges;
    ranges.reserve(frames_);
    std::uint64_t at = first_;
    for (Item item = item_at(at); !item.is_end; item = item_at(at)) {
      const std::uint64_t behind = item.value_at + item.length;
      // All fragments of a single frame are its.
      if (frames_ == 1 && !ranges.empty()) {
        ranges.back().length = behind - ranges.back().offset;
      } else if (ranges.size() == frames_) {
        reader_.refuse("PixelData (7FE0,0010) has more items than the " + std::to_string(frames_) +
                       " frames, and no offset table");
      } else {
        ranges.push_back({at, behind - at});
      }
      at = behind;
    }
    if (ranges.size() < frames_) refuse_count("PixelData (7FE0,0010)", ranges.size());
    return ranges;
  }

  Reader& reader_;
  const Instance& instance_;
  const std::uint64_t frames_;
  std::vector<std::byte> window_;  ///< of the file, with headers
  std::uint64_t window_at_ = 0;
  std::uint64_t last_header_ = UINT64_MAX;
  std::uint64_t first_ = 0;  ///< where the first item behind the table begins
};

}  // namespace

std::vector<TileRange> frame_ranges(Reader& reader, const Instance& instance) {
  return FrameFinder(reader, instance).find();
}

}  // namespace slidestream::dicom
