#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// The configuration as plain structs: one struct per section of the TOML file, one field per key. A field has the name
/// of its key; fields with another name say so. docs/configuration.md describes each key with its values, its default
/// and its memory. That page, `--print-config` and the help are made from the descriptions in src/config/.

namespace slidestream {

class Network;

enum class InputIo { automatic, posix, uring, direct, cufile };
enum class InputColour { automatic, file, srgb };
enum class DecodeDevice { automatic, cpu, gpu };
enum class BadTilePolicy { fail, white };
enum class Backend { automatic, cpu, cuda };
enum class SplitSlides { automatic, never, always };
enum class Residency { strips, whole };
enum class ValueKind { log1p_db, db, linear };
enum class PixelColour { rgb, luminance };
enum class SobelOutput { uint8, float32 };
enum class StainOutput { normalised, hematoxylin, eosin };
enum class TissueSource { automatic, geojson };
enum class TissueMethod { automatic, otsu, fixed };
enum class TissueInk { drop, keep };
enum class ModelOutput { automatic, image, classes, labels, vector };
enum class ModelActivation { automatic, none, softmax, sigmoid };
enum class ModelSample { automatic, uint8, uint16 };
enum class ModelWhere { automatic, all, tissue };
enum class ModelProvider { automatic, cpu, cuda };
enum class ModelBatches { automatic, slide, mixed };
enum class FeatureFormat { h5, pt, both };
enum class MapFormat { none, npy, tiff };
enum class ContentHashPolicy { none, changed, always };
enum class ImageFormat { automatic, none, ome_tiff, ome_zarr, dzi, dicom };
enum class ChromaSubsampling { s420, s422, s444 };
enum class ImageCompression { automatic, jpeg, none, zstd, blosc_lz4, copy };
enum class CopyLevels { exact, shrink_on_load };
enum class VolumeFusion { vote, mean, blend };
enum class StitchWeights { tent, cosine, none };
enum class StitchEdge { automatic, shift, mirror };
enum class StitchMode { strict, lenient };
enum class CsvCells { plain, spreadsheet };
enum class JournalMode { automatic, wal, rollback };

/// `[input]`
struct InputConfig {
  /// Slides, folders and manifests, or `-` for a list on standard input.
  std::vector<std::string> slides;
  /// Pyramid level to analyse; 0 is full resolution.
  int level = 0;
  /// Largest width x height of a level, in pixels.
  std::int64_t max_pixels = std::int64_t{1} << 36;
  /// Most tiles of a slide, over all its levels. An open slide takes 16 bytes per tile.
  std::int64_t max_tiles = std::int64_t{1} << 21;
  /// How tiles are read.
  InputIo io = InputIo::automatic;
  /// Retries of a read after an error that may be temporary.
  int retries = 6;
  /// Longest time to open a slide, and longest time per slide after that, in seconds; 0: no limit.
  int max_seconds = 0;
  /// Whether finished slides are also recognised by their content.
  ContentHashPolicy content_hash = ContentHashPolicy::none;
  /// Micrometres per pixel of level 0, 0.001 to 1000, instead of the slide's own value; 0: the slide's. The
  /// magnification becomes 10 / mpp.
  double mpp = 0.0;
  /// The same for slides that don't say it alone. Default 0.
  double mpp_default = 0.0;
  /// Micrometres per pixel by slide, in place of `mpp`: the column `mpp` of CSV lists (`expand_inputs`). It has no key.
  /// Default empty.
  std::map<std::string, double> slide_mpp;
  /// Channel of slides that have several, from 0, read as grey; -1: such slides are refused. Default -1.
  int channel = -1;
  /// Colours of slides with an ICC profile: as the file has them, or converted to sRGB before anything else sees them.
  /// Automatic: converted in runs that only make Deep Zoom images of the slides, where the profile isn't sRGB's.
  InputColour colour = InputColour::automatic;
  /// Where OpenSlide is for slides that have no other reader: "auto" (searched for), "never" (such slides are refused),
  /// or its library's path, or a folder with it. Default "auto".
  std::string openslide = "auto";
};

/// `[decode]`
struct DecodeConfig {
  /// Where JPEG and JPEG 2000 tiles are decoded.
  DecodeDevice device = DecodeDevice::automatic;
  /// What happens if a tile can't be decoded.
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;
};

/// `[pipeline]`
struct PipelineConfig {
  /// Where operators compute.
  Backend backend = Backend::automatic;
  /// Rows per strip, rounded to whole rows of tiles.
  int strip_height = 1024;
  /// Consecutive strips per slot; 0: automatic.
  int batch_strips = 0;
  /// How much of a slide is on its GPU at once.
  Residency residency = Residency::strips;
  /// Slots per GPU, or of the CPU.
  int queue_depth = 4;
  /// Threads of the run; 0: all that this process may use.
  int threads = 0;
  /// Host memory for slots and carried rows, in MiB. Decoding takes more: at most a quarter of it, or 8 MiB per thread.
  int memory_mib = 640;
};

/// `[gpu]`
struct GpuConfig {
  /// CUDA's numbers of the devices to use; empty: all.
  std::vector<int> devices;
  /// Share of each device's free memory to use, 0.01 to 1.
  double memory_fraction = 0.8;
  /// Whether several GPUs may share a slide.
  SplitSlides split_slides = SplitSlides::automatic;
  /// Pinned host memory of all GPUs that tiles pass through, in MiB; 0: automatic.
  int staging_mib = 0;
};

/// The largest `model.mpp_tolerance`.
inline constexpr double most_mpp_tolerance = 0.25;

/// Names of operators for `operators.run`. Each operator has the section of its name, except the spectrum:
/// `[analysis]`.
inline constexpr std::array<std::string_view, 7> operator_names = {"spectrum", "identity", "sobel", "gaussian",
                                                                   "stain",    "tissue",   "model"};

/// `[operators]`
struct OperatorsConfig {
  /// The operators to run: some of `operator_names`, each once, at least one.
  std::vector<std::string> run = {"spectrum"};

  /// Tells whether an operator runs.
  /// @param name  Name of the operator.
  /// @return Whether `run` has the name.
  bool runs(std::string_view name) const { return std::find(run.begin(), run.end(), name) != run.end(); }
};

/// `[analysis]`
struct AnalysisConfig {
  /// Side N of the square windows, in pixels: even, 8 to 4096.
  int window = 256;
  /// Step between windows in both directions, in pixels.
  int stride = 128;
  /// Radius of the Gaussian, in pixels, 0 (off) to 16.
  int smoothing_radius = 3;
  /// Standard deviation of the Gaussian, in pixels.
  double smoothing_sigma = 1.4;
  /// Value of a coefficient.
  ValueKind value = ValueKind::log1p_db;
  /// Bins of the histogram, 1 to 65536.
  int bins = 1500;
  /// Range [low, high) that the bins divide, in dB, or |F| if `value` is linear.
  std::array<double, 2> range = {0.0, 150.0};
  /// Names of the statistics besides the distribution (`statistics()`). Key `analysis.NAME` = true adds NAME.
  std::vector<std::string> statistics;
};

/// `[identity]`: copies pixels.
struct IdentityConfig {
  /// Colour of the pixels.
  PixelColour colour = PixelColour::rgb;
};

/// `[sobel]`: gradient of the luminance.
struct SobelConfig {
  /// Samples of the image.
  SobelOutput output = SobelOutput::uint8;
};

/// `[gaussian]`: smooths pixels.
struct GaussianConfig {
  /// Radius, in pixels, 0 (off) to 16.
  int radius = 3;
  /// Standard deviation, in pixels.
  double sigma = 1.4;
  /// Colour of the pixels.
  PixelColour colour = PixelColour::rgb;
};

/// `[stain]`: Macenko's stain normalisation (ISBI 2009).
struct StainConfig {
  /// All stains, or one alone.
  StainOutput output = StainOutput::normalised;
  /// Path of a slide with the reference stains; empty: published stains.
  std::string reference;
  /// Red, green and blue of light through glass, 1 to 255; empty (key: "auto"): measured per slide.
  std::vector<double> white;
  /// Micrometres per pixel of the blocks from which stains are fitted.
  double mpp = 1.0;
};

/// `[tissue]`: finds tissue.
struct TissueConfig {
  /// Where the mask of tissue comes from.
  TissueSource source = TissueSource::automatic;
  /// Least share of tissue in a window that counts as tissue, 0 to 1.
  double share = 0.5;
  /// How the threshold of saturation is found.
  TissueMethod method = TissueMethod::automatic;
  /// Saturation, 1 to 254, above which a pixel is tissue; 0: found, or 8 if `method` is fixed.
  int threshold = 0;
  /// Path of a network that finds tissue in place of the rule of saturation, an ONNX file; empty: none. Default empty.
  std::string model;
  /// Key `tissue.class`. Of `model`: the class that is tissue, from 0. Default 1.
  int label = 1;
  /// Of `model`: probability from which on a pixel is tissue, 0.001 to 1. Default 0.5.
  double probability = 0.5;
  /// Specks of tissue below this area are dropped, um^2.
  double min_um2 = 2048.0;
  /// Holes of at most this area are filled, um^2; 0: none, -1: all.
  double fill_um2 = 262144.0;
  /// Whether strokes of a pen are no tissue.
  TissueInk ink = TissueInk::drop;
  /// How far simplified outlines may lie from the mask's, mask pixels, 0 (as they are) to 10. Default 1.
  double simplify_px = 1.0;
};

/// `[model]`: a network over tiles. `read_model_file` sets open values (`automatic`, 0, -1, empty) from MODEL.toml.
/// Values that stay open come from the network's own shapes, else from the defaults in the key's description.
struct ModelConfig {
  /// Path of the network, an ONNX file; empty: none.
  std::string file;
  /// The calling program's own network, which replaces `file`. It has no key. Results name it by its description, and
  /// only a network with the same description can resume a run. Null: the network of `file`.
  std::shared_ptr<const Network> network;
  /// Side T of the square tiles, in pixels; 0: open.
  int tile = 0;
  /// Pixels that neighbouring tiles share; -1: open.
  int overlap = -1;
  /// Tiles per batch; 0: open.
  int batch = 0;
  /// Subtracted from red, green and blue after `scale`; empty: open.
  std::vector<double> mean;
  /// Divisor of red, green and blue after `mean`; empty: open. Key `model.std`.
  std::vector<double> deviation;
  /// What a sample of 255 becomes before `mean` and `deviation`; 0: open.
  double scale = 0.0;
  /// Micrometres per pixel of its tiles, 0.001 to 1000; 0: open.
  double mpp = 0.0;
  /// Largest part by which the level's pixels may be coarser or finer than `mpp` and are used unchanged, 0 to 0.25; -1:
  /// open.
  double mpp_tolerance = -1.0;
  /// What the network gives.
  ModelOutput output = ModelOutput::automatic;
  /// Name of the output that is used of a network with several; empty: open.
  std::string output_name;
  /// Function that is applied to the network's values.
  ModelActivation activation = ModelActivation::automatic;
  /// Values that become 0 and the largest sample; [0, 0]: open.
  std::array<double, 2> range = {0.0, 0.0};
  /// Samples of an image that a network gives.
  ModelSample sample = ModelSample::automatic;
  /// Which tiles the network gets.
  ModelWhere where = ModelWhere::automatic;
  /// With `where` = tissue: least share of tissue in a tile, 0 to 1; 0: any; -1: open.
  double tissue_share = -1.0;
  /// Label of pixels without a computed tile, 1 to 255; 0: open.
  int ignore = 0;
  /// Sessions per device; 0: automatic.
  int sessions = 0;
  /// Path of ONNX Runtime's library or of its folder; empty: automatic.
  std::string runtime;
  /// Where the network runs.
  ModelProvider provider = ModelProvider::automatic;
  /// Whether slides may share a batch.
  ModelBatches batches = ModelBatches::automatic;
};

/// `[volume]`: 3-D images, for `pipeline volume`. Axes are listed from the slowest in the file to the fastest: z, y, x.
struct VolumeConfig {
  /// Path of one network, or of a folder with one network per fragment; empty: none.
  std::string networks;
  /// Samples of a fragment along z, y, x.
  std::vector<std::int64_t> fragment = {96, 128, 88};
  /// Fragments along z, y, x.
  std::vector<std::int64_t> grid = {3, 3, 3};
  /// Value beyond a volume that is smaller than a fragment.
  double fill = 0.0;
  /// Millimetres between the samples that networks see, along z, y, x; empty: those of the volume.
  std::vector<double> spacing;
  /// How fragments become one volume.
  VolumeFusion fusion = VolumeFusion::vote;
  /// Volumes in memory at a time, at most; 0: 8.
  int in_flight = 0;
  /// Memory for networks, volumes and what is computed, in MiB; 0: four fifths of what is available.
  std::int64_t memory_mib = 0;
};

/// `[features]`: files of the vectors that a network gives.
struct FeaturesConfig {
  /// Write only the places of tiles; no network runs.
  bool coords_only = false;
  /// Files of features.
  FeatureFormat format = FeatureFormat::h5;
};

/// `[image]`
struct ImageConfig {
  /// Format of the images that operators make.
  ImageFormat format = ImageFormat::automatic;
  /// How tiles are compressed.
  ImageCompression compression = ImageCompression::automatic;
  /// How the smaller levels are made if tiles are copied.
  CopyLevels copy_levels = CopyLevels::exact;
  /// Quality of JPEG, 1 to 100.
  int quality = 85;
  /// Resolution of JPEG's colour differences. Key values "4:2:0", "4:2:2", "4:4:4".
  ChromaSubsampling subsampling = ChromaSubsampling::s420;
  /// Side of the square tiles, in pixels: a multiple of 16, 16 to 4096; 0: automatic.
  int tile = 0;
  /// Levels of the pyramid; 0: down to one tile.
  int levels = 0;
  /// Zarr version of ome-zarr: 2 or 3.
  int zarr_version = 2;
};

/// `[dicom]`: what images of this format say besides pixels.
struct DicomConfig {
  /// Path of a TOML or JSON file with attributes of patient, study and specimen; empty: none.
  std::string attributes;
  /// UID below which UIDs are made; empty: 2.25.
  std::string uid_root;
};

/// `[stitch]`: how a network's overlapping tiles become an image.
struct StitchConfig {
  /// How neighbouring tiles share their common pixels.
  StitchWeights weights = StitchWeights::tent;
  /// Place of the last tile of a row or column.
  StitchEdge edge = StitchEdge::automatic;
  /// What happens if a tile fails.
  StitchMode mode = StitchMode::strict;
  /// With `mode` = lenient: seconds after which a slide's tiles are skipped; 0: no limit.
  int deadline_seconds = 0;
  /// Host memory for stitching one slide, in MiB.
  int memory_mib = 2048;
};

/// `[output]`
struct OutputConfig {
  /// Folder for results; created if missing.
  std::string dir = "slidestream-out";
  /// Format of the maps of mean and standard deviation per window.
  MapFormat maps = MapFormat::none;
  /// Seconds between updates of the result files; 0: only at the end.
  int checkpoint_seconds = 60;
  /// Whether CSV cells are made safe for spreadsheets.
  CsvCells csv = CsvCells::plain;
  /// Whether names of files are valid on Windows, too.
  bool portable_names = true;
  /// SQLite's journal of `run.sqlite`.
  JournalMode journal = JournalMode::automatic;
};

/// The whole configuration of a run. A plain value; copies are independent, except that they share `model.network`.
struct Config {
  InputConfig input;
  DecodeConfig decode;
  PipelineConfig pipeline;
  GpuConfig gpu;
  OperatorsConfig operators;
  AnalysisConfig analysis;
  IdentityConfig identity;
  SobelConfig sobel;
  GaussianConfig gaussian;
  StainConfig stain;
  TissueConfig tissue;
  ModelConfig model;
  FeaturesConfig features;
  VolumeConfig volume;
  ImageConfig image;
  DicomConfig dicom;
  StitchConfig stitch;
  OutputConfig output;

  /// Tells whether a run makes Deep Zoom images of its slides and nothing else. Browsers are to show true colours then.
  /// @return Whether `image.format` is `dzi` and "identity" is the only operator.
  bool is_for_browsers() const {
    return image.format == ImageFormat::dzi && operators.run.size() == 1 && operators.runs("identity");
  }
  /// Tells whether slides are converted to sRGB where they have a profile for it.
  /// @return True for `srgb`, and for `automatic` if `is_for_browsers`.
  bool converts_colours() const {
    return input.colour == InputColour::srgb || (input.colour == InputColour::automatic && is_for_browsers());
  }
};

/// Names the file with the outlines of a slide's tissue: SLIDE.geojson beside the slide. Thread-safe.
/// @param slide  Path of the slide.
/// @return Path of the outlines.
std::filesystem::path outlines_beside(const std::filesystem::path& slide);

/// Reads a TOML file. Keys that it doesn't have keep their defaults. Thread-safe.
/// @param file  Path of the file.
/// @return The configuration. `validate` hasn't checked it.
/// @throws ConfigError  The file can't be read, or its syntax, a key or a value is wrong. The message begins with
///   `file:line:` and names the nearest valid key.
Config load_config(const std::filesystem::path& file);

/// Parses TOML text as `load_config` does. Thread-safe.
/// @param toml  The text, in UTF-8.
/// @param origin  Name of the text in messages.
/// @return The configuration. `validate` hasn't checked it.
/// @throws ConfigError  Syntax, a key or a value is wrong.
Config parse_config(std::string_view toml, std::string_view origin);

/// Applies one setting. Thread-safe for different configurations.
/// @param config  Changed.
/// @param assignment  `section.key=value`. The value is TOML, or a bare word if the key takes a name or a path.
/// @throws ConfigError  The key or the value is wrong. The message names the nearest valid key.
void apply_setting(Config& config, std::string_view assignment);

/// Replaces an automatic `image.format` by ome-tiff if an operator of `operators.run` may make images: any but spectrum
/// and tissue. Thread-safe for different configurations.
/// @param config  Changed.
void resolve_image_format(Config& config);

/// Checks each value, and whether related values agree: `decode.device` and `pipeline.backend`, and those of
/// `[tissue]`. Thread-safe.
/// @param config  The configuration.
/// @throws ConfigError  A value is wrong. The message names its key.
void validate(const Config& config);

/// Sets open values of `[model]` from the file MODEL.toml beside the network: `m.toml` for `m.onnx`. The file has only
/// the section `[model]`. Nothing changes without the operator "model", without `model.file`, with `model.network`, or
/// without that file. A second call changes nothing.
/// @param config  Changed.
/// @throws ConfigError  As `load_config`, or the file sets a path or a key that depends on the machine.
void read_model_file(Config& config);

/// Writes the configuration as TOML, with a comment per key. `parse_config` reads it back, except `model.network`.
/// Thread-safe.
/// @param config  The configuration.
/// @return The text.
/// @throws ConfigError  A string isn't UTF-8.
std::string to_toml(const Config& config);

}  // namespace slidestream
