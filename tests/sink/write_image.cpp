// Makes an image of raw or made-up pixels: `write_image FILE WIDTH HEIGHT [KEY=VALUE ...]`.
//
//   format=rgb8|grey8|rgb16|grey16|float32|any8:N   (rgb8)    compression=none|jpeg|zstd|blosc-lz4 (none)
//   to=ome-tiff|ome-zarr|dzi     zarr_version=2|3 (dzi: JPEG, all levels)
//   quality=, tile=, levels=     as in ImageOptions            labels=1  blank=N
//   raw=FILE     pixels, row by row; otherwise a pattern that depends on seed=N alone
//   scale=N      float32: the pattern's values times N
//   save=FILE    writes the pixels there
//   band=ROWS    how many rows at a time (one row of tiles)    threads=N (1)
//   name=, mpp=, magnification=, icc=FILE, channel=NAME (again for each), setting=NAME:VALUE (again for each)
//   data_at=N    where tiles begin at the earliest
//   pause=N      waits so many milliseconds before each band
//   stop=N       ends without publishing after N tiles
//
// Prints one line of seconds and bytes. Errors are one line and status 1.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "codec/tile_encoder.hpp"
#include "image/pyramid_builder.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_sink.hpp"
#include "synth/workers.hpp"

namespace slidestream {
namespace {

PixelFormat format_of(const std::string& name) {
  if (name == "rgb8") return rgb_format;
  if (name == "grey8") return luminance_format;
  if (name == "rgb16") return {SampleType::uint16, 3};
  if (name == "grey16") return {SampleType::uint16, 1};
  if (name == "float32") return {SampleType::float32, 1};
  if (name.starts_with("any8:")) return {SampleType::uint8, std::stoi(name.substr(5))};
  throw Error("format " + name + " isn't known");
}

std::vector<std::byte> bytes_of_file(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) throw Error(name + " can't be read");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

/// A smooth ground with some noise, and flat areas.
std::uint32_t sample_at(std::int64_t x, std::int64_t y, int channel, std::uint64_t seed) {
  std::uint64_t hash = (static_cast<std::uint64_t>(x) * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(y)) ^ seed
                                                                                                                  << 32;
  hash = (hash ^ hash >> 29) * 0xBF58476D1CE4E5B9 + static_cast<std::uint64_t>(channel);
  hash = (hash ^ hash >> 32) * 0x94D049BB133111EB;
  const auto smooth = static_cast<std::uint32_t>((x * (channel + 2) + y * 3) / 5 % 224);
  if (x / 512 % 3 == 2 && y / 512 % 3 == 2) return 0xF3F3;
  return (smooth << 8) + static_cast<std::uint32_t>(hash >> 51);
}

void fill(std::byte* row, std::int64_t y, std::int64_t width, PixelFormat format, bool labels, std::uint64_t seed,
          float scale) {
  for (std::int64_t x = 0; x < width; ++x) {
    for (int c = 0; c < format.channels; ++c) {
      std::uint32_t value = sample_at(x, y, c, seed);
      if (labels) value = (value >> 12) * 257;
      const std::int64_t at = x * format.channels + c;
      if (format.sample == SampleType::uint8) row[at] = static_cast<std::byte>(value >> 8);
      if (format.sample == SampleType::uint16)
        reinterpret_cast<std::uint16_t*>(row)[at] = static_cast<std::uint16_t>(value);
      if (format.sample == SampleType::float32)
        reinterpret_cast<float*>(row)[at] = static_cast<float>(value) / 65536.0F * scale;
    }
  }
}

class Arguments {
 public:
  Arguments(int count, char** values) {
    for (int i = 0; i < count; ++i) {
      const std::string text = values[i];
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos) throw Error("'" + text + "' isn't KEY=VALUE");
      all_[text.substr(0, equals)].push_back(text.substr(equals + 1));
    }
  }
  std::string text(const std::string& key, const std::string& otherwise = "") const {
    return has(key) ? all_.at(key).back() : otherwise;
  }
  std::int64_t number(const std::string& key, std::int64_t otherwise) const {
    return has(key) ? std::stoll(all_.at(key).back()) : otherwise;
  }
  std::optional<double> real(const std::string& key) const {
    return has(key) ? std::optional(std::stod(all_.at(key).back())) : std::nullopt;
  }
  std::vector<std::string> list(const std::string& key) const {
    return has(key) ? all_.at(key) : std::vector<std::string>{};
  }
  bool has(const std::string& key) const { return all_.contains(key); }

 private:
  std::map<std::string, std::vector<std::string>> all_;
};

ImageDescription describe(Size size, const Arguments& arguments) {
  ImageDescription description;
  description.name = arguments.text("name");
  description.creator = arguments.text("creator");
  description.size = size;
  description.format = format_of(arguments.text("format", "rgb8"));
  description.mpp = arguments.real("mpp");
  description.magnification = arguments.real("magnification");
  description.channel_names = arguments.list("channel");
  description.labels = arguments.number("labels", 0) != 0;
  description.blank_label = static_cast<int>(arguments.number("blank", 0));
  if (arguments.has("icc")) description.icc = bytes_of_file(arguments.text("icc"));
  for (const std::string& setting : arguments.list("setting")) {
    const std::size_t colon = setting.find(':');
    description.settings.emplace_back(setting.substr(0, colon), setting.substr(colon + 1));
  }
  return description;
}

ImageOptions options_of(const Arguments& arguments) {
  const std::string compression = arguments.text("compression", "none");
  ImageOptions options;
  using enum TileCompression;
  for (const TileCompression each : {none, jpeg, zstd, blosc_lz4}) {
    if (compression == name_of(each)) options.compression = each;
  }
  const std::string to = arguments.text("to", "ome-tiff");
  options.format = to == "ome-zarr" ? ImageFormat::ome_zarr : to == "dzi" ? ImageFormat::dzi : ImageFormat::ome_tiff;
  options.zarr_version = static_cast<int>(arguments.number("zarr_version", 2));
  options.quality = static_cast<int>(arguments.number("quality", options.quality));
  options.tile = static_cast<int>(arguments.number("tile", options.tile));
  options.levels = static_cast<int>(arguments.number("levels", to == "dzi" ? 32 : 0));
  return options;
}

/// Rows of the image, one band at a time.
class Pixels {
 public:
  Pixels(const ImageDescription& description, const Arguments& arguments)
      : description_(description),
        seed_(static_cast<std::uint64_t>(arguments.number("seed", 1))),
        scale_(static_cast<float>(arguments.real("scale").value_or(1.0))) {
    if (arguments.has("raw")) raw_.open(arguments.text("raw"), std::ios::binary);
    if (arguments.has("raw") && !raw_) throw Error(arguments.text("raw") + " can't be read");
    if (arguments.has("save")) saved_.open(arguments.text("save"), std::ios::binary);
  }

  std::shared_ptr<std::vector<std::byte>> rows(std::int64_t y, std::int64_t count) {
    const std::size_t pitch = static_cast<std::size_t>(description_.size.width) * description_.format.pixel_bytes();
    auto band = std::make_shared<std::vector<std::byte>>(pitch * static_cast<std::size_t>(count));
    if (raw_.is_open()) {
      raw_.read(reinterpret_cast<char*>(band->data()), static_cast<std::streamsize>(band->size()));
      if (!raw_) throw Error("the raw file is too short");
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        fill(band->data() + static_cast<std::size_t>(i) * pitch, y + i, description_.size.width, description_.format,
             description_.labels, seed_, scale_);
      }
    }
    if (saved_.is_open()) {
      saved_.write(reinterpret_cast<const char*>(band->data()), static_cast<std::streamsize>(band->size()));
    }
    return band;
  }

 private:
  const ImageDescription& description_;
  std::uint64_t seed_;
  float scale_;
  std::ifstream raw_;
  std::ofstream saved_;
};

std::uint64_t bytes_in(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

void run(const std::string& file, Size size, const Arguments& arguments) {
  const ImageDescription description = describe(size, arguments);
  const ImageOptions options = options_of(arguments);
  const auto threads = static_cast<std::size_t>(arguments.number("threads", 1));
  const auto data_at = static_cast<std::uint64_t>(arguments.number("data_at", 0));
  const auto sink = data_at > 0 ? make_ome_tiff_sink(file, description, options, data_at)
                                : make_image_sink(file, description, options);
  PyramidBuilder builder(sink->layout(), description.format, description.labels);
  std::vector<std::unique_ptr<TileEncoder>> encoders;
  for (std::size_t i = 0; i < threads; ++i) {
    encoders.push_back(sink->make_encoder());
  }
  Pixels pixels(description, arguments);
  const std::int64_t band = arguments.number("band", options.tile);
  const std::int64_t stop = arguments.number("stop", sink->layout().tiles());
  const auto pitch = static_cast<std::ptrdiff_t>(size.width) * static_cast<int>(description.format.pixel_bytes());
  const std::chrono::milliseconds pause(arguments.number("pause", 0));
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t y = 0; y < size.height; y += band) {
    const std::int64_t height = std::min(band, size.height - y);
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const auto rows = pixels.rows(y, height);
    builder.begin({rows->data(), pitch, {0, y, size.width, height}, size, description.format}, rows);
    synth::parallel_for(threads, builder.pieces(),
                        [&](std::int64_t piece, std::size_t) { builder.reduce(static_cast<int>(piece)); });
    const std::vector<PyramidTile> jobs = builder.finish();
    synth::parallel_for(threads, static_cast<std::int64_t>(jobs.size()), [&](std::int64_t i, std::size_t worker) {
      const PyramidTile& job = jobs[static_cast<std::size_t>(i)];
      if (sink->layout().position(job.level, job.index) >= stop) return;
      if (sink->put(job.level, job.index, EncodedTile(encoders[worker]->encode(job.pixels)))) sink->drain();
    });
    if (sink->written() == stop && stop < sink->layout().tiles()) return;
  }
  std::uint64_t bytes = 0;
  sink->set_values(builder.values());
  const std::vector<PublishedFile> published = sink->publish();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  for (const PublishedFile& made : published) {
    bytes += made.bytes;
    if (std::filesystem::is_directory(made.path) && !made.digest) throw Error(made.path.string() + ": no digest");
    if (std::filesystem::is_directory(made.path) && bytes_in(made.path) != made.bytes)
      throw Error(made.path.string() + ": holds another number of bytes");
    // Reading 5 GB of nothing takes long.
    if (data_at == 0 && made.digest && made.digest != path_content(made.path)->digest)
      throw Error(made.path.string() + ": another digest");
  }
  std::printf("%.3f s %llu bytes\n", taken.count(), static_cast<unsigned long long>(bytes));
}

}  // namespace
}  // namespace slidestream

int main(int count, char** values) {
  try {
    if (count < 4) throw slidestream::Error("usage: write_image FILE WIDTH HEIGHT [KEY=VALUE ...]");
    slidestream::run(values[1], {std::stoll(values[2]), std::stoll(values[3])},
                     slidestream::Arguments(count - 4, values + 4));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "write_image: %s\n", error.what());
    return 1;
  }
  return 0;
}
