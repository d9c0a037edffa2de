// Any bytes are a NIfTI header that is kept to, or an error of one line: what a file's size and samples are is checked
// before anything is taken for them, plain and compressed.

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "volume/nifti_file.hpp"
#include "volume/nifti_header.hpp"

namespace {

using namespace slidestream;
using namespace slidestream::volume;

constexpr std::int64_t most_voxels = std::int64_t{1} << 20;

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

void require_line(const std::string_view message) {
  require(!message.empty() && message.find_first_of("\r\n") == std::string_view::npos);
}

void check_header(const std::span<const std::byte> bytes) {
  try {
    const NiftiHeader header = parse_nifti(bytes);
    require(header.version == 1 || header.version == 2);
    for (const std::int64_t side : header.size) require(side >= 1);
    require(header.voxels() > 0 &&
            header.sample_bytes() / bytes_of(header.type) == static_cast<std::uint64_t>(header.voxels()));
    static_cast<void>(header.geometry.voxel_mm3());
    static_cast<void>(header.geometry.spacing_mm());
    // What is written of it can be read, and says the same.
    const std::vector<std::byte> head = nifti_head(header, ScalarType::uint8, true);
    const NiftiHeader again = parse_nifti(head);
    require(again.size == header.size && again.version == header.version && again.type == ScalarType::uint8);
  } catch (const Error& error) {
    require_line(error.what());
  }
}

void check_file(const std::string& path) {
  try {
    NiftiFile file(path);
    if (file.header().voxels() > most_voxels) return;
    std::vector<float> values(static_cast<std::size_t>(file.header().voxels()));
    file.read(values);
  } catch (const SlideError& error) {
    require_line(error.what());
    require(std::string_view(error.what()).starts_with(path));
  }
}

const std::string& folder() {
  static const std::string made = [] {
    std::string name = (std::filesystem::temp_directory_path() / "nifti-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    return name;
  }();
  return made;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check_header(std::as_bytes(std::span(data, size)));
  const std::string plain = folder() + "/fuzz.nii";
  std::ofstream(plain, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  check_file(plain);
  const std::string compressed = plain + ".gz";
  const gzFile out = gzopen(compressed.c_str(), "wb1");
  require(out != nullptr);
  if (size > 0) gzwrite(out, data, static_cast<unsigned>(size));
  gzclose(out);
  check_file(compressed);
  return 0;
}
