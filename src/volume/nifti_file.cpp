#include "volume/nifti_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "output/atomic_file.hpp"
#include "slide/formats.hpp"
#include "volume/gzip_writer.hpp"

namespace slidestream::volume {
namespace {

constexpr std::size_t piece = std::size_t{1} << 18;
/// Bytes that a byte of deflate can stand for: 258 in 2 bits.
constexpr std::uint64_t most_expansion = 1032;
/// Of a compressed file, bytes behind the samples.
constexpr std::size_t most_behind = std::size_t{16} << 20;

template <class Sample>
void convert(std::span<const std::byte> bytes, const NiftiHeader& header, float* values) noexcept {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Sample)) {
    std::array<std::byte, sizeof(Sample)> one;
    std::memcpy(one.data(), bytes.data() + at, sizeof one);
    if (header.swapped) std::ranges::reverse(one);
    Sample sample;
    std::memcpy(&sample, one.data(), sizeof sample);
    const auto value = static_cast<double>(sample);
    *values++ = static_cast<float>(header.scaled ? header.slope * value + header.inter : value);
  }
}

void convert(std::span<const std::byte> bytes, const NiftiHeader& header, float* values) noexcept {
  switch (header.type) {
    case ScalarType::uint8:
      return convert<std::uint8_t>(bytes, header, values);
    case ScalarType::int8:
      return convert<std::int8_t>(bytes, header, values);
    case ScalarType::uint16:
      return convert<std::uint16_t>(bytes, header, values);
    case ScalarType::int16:
      return convert<std::int16_t>(bytes, header, values);
    case ScalarType::uint32:
      return convert<std::uint32_t>(bytes, header, values);
    case ScalarType::int32:
      return convert<std::int32_t>(bytes, header, values);
    case ScalarType::uint64:
      return convert<std::uint64_t>(bytes, header, values);
    case ScalarType::int64:
      return convert<std::int64_t>(bytes, header, values);
    case ScalarType::float32:
      return convert<float>(bytes, header, values);
    case ScalarType::float64:
      return convert<double>(bytes, header, values);
  }
}

/// Whether a file is named as the one of a pair that has no header.
bool is_named_as_samples(const std::string& path) {
  return slidestream::has_suffix(path, ".img") || slidestream::has_suffix(path, ".img.gz");
}

}  // namespace

void NiftiFile::Close::operator()(gzFile_s* file) const noexcept { gzclose_r(file); }

NiftiFile::NiftiFile(std::string path) : path_(std::move(path)) {
  // A pipe isn't waited for.
  const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail(std::strerror(errno));
  struct ::stat status {};
  const bool known = ::fstat(descriptor, &status) == 0;
  if (known && S_ISREG(status.st_mode)) file_.reset(gzdopen(descriptor, "rb"));
  if (!file_) {
    ::close(descriptor);
    fail(known && !S_ISREG(status.st_mode) ? "not a regular file" : "can't be opened");
  }
  gzbuffer(file_.get(), piece);
  file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, NiftiHeader::largest> head{};
  at_ = fill(head);
  compressed_ = gzdirect(file_.get()) == 0;
  const auto bytes = std::span<const std::byte>(head).first(at_);
  if (is_named_as_samples(path_) && !begins_as_nifti(bytes)) {
    fail("its header lies in another file (.hdr); expected one file that holds both");
  }
  try {
    header_ = parse_nifti(bytes);
  } catch (const Error& error) {
    fail(error.what());
  }
  check_room();
}

void NiftiFile::fail(const std::string& what) const { throw SlideError(path_ + ": " + what); }

/// Reads until the span is full, or the file ends. \return bytes that were read
std::size_t NiftiFile::fill(std::span<std::byte> bytes) {
  std::size_t read = 0;
  while (read < bytes.size()) {
    const int count = gzread(file_.get(), bytes.data() + read, static_cast<unsigned>(bytes.size() - read));
    if (count > 0) {
      read += static_cast<std::size_t>(count);
      continue;
    }
    int code = Z_OK;
    const char* const text = gzerror(file_.get(), &code);
    if (code == Z_ERRNO) fail(std::strerror(errno));
    if (code == Z_BUF_ERROR) fail("cut short: its compressed data has no end");
    if (code == Z_MEM_ERROR) throw std::bad_alloc();
    if (count < 0) {
      // zlib calls a descriptor by its number, and names it first.
      const std::string_view all = text == nullptr ? "" : text;
      const std::size_t end = all.find(">: ");
      const std::string_view why = all.starts_with("<fd:") && end != std::string_view::npos ? all.substr(end + 3) : all;
      fail("its compressed data is damaged" + (why.empty() ? "" : ": " + std::string(why)));
    }
    break;
  }
  return read;
}

/// A piece at most, so that whoever waits for an end waits for no more.
std::size_t NiftiFile::fill(std::span<std::byte> bytes, const std::function<bool()>& give_up) {
  if (give_up && give_up()) throw StoppedError(path_ + ": was being read when the run gave it up");
  return fill(bytes);
}

void NiftiFile::check_room() const {
  const std::uint64_t end = header_.offset + header_.sample_bytes();
  const std::string says = "its header says " + std::to_string(header_.size[0]) + " x " +
                           std::to_string(header_.size[1]) + " x " + std::to_string(header_.size[2]) + " of " +
                           name_of(header_.type) + " from byte " + std::to_string(header_.offset) + " on, " +
                           std::to_string(end) + " bytes in all, and ";
  if (!compressed_ && end > file_bytes_) fail("cut short: " + says + "the file has " + std::to_string(file_bytes_));
  if (compressed_ && end / most_expansion > file_bytes_) {
    fail("cut short: " + says + std::to_string(file_bytes_) + " compressed bytes can't hold them");
  }
}

void NiftiFile::skip_to(std::uint64_t offset, const std::function<bool()>& give_up) {
  // Samples that begin inside what was read as the header's first bytes are read again.
  if (offset < at_) {
    if (gzrewind(file_.get()) != 0) fail("can't be read again from its beginning");
    at_ = 0;
  }
  std::vector<std::byte> passed(piece);
  while (at_ < offset) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(piece, offset - at_));
    const std::size_t read = fill(std::span(passed).first(count), give_up);
    at_ += read;
    if (read < count) fail("cut short: it ends at byte " + std::to_string(at_) + ", before its samples");
  }
}

/// Calls `put` with the place of a piece's first sample, its samples' bytes and their number.
template <class Put>
void NiftiFile::read_samples(const Put& put, const std::function<bool()>& give_up) {
  skip_to(header_.offset, give_up);
  const auto voxels = static_cast<std::size_t>(header_.voxels());
  const std::size_t width = bytes_of(header_.type);
  std::vector<std::byte> samples(piece);
  for (std::size_t done = 0; done < voxels;) {
    const std::size_t count = std::min(piece / width, voxels - done);
    const auto bytes = std::span(samples).first(count * width);
    const std::size_t read = fill(bytes, give_up);
    if (read < bytes.size()) {
      fail("cut short: " + std::to_string(done + read / width) + " of " + std::to_string(voxels) +
           " samples are there");
    }
    put(done, std::span<const std::byte>(bytes), count);
    done += count;
  }
  if (compressed_) read_to_end(give_up);
}

void NiftiFile::read(std::span<float> values, const std::function<bool()>& give_up) {
  if (values.size() != static_cast<std::size_t>(header_.voxels())) throw Error("internal: a volume of another size");
  read_samples([&](std::size_t first, std::span<const std::byte> bytes,
                   std::size_t) { convert(bytes, header_, values.data() + first); },
               give_up);
}

void NiftiFile::read_pieces(const std::function<void(std::size_t, std::span<const float>)>& visit,
                            const std::function<bool()>& give_up) {
  std::vector<float> values(piece);
  read_samples(
      [&](std::size_t first, std::span<const std::byte> bytes, std::size_t count) {
        convert(bytes, header_, values.data());
        visit(first, std::span<const float>(values).first(count));
      },
      give_up);
}

/// The checksum stands behind the last byte, and zlib compares it there.
void NiftiFile::read_to_end(const std::function<bool()>& give_up) {
  std::vector<std::byte> behind(piece);
  for (std::size_t done = 0; done < most_behind; done += piece) {
    if (fill(behind, give_up) < behind.size()) return;
  }
  fail("more than " + std::to_string(most_behind >> 20) + " MiB lie behind its samples");
}

void write_nifti(const std::filesystem::path& path, const NiftiHeader& like, ScalarType type, bool labels,
                 std::span<const std::byte> samples, const char* mark) {
  AtomicFile file(path);
  // The comment says whose file it is.
  write_gzip(file, mark, nifti_head(like, type, labels), samples);
  file.commit();
}

bool is_result(const std::filesystem::path& file) {
  std::error_code code;
  // Opening a FIFO would wait for its other end.
  if (!std::filesystem::is_regular_file(file, code)) return false;
  const std::string comment = gzip_header(written_mark);
  std::string head(comment.size(), '\0');
  std::ifstream in(file, std::ios::binary);
  return in.read(head.data(), static_cast<std::streamsize>(head.size())) && head == comment;
}

}  // namespace slidestream::volume
