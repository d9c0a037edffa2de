#include "bench_slides.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace slidestream::bench {

std::filesystem::path bench_slide(std::int64_t side, SynthCodec codec) {
  const char* named = std::getenv("SLIDESTREAM_BENCH_DIR");
  const std::filesystem::path folder =
      named != nullptr ? std::filesystem::path(named) : std::filesystem::temp_directory_path() / "slidestream-bench";
  std::filesystem::create_directories(folder);
  std::filesystem::path file =
      folder / ("codec" + std::to_string(static_cast<int>(codec)) + "-" + std::to_string(side) + ".svs");
  if (!std::filesystem::exists(file)) {
    SynthOptions options;
    options.width = options.height = side;
    options.codec = codec;
    options.distinct = codec == SynthCodec::jpeg2000 ? 64 : 1024;
    options.levels = 1;
    write_synthetic_slide(file, options);
  }
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> buffer(1 << 20);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
  }
  return file;
}

}  // namespace slidestream::bench
