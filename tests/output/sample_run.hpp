#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include <slidestream/pipeline.hpp>

namespace slidestream::test {

/// A slide's result with numbers that are easily lost on the way to a file.
inline SlideResult sample_slide(const std::string& path, int bins, double scale) {
  SlideResult slide;
  slide.path = path;
  slide.done = true;
  slide.width = 4443;
  slide.height = 3567;
  slide.codec = "jpeg2000";
  slide.colour = "rgb";
  slide.mpp = 0.1 * scale;
  slide.backend = "cpu";
  slide.seconds = 1.0 / 3.0;
  slide.file_bytes = 12345678901;
  slide.missing_tiles = 2;
  slide.bad_tiles = 1;
  slide.sums.histogram.assign(static_cast<std::size_t>(bins), 0);
  for (int i = 0; i < bins; ++i)
    slide.sums.histogram[static_cast<std::size_t>(i)] = static_cast<std::uint64_t>(i) << 33;
  slide.sums.clipped = 7;
  for (int i = 0; i < 3; ++i) slide.sums.add_window(65536 * scale * (i + 0.1), 65536 * scale * (i * i + 5.3), 65536);
  return slide;
}

/// Two slides that are done, with a failed one between them.
inline RunResult sample_run(int bins) {
  RunResult run;
  run.slides = {sample_slide("a, \"b\"\n.svs", bins, 1.0), {}, sample_slide("c.svs", bins, 7.0)};
  run.slides[1].path = "failed.svs";
  run.slides[1].fail({"read", {}, "the file ends, early"});
  run.corpus.histogram.assign(static_cast<std::size_t>(bins), 0);
  for (const SlideResult& slide : run.slides) {
    if (slide.done) run.corpus += slide.sums;
  }
  run.stages = {{"read", 0.25, 0.5, 12, 3456}};
  run.seconds = 2.5;
  run.threads = 2;
  run.backend = "cpu";
  return run;
}

inline std::string file_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace slidestream::test
