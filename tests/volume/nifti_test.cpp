#include <doctest/doctest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"
#include "volume/nifti_file.hpp"
#include "volume/nifti_header.hpp"
#include "volume/synth_volume.hpp"

namespace slidestream::volume {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

NiftiHeader small_header(int version) {
  NiftiHeader header;
  header.version = version;
  header.size = {4, 3, 2};
  header.geometry.pixdim = {-1.0, 1.5, 0.5, 2.0};
  header.geometry.units = 2;
  header.geometry.sform_code = 1;
  header.geometry.qform_code = 4;
  header.geometry.quatern = {0.25, -0.5, 0.125};
  header.geometry.qoffset = {-90, 126, -72};
  header.geometry.srow = {1.5, 0, 0, -90, 0, 0.5, 0, 126, 0, 0, 2, -72};
  return header;
}

template <class Number>
void put(std::vector<std::byte>& bytes, std::size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::string cause_of(const std::vector<std::byte>& bytes) {
  try {
    parse_nifti(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<std::byte> file_bytes(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

std::vector<float> values_of(const fs::path& path) {
  NiftiFile file(path.string());
  std::vector<float> values(static_cast<std::size_t>(file.header().voxels()));
  file.read(values);
  return values;
}

std::string failure_of(const fs::path& path) {
  try {
    values_of(path);
  } catch (const SlideError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a NIfTI header that was written is read again") {
  for (const int version : {1, 2}) {
    const NiftiHeader header = small_header(version);
    const NiftiHeader read = parse_nifti(nifti_head(header, ScalarType::int16, true));
    CHECK(read.version == version);
    CHECK(read.size == header.size);
    CHECK(read.type == ScalarType::int16);
    CHECK_FALSE(read.scaled);
    CHECK(read.offset == (version == 1 ? 352 : 544));
    CHECK(read.geometry.pixdim == header.geometry.pixdim);
    CHECK(read.geometry.quatern == header.geometry.quatern);
    CHECK(read.geometry.qoffset == header.geometry.qoffset);
    CHECK(read.geometry.srow == header.geometry.srow);
    CHECK(read.geometry.sform_code == 1);
    CHECK(read.geometry.qform_code == 4);
    CHECK(read.geometry.units == 2);
    CHECK(read.geometry.voxel_mm3() == 1.5);
  }
}

TEST_CASE("the volume of a voxel comes from the affine, else from its sides") {
  NiftiGeometry geometry;
  geometry.pixdim = {1, 2, 3, 4};
  CHECK(geometry.voxel_mm3() == 24);
  geometry.units = 3;
  CHECK(geometry.voxel_mm3() == doctest::Approx(24e-9));
  geometry.units = 1;
  CHECK(geometry.voxel_mm3() == 24e9);
  geometry.units = 2;
  geometry.sform_code = 1;
  geometry.srow = {0, 2, 0, 5, -1, 0, 0, 6, 0, 0, 3, 7};
  CHECK(geometry.voxel_mm3() == 6);
  geometry.srow[10] = 0;
  CHECK(std::isnan(geometry.voxel_mm3()));
}

TEST_CASE("an sform that contradicts the qform gets a line with both") {
  NiftiGeometry geometry;
  geometry.units = 2;
  geometry.sform_code = 1;
  geometry.qform_code = 1;
  // Half a turn around z: x leads to the left, y backwards.
  geometry.pixdim = {1, 0.5, 0.5, 0.5};
  geometry.quatern = {0, 0, 1};
  const auto diagonal = [&](double x, double y, double z) { geometry.srow = {x, 0, 0, 9, 0, y, 0, 9, 0, 0, z, 9}; };
  diagonal(-0.5, -0.5, 0.504);
  CHECK(geometry.doubt().empty());
  diagonal(-1, -1, 1);
  CHECK(geometry.doubt() ==
        "its sform (1 x 1 x 1 mm, axes LPS) contradicts its qform (0.5 x 0.5 x 0.5 mm, axes LPS): the sform counts");
  diagonal(-0.5, -0.5, 0.55);
  CHECK_FALSE(geometry.doubt().empty());
  diagonal(0.5, -0.5, 0.5);
  CHECK(geometry.doubt() ==
        "its sform (0.5 x 0.5 x 0.5 mm, axes RPS) contradicts its qform (0.5 x 0.5 x 0.5 mm, axes LPS): the sform "
        "counts");
  // The sign of the third axis is qfac's.
  geometry.pixdim[0] = -1;
  diagonal(-0.5, -0.5, -0.5);
  CHECK(geometry.doubt().empty());
  geometry.pixdim[0] = 1;
  CHECK_FALSE(geometry.doubt().empty());
  for (int* code : {&geometry.qform_code, &geometry.sform_code}) {
    *code = 0;
    CHECK(geometry.doubt().empty());
    *code = 1;
  }
  // Axes that are permuted, in micrometres.
  geometry.units = 3;
  geometry.quatern = {0.5, 0.5, 0.5};
  geometry.srow = {0, 0, 0.5, 0, 0.5, 0, 0, 0, 0, 0.5, 0, 0};
  CHECK(geometry.doubt().empty());
  diagonal(0.5, 0.5, 0.5);
  CHECK(geometry.doubt() ==
        "its sform (0.0005 x 0.0005 x 0.0005 mm, axes RAS) contradicts its qform (0.0005 x 0.0005 x 0.0005 mm, axes "
        "ASR): the sform counts");
  // What says nothing.
  geometry.pixdim[1] = 0;
  CHECK(geometry.doubt().empty());
}

TEST_CASE("a qform that is no rotation gets a line, with an sform and without") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  NiftiGeometry geometry;
  geometry.qform_code = 1;
  geometry.pixdim = {1, 2, 2, 2};
  geometry.srow = {1, 0, 0, 9, 0, 1, 0, 9, 0, 0, 1, 9};
  for (const int sform_code : {0, 1}) {
    geometry.sform_code = sform_code;
    geometry.quatern = {0.5, -0.75, 0.5};
    CHECK(geometry.doubt() ==
          "its qform is no rotation (quatern_b, c, d = 0.5, -0.75, 0.5): it is copied as it is, and other readers may "
          "refuse it");
    for (const double odd : {nan, std::numeric_limits<double>::infinity()}) {
      geometry.quatern = {0, odd, 0};
      CHECK(geometry.doubt().starts_with("its qform is no rotation"));
    }
  }
  geometry.qform_code = 0;
  CHECK(geometry.doubt().empty());
  // Rounded to float32.
  geometry.qform_code = 1;
  geometry.sform_code = 0;
  geometry.quatern = {0, 1.0000001, 0};
  CHECK(geometry.doubt().empty());
}

TEST_CASE("headers that can't be used say why") {
  const std::vector<std::byte> good = nifti_head(small_header(1), ScalarType::int16, false);
  const auto with = [&](std::size_t at, auto value) {
    std::vector<std::byte> bytes = good;
    put(bytes, at, value);
    return cause_of(bytes);
  };
  using std::int16_t;
  CHECK(cause_of(good).empty());
  CHECK(cause_of({}) == "no NIfTI file: it has 0 bytes");
  CHECK(with(0, 1234) == "no NIfTI file: it doesn't begin with 348 or 540, the size of a header");
  CHECK(with(344, 'x') == "no NIfTI file: its magic bytes are wrong");
  CHECK(with(345, 'i') == "its samples lie in another file (.img); expected one file that holds both");
  CHECK(with(40, int16_t{0}) == "its header says 0 dimensions; expected 3");
  CHECK(with(40, int16_t{9}) == "its header says 9 dimensions; expected 3");
  CHECK(with(42, int16_t{-4}) == "its header says -4 samples along dimension 1");
  CHECK(with(70, int16_t{128}) == "its samples are RGB; expected one real number each");
  CHECK(with(70, int16_t{1536}) == "its samples are float128; expected one real number each");
  CHECK(with(70, int16_t{77}) == "its samples are the unknown type 77; expected one real number each");
  CHECK(with(72, int16_t{8}) == "its header says 8 bits per sample of int16; expected 16");
  CHECK(with(108, -5.0F) == "its header says that samples begin at an impossible byte (vox_offset)");
  CHECK(with(108, std::numeric_limits<float>::quiet_NaN()) ==
        "its header says that samples begin at an impossible byte (vox_offset)");
  CHECK(with(108, 2147483648.0F) ==
        "its header says that samples begin at byte 2147483648 (vox_offset); expected 352 to 1073741824");
  CHECK(with(108, 348.0F) == "its header says that samples begin at byte 348 (vox_offset); expected 352 to 1073741824");
  CHECK(with(108, 0.0F).empty());
  CHECK(with(108, 1073741824.0F).empty());
  CHECK(with(116, std::numeric_limits<float>::infinity()) ==
        "its header has a slope, but scl_inter is no finite number");
  std::vector<std::byte> series = good;
  put(series, 40, int16_t{4});
  put(series, 48, int16_t{7});
  CHECK(cause_of(series) == "it has 7 volumes along dimension 4; expected one 3-D volume");
  put(series, 48, int16_t{1});
  CHECK(cause_of(series).empty());
  for (std::size_t length = 0; length < 348; ++length) {
    REQUIRE_FALSE(cause_of({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)}).empty());
  }
}

TEST_CASE("sizes of NIfTI-2 that no memory holds are refused") {
  std::vector<std::byte> bytes = nifti_head(small_header(2), ScalarType::float64, false);
  for (const std::size_t at : {24, 32, 40}) put(bytes, at, std::numeric_limits<std::int64_t>::max());
  CHECK(cause_of(bytes) == "its header says more than 2^40 samples");
  for (const std::size_t at : {24, 32, 40}) put(bytes, at, std::int64_t{1} << 21);
  CHECK(cause_of(bytes) == "its header says more than 2^40 samples");
}

TEST_CASE("samples that were written are read again, and equal samples are equal files") {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> labels(24);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint16_t>(i * 2500);
  for (const int version : {1, 2}) {
    for (const char* name : {"a.nii.gz", "b.nii.gz"}) {
      write_nifti(folder.path() / name, small_header(version), ScalarType::uint16, true,
                  std::as_bytes(std::span<const std::uint16_t>(labels)));
    }
    CHECK(file_bytes(folder.path() / "a.nii.gz") == file_bytes(folder.path() / "b.nii.gz"));
    CHECK(values_of(folder.path() / "a.nii.gz") == std::vector<float>(labels.begin(), labels.end()));
  }
}

TEST_CASE("results have a mark, and volumes of others and made-up ones have none") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nii.gz";
  const std::vector<std::byte> samples(24);
  write_nifti(path, small_header(1), ScalarType::uint8, true, samples);
  CHECK(is_result(path));
  // The same without a comment in its head, as other programs write it.
  std::vector<std::byte> bytes = file_bytes(path);
  bytes.erase(bytes.begin() + 10, bytes.begin() + 10 + static_cast<std::ptrdiff_t>(std::strlen(written_mark)) + 1);
  bytes[3] = std::byte{0};
  write_bytes(path, bytes);
  CHECK(values_of(path) == std::vector<float>(24));
  CHECK_FALSE(is_result(path));
  write_synthetic_volume(path, {2, 3, 4}, 1);
  CHECK_FALSE(is_result(path));
  write_bytes(path, {});
  CHECK_FALSE(is_result(path));
  CHECK_FALSE(is_result(folder.path()));
  CHECK_FALSE(is_result(folder.path() / "none.nii.gz"));
}

TEST_CASE("files that are cut short or changed are refused in one line with their name") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nii.gz";
  std::vector<std::uint16_t> labels(24, 7);
  labels[5] = 9;
  write_nifti(path, small_header(1), ScalarType::uint16, true, std::as_bytes(std::span<const std::uint16_t>(labels)));
  const std::vector<std::byte> whole = file_bytes(path);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    write_bytes(path, std::span(whole).first(length));
    const std::string failure = failure_of(path);
    REQUIRE(failure.starts_with(path.string() + ": "));
    REQUIRE(failure.find('\n') == std::string::npos);
  }
  // Some bits of compressed data stand for nothing.
  const std::vector<float> values(labels.begin(), labels.end());
  for (std::size_t at = 10; at < whole.size(); ++at) {
    std::vector<std::byte> changed = whole;
    changed[at] ^= std::byte{0x10};
    write_bytes(path, changed);
    CAPTURE(at);
    if (failure_of(path).empty()) REQUIRE(values_of(path) == values);
  }
}

TEST_CASE("a plain file that is shorter than its header says is refused before memory is taken") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nii";
  NiftiHeader header = small_header(2);
  header.size = {30000, 30000, 900};
  std::vector<std::byte> bytes = nifti_head(header, ScalarType::float32, false);
  write_bytes(path, bytes);
  CHECK_THROWS_WITH_AS(NiftiFile(path.string()),
                       (path.string() + ": cut short: its header says 30000 x 30000 x 900 of float32 from byte 544 on, "
                                        "3240000000544 bytes in all, and the file has 544")
                           .c_str(),
                       SlideError);
  // Compressed, as few bytes can't hold that.
  write_nifti(path, header, ScalarType::float32, false, {});
  CHECK_THROWS_AS(NiftiFile(path.string()), SlideError);
  CHECK_THROWS_WITH_AS(NiftiFile(folder.path().string()), (folder.path().string() + ": not a regular file").c_str(),
                       SlideError);
  CHECK_THROWS_AS(NiftiFile((folder.path() / "none.nii").string()), SlideError);
}

TEST_CASE("the samples of a pair are told by their name") {
  const TemporaryFolder folder;
  const std::vector<std::byte> samples(400, std::byte{7});
  const std::string cause = ": its header lies in another file (.hdr); expected one file that holds both";
  for (const char* name : {"p.img", "P.IMG", "p.img.gz"}) {
    const fs::path path = folder.path() / name;
    write_bytes(path, samples);
    CHECK(failure_of(path) == path.string() + cause);
  }
  write_bytes(folder.path() / "p.nii", samples);
  CHECK(failure_of(folder.path() / "p.nii").ends_with("it doesn't begin with 348 or 540, the size of a header"));
  // One that holds both is read under any name.
  const fs::path whole = folder.path() / "whole.img";
  write_nifti(whole, small_header(1), ScalarType::uint8, true, std::vector<std::byte>(24));
  CHECK(failure_of(whole).empty());
}

TEST_CASE("who reads a volume may give it up, in front of the samples, in them and behind them") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nii.gz";
  NiftiHeader header = small_header(1);
  header.size = {1024, 1024, 1};
  const std::vector<std::byte> samples(std::size_t{2} << 20);
  write_nifti(path, header, ScalarType::uint8, true, samples);
  std::vector<float> values(std::size_t{1} << 20);
  const auto questions = [&](int last) {
    NiftiFile file(path.string());
    int asked = 0;
    const auto give_up = [&] { return ++asked == last; };
    if (last == 0) {
      file.read(values, give_up);
    } else {
      CHECK_THROWS_WITH_AS(file.read(values, give_up),
                           (path.string() + ": was being read when the run gave it up").c_str(), StoppedError);
    }
    return asked;
  };
  // Pieces of 256 KiB.
  const int all = questions(0);
  CHECK(all >= 8);
  for (int last = 1; last <= all; ++last) CHECK(questions(last) == last);
}

TEST_CASE("little may lie behind the samples of a compressed file") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.nii.gz";
  const auto write = [&](std::size_t behind) {
    std::vector<std::uint8_t> samples(24 + behind, 0);
    samples[3] = 8;
    write_nifti(path, small_header(1), ScalarType::uint8, true, std::as_bytes(std::span<const std::uint8_t>(samples)));
  };
  write(1000000);
  const std::vector<float> values = values_of(path);
  REQUIRE(values.size() == 24);
  CHECK(values[3] == 8);
  write(std::size_t{20} << 20);
  CHECK(failure_of(path) == path.string() + ": more than 16 MiB lie behind its samples");
}

}  // namespace
}  // namespace slidestream::volume
