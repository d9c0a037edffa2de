// What goes wrong with a slide stays with that slide, on every backend that is here.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>

#include "support/failing_reads.hpp"
#include "support/pipeline_runs.hpp"
#include "support/test_slides.hpp"

using namespace slidestream;
using test::check_same;
using test::config_for;
using test::run;

namespace {

/// Stages that a batch goes through.
std::vector<const char*> stages_of(Backend backend, test::Coding coding) {
  if (backend == Backend::cpu) return {"source", "read", "decode", "carry", "compute", "reduce"};
  if (coding == test::Coding::lzw)
    return {"source", "read", "decode", "upload", "carry", "compute", "collect", "reduce"};
  return {"source", "read", "decode", "upload", "decode-gpu", "carry", "compute", "collect", "reduce"};
}

Config config_of_small_strips(Backend backend) {
  Config config = config_for(backend);
  config.pipeline.strip_height = 128;
  config.pipeline.batch_strips = 1;
  return config;
}

bool is_named(const SlideResult& slide, const char* name) { return slide.path.find(name) != std::string::npos; }

/// Every sound slide is as `expected`; returns the others.
std::vector<SlideResult> check_sound(const RunResult& result, const SlideResult& expected) {
  std::vector<SlideResult> others;
  CHECK(result.failure == "");
  CHECK_FALSE(result.interrupted);
  for (const SlideResult& slide : result.slides) {
    if (!is_named(slide, "sound")) {
      others.push_back(slide);
      continue;
    }
    CHECK_MESSAGE(slide.done, slide.error);
    CHECK(slide.sums.sum == expected.sums.sum);
    CHECK(slide.map.values == expected.map.values);
  }
  return others;
}

/// Makes slides take longer than a limit, each as its name says: in one strip's reading or decoding, or a quarter of it
/// in every strip that is read; or in so many strips' reading that nobody is left to read.
struct Slowness {
  std::chrono::seconds limit;
  std::atomic<int> strips_read{0};
  FaultInjection injection() { return {dawdle, this}; }

 private:
  static void dawdle(void* data, const char* stage, const std::string& path, std::size_t strip) {
    Slowness& slowness = *static_cast<Slowness*>(data);
    const auto named = [&path](const std::string& name) { return path.find(name) != std::string::npos; };
    const bool reads = std::strcmp(stage, "read") == 0;
    const bool once = strip == 1 && named("slow-" + std::string(stage));
    if (once || (reads && strip < 2 && named("stuck"))) {
      std::this_thread::sleep_for(slowness.limit + std::chrono::milliseconds(300));
    }
    if (reads && named("slow-strips")) {
      ++slowness.strips_read;
      std::this_thread::sleep_for(std::chrono::duration_cast<std::chrono::milliseconds>(slowness.limit) / 4);
    }
  }
};

}  // namespace

TEST_CASE("a slide that lacks memory to be opened has its turn again, and fails when that doesn't end (long)") {
  static std::atomic<int> tries{0};
  static std::atomic<int> lacks{0};
  const FaultInjection fault = {[](void*, const char* stage, const std::string& path, std::size_t strip) {
                                  if (std::strcmp(stage, "source") != 0 || strip != 0) return;
                                  if (path.find("large") == std::string::npos) return;
                                  if (tries++ < lacks) throw std::bad_alloc();
                                },
                                nullptr};
  const test::TemporaryFolder folder;
  std::vector<std::string> slides = test::equal_slides(folder, 3);
  const std::filesystem::path copy = folder / "large.tif";
  std::filesystem::copy_file(slides[0], copy);
  slides[0] = copy.string();
  const Config config = config_of_small_strips(Backend::cpu);
  for (const bool ends : {true, false}) {
    // GPUs have no part in it: with them the shorter way is enough.
    if (!ends && test::made_up_gpus() && !test::is_wide()) continue;
    tries = 0;
    lacks = ends ? 2 : 1000;
    const RunResult result = run(config, slides, fault);
    REQUIRE(result.slides.size() == 3);
    for (const SlideResult& slide : result.slides) {
      CHECK(slide.done == (ends || !is_named(slide, "large")));
      if (!slide.done) CHECK(slide.error.ends_with("out of memory"));
    }
    CHECK(tries == (ends ? 3 : 6));
  }
}

TEST_CASE("slides that take long to open hold up no other") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    std::vector<std::string> slides = test::equal_slides(folder, 8);
    for (const std::size_t index : {0, 1, 2}) {
      const std::filesystem::path copy = folder / ("slow-" + std::to_string(index) + ".tif");
      std::filesystem::copy_file(slides[index], copy);
      slides[index] = copy.string();
    }
    // Three slides take until the others are done, or very long.
    struct Slow {
      std::atomic<int> ended{0};
      static void open(void* data, const char* stage, const std::string& path, std::size_t strip) {
        if (std::strcmp(stage, "source") != 0 || strip != 0 || path.find("slow-") == std::string::npos) return;
        const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(100);
        while (static_cast<Slow*>(data)->ended < 5 && std::chrono::steady_clock::now() < latest) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
      }
    } slow;
    Config config = config_for(backend);
    config.pipeline.threads = 1;  // of which none waits for a slide
    std::vector<std::string> ended;
    RunControl control;
    control.on_slide = [&](SlideResult& slide) {
      CHECK_MESSAGE(slide.done, slide.error);
      ended.push_back(slide.path);
      ++slow.ended;
    };
    run_pipeline_with_faults(config, slides, control, {Slow::open, &slow});
    REQUIRE(ended.size() == 8);
    for (std::size_t i = 0; i < 5; ++i) CHECK(ended[i].find("slow-") == std::string::npos);
  }
}

TEST_CASE("an exception in any stage at any strip ends its slide alone and nothing hangs") {
  for (const Backend backend : test::backends()) {
    for (const test::Coding coding : {test::Coding::none, test::Coding::lzw, test::Coding::jpeg}) {
      if (backend == Backend::cpu && coding != test::Coding::none) continue;
      const test::TemporaryFolder folder;
      const std::vector<std::string> slides = test::equal_slides(folder, test::wide_or_few(8, 5), coding);
      Config config = config_of_small_strips(backend);
      config.pipeline.queue_depth = 6;
      const RunResult expected = run(config, {slides[0]});
      test::require_done(expected);
      for (const char* stage : stages_of(backend, coding)) {
        for (std::size_t strip = 0; strip < 6; ++strip) {  // 700 rows in strips of 128
          // Some of them, and fewer where a run takes longer.
          if ((backend != Backend::cpu || !test::is_wide()) && strip != 2 &&
              (coding != test::Coding::none || strip % 5 != 0)) {
            continue;
          }
          // The first two strips complete no window of 256 rows with their margin: nothing is computed there.
          const bool reached = !(backend == Backend::cpu && std::strcmp(stage, "compute") == 0 && strip < 2);
          test::PlannedFault planned{stage, strip, strip == 2};
          const RunResult result = run(config, slides, planned.injection());
          INFO(result.backend, ", ", stage, ", strip ", strip);
          REQUIRE(result.slides.size() == slides.size());
          for (const SlideResult& slide : check_sound(result, expected.slides[0])) {
            CHECK(slide.done == !reached);
            if (!reached) continue;
            CHECK(slide.error == planned.error());
            CHECK(slide.sums.windows == 0);
          }
        }
      }
    }
  }
}

TEST_CASE("bad and missing tiles count once however the level is cut (long)") {
  const test::TemporaryFolder folder;
  test::Image image = test::textured_image(2000, 600, 3);
  const std::string path = folder / "a.tif";
  test::write_test_slide(path, image, {.coding = test::Coding::jpeg, .missing = {0, 5, 40, 41}});
  {
    // Damage the entropy-coded data of one tile.
    const auto slide = Slide::open(path);
    const TileRange range = slide->tile(0, 70);
    FILE* file = fopen(path.c_str(), "r+b");
    REQUIRE(file != nullptr);
    fseek(file, static_cast<long>(range.offset + range.length / 2), SEEK_SET);
    for (int i = 0; i < 40; ++i) fputc(0xff, file);
    fclose(file);
  }
  for (const Backend backend : test::backends()) {
    Config config = config_for(backend);
    const RunResult failed = run(config, {path});
    CHECK_FALSE(failed.slides[0].done);
    CHECK(failed.slides[0].error.find("decode: tile 70 (column 6, row 2) is bad: ") == 0);
    CHECK(failed.slides[0].sums.windows == 0);
    CHECK(failed.corpus.windows == 0);

    config.decode.on_bad_tile = BadTilePolicy::white;
    const RunResult whole = run(config, {path});
    config.pipeline.memory_mib = 4;
    const RunResult panels = run(config, {path});
    CHECK(whole.slides[0].bad_tiles == 1);
    CHECK(whole.slides[0].missing_tiles == 4);
    check_same(panels, whole);
    config.gpu.split_slides = SplitSlides::always;
    check_same(run(config, {path}), whole);
  }
}

TEST_CASE("a slide that takes too long fails with one line, and the others go on (long)") {
  struct Kind {
    const char* name;
    test::Coding coding;
  };
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    std::vector<std::string> slides;
    const test::Image large = test::textured_image(300, 2500, 9);
    const test::Image small = test::textured_image(300, 400, 9);
    // Decoded on the GPU where there is one; there, and then on the CPU after all; and on the CPU.
    for (const Kind& kind : {Kind{"sound", test::Coding::none}, Kind{"slow-read", test::Coding::none},
                             Kind{"slow-decode", test::Coding::jpeg}, Kind{"slow-strips", test::Coding::lzw},
                             Kind{"sound", test::Coding::jpeg}, Kind{"sound", test::Coding::lzw}}) {
      slides.push_back(folder / (kind.name + std::to_string(slides.size()) + ".tif"));
      test::Image image = std::strcmp(kind.name, "sound") == 0 ? small : large;
      test::write_test_slide(slides.back(), image, {.coding = kind.coding});
    }
    Config config = config_of_small_strips(backend);
    config.pipeline.threads = 8;  // somebody to read for each of the four slots: nobody waits for the slow ones
    std::string late;
    int strips_read = 0;
    const auto run_with = [&](int limit) {
      Slowness slowness{std::chrono::seconds(limit)};
      config.input.max_seconds = limit;
      late = ": took longer than input.max_seconds = " + std::to_string(limit);
      RunResult result = run(config, slides, slowness.injection());
      strips_read = slowness.strips_read;
      return result;
    };
    const RunResult result = test::run_with_limits(run_with, [](const RunResult& some) {
      return std::ranges::all_of(some.slides,
                                 [](const SlideResult& slide) { return slide.done == is_named(slide, "sound"); });
    });
    CAPTURE(result.backend);
    CHECK(result.failure == "");
    REQUIRE(result.slides.size() == slides.size());
    for (const SlideResult& slide : result.slides) {
      CAPTURE(slide.path);
      CHECK_MESSAGE(slide.done == is_named(slide, "sound"), slide.error);
      if (slide.done) continue;
      CHECK_MESSAGE(slide.error.ends_with(late), slide.error);
      CHECK(slide.error.find('\n') == std::string::npos);
      CHECK(slide.sums.windows == 0);
    }
    CHECK(strips_read < 20);  // what is left of a failed slide isn't read
  }
}

TEST_CASE("the time that a slide waits to be read isn't counted as its own (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    std::vector<std::string> slides;
    for (const char* name : {"stuck.tif", "sound.tif"}) {
      test::Image image = test::textured_image(400, slides.empty() ? 700 : 350, 9);
      slides.push_back(folder / name);
      test::write_test_slide(slides.back(), image);
    }
    Config config = config_for(backend);
    config.pipeline.strip_height = 384;  // two strips and one, and two threads that read
    config.pipeline.batch_strips = 1;
    const auto run_with = [&](int limit) {
      Slowness slowness{std::chrono::seconds(limit)};
      config.input.max_seconds = limit;
      return run(config, slides, slowness.injection());
    };
    const RunResult result = test::run_with_limits(
        run_with, [](const RunResult& some) { return !some.slides[0].done && some.slides[1].done; });
    CHECK_FALSE(result.slides[0].done);
    CHECK_MESSAGE(result.slides[1].done, result.slides[1].error);
  }
}

TEST_CASE("errors of reading that pass are waited for, and those that stay fail their slide alone (long)") {
  for (const Backend backend : test::backends()) {
    for (const test::Coding coding : {test::Coding::none, test::Coding::lzw, test::Coding::jpeg}) {
      const test::TemporaryFolder folder;
      const std::vector<std::string> slides = test::equal_slides(folder, 6, coding);
      Config config = config_of_small_strips(backend);
      const RunResult expected = run(config, slides);
      test::require_done(expected);
      config.input.retries = 2;
      test::fail_reads("victim1", 2, EIO);
      check_same(run(config, slides), expected);
      CHECK(test::reads_seen() > 2);
      config.input.retries = 0;
      test::fail_reads("victim1", 1, EACCES);
      CHECK(run(config, slides).slides[1].error.find("source: can't be read at byte 0: Permission denied") == 0);
      const FaultInjection storage_goes_away = {
          [](void*, const char* stage, const std::string& path, std::size_t strip) {
            if (std::strcmp(stage, "read") == 0 && strip == 2 && path.find("victim1") != std::string::npos) {
              test::fail_reads("victim1", 1'000'000, EIO);
            }
          },
          nullptr};
      const RunResult result = run(config, slides, storage_goes_away);
      REQUIRE(result.slides.size() == slides.size());
      for (std::size_t i = 0; i < slides.size(); ++i) {
        CHECK(result.slides[i].done == (i != 1));
        if (i != 1) check_same(result.slides[i], expected.slides[i]);
      }
      // libtiff reads for itself what strips before that one need, and has words of its own.
      if (coding != test::Coding::lzw) {
        CHECK_MESSAGE(result.slides[1].error.find("read: can't be read at byte ") == 0, result.slides[1].error);
        CHECK(result.slides[1].error.ends_with(": Input/output error"));
      }
      test::fail_reads("", 0, 0);
    }
  }
}

TEST_CASE("a slide that waits for a free descriptor says so") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 1);
    Config config = config_of_small_strips(backend);
    config.input.retries = 1;
    RunControl control;
    std::mutex mutex;
    std::string said;
    control.on_warning = [&](const std::string& line) {
      const std::lock_guard lock(mutex);
      said = line;
      control.request_stop();
    };
    test::fail_reads(slides[0], 1'000'000, EMFILE);
    const RunResult result = run_pipeline(config, slides, control);
    test::fail_reads("", 0, 0);
    CHECK(result.interrupted);
    CHECK(result.failure == "");
    CHECK(result.slides.empty());
    CHECK_MESSAGE(said.starts_with(slides[0] + ": can't be read at byte 0: Too many open files"), said);
    CHECK_MESSAGE(said.ends_with("(ulimit -n): it is tried again for some minutes"), said);
  }
}

TEST_CASE("a read that fails while a slide is opened is the error that is reported, whichever read it is") {
  const test::TemporaryFolder folder;
  for (const test::Coding coding : {test::Coding::none, test::Coding::lzw, test::Coding::jpeg}) {
    const std::string path = test::equal_slides(folder, 1, coding).front();
    test::fail_reads(path, 0, EIO);
    Slide::open(path);
    const int reads = test::reads_seen();
    REQUIRE(reads > 2);
    for (int read = 0; read < reads; ++read) {
      INFO("read ", read, " of ", reads);
      test::fail_reads(path, 1, EIO, read);
      std::string error = "none";
      try {
        Slide::open(path);
      } catch (const StorageError& storage_error) {
        error = storage_error.what();
      } catch (const SlideError& slide_error) {
        error = std::string("another kind: ") + slide_error.what();
      }
      CHECK_MESSAGE(error.starts_with(path + ": can't be read at byte "), error);
      CHECK_MESSAGE(error.ends_with(": Input/output error"), error);
    }
    test::fail_reads("", 0, 0);
  }
}

TEST_CASE("the bad tile that is named is the first of its slide, whoever is faster (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 4, test::Coding::jpeg);
    {
      const auto slide = Slide::open(slides[1]);
      std::fstream file(slides[1], std::ios::binary | std::ios::in | std::ios::out);
      for (const std::int64_t tile : {9, 10, 17, 40, 41, 60, 76}) {
        file.seekp(static_cast<std::streamoff>(slide->tile(0, tile).offset));
        file.write("none", 4);
      }
    }
    for (int round = 0; round < 12; ++round) {
      Config config = config_for(backend);
      config.pipeline.strip_height = round % 2 == 0 ? 64 : 192;
      config.pipeline.queue_depth = 4;
      config.gpu.split_slides = round % 3 == 0 ? SplitSlides::always : SplitSlides::never;
      const RunResult result = run(config, slides, test::dawdling);
      CHECK_MESSAGE(result.slides[1].error.find("decode: tile 9 (column 2, row 1) is bad: ") == 0,
                    result.slides[1].error);
      CHECK(result.slides[2].done);
    }
  }
}

TEST_CASE("the first bad tile is named also where a GPU refuses a later one at once, and few are decoded at a time") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 2, test::Coding::jpeg);
    {
      const auto slide = Slide::open(slides[1]);
      std::fstream file(slides[1], std::ios::binary | std::ios::in | std::ios::out);
      const TileRange first = slide->tile(0, 9);
      file.seekp(static_cast<std::streamoff>(first.offset + first.length / 2));
      file << std::string(40, '\xff');
      file.seekp(static_cast<std::streamoff>(slide->tile(0, 13).offset));
      file.write("none", 4);
    }
    Config config = config_for(backend);
    if (backend == Backend::cuda) config.pipeline.memory_mib = 1;
    const RunResult result = run(config, slides);
    CHECK(result.slides[0].done);
    CHECK_MESSAGE(result.slides[1].error.find("decode: tile 9 (column 2, row 1) is bad: ") == 0,
                  result.slides[1].error);
    CHECK(result.slides[1].failure.stage == "decode");
    CHECK(result.slides[1].failure.tile == 9);
    CHECK(result.slides[1].failure.text() == result.slides[1].error);
  }
}

TEST_CASE("a slide whose storage is away at its opening holds up nobody, and a stop or the time limit ends it (long)") {
  for (const Backend backend : test::backends()) {
    const test::TemporaryFolder folder;
    const std::vector<std::string> slides = test::equal_slides(folder, 6, test::Coding::jpeg);
    Config config = config_for(backend);
    const RunResult expected = run(config, slides);
    config.input.retries = 5;
    // Its first reads fail, for 0.3 s.
    test::fail_reads("victim1", 2, EIO);
    test::check_same(run(config, slides), expected);
    // For ever, from its opening on: the others are done, and a stop doesn't wait for all retries, 100 of them.
    config.input.retries = 100;
    int done = 0;
    RunControl control;
    control.on_slide = [&](SlideResult& slide) {
      CHECK(slide.done);
      if (++done == 5) control.request_stop();
    };
    test::fail_reads("victim1", 1'000'000, EIO);
    auto begin = std::chrono::steady_clock::now();
    RunResult result = run_pipeline(config, slides, control);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(100));
    CHECK(result.interrupted);
    CHECK(result.slides.size() == 5);
    test::fail_reads("", 0, 0);
    // In its middle, where who reads it waits: a stop leaves it.
    struct Away {
      RunControl control;
      static void go(void* data, const char* stage, const std::string& path, std::size_t strip) {
        if (std::strcmp(stage, "read") != 0 || strip != 2 || path.find("victim1") == std::string::npos) return;
        test::fail_reads("victim1", 1'000'000, EIO);
        static_cast<Away*>(data)->control.request_stop();
      }
    } away;
    config.pipeline.strip_height = 64;
    config.pipeline.batch_strips = 1;
    begin = std::chrono::steady_clock::now();
    result = run_pipeline_with_faults(config, slides, away.control, {Away::go, &away});
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(100));
    CHECK(result.interrupted);
    for (const SlideResult& slide : result.slides) CHECK_MESSAGE(slide.done, slide.error);
    test::fail_reads("victim1", 1'000'000, EIO);
    // Its time ends the waiting, and is the cause.
    config.input.max_seconds = 1;
    result = run(config, slides);
    const std::string too_long = "source: took longer than input.max_seconds = 1";
    CHECK(result.slides[1].error == too_long);
    // A busy machine may take as long for one that is sound.
    CHECK((result.slides[2].done || result.slides[2].error.ends_with(too_long.substr(too_long.find(':')))));
    test::fail_reads("", 0, 0);
  }
}
