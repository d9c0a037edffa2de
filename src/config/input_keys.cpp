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
            "Slides, folders, .list and .csv manifests, or \"-\" for a list on standard input. Relative paths start "
            "at the working directory; inside a manifest, at the manifest. Default none."),
      integer("input", "level", &Config::input, &InputConfig::level, 0, 63,
              "Pyramid level to analyse; 0 is full resolution. Default 0."),
      integer("input", "max_pixels", &Config::input, &InputConfig::max_pixels, 1, std::int64_t{1} << 46,
              "Largest width x height accepted, in pixels; a larger slide fails before anything is allocated. Default "
              "68719476736 (2^36)."),
      integer(
          "input", "max_tiles", &Config::input, &InputConfig::max_tiles, 1, std::int64_t{1} << 28,
          "Most tiles of a slide, over all its levels; a slide of more fails before its tables are read. Memory: 16 "
          "bytes per tile of each open slide. Default 2097152 (2^21)."),
      choice("input", "io", &Config::input, &InputConfig::io, io_names,
             "How tiles are read: posix (positional reads), uring (many at a time, Linux's io_uring), direct (past the "
             "system's cache, O_DIRECT), cufile (straight into a GPU's memory where the GPU decodes them, by NVIDIA's "
             "libcufile), or auto (for each slide: posix where half of it is cached; else direct where the run's "
             "slides, all taken as large, are more than half of the free memory, and uring where they are less). Where "
             "one can't be had: posix. Default auto."),
      integer("input", "retries", &Config::input, &InputConfig::retries, 0, 100,
              "Times that a read is tried again after an error that may pass (EIO, ESTALE, ETIMEDOUT, EMFILE, ENFILE): "
              "after 0.1 s, "
              "then twice as long each time, at most 30 s. Default 6 (about 6 s in all)."),
      integer(
          "input", "max_seconds", &Config::input, &InputConfig::max_seconds, 0, 30 * 86400,
          "Longest time to open a slide, and for the rest from its first strip on, in seconds; then it fails. Where a "
          "network runs the rest is from its first rows in the network on, and what that has under way is ended. 0 "
          "means no limit. "
          "Default 0."),
      choice("input", "content_hash", &Config::input, &InputConfig::content_hash, hash_names,
             "Whether a slide that was done is known by its content too, and not by size and time alone: none; changed "
             "(reads every slide once more, and again where its time differs); always (and again at every start). "
             "Default none."),
      micrometres("input", "mpp", &Config::input, &InputConfig::mpp,
                  "Micrometres per pixel of level 0, 0.001 to 1000, in place of what the slides say of themselves; "
                  "0 means what they say. The magnification becomes 10 / mpp. The column mpp of a CSV list gives "
                  "it for one slide, and goes before this key. Default 0.0."),
      micrometres("input", "mpp_default", &Config::input, &InputConfig::mpp_default,
                  "Micrometres per pixel of level 0, 0.001 to 1000, of slides that don't say it themselves, and of "
                  "such a stain.reference; 0 means that it isn't known. The magnification becomes 10 / mpp. "
                  "Default 0.0."),
      integer(
          "input", "channel", &Config::input, &InputConfig::channel, -1, 65535,
          "Channel, from 0, of slides that have several: it is read as grey, one of three samples as RGB. Images of a "
          "grey one have three equal channels, as those of grey slides, but for identity.colour = luminance. -1 "
          "refuses such slides. Default -1."),
      choice("input", "colour", &Config::input, &InputConfig::colour, input_colour_names,
             "Colours of slides that have an ICC profile: file (as they are coded), or srgb (converted to sRGB before "
             "anything else, relative colorimetric; images get sRGB's profile). Grey slides and those without a usable "
             "profile stay as they are, with a line and 0 in the column srgb of slides.csv. auto is srgb for Deep Zoom "
             "images of slides whose profile isn't sRGB's, in runs that make nothing else, and file otherwise. Default "
             "auto."),
      path("input", "openslide", &Config::input, &InputConfig::openslide,
           "OpenSlide, which reads slides that have no reader here: its library (libopenslide.so.1), or a folder that "
           "holds it; auto means what the environment's SLIDESTREAM_OPENSLIDE names, else where the system or Python's "
           "package openslide_bin has it; never refuses such slides. Default auto."),
      choice("decode", "device", &Config::decode, &DecodeConfig::device, decode_names,
             "Where tiles of JPEG and JPEG 2000 are decoded: cpu, gpu, or auto (where the windows are transformed). "
             "Default auto."),
      choice("decode", "on_bad_tile", &Config::decode, &DecodeConfig::on_bad_tile, bad_tile_names,
             "What a tile that can't be decoded does: fail its slide (the others go on), or become white, counted and "
             "reported. Default fail."),
  };
}

}  // namespace slidestream
