#include "synth/description.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace slidestream::synth {

namespace {

constexpr const char* library = "Aperio Image Library v11.2.1 ";
// Readers split the text of pictures at "\n" alone, that of slides at "\r\n": Aperio writes both.
constexpr const char* line_end = "\r\n";
constexpr const char* picture_line_end = "\n";

std::string size_text(std::int64_t width, std::int64_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

/// The shortest decimal that reads back as `value`, with four places at least; no locale has a say in it.
std::string decimal(double value) {
  char digits[64];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value, std::chars_format::fixed).ptr;
  std::string text(digits, end);
  if (text.find('.') == std::string::npos) text += '.';
  const std::size_t places = text.size() - text.find('.') - 1;
  return text + std::string(places < 4 ? 4 - places : 0, '0');
}

std::string codec_text(const SynthOptions& options) {
  const std::string quality = " Q=" + std::to_string(options.quality);
  switch (options.codec) {
    case SynthCodec::jpeg_rgb:
      return "JPEG/RGB" + quality;
    case SynthCodec::jpeg_grey:
      return "JPEG/GRAY" + quality;
    case SynthCodec::jpeg2000:
      return "J2K/KDU" + quality;
    case SynthCodec::none:
      return "RAW";
    default:
      return "JPEG/YCC" + quality;
  }
}

std::string tile_text(const SynthOptions& options) { return " (" + size_text(options.tile, options.tile) + ")"; }

std::string properties(const SynthOptions& options) {
  const std::string size = std::to_string(options.width);
  // 0.25 micrometres a pixel is what a 40 x objective gives.
  const auto magnification = std::max(1L, std::lround(10.0 / options.mpp));
  return "|AppMag = " + std::to_string(magnification) + "|ScanScope ID = SYNTHETIC|Title = slidestream synth, seed " +
         std::to_string(options.seed) + "|MPP = " + decimal(options.mpp) + "|OriginalWidth = " + size +
         "|OriginalHeight = " + std::to_string(options.height);
}

}  // namespace

std::string describe_slide(const SynthOptions& options) {
  const std::string size = size_text(options.width, options.height);
  return library + std::string(line_end) + size + " [0,0 " + size + "]" + tile_text(options) + " " +
         codec_text(options) + properties(options);
}

std::string describe_level(const SynthOptions& options, const LevelSize& size) {
  return library + std::string(line_end) + size_text(options.width, options.height) + tile_text(options) + " -> " +
         size_text(size.width, size.height) + " " + codec_text(options);
}

std::string describe_thumbnail(const SynthOptions& options, const Picture& thumbnail) {
  return library + std::string(picture_line_end) + size_text(options.width, options.height) + " -> " +
         size_text(thumbnail.width, thumbnail.height) + " - " + properties(options);
}

std::string describe_associated(const std::string& name, const Picture& picture) {
  return library + std::string(picture_line_end) + name + " " + size_text(picture.width, picture.height);
}

}  // namespace slidestream::synth
