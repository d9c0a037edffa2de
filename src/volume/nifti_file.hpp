#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "volume/nifti_header.hpp"

struct gzFile_s;

namespace slidestream::volume {

/// A NIfTI file that is open for reading, plain or gzip as its first bytes say. Used by one thread at a time.
///
/// A header may claim anything. So the samples must be in the file before anything is allocated for them: in a plain
/// file all of their bytes, in a compressed one no more bytes than as many compressed ones can hold.
class NiftiFile {
 public:
  /// Opens the file and reads its header. \throws SlideError in one line that names the file and the cause
  explicit NiftiFile(std::string path);

  const NiftiHeader& header() const noexcept { return header_; }

  /// Reads all samples, and a compressed file to its end, so that its checksum is compared. A value is
  /// slope x sample + inter in float64, rounded to float32 once. To be called once.
  /// \param values  `NiftiHeader::voxels` numbers, written. \param give_up  asked every 256 KiB; may be empty
  /// \throws SlideError; StoppedError when `give_up` says so
  void read(std::span<float> values, const std::function<bool()>& give_up = {});

  /// The same in pieces, in order, of which none is kept: `visit` gets the first one's place and the values.
  void read_pieces(const std::function<void(std::size_t first, std::span<const float> values)>& visit,
                   const std::function<bool()>& give_up = {});

 private:
  struct Close {
    void operator()(gzFile_s* file) const noexcept;
  };

  [[noreturn]] void fail(const std::string& what) const;
  std::size_t fill(std::span<std::byte> bytes);
  std::size_t fill(std::span<std::byte> bytes, const std::function<bool()>& give_up);
  void skip_to(std::uint64_t offset, const std::function<bool()>& give_up);
  template <class Put>
  void read_samples(const Put& put, const std::function<bool()>& give_up);
  void read_to_end(const std::function<bool()>& give_up);
  void check_room() const;

  std::string path_;
  std::uint64_t file_bytes_ = 0;
  bool compressed_ = false;
  std::unique_ptr<gzFile_s, Close> file_;
  std::uint64_t at_ = 0;  ///< of the uncompressed bytes
  NiftiHeader header_;
};

/// Stands in the first bytes of a result, as a comment that readers pass over.
inline constexpr const char* written_mark = "slidestream";
/// Likewise of a volume that was made up, which is no result. Begins with the other mark.
inline constexpr const char* made_up_mark = "slidestream synth";

/// Writes a gzip file with the version, size and geometry of `like`. It appears whole or not at all. Equal samples give
/// equal bytes. \param samples  in the order x, y, z, low byte first. \param mark  of the file. \throws OutputError
void write_nifti(const std::filesystem::path& path, const NiftiHeader& like, ScalarType type, bool labels,
                 std::span<const std::byte> samples, const char* mark = written_mark);

/// Whether a file has the mark of a result. It looks at the first bytes alone. False for what can't be read.
bool is_result(const std::filesystem::path& file);

}  // namespace slidestream::volume
