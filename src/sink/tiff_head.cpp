#include "sink/tiff_head.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>

#include "sink/ome_xml.hpp"

namespace slidestream {

namespace {

enum Tag : std::uint16_t {
  new_subfile_type = 254,
  image_width = 256,
  image_length = 257,
  bits_per_sample = 258,
  compression_tag = 259,
  photometric_interpretation = 262,
  image_description = 270,
  samples_per_pixel = 277,
  x_resolution = 282,
  y_resolution = 283,
  planar_configuration = 284,
  resolution_unit = 296,
  tile_width = 322,
  tile_length = 323,
  tile_offsets = 324,
  tile_byte_counts = 325,
  sub_ifds = 330,
  extra_samples = 338,
  sample_format = 339,
  jpeg_tables = 347,
  ycbcr_sub_sampling = 530,
  icc_profile = 34675,
};

enum Type : std::uint16_t {
  ascii = 2,
  short_type = 3,
  long_type = 4,
  rational = 5,
  undefined = 7,
  long8 = 16,
  ifd8 = 18,
};

constexpr std::size_t header_bytes = 16;
constexpr std::size_t entry_bytes = 20;
constexpr std::size_t inline_bytes = 8;

using Bytes = std::vector<std::byte>;

/// The project runs on little-endian machines only, as its CPU code does elsewhere.
template <class Number>
void append(Bytes& to, Number number) {
  to.resize(to.size() + sizeof number);
  std::memcpy(to.data() + to.size() - sizeof number, &number, sizeof number);
}

template <class Number>
void put(Bytes& to, std::size_t at, Number number) {
  std::memcpy(to.data() + at, &number, sizeof number);
}

template <class Number>
Bytes bytes_of_numbers(std::initializer_list<Number> numbers) {
  Bytes bytes;
  for (const Number number : numbers) append(bytes, number);
  return bytes;
}

struct Entry {
  Tag tag;
  Type type;
  std::uint64_t count;
  Bytes value;
};

/// The entries of a directory, in order of tags.
class Directory {
 public:
  void add(Tag tag, Type type, std::uint64_t count, Bytes value) {
    entries_.push_back({tag, type, count, std::move(value)});
  }
  void add_short(Tag tag, int number) {
    add(tag, short_type, 1, bytes_of_numbers({static_cast<std::uint16_t>(number)}));
  }
  void add_shorts(Tag tag, int number, int count) {
    Bytes value;
    for (int i = 0; i < count; ++i) append(value, static_cast<std::uint16_t>(number));
    add(tag, short_type, static_cast<std::uint64_t>(count), std::move(value));
  }
  void add_long(Tag tag, std::int64_t number) {
    add(tag, long_type, 1, bytes_of_numbers({static_cast<std::uint32_t>(number)}));
  }

  const std::vector<Entry>& entries() const noexcept { return entries_; }
  std::size_t bytes() const noexcept { return 8 + entries_.size() * entry_bytes + 8; }

 private:
  std::vector<Entry> entries_;
};

bool is_jpeg(TileCompression compression) {
  return compression == TileCompression::jpeg || compression == TileCompression::copy;
}

int compression_code(TileCompression compression) {
  return is_jpeg(compression) ? 7 : compression == TileCompression::zstd ? 50000 : 1;
}

/// A positive number as a fraction of 32 bits each.
Bytes fraction(double number) {
  constexpr double most = 4294967295.0;
  double denominator = 1.0;
  while (denominator < 1e9 && number * denominator * 2.0 <= most &&
         number * denominator != std::floor(number * denominator)) {
    denominator *= 2.0;
  }
  return bytes_of_numbers({static_cast<std::uint32_t>(std::clamp(std::round(number * denominator), 1.0, most)),
                           static_cast<std::uint32_t>(denominator)});
}

/// Of luminance, where the colour differences have 1 and 1.
JpegFrame::Component sampling_of(ChromaSubsampling subsampling) {
  switch (subsampling) {
    case ChromaSubsampling::s422:
      return {2, 1};
    case ChromaSubsampling::s444:
      return {1, 1};
    case ChromaSubsampling::s420:
      break;
  }
  return {2, 2};
}

class HeadMaker {
 public:
  HeadMaker(const PyramidLayout& layout, const ImageDescription& description, const ImageOptions& options,
            const Bytes& tables, const Placeholder& placeholder)
      : layout_(layout),
        description_(description),
        compression_(options.compression),
        subsampling_(options.subsampling),
        tables_(tables),
        placeholder_(placeholder),
        copied_(options.copied.get()) {}

  TiffHead make() {
    const int levels = layout_.levels();
    // The main chain, then level 0's SubIFDs.
    std::vector<Directory> directories;
    directories.reserve(2 * static_cast<std::size_t>(levels));
    for (int level = 0; level < levels; ++level) directories.push_back(directory(level));
    for (int level = 1; level < levels; ++level) directories.push_back(directories[static_cast<std::size_t>(level)]);
    std::vector<std::size_t> places;
    std::size_t end = header_bytes;
    for (const Directory& each : directories) {
      places.push_back(end);
      end += each.bytes();
    }

    head_.bytes.resize(end);
    append_header(places.front());
    head_.levels.resize(static_cast<std::size_t>(levels));
    sub_ifd_places_.assign(places.begin() + levels, places.end());
    for (std::size_t i = 0; i < directories.size(); ++i) {
      const bool in_chain = i + 1 < static_cast<std::size_t>(levels);
      const auto level = i < static_cast<std::size_t>(levels) ? i : i - static_cast<std::size_t>(levels) + 1;
      write(directories[i], places[i], in_chain ? places[i + 1] : 0, static_cast<int>(level));
    }
    for (int level = 0; level < levels; ++level) place_tables(level);
    if (copied_ != nullptr) place_placeholder({copied_->white, {}}, 0, 1);
    place_placeholder(placeholder_, copied_ != nullptr ? 1 : 0, levels);
    return std::move(head_);
  }

 private:
  Directory directory(int level) const {
    const PixelFormat format = description_.format;
    const Size size = layout_.size(level);
    const CopiedLevel* copied = level == 0 ? copied_ : nullptr;
    const bool colour = format.channels == 3;
    const bool ycbcr = colour && (copied != nullptr ? copied->ycbcr : is_jpeg(compression_));
    Directory made;
    made.add_long(new_subfile_type, level > 0 ? 1 : 0);
    made.add_long(image_width, size.width);
    made.add_long(image_length, size.height);
    made.add_shorts(bits_per_sample, static_cast<int>(8 * bytes_of(format.sample)), format.channels);
    made.add_short(compression_tag, compression_code(compression_));
    made.add_short(photometric_interpretation, !colour ? 1 : ycbcr ? 6 : 2);
    if (level == 0) {
      const std::string xml = ome_xml(description_);
      const auto text = std::as_bytes(std::span(xml.c_str(), xml.size() + 1));
      made.add(image_description, ascii, text.size(), {text.begin(), text.end()});
    }
    made.add_short(samples_per_pixel, format.channels);
    if (description_.mpp) {
      const auto pixels_per_cm = [level](double mpp) { return fraction(1e4 / std::ldexp(mpp, level)); };
      made.add(x_resolution, rational, 1, pixels_per_cm(*description_.mpp));
      made.add(y_resolution, rational, 1, pixels_per_cm(description_.mpp_y.value_or(*description_.mpp)));
    }
    made.add_short(planar_configuration, 1);
    if (description_.mpp) made.add_short(resolution_unit, 3);
    made.add_long(tile_width, layout_.tile());
    made.add_long(tile_length, layout_.tile());
    const auto tiles = static_cast<std::uint64_t>(layout_.tiles(level));
    made.add(tile_offsets, long8, tiles, {});
    made.add(tile_byte_counts, long8, tiles, {});
    if (level == 0 && layout_.levels() > 1) {
      made.add(sub_ifds, ifd8, static_cast<std::uint64_t>(layout_.levels()) - 1, {});
    }
    const int extra = format.channels - (colour ? 3 : 1);
    if (extra > 0) made.add_shorts(extra_samples, 0, extra);
    made.add_shorts(sample_format, format.sample == SampleType::float32 ? 3 : 1, format.channels);
    const Bytes& tables = copied != nullptr ? copied->tables : tables_;
    if (!tables.empty()) made.add(jpeg_tables, undefined, tables.size(), tables);
    if (ycbcr) {
      const JpegFrame::Component first = copied != nullptr ? copied->frame.sampling[0] : sampling_of(subsampling_);
      made.add(ycbcr_sub_sampling, short_type, 2,
               bytes_of_numbers({std::uint16_t{first.horizontal}, std::uint16_t{first.vertical}}));
    }
    if (!description_.icc.empty()) made.add(icc_profile, undefined, description_.icc.size(), description_.icc);
    return made;
  }

  void append_header(std::size_t first) {
    const Bytes header = [&] {
      Bytes bytes{std::byte{'I'}, std::byte{'I'}};
      for (const int number : {43, 8, 0}) append(bytes, static_cast<std::uint16_t>(number));
      append(bytes, static_cast<std::uint64_t>(first));
      return bytes;
    }();
    std::copy(header.begin(), header.end(), head_.bytes.begin());
  }

  void write(const Directory& directory, std::size_t at, std::size_t next, int level) {
    TileTables& tables = head_.levels[static_cast<std::size_t>(level)];
    put(head_.bytes, at, static_cast<std::uint64_t>(directory.entries().size()));
    at += 8;
    for (const Entry& entry : directory.entries()) {
      put(head_.bytes, at, static_cast<std::uint16_t>(entry.tag));
      put(head_.bytes, at + 2, static_cast<std::uint16_t>(entry.type));
      put(head_.bytes, at + 4, entry.count);
      const std::size_t value_at = at + 12;
      if (entry.tag == tile_offsets) {
        tables.offsets.push_back(value_at);
      } else if (entry.tag == tile_byte_counts) {
        tables.lengths.push_back(value_at);
      } else {
        place(value_at, entry.tag == sub_ifds ? sub_ifd_bytes() : entry.value);
      }
      at += entry_bytes;
    }
    put(head_.bytes, at, static_cast<std::uint64_t>(next));
  }

  Bytes sub_ifd_bytes() const {
    Bytes bytes;
    for (const std::size_t place : sub_ifd_places_) append(bytes, static_cast<std::uint64_t>(place));
    return bytes;
  }

  /// A value in the entry itself, or behind everything else with its place in the entry; equal ones once.
  void place(std::size_t value_at, const Bytes& value) {
    if (value.size() <= inline_bytes) {
      std::copy(value.begin(), value.end(), head_.bytes.begin() + static_cast<std::ptrdiff_t>(value_at));
      return;
    }
    for (const Placed& known : values_) {
      if (std::equal(known.value.begin(), known.value.end(), value.begin(), value.end())) {
        put(head_.bytes, value_at, known.at);
        return;
      }
    }
    align();
    values_.push_back({value, head_.bytes.size()});
    put(head_.bytes, value_at, values_.back().at);
    head_.bytes.insert(head_.bytes.end(), value.begin(), value.end());
  }

  struct Placed {
    Bytes value;
    std::uint64_t at;
  };

  void align() { head_.bytes.resize((head_.bytes.size() + 7) / 8 * 8); }

  /// Room for a level's tables, which its directories share. Up to here `TileTables` said where the entries' values
  /// are.
  void place_tables(int level) {
    TileTables& tables = head_.levels[static_cast<std::size_t>(level)];
    const auto tiles = static_cast<std::size_t>(layout_.tiles(level));
    if (tiles == 1) return;
    for (std::vector<std::uint64_t>* table : {&tables.offsets, &tables.lengths}) {
      align();
      const std::uint64_t at = head_.bytes.size();
      head_.bytes.resize(head_.bytes.size() + 8 * tiles);
      for (const std::uint64_t entry : *table) put(head_.bytes, entry, at);
      table->assign(1, at);
    }
  }

  /// For the levels from `first` up to `end`.
  void place_placeholder(const Placeholder& placeholder, int first, int end) {
    align();
    const std::uint64_t at = head_.bytes.size();
    head_.bytes.insert(head_.bytes.end(), placeholder.tile.begin(), placeholder.tile.end());
    head_.bytes.insert(head_.bytes.end(), placeholder.behind.begin(), placeholder.behind.end());
    align();
    for (int level = first; level < end; ++level) {
      TileTables& tables = head_.levels[static_cast<std::size_t>(level)];
      tables.placeholder_length = placeholder.tile.size();
      const auto tiles = static_cast<std::uint64_t>(layout_.tiles(level));
      for (std::uint64_t tile = 0; tile < tiles; ++tile) {
        for (const std::uint64_t table : tables.offsets) put(head_.bytes, table + 8 * tile, at);
        for (const std::uint64_t table : tables.lengths) put(head_.bytes, table + 8 * tile, tables.placeholder_length);
      }
    }
  }

  const PyramidLayout& layout_;
  const ImageDescription& description_;
  TileCompression compression_;
  ChromaSubsampling subsampling_;
  const Bytes& tables_;
  const Placeholder& placeholder_;
  const CopiedLevel* copied_;
  std::vector<std::size_t> sub_ifd_places_;
  std::vector<Placed> values_;
  TiffHead head_;
};

}  // namespace

TiffHead make_tiff_head(const PyramidLayout& layout, const ImageDescription& description, const ImageOptions& options,
                        const std::vector<std::byte>& tables, const Placeholder& placeholder) {
  return HeadMaker(layout, description, options, tables, placeholder).make();
}

}  // namespace slidestream
