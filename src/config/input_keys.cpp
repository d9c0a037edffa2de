#include "config/input_keys.hpp"

#include <string>

#include "config/key_makers.hpp"

namespace slidestream {

std::vector<ConfigKey> input_keys() {
  static const std::vector<std::string> io_names = {"auto", "posix", "uring", "direct", "cufile"};
  static const std::vector<std::string> input_colour_names = {"auto", "file", "srgb"};
  static const std::vector<std::string> decode_names = {"auto", "cpu", "gpu"};
  static const std::vector<std::string> bad_tile_names = {"fail", "white"};
  static const std::vector<std::string> hash_names = {"none", "changed", "always"};
  return {
      plain("input", "slides", KeyKind::texts, &Config::input, &InputConfig::slides,
            "Slides, folders, .list and .csv manifests, or \"-\" for a list on standard input. Relative paths start at "
            "the working directory, in a manifest at its folder. Default none."),
      integer("input", "level", &Config::input, &InputConfig::level, 0, 63,
              "Pyramid level to analyse; 0 is full resolution. Default 0."),
      integer("input", "max_pixels", &Config::input, &InputConfig::max_pixels, 1, std::int64_t{1} << 46,
              "Most pixels per level (width x height), or voxels per volume. A slide with more fails before anything "
              "is allocated. Default 68719476736 (2^36)."),
      integer("input", "max_tiles", &Config::input, &InputConfig::max_tiles, 1, std::int64_t{1} << 28,
              "Most tiles per slide, over all levels. A slide with more fails before its tables are read. Memory: 16 "
              "bytes per tile of each open slide. Default 2097152 (2^21)."),
      choice("input", "io", &Config::input, &InputConfig::io, io_names,
             "How tiles are read. posix: positional reads. uring: many reads at a time (Linux's io_uring). direct: "
             "reads that bypass the system's cache (O_DIRECT). cufile: reads into a GPU's memory (NVIDIA's libcufile), "
             "if the GPU decodes the slide. auto chooses per slide: posix if half of it is cached. Otherwise direct if "
             "all slides, assumed to be as large, exceed half of the free memory, else uring. A method that isn't "
             "available falls back to posix. Default auto."),
      integer("input", "retries", &Config::input, &InputConfig::retries, 0, 100,
              "Retries of opening or reading after an error that may be temporary (EIO, ESTALE, ETIMEDOUT, EMFILE, "
              "ENFILE). The first waits 0.1 s, each further one twice as long, at most 30 s. A slide gets 8 more if no "
              "file descriptor is free. Default 6 (about 6 s in all)."),
      integer("input", "max_seconds", &Config::input, &InputConfig::max_seconds, 0, 30 * 86400,
              "Time limit in seconds for opening a slide, and for the rest from its first strip on. With a network, "
              "the rest starts at its first rows in the network. A slide that takes longer fails, and its network runs "
              "are ended. 0 means no limit. Default 0."),
      choice("input", "content_hash", &Config::input, &InputConfig::content_hash, hash_names,
             "How a resumed run tells that a finished slide hasn't changed. none: by size and time. changed: by size, "
             "and by a hash of the content if the time differs. always: by size and hash. The hash reads each slide "
             "once more; always reads it again at every start. Default none."),
      micrometres(
          "input", "mpp", &Config::input, &InputConfig::mpp,
          "Micrometres per pixel of level 0, 0.001 to 1000, instead of the slides' own; 0 means their own. The "
          "magnification becomes 10 / mpp. The column mpp of a CSV list overrides this key per slide. Default 0.0."),
      micrometres("input", "mpp_default", &Config::input, &InputConfig::mpp_default,
                  "Micrometres per pixel of level 0, 0.001 to 1000, for slides that don't state it, also for "
                  "stain.reference; 0 means unknown. The magnification becomes 10 / mpp. Default 0.0."),
      integer("input", "channel", &Config::input, &InputConfig::channel, -1, 65535,
              "Channel, from 0, of slides with several. It is read as grey, or as RGB if it has three samples. RGB "
              "images of a grey channel have three equal channels. -1 refuses slides with several channels, except "
              "planes that OME-XML names red, green and blue. Default -1."),
      choice("input", "colour", &Config::input, &InputConfig::colour, input_colour_names,
             "Colours of slides with an ICC profile. file: as coded. srgb: converted to sRGB before anything else "
             "(relative colorimetric); images get sRGB's profile. Grey slides and those without a usable profile stay "
             "unchanged, with a warning and 0 in the column srgb of slides.csv. auto: srgb in runs that only make Deep "
             "Zoom images, for slides whose profile isn't sRGB's; else file. Memory: the table of a profile, at most "
             "64 MiB, for each open slide with another one. Default auto."),
      path("input", "openslide", &Config::input, &InputConfig::openslide,
           "OpenSlide's library (libopenslide.so.1), or a folder that holds it, for slides that have no reader here. "
           "auto: the environment's SLIDESTREAM_OPENSLIDE, else the system's library, else that of Python's package "
           "openslide_bin. never: such slides are refused. Default auto."),
      choice("decode", "device", &Config::decode, &DecodeConfig::device, decode_names,
             "Where tiles are decoded. cpu: on the CPU. gpu: JPEG, JPEG 2000 and uncompressed tiles on GPUs, others on "
             "the CPU; fails without GPUs. auto: as gpu if the run uses GPUs, else cpu. Default auto."),
      choice("decode", "on_bad_tile", &Config::decode, &DecodeConfig::on_bad_tile, bad_tile_names,
             "What happens if a tile can't be decoded. fail: its slide fails, and others continue. white: the tile "
             "becomes white, and is counted and reported. Default fail."),
  };
}

}  // namespace slidestream
