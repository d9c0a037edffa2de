// Tensors as PyTorch keeps them. That other readers read them is tests/networks/models_test.py's.

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "sink/tensor_file.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

std::string written(const std::filesystem::path& file, std::int64_t rows, std::int64_t columns) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  std::iota(values.begin(), values.end(), 0.5F);
  write_tensor(file, columns, values);
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("A tensor's values lie behind a header that aligns them") {
  const TemporaryFolder folder;
  for (const std::int64_t rows : {0, 1, 7, 1000}) {
    const std::string bytes = written(folder / ("t" + std::to_string(rows) + ".pt"), rows, 5);
    CHECK(bytes.starts_with("PK\x03\x04"));
    CHECK(written(folder / ("again" + std::to_string(rows) + ".pt"), rows, 5) == bytes);
    const std::string name = "archive/data/0FB";
    const std::size_t field = bytes.find(name);
    REQUIRE(field != std::string::npos);
    const std::size_t length = static_cast<unsigned char>(bytes[field + name.size()]);
    const std::size_t begin = field + name.size() + 2 + length;
    CHECK(begin % 64 == 0);
    for (std::int64_t i = 0; i < rows * 5; ++i) {
      float value = 0.0F;
      std::memcpy(&value, bytes.data() + begin + 4 * i, 4);
      REQUIRE(value == static_cast<float>(i) + 0.5F);
    }
  }
}

TEST_CASE("A tensor is written over nothing") {
  const TemporaryFolder folder;
  folder.write("mine.pt", std::string("mine"));
  const std::vector<float> values(4, 1.0F);
  CHECK_THROWS_WITH_AS(write_tensor(folder / "mine.pt", 2, values),
                       ((folder / "mine.pt").string() + ": File exists").c_str(), OutputError);
  CHECK(std::filesystem::file_size(folder / "mine.pt") == 4);
}
