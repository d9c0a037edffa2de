#include "stages/images/slide_images.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <system_error>
#include <utility>

#include <slidestream/error.hpp>

#include "config/csv.hpp"
#include "operators/common/tile_grid.hpp"
#include "output/folders.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_formats.hpp"
#include "sink/partial_file.hpp"
#include "slide/copied_tiles.hpp"
#include "stages/images/image_description.hpp"

namespace slidestream {
namespace {

/// Size and digest of a file or folder that has its final name.
void measure(Artifact& artifact, const std::filesystem::path& path) {
  const auto content = path_content(path);
  if (!content) throw OutputError(path.string() + ": can't be read again");
  artifact.bytes = content->bytes;
  artifact.digest = content->digest;
}

/// Where a file lies, and how results name it.
struct Place {
  std::filesystem::path path;
  std::string file;
};

/// Finds places for the files of a slide.
class Places {
 public:
  Places(const Config& config, const SlideRun& slide, const ImageNames& names)
      : slide_(slide.path), names_(names), folder_(config.output.dir) {}

  Place of(const std::string& suffix, const std::string& folder = images_folder) const {
    const std::string name = names_.name + suffix;
    Place place = {folder_ / folder / name, folder + "/" + name};
    if (names_.place) {
      place.path = names_.place(name);
      place.file = place.path.string();
    }
    check_length(place.path.filename().string());
    if (names_.check) names_.check(place.path);
    // Behind the check: where the folder of a run was moved away, it isn't made anew.
    if (!names_.place) make_folder(folder_ / folder);
    for (const std::filesystem::path& file : {place.path, partial_name(place.path)}) {
      std::error_code ignored;
      // A folder that is written is emptied first.
      const std::filesystem::path slide = std::filesystem::weakly_canonical(slide_, ignored);
      for (std::filesystem::path at = slide; at.has_relative_path(); at = at.parent_path()) {
        if (!std::filesystem::equivalent(file, at, ignored)) continue;
        throw Error(file.string() + " would be written, and " + (at == slide ? "is this slide" : "holds this slide"));
      }
    }
    return place;
  }

  /// Of an image, which can be seen while it is written.
  Place of_image(const std::string& suffix) const {
    Place place = of(suffix);
    if (names_.check_partial) names_.check_partial(partial_name(place.path));
    return place;
  }

 private:
  static constexpr const char* images_folder = "images";

  /// Names are longer while files are written: NAME.partial.ome.zarr.earlier, NAME.partial_files.earlier for NAME.dzi,
  /// and beside NAME.ome.tif NAME.partial.progress.json.
  static void check_length(const std::string& name) {
    constexpr std::size_t most_bytes = 255;  // of a name on all usual file systems
    const ImageFormatTraits* const format = format_named(name);
    const bool is_folder = format != nullptr ? format->is_folder : !std::filesystem::path(name).has_extension();
    const std::size_t added = format != nullptr && *format->tiles_folder != '\0' ? 18 : is_folder ? 16 : 14;
    if (name.size() + added <= most_bytes) return;
    throw Error(name + ": a name of " + std::to_string(name.size()) + " bytes, and at most " +
                std::to_string(most_bytes - added) + " are possible: more is added while it is written");
  }

  std::filesystem::path slide_;
  const ImageNames& names_;
  std::filesystem::path folder_;  ///< of all results
};

}  // namespace

std::string check_images(const Config& config, const Operators& operators) {
  std::string line;
  for (const auto& op : operators) {
    check_network(*op);
    const auto product = image_of(*op);
    if (!product) continue;
    if (config.image.format == ImageFormat::none) {
      throw ConfigError("image.format is \"none\", but the operator " + op->name() +
                        " makes an image; set it to \"ome-tiff\" or another one");
    }
    image_options(config.image, product->format, product->labels);
    if (const auto begin = traits_of(config.image.format).begin; begin != nullptr) line = begin(config);
    if (config.image.compression == ImageCompression::copy && config.converts_colours()) {
      throw ConfigError(
          "image.compression = \"copy\" takes over tiles as they are, and input.colour = \"srgb\" converts their "
          "colours; leave one out");
    }
    if (config.image.compression == ImageCompression::copy && op->name() != "identity") {
      throw ConfigError("image.compression = \"copy\" takes over the tiles of slides, and the operator " + op->name() +
                        " makes others; use \"auto\", or identity alone");
    }
  }
  if (config.image.copy_levels == CopyLevels::exact) return line;
  if (config.image.compression != ImageCompression::copy) {
    throw ConfigError(
        "image.copy_levels = \"shrink-on-load\" is for tiles that are copied; set image.compression to "
        "\"copy\"");
  }
  if (operators.size() != 1) {
    throw ConfigError(
        "image.copy_levels = \"shrink-on-load\" decodes slides at half size, and other operators need "
        "all pixels; run identity alone, or use \"exact\"");
  }
  return line;
}

ImageOptions options_for(const Config& config, const Product& product, const Slide& slide, std::size_t level) {
  const PixelFormat& format = product.format;
  ImageOptions options = image_options(config.image, format, product.labels);
  options.dicom = config.dicom;
  if (options.compression != TileCompression::copy) return options;
  CopiedLevel copied = copied_level(slide, level, format, config.decode.on_bad_tile);
  options.tile = copied.frame.width;
  if (config.image.tile != 0 && config.image.tile != options.tile) {
    throw SlideError(slide.info().path.string() + ": its tiles can't be copied: their side is " +
                     std::to_string(options.tile) + " pixels, and image.tile is " + std::to_string(config.image.tile));
  }
  options.copied = std::make_shared<const CopiedLevel>(std::move(copied));
  return options;
}

NetworkPlan network_plan_of(const RunContext& context, const SlideRun& slide, const Operator& op) {
  const Level& level = slide.slide->info().levels[slide.level];
  const auto product = image_of(op);
  const int tile = product ? image_options(context.config.image, product->format, product->labels).tile : 1;
  operators::require_square_pixels(op.network()->tiles(), slide.slide->info(), operators::names_of(*op.network()));
  return plan_network(*op.network(), {level.width, level.height}, slide.result.mpp, context.config.stitch, tile,
                      context.gpus != nullptr, context.config.input.level);
}

SlideImages::SlideImages(RunContext& context, const SlideRun& slide, const ImageNames& names)
    : under_way_(context.images), slide_(slide.path), work_(slide.work) {
  try {
    begin(context, slide, names);
  } catch (...) {
    // What was begun is in the way where the disk is full.
    discard();
    throw;
  }
}

void SlideImages::begin(RunContext& context, const SlideRun& slide, const ImageNames& names) {
  const Places places(context.config, slide, names);
  const IccProfile profile = profile_of_images(context, slide);
  makers_ = static_cast<std::size_t>(std::ranges::count(slide.lacking, false));
  std::size_t op = 0;
  for (std::size_t rank = 0; rank < context.all_operators.size(); ++rank) {
    const Operator& maker = *context.all_operators[rank];
    const SlideParameters* parameters = slide.parameters[rank].get();
    if (parameters != nullptr) {
      for (PreparedFile& file : parameters->files()) {
        Place place = places.of(file.suffix, file.folder);
        check_final_name(place.path);
        prepared_.push_back(
            {rank, std::move(place.path), {maker.name(), file.product, std::move(place.file)}, std::move(file.write)});
      }
    }
    if (!maker.reads_pixels()) continue;
    const auto product = image_of(maker);
    const std::size_t place = op++;
    if (slide.lacks(rank)) continue;
    std::optional<NetworkPlan> network;
    if (maker.network() != nullptr) {
      network = network_plan_of(context, slide, maker);
      auto made = std::make_unique<SlideNetwork>(*maker.network(), *network, context.config.stitch,
                                                 maker.network()->tiles().tissue_only ? slide.tissue : nullptr);
      Network& added = networks.emplace_back();
      added.op = place;
      added.rank = rank;
      if (product) added.image = images.size();
      added.maker = maker.name();
      added.network = std::move(made);
      const std::vector<VectorsFile> files = product ? std::vector<VectorsFile>() : maker.vectors_files();
      const std::string table = "." + maker.name() + ".partial.csv";
      added.absent = (files.empty() ? places.of(table) : places.of(table, files.front().folder)).path;
      // That is of an earlier attempt, in whose place a new one begins.
      std::error_code ignored;
      if (std::filesystem::is_regular_file(std::filesystem::symlink_status(added.absent, ignored))) {
        std::filesystem::remove(added.absent, ignored);
      }
      for (const VectorsFile& file : files) {
        Place vectors = places.of(file.suffix, file.folder);
        check_final_name(vectors.path);
        added.files.push_back({file, std::move(vectors.path), {maker.name(), file.product, std::move(vectors.file)}});
      }
      if (!files.empty()) {
        added.vectors = describe_vectors(slide, *network, names.name);
        const SlideInfo& info = slide.slide->info();
        added.pixel = {added.vectors.reduction * info.downsample_x(slide.level),
                       added.vectors.reduction * info.downsample_y(slide.level)};
      }
    }
    if (!product) continue;
    const Place file =
        places.of_image("." + maker.name() + std::string(traits_of(context.config.image.format).suffixes.front()));
    ImageDescription description =
        describe_image(context, slide, maker, *product, names.name, network ? &*network : nullptr, parameters);
    if (product->format == rgb_format) description.icc = profile.bytes;
    const ImageOptions options = options_for(context.config, *product, *slide.slide, slide.level);
    warn_of_profile(context, slide, description, options.format);
    if (traits_of(options.format).needs_pixel_size && !description.mpp) {
      throw SlideError(slide.path + ": " + name_of(options.format) +
                       " can't do without the size of a pixel, which the slide doesn't say; set input.mpp_default");
    }
    copied = options.copied;
    Image image;
    image.op = place;
    image.rank = rank;
    image.of_network = network.has_value();
    image.artifact = {maker.name(), product->name, file.file};
    // The rows that come are those of level 1 where level 0 isn't decoded.
    const Level& decoded = slide.slide->info().levels[slide.level];
    image.first_level = decoded.shrunk ? 1 : 0;
    const Size rows = decoded.shrunk ? Size{decoded.width, decoded.height} : description.size;
    const int levels = options.levels == 0 ? 0 : std::max(options.levels - image.first_level, 1);
    image.builder = std::make_unique<PyramidBuilder>(PyramidLayout(rows, options.tile, levels), product->format,
                                                     description.labels);
    image.sink = make_image_sink(file.path, description, options);
    folder_ = file.path.has_parent_path() ? file.path.parent_path() : std::filesystem::path(".");
    images.push_back(std::move(image));
  }
  std::vector<ImagesUnderWay::Image> under_way;
  for (const Image& image : images) {
    under_way.push_back({slide_, partial_name(image.artifact.file).string(), image.sink.get()});
  }
  under_way_.add(this, std::move(under_way));
}

SlideImages::~SlideImages() { under_way_.remove(this); }

const NetworkPlan* SlideImages::resampled_on_devices(std::size_t op) const noexcept {
  const auto found = std::ranges::find(networks, op, &Network::op);
  if (found == networks.end() || !found->network->plan().on_devices) return nullptr;
  return &found->network->plan();
}

void SlideImages::drop() noexcept {
  if (dropped_.exchange(true)) return;
  for (Image& image : images) image.sink->drop();
}

void SlideImages::drop_network(std::size_t network) noexcept {
  if (makers_ <= 1) return drop();
  Network& of = networks[network];
  if (of.dropped->exchange(true) || !of.image) return;
  images[*of.image].sink->drop();
}

void SlideImages::publish_vectors(Network& network) {
  TileVectors& vectors = network.vectors;
  const StitchPlan& stitch = network.network->plan().stitch;
  for (const std::int64_t tile : network.network->given()) {
    const Rect rect = stitch.input_of(stitch.tile(tile));
    vectors.corners.push_back(operators::level0_corner(rect, network.pixel));
  }
  vectors.values = network.network->vectors();
  for (VectorsOut& out : network.files) {
    publish_whole(out.path, [&](const std::filesystem::path& path) { out.file.write(path, vectors); });
    measure(out.artifact, out.path);
  }
}

/// What it lists are parts of the image, in its own pixels.
void SlideImages::publish_absent(const Network& network) {
  const StitchPlan& stitch = network.network->plan().stitch;
  publish_whole(network.absent, [&](const std::filesystem::path& path) {
    std::ofstream out(path, std::ios::binary);
    out << "tile,column,row,x,y,width,height,cause\r\n";
    for (const auto& [number, cause] : network.network->absent()) {
      const StitchTile tile = stitch.tile(number);
      const std::int64_t x = stitch.x.begin(tile.column);
      const std::int64_t y = stitch.y.begin(tile.row);
      out << number << ',' << tile.column << ',' << tile.row << ',' << x << ',' << y << ','
          << std::min(stitch.x.tile, stitch.image.width - x) << ',' << std::min(stitch.y.tile, stitch.image.height - y)
          << ',' << csv_field(cause) << "\r\n";
    }
    out.close();
    if (!out) throw OutputError(path.string() + ": can't be written");
  });
}

void SlideImages::publish() {
  std::vector<std::pair<std::size_t, Artifact>> made;
  const auto is_of_failed = [this](const Image& image) {
    return std::ranges::any_of(networks, [&](const Network& network) {
      return network.failed && network.image && &images[*network.image] == &image;
    });
  };
  for (Image& image : images) {
    if (is_of_failed(image)) continue;
    image.sink->set_values(image.builder->values());
    for (const PublishedFile& file : image.sink->publish()) {
      Artifact artifact = image.artifact;
      artifact.file = (std::filesystem::path(artifact.file).parent_path() / file.path.filename()).string();
      if (file.digest) {
        artifact.bytes = file.bytes;
        artifact.digest = *file.digest;
      } else {
        measure(artifact, file.path);
      }
      made.emplace_back(image.rank, std::move(artifact));
    }
  }
  for (Prepared& file : prepared_) {
    publish_whole(file.path, file.write);
    measure(file.artifact, file.path);
    made.emplace_back(file.rank, file.artifact);
  }
  for (Network& network : networks) {
    if (network.files.empty() || network.failed) continue;
    publish_vectors(network);
    for (const VectorsOut& out : network.files) made.emplace_back(network.rank, out.artifact);
  }
  std::ranges::stable_sort(made, {}, &std::pair<std::size_t, Artifact>::first);
  for (auto& [rank, artifact] : made) finished->result.artifacts.push_back(std::move(artifact));
}

bool SlideImages::hear_networks() {
  bool left = false;
  for (Network& network : networks) {
    left = left || network.network->left();
    for (const NamedValue& figure : network.network->figures()) {
      finished->result.values.push_back({network.maker + "." + figure.name, figure.value});
    }
    auto failure = network.network->failure();
    if (!failure || !finished->result.done) continue;
    failure->stage = network.maker;
    try {
      if (!network.absent.empty() && !network.network->absent().empty()) publish_absent(network);
    } catch (const OutputError& error) {
      failure->cause += "; " + std::string(error.what());
    }
    network.failed = true;
    // What the other operators made stands.
    makers_ > 1 && !dropped() ? finished->result.lack(*failure) : finished->result.fail(*failure);
  }
  if (!left || !finished->result.done) return true;
  discard_empty();
  return false;
}

void SlideImages::discard() noexcept {
  for (Image& image : images) image.sink->discard();
}

bool SlideImages::lacks_room() const noexcept {
  constexpr std::uint64_t least = std::uint64_t{16} << 20;
  struct ::statvfs about {};
  if (folder_.empty() || ::statvfs(folder_.c_str(), &about) != 0) return false;
  return std::uint64_t{about.f_bavail} * about.f_frsize < least;
}

void SlideImages::discard_empty() noexcept {
  for (Image& image : images) {
    if (image.sink->written() == 0) image.sink->discard();
  }
}

}  // namespace slidestream
