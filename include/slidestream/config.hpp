#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// \file
/// The configuration as plain structs: one struct per section of the TOML file, one comment per key with unit,
/// default and memory consequence. The same names serve `--set section.key=value`.

namespace slidestream {

class Network;

enum class InputIo { automatic, posix, uring, direct, cufile };
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
enum class ModelOutput { automatic, image, classes, vector };
enum class ModelSample { automatic, uint8, uint16 };
enum class ModelWhere { automatic, all, tissue };
enum class ModelProvider { automatic, cpu, cuda };
enum class ModelBatches { automatic, slide, mixed };
enum class MapFormat { none, npy, tiff };
enum class ContentHashPolicy { none, changed, always };
enum class ImageFormat { none, ome_tiff, ome_zarr, dzi };
enum class ImageCompression { automatic, jpeg, none, zstd, blosc_lz4, copy };
enum class CopyLevels { exact, shrink_on_load };
enum class StitchWeights { tent, cosine, none };
enum class StitchEdge { shift, mirror };
enum class StitchMode { strict, lenient };
enum class JournalMode { automatic, wal, rollback };

/// `[input]`
struct InputConfig {
  /// Slides, folders, `.list` and `.csv` manifests, or `-` for a list on standard input. Default: none.
  std::vector<std::string> slides;
  /// Pyramid level to analyse; 0 is full resolution. Default 0.
  int level = 0;
  /// Largest width x height accepted, in pixels; a larger slide fails before anything is allocated. Default 2^36.
  std::int64_t max_pixels = std::int64_t{1} << 36;
  /// How tiles are read: `posix` positional reads, `uring` many at a time by Linux's io_uring, `direct` past the
  /// system's cache (O_DIRECT), `cufile` straight into a GPU's memory (libcufile), `automatic` for each slide by what
  /// of it is cached. Default automatic.
  InputIo io = InputIo::automatic;
  /// Times that a read is tried again after an error that may pass (EIO, ESTALE, ETIMEDOUT): after 0.1 s, then twice as
  /// long each time, at most 30 s. Default 6, about 6 s in all.
  int retries = 6;
  /// Longest time for one slide, from its first strip on, in seconds; then it fails. Where a network runs it is from
  /// its first rows in the network on, and what that has under way is ended. 0: no limit. Default 0.
  int max_seconds = 0;
  /// Whether a slide that was done is known by its content too, not by size and time alone: `none`; `changed` hashes
  /// every slide once and asks again where the time differs; `always` asks at every start. Default none.
  ContentHashPolicy content_hash = ContentHashPolicy::none;
  /// Micrometres a pixel of level 0, 0.001 to 1000, in place of what slides say; 0: what they say. Default 0.
  double mpp = 0.0;
};

/// `[decode]`
struct DecodeConfig {
  /// Where JPEG tiles are decoded. Default auto.
  DecodeDevice device = DecodeDevice::automatic;
  /// What a tile that can't be decoded does: `fail` its slide, or become `white`, counted and reported. Default fail.
  BadTilePolicy on_bad_tile = BadTilePolicy::fail;
};

/// `[pipeline]`
struct PipelineConfig {
  /// Where windows are transformed: `auto` takes the GPUs that are there. Default auto.
  Backend backend = Backend::automatic;
  /// Rows read at a time; rounded to whole tile rows (at least one). Host memory: rows x width bytes of a slot. Default
  /// 1024.
  int strip_height = 1024;
  /// Consecutive strips that share a slot; 0 chooses. Default 0.
  int batch_strips = 0;
  /// `strips`: a slide passes through the slots in batches. `whole`: the whole level is on its GPU at once, one batch a
  /// slide, whatever `batch_strips` and `split_slides` say; GPUs only. The same results. Default strips.
  Residency residency = Residency::strips;
  /// Slots, that is batches in flight: of each GPU, or of the CPU. Host memory: `memory_mib` is divided among all slots
  /// of all GPUs. Default 4.
  int queue_depth = 4;
  /// Threads of the run; 0 takes all that the machine allows this process. Default 0.
  int threads = 0;
  /// Host memory for slots and carried rows together, in MiB, taken from the system as it is touched. A strip that
  /// doesn't fit a slot is cut lower, and narrower, without changing the result. Default 640.
  int memory_mib = 640;
};

/// `[gpu]`
struct GpuConfig {
  /// CUDA devices to use; empty: all. Default all.
  std::vector<int> devices;
  /// Share of each device's free memory to take at start, 0 to 1. Default 0.8.
  double memory_fraction = 0.8;
  /// Whether one slide may be cut into pieces over several GPUs. Default auto.
  SplitSlides split_slides = SplitSlides::automatic;
};

/// Names of operators, as `operators.run` takes them. Each but the spectrum has a section of its own name; the
/// spectrum's is `[analysis]`.
inline constexpr std::array<std::string_view, 7> operator_names = {"spectrum", "identity", "sobel", "gaussian",
                                                                   "stain",    "tissue",   "model"};

/// `[operators]`
struct OperatorsConfig {
  /// What is computed from each slide in one pass: some of `operator_names`, each once, at least one. Default spectrum.
  std::vector<std::string> run = {"spectrum"};

  bool runs(std::string_view name) const { return std::find(run.begin(), run.end(), name) != run.end(); }
};

/// `[analysis]`
struct AnalysisConfig {
  /// Side N of the square windows, pixels, 8 to 4096, even. Default 256.
  int window = 256;
  /// Step S between windows in both directions, pixels, from 1. Default 128.
  int stride = 128;
  /// Radius of the separable Gaussian, pixels, 0 (off) to 16. Default 3.
  int smoothing_radius = 3;
  /// Standard deviation of the Gaussian, pixels. Default 1.4.
  double smoothing_sigma = 1.4;
  /// Value of a coefficient F: `log1p_db` 20 log10(1 + |F|), `db` 20 log10(max(|F|, 1e-6)), `linear` |F|. Default
  /// log1p_db.
  ValueKind value = ValueKind::log1p_db;
  /// Bins of the histogram, 1 to 65536. Default 1500.
  int bins = 1500;
  /// Range [low, high) that the bins divide, in dB (|F| when linear). Default 0 to 150.
  std::array<double, 2> range = {0.0, 150.0};
  /// Names of the statistics besides the distribution whose key `analysis.NAME` is true, such as "radial"; see
  /// `statistics`. Memory: 16 bytes a counter for every slide and thread. Default none.
  std::vector<std::string> statistics;
};

/// `[identity]`: the pixels themselves
struct IdentityConfig {
  /// `rgb` or `luminance`. Default rgb.
  PixelColour colour = PixelColour::rgb;
};

/// `[sobel]`: how steep the luminance is
struct SobelConfig {
  /// `uint8` rounded, `float32` exact. Default uint8.
  SobelOutput output = SobelOutput::uint8;
};

/// `[gaussian]`: smoothed pixels
struct GaussianConfig {
  /// Pixels, 0 (none) to 16. Default 3.
  int radius = 3;
  /// Standard deviation, pixels, 0.01 to 1000. Default 1.4.
  double sigma = 1.4;
  /// `rgb` or `luminance`. Default rgb.
  PixelColour colour = PixelColour::rgb;
};

/// `[stain]`: Macenko's normalisation
struct StainConfig {
  /// `normalised`, or one stain alone. Default normalised.
  StainOutput output = StainOutput::normalised;
  /// A slide whose stains are the reference; empty: the published ones. Default empty.
  std::string reference;
};

/// `[tissue]`: where tissue is
struct TissueConfig {
  /// `auto` finds it on a small level, `geojson` takes the outlines in SLIDE.geojson beside the slide. Default auto.
  TissueSource source = TissueSource::automatic;
  /// A window is tissue where at least this share of it is, 0 to 1. Default 0.5.
  double share = 0.5;
};

/// `[model]`: a network over tiles. What isn't set here (`automatic`, 0, -1, empty) the file MODEL.toml beside the
/// model says (`read_model_file`), else the model's own shapes, else the default that is named here.
struct ModelConfig {
  /// The network, as ONNX. Default empty: nothing can run.
  std::string file;
  /// A network that the calling program brings along, in place of a file; it has no key. Its description names it in
  /// results, and a run is only gone on with by one of the same description. Default null: the file's.
  std::shared_ptr<const Network> network;
  /// Side T of its square tiles, pixels; 0: the model's. Default 0.
  int tile = 0;
  /// Pixels that neighbours share, 0 to T / 2; -1: 0. Default -1.
  int overlap = -1;
  /// Tiles at a time; 0: the model's, or 16. Memory: that many tiles, in and out, for every session. Default 0.
  int batch = 0;
  /// What is subtracted of red, green and blue, and what the difference is divided by, both behind `scale`: three
  /// numbers; empty: 0 and 1. Default empty.
  std::vector<double> mean;
  std::vector<double> deviation;
  /// What 255 becomes: 1 or 255, usually; 0: 1. Default 0.
  double scale = 0.0;
  /// Micrometres a pixel of its tiles, 0.001 to 1000; 0: the level's own pixels. Default 0.
  double mpp = 0.0;
  /// `image`: pixels; `classes`: a channel a class; `vector`: features of a tile; `auto`: by the model's shape. Default
  /// auto.
  ModelOutput output = ModelOutput::automatic;
  /// Values of an image that become 0 and the largest of `sample`; [0, 0]: 0 and 1. Default [0, 0].
  std::array<double, 2> range = {0.0, 0.0};
  /// Samples of an image; `auto`: uint8. Default auto.
  ModelSample sample = ModelSample::automatic;
  /// `all` tiles, or those with `tissue` alone; `auto`: all. Default auto.
  ModelWhere where = ModelWhere::automatic;
  /// Sessions a device, which share the weights; 0: three a GPU, and one a thread on the CPU. Memory: a batch's each.
  /// Default 0.
  int sessions = 0;
  /// ONNX Runtime's library, or a folder that holds it; empty: what the environment names, the loader or Python finds.
  /// Default empty.
  std::string runtime;
  /// Where networks run. `auto`: on GPUs where the library and the machine have them. Default auto.
  ModelProvider provider = ModelProvider::automatic;
  /// `slide`: a batch holds tiles of one slide, which makes it the same whenever it is run; `mixed`: of several, which
  /// ones depends on timing. Memory: small slides that wait for others to fill a batch. `auto`: slide. Default auto.
  ModelBatches batches = ModelBatches::automatic;
};

/// `[image]`
struct ImageConfig {
  /// What image operators write: `ome-tiff`, a tiled pyramid in one file; `ome-zarr`, one in a folder of chunks; `dzi`,
  /// one in a folder of JPEG files, with a page that shows it; `none`. Default none.
  ImageFormat format = ImageFormat::none;
  /// How tiles are compressed: `jpeg` (uint8 of 1 or 3 channels, with loss; ome-tiff), `none`, `zstd`, `blosc-lz4`
  /// (ome-zarr), `copy` (ome-tiff, of the operator identity: level 0 has the slide's own JPEG tiles, the levels below
  /// are JPEG), or `auto`: jpeg where it can be, zstd for the rest; blosc-lz4 for ome-zarr, zstd where its version
  /// is 3. Default auto.
  ImageCompression compression = ImageCompression::automatic;
  /// What the other levels are with `copy`: `exact`, means of level 0's pixels; `shrink-on-load`, what tiles decode to
  /// at half size (libjpeg's scaled inverse DCT), and means of that, for which identity has to be alone. Default exact.
  CopyLevels copy_levels = CopyLevels::exact;
  /// Quality of JPEG, 1 to 100. Default 85.
  int quality = 85;
  /// Side of the square tiles in pixels, a multiple of 16, 16 to 4096; 0: what the format's readers like best, 256, and
  /// 1024 for ome-zarr.
  /// Host memory: some rows of tiles of every level of each image in flight. Default 0.
  int tile = 0;
  /// Levels of the pyramid, each half as wide and high as the one before; 0: down to one tile. Default 0.
  int levels = 0;
  /// Of zarr, for ome-zarr: 2 (OME-Zarr 0.4, a file a chunk) or 3 (0.5, a file a row of chunks). Default 2.
  int zarr_version = 2;
};

/// `[stitch]`: how what a network gives for overlapping tiles is put together
struct StitchConfig {
  /// How neighbours share the pixels that both have: `tent` linearly, `cosine` smoothly, `none` half each. Default
  /// tent.
  StitchWeights weights = StitchWeights::tent;
  /// Where the last tile of a row or column lies: `shift` moves it back into the image, `mirror` leaves it in step and
  /// mirrors what is outside. Default shift.
  StitchEdge edge = StitchEdge::shift;
  /// What a tile that fails does: `strict` fails its slide there, `lenient` leaves a hole; the slide fails then, and
  /// its image keeps its partial name. Default strict.
  StitchMode mode = StitchMode::strict;
  /// With `lenient`: seconds after a slide's first rows came to the network from which on tiles aren't given to the
  /// network any more; 0: no limit. Default 0.
  int deadline_seconds = 0;
  /// Host memory that stitching one slide may take, in MiB; a slide that would take more fails before it begins.
  /// Default 2048.
  int memory_mib = 2048;
};

/// `[output]`
struct OutputConfig {
  /// Folder for results, made when missing. Default "slidestream-out".
  std::string dir = "slidestream-out";
  /// Per-window mean and standard deviation. Host memory: 8 bytes a window of every slide in flight. Default none.
  MapFormat maps = MapFormat::none;
  /// Seconds between two times that the files of results are written while the run goes on; 0: at its end only. Default
  /// 60.
  int checkpoint_seconds = 60;
  /// How SQLite keeps `run.sqlite` whole: `wal`, `rollback` (for network file systems), `auto` asks the file system.
  /// Default auto.
  JournalMode journal = JournalMode::automatic;
};

/// Everything that decides a run.
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
  ImageConfig image;
  StitchConfig stitch;
  OutputConfig output;
};

/// Reads a TOML file over the defaults.
/// \throws ConfigError with `file:line:` for bad syntax, an unknown key (with the nearest valid name) or a bad value.
Config load_config(const std::filesystem::path& file);

/// The same from text; `origin` is what errors call the file.
Config parse_config(std::string_view toml, std::string_view origin);

/// Applies one `section.key=value`; the value is TOML, or a bare word where the key takes a name or a path.
/// \throws ConfigError that names the key, and the nearest valid one when it is unknown.
void apply_setting(Config& config, std::string_view assignment);

/// Checks values against each other (for example a range that is empty).
/// \throws ConfigError that names the key.
void validate(const Config& config);

/// Sets what `[model]` leaves open to what MODEL.toml beside the model says, which has a section `[model]` alone:
/// `m.toml` for `m.onnx`. Without the operator, the model's name or that file nothing changes, nor when it is called
/// again. \throws ConfigError as `load_config` does, and for keys that say where something lies or what a machine has.
void read_model_file(Config& config);

/// The configuration as TOML, every key with its comment; `parse_config` of it gives the same configuration.
std::string to_toml(const Config& config);

}  // namespace slidestream
