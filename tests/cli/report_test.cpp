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
    slide.done = i != 3;
    slide.sums.histogram.assign(2, 0);
    if (slide.done) slide.sums.add_window(30.0 * 64, 1000.0 * 64, 64);
    slide.map_file = i < 2 ? "map.npy" : "";
    corpus.add(slide);
    run.slides.push_back(slide);
  }
  const std::string text = summary_text(config, run, corpus, 7, 100, Style{});
  CHECK(text.find("slide-0.svs         1  30.0000  10.0000") != std::string::npos);
  CHECK(text.find("slide-3.svs    failed\n") != std::string::npos);
  CHECK(text.find("slide-20.svs") == std::string::npos);
  CHECK(text.find("and 5 more in slides.csv") != std::string::npos);
  CHECK(text.find("24 slides done (7 before), 1 failed, 24 windows, 30.0000 +- 10.0000 dB") != std::string::npos);
  CHECK(text.find("out: slides.csv, corpus.json, histograms.npy, failures.csv, maps/ (2)") != std::string::npos);
  CHECK(text.find("tiles") == std::string::npos);
  corpus.gpu_fallback_tiles = 1234;
  CHECK(summary_text(config, run, corpus, 7, 100, Style{}).find("tiles    1,234 were decoded by the CPU") !=
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
  corpus.add(run.slides.back());
  run.seconds = 4;
  CHECK(summary_text(config, run, corpus, 0, 100, Style{}) ==
        "slide             size  files    bytes    time\n"
        "slide-0.svs  700 x 530      2  4.00 MB  1.50 s\n"
        "slide-1.svs  700 x 530      2  4.00 MB  1.50 s\n"
        "bad.svs         failed\n"
        "\n"
        "corpus   2 slides done, 1 failed, 4.00 s\n"
        "images   4 files, 8.00 MB, in out/images\n"
        "results  out: slides.csv, corpus.json, artifacts.csv, failures.csv\n");
  corpus.artifacts_elsewhere = true;
  CHECK(summary_text(config, run, corpus, 0, 100, Style{}).find("8.00 MB, where artifacts.csv says\n") !=
        std::string::npos);
  CHECK(file_text(run.slides[0]) ==
        "images/a.ome.tif: 700 x 530 pixels, 3.00 MB, in 1.50 s\nimages/b: 700 x 530 pixels, 1.00 MB, in 1.50 s\n");
}

TEST_CASE("names in the summary don't steer the terminal") {
  Config config;
  config.output.dir = "o\u009b\nut";
  RunResult run;
  run.slides.resize(1);
  run.slides[0].path = "\u202ex\x9b.svs";
  const std::string text = summary_text(config, run, Corpus(1), 0, 100, Style{});
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
