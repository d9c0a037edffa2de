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
            "Slides, folders, lists (.list, .csv), or \"-\": a list on standard input. Paths in lists start at the "
            "list's folder. Default none."),
      integer("input", "level", &Config::input, &InputConfig::level, 0, 63,
              "Pyramid level; 0: full resolution. Default 0."),
      integer("input", "max_pixels", &Config::input, &InputConfig::max_pixels, 1, std::int64_t{1} << 46,
              "Most pixels per level, or voxels per volume. Slides with more fail. Default "
              "68719476736 (2^36)."),
      integer("input", "max_tiles", &Config::input, &InputConfig::max_tiles, 1, std::int64_t{1} << 28,
              "Most tiles per slide, over all levels. Slides with more fail. Memory: 16 bytes per tile of each open "
              "slide. Default 2097152 (2^21)."),
      choice("input", "io", &Config::input, &InputConfig::io, io_names,
             "How tiles are read (docs/tuning.md): posix, uring (io_uring), direct (O_DIRECT), cufile (libcufile, into "
             "a GPU's memory), or auto: chosen per slide. If unavailable: posix. Default auto."),
      integer("input", "retries", &Config::input, &InputConfig::retries, 0, 100,
              "Retries of opening or reading after EIO, ESTALE, ETIMEDOUT, EMFILE and ENFILE, and 8 more without a "
              "free file descriptor. Waits double from 0.1 s to 30 s. Default 6 (about 6 s)."),
      integer("input", "max_seconds", &Config::input, &InputConfig::max_seconds, 0, 30 * 86400,
              "Seconds for opening a slide, and from its first strip on (with a network, its first rows there). Slower "
              "slides fail. 0: no limit. Default 0."),
      choice("input", "content_hash", &Config::input, &InputConfig::content_hash, hash_names,
             "How a resumed run tells that a finished slide is unchanged. none: size and time. changed: size, and a "
             "hash of the content if the time differs. always: size and hash, which reads slides at every start. "
             "Default none."),
      micrometres("input", "mpp", &Config::input, &InputConfig::mpp,
                  "Micrometres per pixel of level 0, 0.001 to 1000; 0: the slides' own. Magnification becomes 10 / "
                  "mpp. A CSV list's column mpp overrides it. Default 0.0."),
      micrometres("input", "mpp_default", &Config::input, &InputConfig::mpp_default,
                  "The same for slides without, also for stain.reference; 0: unknown. Default 0.0."),
      integer("input", "channel", &Config::input, &InputConfig::channel, -1, 65535,
              "Channel, from 0, of slides with several: grey, or RGB if it has three samples. -1 refuses them, except "
              "planes that OME-XML names red, green and blue. Default -1."),
      choice("input", "colour", &Config::input, &InputConfig::colour, input_colour_names,
             "Colours of slides with an ICC profile (docs/formats.md). file: as coded. srgb: converted, or unchanged "
             "with a warning. auto: srgb in runs that only make Deep Zoom images, except for sRGB's profiles; else "
             "file. Default auto."),
      path("input", "openslide", &Config::input, &InputConfig::openslide,
           "OpenSlide's libopenslide.so.1, or its folder, for slides without a reader here. auto: searched "
           "(docs/formats.md). never: not used. Default auto."),
      choice("decode", "device", &Config::decode, &DecodeConfig::device, decode_names,
             "Where tiles are decoded: cpu, or gpu: JPEG, JPEG 2000 and uncompressed tiles on GPUs, others on the CPU; "
             "fails without GPUs. auto: gpu if the run uses GPUs. Default auto."),
      choice("decode", "on_bad_tile", &Config::decode, &DecodeConfig::on_bad_tile, bad_tile_names,
             "Tiles that can't be decoded. fail: their slide fails. white: white, counted and reported. "
             "Default fail."),
  };
}

}  // namespace slidestream
