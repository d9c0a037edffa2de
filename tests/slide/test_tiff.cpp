#include "slide/test_tiff.hpp"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace slidestream::test {
namespace {

constexpr std::uint16_t tile_offsets = 324, tile_byte_counts = 325, strip_offsets = 273, strip_byte_counts = 279;
constexpr std::uint16_t sub_ifds = 330;

unsigned size_of(std::uint16_t type) {
  switch (type) {
    case short_:
      return 2;
    case long_:
    case slong:
    case float_:
      return 4;
    case rational:
    case srational:
    case double_:
    case long8:
      return 8;
    default:
      return 1;
  }
}

class Writer {
 public:
  explicit Writer(const TestTiff& tiff) : tiff_(tiff) {}

  Bytes write() {
    number(tiff_.big_endian ? 0x4D4D : 0x4949, 2);
    number(tiff_.big ? 43 : 42, 2);
    if (tiff_.big) {
      number(8, 2);
      number(0, 2);
    }
    std::size_t link = out_.size();  // where the next directory's offset goes
    number(0, word());
    std::vector<std::size_t> offsets;
    for (const TestDirectory& directory : tiff_.directories) {
      const auto [at, next] = write_directory(directory);
      patch(link, at);
      offsets.push_back(at);
      link = next;
    }
    if (tiff_.loop_to >= 0) patch(link, offsets.at(static_cast<std::size_t>(tiff_.loop_to)));
    return std::move(out_);
  }

 private:
  unsigned word() const { return tiff_.big ? 8 : 4; }

  void put(std::size_t at, std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) {
      const unsigned place = tiff_.big_endian ? bytes - 1 - i : i;
      out_[at + i] = static_cast<std::byte>(value >> (8 * place) & 0xFF);
    }
  }
  void number(std::uint64_t value, unsigned bytes) {
    out_.resize(out_.size() + bytes);
    put(out_.size() - bytes, value, bytes);
  }
  void patch(std::size_t at, std::uint64_t value) { put(at, value, word()); }
  void align() {
    if (out_.size() % 2 != 0) out_.push_back(std::byte{0});
  }

  struct Place {
    std::size_t at;
    std::size_t next;
  };

  Place write_directory(TestDirectory directory) {
    std::vector<std::uint64_t> subs;
    std::size_t link = 0;
    for (const TestDirectory& sub : directory.subs) {
      const auto [at, next] = write_directory(sub);
      if (directory.chained && !subs.empty()) patch(link, at);
      subs.push_back(at);
      link = next;
    }
    if (directory.chained) {
      const int to = directory.chain_to;
      patch(link, to < 0 ? directory.chain_end : subs.at(static_cast<std::size_t>(to)));
      subs.resize(1);
    }
    if (!subs.empty()) directory.set(sub_ifds, tiff_.big ? long8 : long_, subs);
    write_tiles(directory);
    std::sort(directory.tags.begin(), directory.tags.end(), [](auto& a, auto& b) { return a.tag < b.tag; });

    std::vector<std::uint64_t> values_at;
    for (const TestTag& tag : directory.tags) {
      align();
      values_at.push_back(out_.size());
      if (value_bytes(tag) > word()) write_values(tag);
    }
    align();
    const std::size_t at = out_.size();
    number(directory.tags.size(), tiff_.big ? 8 : 2);
    for (std::size_t i = 0; i < directory.tags.size(); ++i) {
      const TestTag& tag = directory.tags[i];
      number(tag.tag, 2);
      number(tag.type, 2);
      number(tag.raw.empty() ? tag.numbers.size() : tag.raw.size(), word());
      const std::size_t field = out_.size();
      if (value_bytes(tag) > word()) {
        number(values_at[i], word());
      } else {
        write_values(tag);
        out_.resize(field + word());
      }
    }
    const std::size_t next = out_.size();
    number(0, word());
    return {at, next};
  }

  /// Appends the tiles and sets the arrays, unless the test set its own.
  void write_tiles(TestDirectory& directory) {
    std::vector<std::uint64_t> offsets, counts;
    for (const Bytes& tile : directory.tiles) {
      align();
      offsets.push_back(tile.empty() ? 0 : out_.size());
      counts.push_back(tile.size());
      out_.insert(out_.end(), tile.begin(), tile.end());
    }
    const auto set_unless_there = [&](std::uint16_t tag, const std::vector<std::uint64_t>& values) {
      const auto same = [tag](const TestTag& t) { return t.tag == tag; };
      if (std::none_of(directory.tags.begin(), directory.tags.end(), same)) {
        directory.set(tag, tiff_.big ? long8 : long_, values);
      }
    };
    if (directory.tiles.empty()) return;
    set_unless_there(directory.tiled ? tile_offsets : strip_offsets, offsets);
    set_unless_there(directory.tiled ? tile_byte_counts : strip_byte_counts, counts);
  }

  static std::size_t value_bytes(const TestTag& tag) {
    return tag.raw.empty() ? tag.numbers.size() * size_of(tag.type) : tag.raw.size();
  }

  void write_values(const TestTag& tag) {
    out_.insert(out_.end(), tag.raw.begin(), tag.raw.end());
    for (const std::uint64_t value : tag.numbers) {
      if (tag.type == rational || tag.type == srational) {
        number(value, 4);
        number(tag.denominator, 4);
      } else {
        number(value, size_of(tag.type));
      }
    }
  }

  const TestTiff& tiff_;
  Bytes out_;
};

TestDirectory basic_directory(std::uint32_t width, std::uint32_t height, int samples) {
  TestDirectory directory;
  directory.set(256, long_, {width}).set(257, long_, {height});
  directory.set(258, short_, std::vector<std::uint64_t>(static_cast<std::size_t>(samples), 8));
  directory.set_short(259, 1).set_short(262, samples >= 3 ? 2 : 1).set_short(277, static_cast<unsigned>(samples));
  return directory;
}

}  // namespace

TestDirectory& TestDirectory::set(std::uint16_t tag, std::uint16_t type, std::vector<std::uint64_t> numbers) {
  remove(tag);
  tags.push_back({tag, type, std::move(numbers), {}});
  return *this;
}

TestDirectory& TestDirectory::set_text(std::uint16_t tag, const std::string& text) {
  remove(tag);
  const auto* first = reinterpret_cast<const std::byte*>(text.c_str());
  tags.push_back({tag, ascii, {}, Bytes(first, first + text.size() + 1)});
  return *this;
}

TestDirectory& TestDirectory::set_bytes(std::uint16_t tag, const Bytes& bytes) {
  remove(tag);
  tags.push_back({tag, undefined, {}, bytes});
  return *this;
}

TestDirectory& TestDirectory::remove(std::uint16_t tag) {
  std::erase_if(tags, [tag](const TestTag& t) { return t.tag == tag; });
  return *this;
}

TestDirectory tiled_directory(std::uint32_t width, std::uint32_t height, std::uint32_t tile_width,
                              std::uint32_t tile_height, int samples) {
  return basic_directory(width, height, samples).set(322, long_, {tile_width}).set(323, long_, {tile_height});
}

TestDirectory stripped_directory(std::uint32_t width, std::uint32_t height, std::uint32_t rows_per_strip, int samples) {
  TestDirectory directory = basic_directory(width, height, samples).set(278, long_, {rows_per_strip});
  directory.tiled = false;
  return directory;
}

TestDirectory chequered_directory(std::uint32_t width, std::uint32_t height, int brightness) {
  constexpr std::uint32_t side = 64;
  TestDirectory directory = tiled_directory(width, height, side, side, 1);
  for (std::uint32_t top = 0; top < height; top += side) {
    for (std::uint32_t left = 0; left < width; left += side) {
      Bytes tile(std::size_t{side} * side);
      for (std::uint32_t i = 0; i < side * side; ++i) {
        const std::uint32_t square = (left + i % side) * 8 / width + (top + i / side) * 5 / height;
        tile[i] = static_cast<std::byte>(square % 2 == 0 ? brightness : 40);
      }
      directory.tiles.push_back(std::move(tile));
    }
  }
  return directory;
}

Bytes TestTiff::bytes() const { return Writer(*this).write(); }

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  Bytes bytes(static_cast<std::size_t>(in.tellg()));
  in.seekg(0).read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace slidestream::test
