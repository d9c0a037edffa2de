#pragma once

#include <tiffio.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "synth/synth.hpp"
#include "synth/temporary_file.hpp"

/// \file
/// The TIFF side of a synthetic slide.

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

enum class StripCodec { jpeg, lzw };

/// Writes the directories of one slide, in order. Every call throws OutputError naming the file.
class AperioFile {
 public:
  AperioFile(const std::filesystem::path& file, bool big_tiff);
  ~AperioFile();
  AperioFile(const AperioFile&) = delete;
  AperioFile& operator=(const AperioFile&) = delete;

  /// Opens the directory of a level of `width` x `height` pixels.
  void begin_level(std::int64_t width, std::int64_t height, const SynthOptions& options,
                   std::span<const std::uint8_t> tables, const std::string& description);
  void write_tile(std::int64_t index, std::span<const std::uint8_t> bytes);
  void end_level();

  /// A whole directory of strips: thumbnail, label, macro.
  void write_picture(const Picture& picture, StripCodec codec, std::uint32_t subfile, const std::string& description);

  std::uint64_t size() const noexcept { return file_.size(); }

  /// Finishes the file and gives it its name.
  void publish();

 private:
  struct TiffDeleter {
    void operator()(TIFF* tiff) const { TIFFCleanup(tiff); }
  };
  template <typename... Values>
  void set(std::uint32_t tag, Values... values);
  void check(bool fine) const;

  TemporaryFile file_;
  std::uint64_t position_ = 0;
  std::unique_ptr<TIFF, TiffDeleter> tiff_;

  static tmsize_t read_some(thandle_t handle, void* to, tmsize_t length);
  static tmsize_t write_some(thandle_t handle, void* from, tmsize_t length);
  static toff_t seek(thandle_t handle, toff_t offset, int whence);
  static int close(thandle_t handle);
  static toff_t file_size(thandle_t handle);
};

}  // namespace slidestream::synth
