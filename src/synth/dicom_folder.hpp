#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sink/dicom_uid.hpp"
#include "sink/final_name.hpp"
#include "synth/slide_file.hpp"
#include "synth/synth.hpp"
#include "synth/temporary_file.hpp"

/// \file
/// The DICOM side of a synthetic slide.

namespace slidestream::synth {

/// A folder of whole-slide instances: level-0.dcm and so on, or level-0-1.dcm where level 0 is divided; label.dcm,
/// overview.dcm and thumbnail.dcm. UIDs follow from the options. A folder of that name is replaced if it holds nothing
/// but `.dcm` files.
class DicomFolder final : public SlideFile {
 public:
  DicomFolder(std::filesystem::path folder, const SynthOptions& options);
  ~DicomFolder() override;

  void begin_level(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> tables,
                   const std::string& description) override;
  void write_tile(std::int64_t index, std::span<const std::uint8_t> bytes) override;
  void end_level() override;
  void write_picture(Beside which, const Picture& picture, const std::string& description) override;
  std::uint64_t size() const noexcept override { return size_; }
  void publish() override;

 private:
  /// A frame in the level's temporary file: its bytes, with the header of an item where there is one.
  struct Frame {
    std::int64_t tile = 0;
    std::uint64_t at = 0;
    std::uint64_t bytes = 0;  ///< of the tile alone
  };
  struct Image;

  bool encapsulated() const noexcept { return options_.codec != SynthCodec::none; }
  void spill(std::span<const std::uint8_t> bytes);
  void write_part(const Image& image, std::int64_t part, std::int64_t parts);
  void write_file(const std::string& name, std::span<const std::byte> head, std::uint64_t from, std::uint64_t bytes,
                  std::span<const std::byte> tail);
  std::string uid(const std::string& role) const;

  std::filesystem::path folder_;
  FinalName final_;
  SynthOptions options_;
  std::filesystem::path made_;  ///< the folder until it is published
  DicomHash identity_;
  std::uint64_t size_ = 0;
  int level_ = -1;
  std::int64_t width_ = 0;  ///< of the level
  std::int64_t height_ = 0;
  std::int64_t level_0_width_ = 0;
  std::vector<std::uint8_t> tables_;
  std::vector<Frame> frames_;
  std::optional<TemporaryFile> spilled_;
};

}  // namespace slidestream::synth
