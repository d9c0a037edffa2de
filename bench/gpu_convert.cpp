#include "gpu_convert.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <slidestream/error.hpp>

namespace slidestream::bench {
namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;
  const char* op;
  ImageFormat format;
  ImageCompression compression;
  int slides;
  double most_seconds_alone;    ///< 0: reported only
  double most_seconds_a_slide;  ///< of several
};

/// For images that are more than a page cache holds before writers wait for its disk: a RAM disk that has room for
/// them.
fs::path folder_of_many(const GpuBench& bench) {
  constexpr std::uintmax_t room = std::uintmax_t{48} << 30;
  const fs::path ram = "/dev/shm";
  std::error_code none;
  const fs::space_info space = fs::space(ram, none);
  return !none && space.available >= room ? ram / "slidestream-gpu-bench" : bench.folder();
}

Config config_of(const GpuBench& bench, const Kind& kind, const fs::path& folder) {
  Config config = bench.config(DecodeDevice::automatic, 8192, 8);
  config.operators.run = {kind.op};
  config.image.format = kind.format;
  config.image.compression = kind.compression;
  config.image.quality = 75;
  config.output.dir = (folder / "converted").string();
  return config;
}

/// All files are there at the end of it, as a user wants them.
Run convert(const Config& config, const std::vector<std::string>& slides, std::uint64_t& bytes) {
  bytes = 0;
  Run done = run(config, slides, [&](const SlideResult& slide) {
    for (const Artifact& artifact : slide.artifacts) bytes += artifact.bytes;
  });
  fs::remove_all(config.output.dir);
  return done;
}

/// Of syncing, reading files but OME-TIFF back for the digest, and renaming, which come after the last write.
double publish_seconds(const Run& done) {
  for (const StageReport& stage : done.result.stages) {
    if (stage.name == "publish") return stage.busy_seconds;
  }
  return 0;
}

void add(GpuBench& bench, const std::string& name, double seconds, double most) {
  if (most > 0) {
    bench.add(name, seconds, "s", "at_most", most);
  } else {
    bench.add(name, seconds, "s");
  }
}

}  // namespace

void bench_convert(GpuBench& bench) {
  const std::vector<Kind> kinds = {
      {"convert_jpeg", "identity", ImageFormat::ome_tiff, ImageCompression::jpeg, 64, 0.3, 0.06},
      {"convert_copy", "identity", ImageFormat::ome_tiff, ImageCompression::copy, 64, 0, 0},
      {"sobel_jpeg", "sobel", ImageFormat::ome_tiff, ImageCompression::jpeg, 64, 0.2, 0.05},
      {"sobel_zarr", "sobel", ImageFormat::ome_zarr, ImageCompression::none, 8, 0.35, 0}};
  const std::string small = bench.slides(SynthCodec::jpeg_420, 1, 512, 512)[0];
  const std::vector<std::string> large = bench.headline(SynthCodec::jpeg_420, 64);
  for (const Kind& kind : kinds) {
    const std::string name = kind.name;
    const fs::path many = folder_of_many(bench);
    Config config = config_of(bench, kind, kind.compression == ImageCompression::none ? many : bench.folder());
    std::uint64_t bytes = 0;
    convert(config, {large[0]}, bytes);
    std::vector<double> alone;
    std::vector<double> published;
    for (int round = 0; round < 3; ++round) {
      const Run done = convert(config, {small, large[0]}, bytes);
      // The other slide's part in it is next to nothing.
      published.push_back(publish_seconds(done));
      alone.push_back(done.seconds_a_slide - published.back());
      if (round == 2) report_stages(name, done);
    }
    bench.add(name + "_bytes", static_cast<double>(bytes) * 1e-9, "GB");
    add(bench, name + "_one_slide_s", median(alone), kind.most_seconds_alone);
    bench.add(name + "_one_slide_publish_s", median(published), "s");
    const std::vector<std::string> archive(large.begin(), large.begin() + kind.slides);
    config = config_of(bench, kind, many);
    // The first time a virtual machine may have to get the RAM disk's memory from its host.
    if (&kind == kinds.data()) convert(config, archive, bytes);
    const Run done = convert(config, archive, bytes);
    const double each = done.seconds / static_cast<double>(archive.size());
    add(bench, name + "_archive_slide_s", each, kind.most_seconds_a_slide);
    bench.add(name + "_archive_cores", done.cores, "cores");
    report_stages(name, done);
  }
}

}  // namespace slidestream::bench
