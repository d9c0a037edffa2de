#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// \file
/// What a synthetic slide is written to.

namespace slidestream::synth {

/// A picture of interleaved RGB.
struct Picture {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;

  Picture() = default;
  Picture(int across, int down, std::uint8_t grey = 255);
  std::uint8_t* at(int x, int y) { return rgb.data() + (static_cast<std::size_t>(y) * width + x) * 3; }
  const std::uint8_t* at(int x, int y) const { return rgb.data() + (static_cast<std::size_t>(y) * width + x) * 3; }
};

/// Pictures beside the levels.
enum class Beside { thumbnail, label, macro };

/// One slide, written in order, which appears whole or not at all. Every call throws OutputError naming the file.
class SlideFile {
 public:
  SlideFile() = default;
  virtual ~SlideFile() = default;
  SlideFile(const SlideFile&) = delete;
  SlideFile& operator=(const SlideFile&) = delete;

  /// Opens a level of `width` x `height` pixels. \param tables  of JPEG, which all of its tiles need; or empty
  virtual void begin_level(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> tables,
                           const std::string& description) = 0;
  /// Indices ascend. Tiles that are left out are missing.
  virtual void write_tile(std::int64_t index, std::span<const std::uint8_t> bytes) = 0;
  virtual void end_level() = 0;

  virtual void write_picture(Beside which, const Picture& picture, const std::string& description) = 0;

  /// Bytes so far.
  virtual std::uint64_t size() const noexcept = 0;

  /// Finishes the slide and gives it its name.
  virtual void publish() = 0;
};

}  // namespace slidestream::synth
