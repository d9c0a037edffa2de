#include "sink/zarr_metadata.hpp"

#include <nlohmann/json.hpp>

#include "codec/zstd_compressor.hpp"
#include "config/dump_json.hpp"
#include "sink/image_formats.hpp"

namespace slidestream {

namespace {

using Json = nlohmann::ordered_json;

std::string text_of(const Json& json) { return dump_json(json, 2) + "\n"; }

std::string base64(const std::vector<std::byte>& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned bits = 0;
    for (std::size_t i = at; i < at + 3; ++i)
      bits = bits << 8 | (i < bytes.size() ? std::to_integer<unsigned>(bytes[i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += at + i <= bytes.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

/// What blank samples are in numbers.
Json fill_value(const ImageDescription& description) {
  const double value = blank_value(description);
  if (description.format.sample == SampleType::float32) return value;
  return static_cast<int>(value);
}

/// What a viewer shows of a channel. A window without width would have viewers divide by 0.
Json window_of(const ValueRange& values) {
  const double end = values.greatest > values.least ? values.greatest : values.least + 1;
  return {{"min", values.least}, {"max", end}, {"start", values.least}, {"end", end}};
}

/// How viewers show channels, where they know three as colours. \param values  of each channel; empty: not known.
Json omero(const ImageDescription& description, const std::vector<ValueRange>& values) {
  const int count = description.format.channels;
  const bool in_colour = count == 3;
  const double most = description.format.sample == SampleType::uint8    ? 255
                      : description.format.sample == SampleType::uint16 ? 65535
                                                                        : 1;
  Json channels = Json::array();
  for (int i = 0; i < count; ++i) {
    static constexpr const char* colours[] = {"FF0000", "00FF00", "0000FF"};
    static constexpr const char* names[] = {"red", "green", "blue"};
    const auto at = static_cast<std::size_t>(i);
    const bool named = at < description.channel_names.size();
    channels.push_back({{"label", named       ? description.channel_names[at]
                                  : in_colour ? names[i]
                                              : "channel " + std::to_string(i)},
                        {"color", in_colour ? colours[i] : "FFFFFF"},
                        {"active", true},
                        {"window", window_of(at < values.size() ? values[at] : ValueRange{0, most})}});
  }
  return {{"channels", channels}, {"rdefs", {{"model", in_colour ? "color" : "greyscale"}}}};
}

/// Of multiscales, which the versions share but for their own number.
Json multiscale(const PyramidLayout& layout, const ImageDescription& description) {
  Json space_y = {{"name", "y"}, {"type", "space"}};
  Json space_x = {{"name", "x"}, {"type", "space"}};
  if (description.mpp) space_y["unit"] = space_x["unit"] = "micrometer";
  Json datasets = Json::array();
  for (int level = 0; level < layout.levels(); ++level) {
    const double x = description.mpp.value_or(1.0);
    const double y = description.mpp_y.value_or(x);
    const auto factor = static_cast<double>(std::int64_t{1} << level);
    // Positions are those of pixel centres: the first pixel of a level stands for a block of `factor` x `factor`
    // pixels. Levels of labels have the same blocks, so that they lie on their image at every level.
    const double shift = (factor - 1.0) / 2.0;
    datasets.push_back({{"path", std::to_string(level)},
                        {"coordinateTransformations",
                         Json::array({{{"type", "scale"}, {"scale", {1.0, y * factor, x * factor}}},
                                      {{"type", "translation"}, {"translation", {0.0, y * shift, x * shift}}}})}});
  }
  return {{"name", description.name},
          {"axes", Json::array({{{"name", "c"}, {"type", "channel"}}, space_y, space_x})},
          {"datasets", datasets}};
}

/// What else is known of the image.
Json own(const ImageDescription& description) {
  Json all = Json::object();
  if (!description.creator.empty()) all["creator"] = description.creator;
  if (description.magnification) all["magnification"] = *description.magnification;
  for (const auto& [name, value] : description.settings) all["settings"][name] = value;
  for (const auto& [name, value] : description.figures) all["figures"][name] = value;
  if (!description.icc.empty()) all["icc_profile"] = base64(description.icc);
  return all;
}

const char* data_type_name(SampleType sample) {
  return sample == SampleType::uint8 ? "uint8" : sample == SampleType::uint16 ? "uint16" : "float32";
}

Json shape_of(const PyramidLayout& layout, const ImageDescription& description, int level) {
  const Size size = layout.size(level);
  return {description.format.channels, size.height, size.width};
}

Json array_2(const PyramidLayout& layout, const ImageDescription& description, const ImageOptions& options, int level) {
  const SampleType sample = description.format.sample;
  Json compressor;
  if (options.compression == TileCompression::blosc_lz4) {
    compressor = {
        {"id", "blosc"}, {"cname", "lz4"}, {"clevel", 5}, {"shuffle", bytes_of(sample) > 1 ? 1 : 0}, {"blocksize", 0}};
  } else if (options.compression == TileCompression::zstd) {
    compressor = {{"id", "zstd"}, {"level", zstd_level}};
  }
  return {{"zarr_format", 2},
          {"shape", shape_of(layout, description, level)},
          {"chunks", {1, layout.tile(), layout.tile()}},
          {"dtype", sample == SampleType::uint8    ? "|u1"
                    : sample == SampleType::uint16 ? "<u2"
                                                   : "<f4"},
          {"compressor", compressor},
          {"fill_value", fill_value(description)},
          {"order", "C"},
          {"filters", nullptr},
          {"dimension_separator", "/"}};
}

Json array_3(const PyramidLayout& layout, const ImageDescription& description, const ImageOptions& options, int level) {
  const SampleType sample = description.format.sample;
  const Json bytes = sample == SampleType::uint8
                         ? Json::object({{"name", "bytes"}})
                         : Json::object({{"name", "bytes"}, {"configuration", {{"endian", "little"}}}});
  Json codecs = Json::array({bytes});
  if (options.compression == TileCompression::blosc_lz4) {
    codecs.push_back({{"name", "blosc"},
                      {"configuration",
                       {{"cname", "lz4"},
                        {"clevel", 5},
                        {"shuffle", bytes_of(sample) > 1 ? "shuffle" : "noshuffle"},
                        {"typesize", bytes_of(sample)},
                        {"blocksize", 0}}}});
  } else if (options.compression == TileCompression::zstd) {
    codecs.push_back({{"name", "zstd"}, {"configuration", {{"level", zstd_level}, {"checksum", false}}}});
  }
  const Json index =
      Json::array({{{"name", "bytes"}, {"configuration", {{"endian", "little"}}}}, Json::object({{"name", "crc32c"}})});
  const Json sharding = {{"name", "sharding_indexed"},
                         {"configuration",
                          {{"chunk_shape", {1, layout.tile(), layout.tile()}},
                           {"codecs", codecs},
                           {"index_codecs", index},
                           {"index_location", "end"}}}};
  const Json shard = {1, layout.tile(), layout.columns(level) * layout.tile()};
  return {{"zarr_format", 3},
          {"node_type", "array"},
          {"shape", shape_of(layout, description, level)},
          {"data_type", data_type_name(sample)},
          {"chunk_grid", {{"name", "regular"}, {"configuration", {{"chunk_shape", shard}}}}},
          {"chunk_key_encoding", {{"name", "default"}, {"configuration", {{"separator", "/"}}}}},
          {"fill_value", fill_value(description)},
          {"codecs", Json::array({sharding})},
          {"dimension_names", {"c", "y", "x"}},
          {"attributes", Json::object()}};
}

/// The file that has an image's attributes.
std::pair<std::string, std::string> attributes_file(const Json& attributes, const ImageOptions& options) {
  if (options.zarr_version != 3) return {".zattrs", text_of(attributes)};
  return {"zarr.json", text_of({{"zarr_format", 3}, {"node_type", "group"}, {"attributes", attributes}})};
}

}  // namespace

std::pair<std::string, std::string> zarr_mark(const ImageOptions& options) {
  return attributes_file(Json::object({{"slidestream", Json::object()}}), options);
}

std::pair<std::string, std::string> zarr_attributes(const PyramidLayout& layout, const ImageDescription& description,
                                                    const ImageOptions& options,
                                                    const std::vector<ValueRange>& values) {
  Json scales = multiscale(layout, description);
  const Json shown = omero(description, values);
  Json attributes;
  if (options.zarr_version == 3) {
    attributes["ome"] = {{"version", "0.5"}, {"multiscales", Json::array({scales})}, {"omero", shown}};
  } else {
    scales["version"] = "0.4";
    attributes = {{"multiscales", Json::array({scales})}, {"omero", shown}};
  }
  attributes["slidestream"] = own(description);
  return attributes_file(attributes, options);
}

std::vector<std::pair<std::string, std::string>> zarr_metadata(const PyramidLayout& layout,
                                                               const ImageDescription& description,
                                                               const ImageOptions& options) {
  const bool sharded = options.zarr_version == 3;
  std::vector<std::pair<std::string, std::string>> files;
  for (int level = 0; level < layout.levels(); ++level) {
    const Json array =
        sharded ? array_3(layout, description, options, level) : array_2(layout, description, options, level);
    files.emplace_back(std::to_string(level) + (sharded ? "/zarr.json" : "/.zarray"), text_of(array));
  }
  // Last: who finds the image finds its levels.
  files.push_back(zarr_attributes(layout, description, options, {}));
  if (!sharded) files.emplace_back(".zgroup", text_of(Json::object({{"zarr_format", 2}})));
  return files;
}

}  // namespace slidestream
