// The reader and the writer of NIfTI for nifti_test.py: `volume_tool read FILE` writes size, volume of a voxel and
// samples, `volume_tool labels FILE OUT` and `volume_tool image FILE OUT` write the file's samples again.

#include <cstdio>
#include <cstring>
#include <iostream>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "volume/nifti_file.hpp"

namespace {

using namespace slidestream::volume;

int read(const std::string& path) {
  NiftiFile file(path);
  const NiftiHeader& header = file.header();
  std::vector<float> values(static_cast<std::size_t>(header.voxels()));
  file.read(values);
  std::printf("%lld %lld %lld %s %.17g\n", static_cast<long long>(header.size[0]),
              static_cast<long long>(header.size[1]), static_cast<long long>(header.size[2]),
              name_of(header.type).c_str(), header.geometry.voxel_mm3());
  std::fwrite(values.data(), sizeof(float), values.size(), stdout);
  return 0;
}

int write(const std::string& path, const std::string& out, bool labels) {
  NiftiFile file(path);
  std::vector<float> values(static_cast<std::size_t>(file.header().voxels()));
  file.read(values);
  if (!labels) {
    write_nifti(out, file.header(), ScalarType::float32, false, std::as_bytes(std::span<const float>(values)));
    return 0;
  }
  std::vector<std::uint16_t> numbers;
  for (const float value : values) numbers.push_back(static_cast<std::uint16_t>(value));
  write_nifti(out, file.header(), ScalarType::uint16, true, std::as_bytes(std::span<const std::uint16_t>(numbers)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 2 && words[0] == "read") return read(words[1]);
    if (words.size() == 3 && (words[0] == "labels" || words[0] == "image")) {
      return write(words[1], words[2], words[0] == "labels");
    }
  } catch (const slidestream::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  std::cerr << "usage: volume_tool read FILE | labels FILE OUT | image FILE OUT\n";
  return 2;
}
