#include "cli/report.hpp"

#include <doctest/doctest.h>

#include "cli/table.hpp"

using namespace slidestream;
using namespace slidestream::cli;

TEST_CASE("columns of a table stand under their titles") {
  Table table({"<name", "count"});
  table.add({"a", "12345678"});
  table.add({"longer", ""});
  table.add({"\u00e5", "1"});
  CHECK(table.text(Style{}, "  ") ==
        "  name       count\n"
        "  a       12345678\n"
        "  longer\n"
        "  \u00e5              1\n");
}

TEST_CASE("the summary names slides, failures and where results lie") {
  Config config;
  config.analysis.bins = 2;
  config.output.dir = "out";
  RunResult run;
  Corpus corpus(2);
  for (int i = 0; i < 25; ++i) {
    SlideResult slide;
    slide.path = "slide-" + std::to_string(i) + ".svs";
    slide.done = true;
    if (i == 3) slide.fail({"decode", 7, "tile 7 is bad"});
    slide.sums.histogram.assign(2, 0);
    if (slide.done) slide.sums.add_window(30.0 * 64, 1000.0 * 64, 64);
    slide.map_file = i < 2 ? "map.npy" : "";
    corpus.add(slide);
    run.slides.push_back(slide);
  }
  const std::string stats = statistics_of_run_text(config, run, corpus, 100, Style{});
  CHECK(stats.find("slide-0.svs         1  30.0000  10.0000") != std::string::npos);
  CHECK(stats.find("slide-3.svs    failed\n") != std::string::npos);
  CHECK(stats.find("slide-20.svs") == std::string::npos);
  CHECK(stats.find("and 5 more in slides.csv") != std::string::npos);
  CHECK(stats.find("tiles") == std::string::npos);
  const std::string text = summary_text(config, run, corpus, 7, Style{});
  CHECK(text ==
        "done     24 slides (7 before), 24 windows of 30.0000 +- 10.0000 dB\n"
        "where    out: slides.csv, corpus.json, histograms.npy, failures.csv, maps/ (2)\n"
        "speed    0.00 s\n"
        "failed   1 of 25\n"
        "         1 x decode: tile 7 is bad: slide-3.svs\n");
  const std::string left = summary_text(config, run, corpus, 7, Style{}, {.slides = 1});
  CHECK(left.starts_with("done     24 of 26 slides (7 before), 24 windows of "));
  CHECK(left.ends_with("slide-3.svs\nleft     1 of 26 slides\n"));
  corpus.artifacts = 12;
  corpus.artifact_bytes = 5000;
  CHECK(summary_text(config, run, corpus, 0, Style{}).find(", 12 files of 5.00 kB\n") != std::string::npos);
  const std::string lost = summary_text(config, run, corpus, 0, Style{}, {.files = 2, .bytes = 1000});
  CHECK(lost.find(", 10 of 12 files, 4.00 kB\n") != std::string::npos);
  corpus.gpu_fallback_tiles = 1234;
  CHECK(statistics_of_run_text(config, run, corpus, 100, Style{}).find("1,234 tiles were decoded by the CPU") !=
        std::string::npos);
}

TEST_CASE("failures are grouped by their causes, whatever numbers stand in them") {
  Corpus corpus(1);
  const auto fail = [&corpus](const std::string& path, const std::string& cause) {
    SlideResult slide;
    slide.path = path;
    slide.fail({"", {}, cause});
    corpus.add(slide);
  };
  fail("z.svs", "no TIFF");
  for (int i = 0; i < 12; ++i) fail(std::to_string(i) + ".svs", "tile " + std::to_string(i) + " is bad");
  const std::string text = summary_text(Config{}, RunResult{}, corpus, 0, Style{});
  CHECK(text.find("failed   13 of 13\n"
                  "         12 x tile 0 is bad, first 0.svs\n"
                  "         1 x no TIFF: z.svs\n") != std::string::npos);
  // However many causes there are, few are kept and fewer shown.
  const auto letter = [](int i) { return static_cast<char>('a' + i % 26); };
  for (int i = 0; i < 1000; ++i) fail("x", std::string{letter(i), letter(i / 26), letter(i / 676)});
  CHECK(corpus.causes.size() <= 201);
  CHECK(summary_text(Config{}, RunResult{}, corpus, 0, Style{}).find(" x other causes, first x\n") !=
        std::string::npos);
}

TEST_CASE("the summary of a run without the spectrum is of the files that were made") {
  Config config;
  config.operators.run = {"identity"};
  config.output.dir = "out";
  RunResult run;
  Corpus corpus(1);
  for (int i = 0; i < 2; ++i) {
    SlideResult slide;
    slide.path = "slide-" + std::to_string(i) + ".svs";
    slide.done = true;
    slide.sums.histogram.assign(1, 0);
    slide.width = 700;
    slide.height = 530;
    slide.seconds = 1.5;
    slide.artifacts = {{"identity", "image", "images/a.ome.tif", 3'000'000, 1},
                       {"tissue", "mask", "images/b", 1'000'000, 1}};
    corpus.add(slide);
    run.slides.push_back(slide);
  }
  run.slides.emplace_back();
  run.slides.back().path = "bad.svs";
  run.slides.back().fail({"", {}, "no TIFF"});
  corpus.add(run.slides.back());
  run.seconds = 4;
  CHECK(statistics_of_run_text(config, run, corpus, 100, Style{}) ==
        "slide             size  files    bytes    time\n"
        "slide-0.svs  700 x 530      2  4.00 MB  1.50 s\n"
        "slide-1.svs  700 x 530      2  4.00 MB  1.50 s\n"
        "bad.svs         failed\n"
        "\n");
  run.stages = {{"read", 1, 0, 3, 8'000'000, 1}};
  CHECK(summary_text(config, run, corpus, 0, Style{}) ==
        "done     2 slides, 4 files of 8.00 MB\n"
        "where    out: slides.csv, corpus.json, images/, artifacts.csv, failures.csv\n"
        "speed    4.00 s, 1.33 s per slide, 2.00 MB/s read\n"
        "failed   1 of 3\n"
        "         1 x no TIFF: bad.svs\n");
  SlideResult vectors = run.slides[0];
  vectors.path = "vectors.svs";
  vectors.artifacts = {{"model", "features", "features/vectors.h5", 1, 1}};
  Corpus of_features(1);
  of_features.add(vectors);
  CHECK(summary_text(config, run, of_features, 0, Style{}).find("corpus.json, features/, artifacts.csv\n") !=
        std::string::npos);
  vectors.artifacts.front().file = "part-1/features/vectors.h5";
  Corpus joined(1);
  joined.add(vectors);
  CHECK(summary_text(config, run, joined, 0, Style{}).find("corpus.json, files where artifacts.csv says\n") !=
        std::string::npos);
  Config volumes = config;
  volumes.operators.run = {"volume"};
  CHECK(summary_text(volumes, run, corpus, 0, Style{}).find(", artifacts.csv, labels.csv, failures.csv\n") !=
        std::string::npos);
  volumes.volume.fusion = VolumeFusion::blend;
  CHECK(summary_text(volumes, run, corpus, 0, Style{}).find("labels.csv") == std::string::npos);
  corpus.artifacts_elsewhere = true;
  CHECK(summary_text(config, run, corpus, 0, Style{}).find(", files where artifacts.csv says, failures.csv\n") !=
        std::string::npos);
  CHECK(file_text(run.slides[0]) ==
        "images/a.ome.tif: 700 x 530 pixels, 3.00 MB, in 1.50 s\nimages/b: 700 x 530 pixels, 1.00 MB, in 1.50 s\n");
}

TEST_CASE("rows of volumes have their depth, and the summary names volumes") {
  Config config;
  config.operators.run = {"volume"};
  RunResult run;
  SlideResult volume;
  volume.path = "head.nii.gz";
  volume.done = true;
  volume.sums.histogram.assign(1, 0);
  volume.width = 156;
  volume.height = 220;
  volume.values = {{"volume.depth", 172.0}, {"volume.voxel_mm3", 1.0}};
  Corpus corpus(1);
  corpus.add(volume);
  run.slides.push_back(volume);
  const std::string stats = statistics_of_run_text(config, run, corpus, 100, Style{});
  CHECK(stats.starts_with("volume "));
  CHECK(summary_text(config, run, corpus, 0, Style{}).starts_with("done     1 volume\n"));
  const std::string left = summary_text(config, run, corpus, 0, Style{}, {.slides = 1});
  CHECK(left.starts_with("done     1 of 2 volumes\n"));
  CHECK(left.ends_with("\nleft     1 of 2 volumes\n"));
  CHECK(stats.find("\nhead.nii.gz  156 x 220 x 172  ") != std::string::npos);
  run.seconds = 4;
  CHECK(summary_text(config, run, corpus, 0, Style{}).find("\nspeed    4.00 s, 4.00 s per volume\n") !=
        std::string::npos);
}

TEST_CASE("the summary of a merge says which share of the slides is missing") {
  Config config;
  config.operators.run = {"identity"};
  config.output.dir = "out";
  Corpus corpus(1);
  SlideResult slide;
  slide.path = "a.svs";
  slide.done = true;
  slide.sums.histogram.assign(1, 0);
  corpus.add(slide);
  const auto summary = [&](std::size_t missing) {
    return summary_text(config, RunResult{}, corpus, 0, Style{}, {missing, "missing", ": nowhere"});
  };
  CHECK(summary(0) ==
        "done     1 slide\n"
        "where    out: slides.csv, corpus.json\n"
        "speed    0.00 s\n"
        "failed   none\n");
  CHECK(summary(2) ==
        "done     1 of 3 slides\n"
        "where    out: slides.csv, corpus.json\n"
        "speed    0.00 s\n"
        "failed   none\n"
        "missing  2 of 3 slides: nowhere\n");
}

TEST_CASE("names in the summary don't steer the terminal") {
  Config config;
  config.output.dir = "o\u009b\nut";
  RunResult run;
  run.slides.resize(1);
  run.slides[0].path = "\u202ex\x9b.svs";
  run.slides[0].fail({"", {}, "\x9b\n"});
  Corpus corpus(1);
  corpus.add(run.slides[0]);
  const std::string text =
      summary_text(config, run, corpus, 0, Style{}) + statistics_of_run_text(config, run, corpus, 100, Style{});
  CHECK(text.find("1 x ??: ?x?.svs\n") != std::string::npos);
  CHECK(text.find("o??ut: slides.csv") != std::string::npos);
  CHECK(text.find("?x?.svs   failed") != std::string::npos);
}

TEST_CASE("the stages' shares") {
  RunResult run;
  run.seconds = 10;
  run.threads = 2;
  run.stages = {{"read", 5, 0, 1000, 2'000'000'000, 2}, {"compute", 10, 30, 4, 0, 2}};
  CHECK(stages_text(run, Style{}) ==
        "stage      busy    wait  items    bytes  rate while busy\n"
        "read     25.0 %   0.0 %  1,000  2.00 GB         400 MB/s\n"
        "compute  50.0 %  75.0 %      4      0 B                -\n");
  CHECK_NOTHROW(stages_text(RunResult{}, Style{}));
}

TEST_CASE("how busy GPUs were, where that is known") {
  RunResult run;
  CHECK(overlap_text(run).empty());
  run.overlap.emplace();
  run.overlap->devices = {{.device = 0,
                           .seconds = 10,
                           .kernel_seconds = 9,
                           .copy_seconds = 2,
                           .copy_hidden_seconds = 2,
                           .copy_covered_seconds = 2,
                           .waited_for = ""},
                          {.device = 1,
                           .seconds = 10,
                           .kernel_seconds = 10,
                           .copy_seconds = 2,
                           .copy_hidden_seconds = 1,
                           .copy_covered_seconds = 1.5,
                           .longest_gap_start = 1.5,
                           .longest_gap_seconds = 0.25,
                           .waited_for = "decode"}};
  CHECK(overlap_text(run) ==
        "GPU busy          95.0 %\n"
        "copies hidden     75.0 % behind kernels, 87.5 % behind any work\n"
        "longest idle gap  250.00 ms, GPU 1 at 1.500 s, waited for decode\n");
  run.overlap->devices = {{.device = 0, .seconds = 1, .kernel_seconds = 1, .waited_for = ""}};
  CHECK(overlap_text(run) ==
        "GPU busy          100.0 %\n"
        "copies hidden     no copies\n"
        "longest idle gap  0.00 ms\n");
}

TEST_CASE("of failures that want more memory the one that wants most is told") {
  Corpus corpus(4);
  for (const char* mib : {"13912", "28112", "9"}) {
    SlideResult slide;
    slide.path = std::string(mib) + ".svs";
    slide.fail({"decode", {}, "too large; raise pipeline.memory_mib to " + std::string(mib)});
    corpus.add(slide);
  }
  REQUIRE(corpus.causes.size() == 1);
  const Corpus::Cause& cause = corpus.causes.begin()->second;
  CHECK(cause.slides == 3);
  CHECK(cause.text.ends_with("to 28112"));
  CHECK(cause.first == "28112.svs");
}
