#pragma once

#include <tiffio.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "synth/slide_file.hpp"
#include "synth/synth.hpp"
#include "synth/temporary_file.hpp"

/// \file
/// The TIFF side of a synthetic slide.

namespace slidestream::synth {

/// A TIFF file as Aperio writes them.
class AperioFile final : public SlideFile {
 public:
  AperioFile(const std::filesystem::path& file, const SynthOptions& options, bool big_tiff);
  ~AperioFile() override;

  void begin_level(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> tables,
                   const std::string& description) override;
  void write_tile(std::int64_t index, std::span<const std::uint8_t> bytes) override;
  void end_level() override;
  /// A whole directory of strips.
  void write_picture(Beside which, const Picture& picture, const std::string& description) override;
  std::uint64_t size() const noexcept override { return file_.size(); }
  void publish() override;

 private:
  struct TiffDeleter {
    void operator()(TIFF* tiff) const { TIFFCleanup(tiff); }
  };
  template <typename... Values>
  void set(std::uint32_t tag, Values... values);
  void check(bool fine) const;

  SynthOptions options_;
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
