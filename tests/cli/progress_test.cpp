#include "cli/progress.hpp"

#include <doctest/doctest.h>

#include "cli/terminal.hpp"

using namespace slidestream;
using namespace slidestream::cli;

namespace {

constexpr Share usual{0.27, 0.27};

Progress some_progress() {
  Progress progress;
  progress.slides_total = 1200;
  progress.slides_done = 317;
  progress.slides_failed = 12;
  progress.pixels = 123'000'000'000;
  progress.pixels_started = 124'000'000'000;
  progress.bytes_read = 45'000'000'000;
  progress.seconds = 100;
  progress.busiest_stage = "compute";
  return progress;
}

/// Columns of text with colours in it.
std::size_t columns(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = text.find('m', i);
    } else {
      plain += text[i];
    }
  }
  return display_width(plain);
}

SlideResult slide_of(std::int64_t width, std::int64_t height) {
  SlideResult slide;
  slide.width = width;
  slide.height = height;
  return slide;
}

}  // namespace

TEST_CASE("the live line fits every width and drops the least important first") {
  for (const Style style : {Style{}, Style{true, true, true}, Style{true, false, true}, Style{true, true, false}}) {
    for (int width = 0; width < 200; ++width) {
      const std::string line = live_line(some_progress(), usual, false, width, style);
      CHECK(columns(line) <= static_cast<std::size_t>(std::max(width - 1, 0)));
    }
  }
  const std::string wide = live_line(some_progress(), usual, false, 200, Style{});
  for (const char* part :
       {"317/1200 slides", "12 failed", "27 %", "1.23 Gpx/s", "450 MB/s", "ETA 4:30", "busiest compute", "######"}) {
    CHECK_MESSAGE(wide.find(part) != std::string::npos, wide);
  }
  CHECK(live_line(some_progress(), usual, false, 20, Style{}) == "317/1200 slides");
  CHECK(live_line(some_progress(), usual, false, 45, Style{}) == "317/1200 slides  12 failed  27 %  ETA 4:30");
  CHECK(live_line(some_progress(), usual, true, 45, Style{}) == "317/1200 slides  12 failed  27 %  stopping");
}

TEST_CASE("the share that is done: exact for one slide, never back, unopened slides as large as opened ones") {
  Estimate one;
  Progress progress;
  progress.slides_total = 1;
  CHECK(one.fraction(progress) == 0.0);
  progress.pixels_started = 1000;
  progress.pixels = 250;
  CHECK(one.fraction(progress) == doctest::Approx(0.25));
  progress.pixels = 1000;
  CHECK(one.fraction(progress) == doctest::Approx(1.0));

  Estimate many;
  progress = {};
  progress.slides_total = 4;
  progress.pixels_started = 100;
  progress.pixels = 100;
  CHECK(many.fraction(progress) == doctest::Approx(0.25));
  many.slide_ended(slide_of(10, 10));
  progress.slides_done = 1;
  progress.pixels_started = 200;
  progress.pixels = 150;
  CHECK(many.fraction(progress) == doctest::Approx(0.375));
  progress.pixels = 140;
  CHECK(many.fraction(progress) == doctest::Approx(0.375));
  // Slides that couldn't be opened are behind us too.
  many.slide_ended(SlideResult{});
  many.slide_ended(SlideResult{});
  CHECK(many.fraction(progress) == doctest::Approx(0.7));
}

TEST_CASE("numbers for people") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(172544) == "172,544");
  CHECK(count_text(1234567) == "1,234,567");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(999) == "999 B");
  CHECK(bytes_text(1000) == "1.00 kB");
  CHECK(bytes_text(479e6) == "479 MB");
  CHECK(bytes_text(12.3e9) == "12.3 GB");
  CHECK(seconds_text(4.214) == "4.21 s");
  CHECK(seconds_text(83) == "1:23");
  CHECK(clock_text(3723) == "1:02:03");
  CHECK(clock_text(1e300) == "1000000:00:00");
  CHECK(pixel_rate_text(57.1e6) == "57.1 Mpx/s");
  CHECK(pixel_rate_text(1.234e9) == "1.23 Gpx/s");
  CHECK(voxel_rate_text(0) == "0 voxels/s");
  CHECK(voxel_rate_text(4321) == "4.32 kvoxels/s");
  CHECK(voxel_rate_text(1.234e6) == "1.23 Mvoxels/s");
}

TEST_CASE("long paths lose their middle") {
  const Style plain;
  CHECK(shortened_path("slides/a.svs", 20, plain) == "slides/a.svs");
  CHECK(shortened_path("slides/long/path/a.svs", 10, plain) == "sli....svs");
  CHECK(shortened_path("slides/long/path/a.svs", 12, plain) == "slid...a.svs");
  CHECK(shortened_path("a\nb\x1b.svs", 20, plain) == "a?b?.svs");
  // Bytes that aren't UTF-8 take a column each, as in the widths of tables.
  CHECK(shortened_path("a\xff\xa0\xc3.nii", 20, plain) == "a???.nii");
  Style unicode;
  unicode.unicode = true;
  CHECK(shortened_path("a\u00e5\u00e5\u00e5\u00e5b", 3, unicode) == "a\u2026b");
  CHECK(shortened_path("a\u00e5\u00e5\u00e5\u00e5b", 4, unicode) == "a\u2026\u00e5b");
  CHECK(shortened_path("slides/a.svs", 2, plain) == "...");
}

TEST_CASE("a run over volumes tells volumes and voxels") {
  Progress progress = some_progress();
  progress.pixels = 4'210'000;
  CHECK(progress_text(progress, usual, RunOver::volumes).find("317/1200 volumes, 12 failed, 27 %, 42.1 kvoxels/s, ") ==
        0);
  CHECK(live_line(progress, usual, false, 60, Style{}, RunOver::volumes).find("317/1200 volumes  12 failed") !=
        std::string::npos);
  progress.slides_total = 1;
  progress.slides_done = 0;
  CHECK(progress_text(progress, usual, RunOver::volumes).find("0/1 volume, ") == 0);
}

TEST_CASE("voxels of volumes that ended are behind the estimate") {
  Estimate estimate(10'000, 4);
  Progress progress;
  progress.slides_total = 4;
  progress.pixels = progress.pixels_started = 6000;
  SlideResult volume = slide_of(20, 10);
  volume.values = {{"volume.depth", 30}};
  estimate.slide_ended(volume, 2500);
  CHECK(estimate.fraction(progress) == doctest::Approx(0.25));
  // Half of the second one.
  progress.pixels_started = 12'000;
  progress.pixels = 9000;
  CHECK(estimate.fraction(progress) == doctest::Approx(0.375));
}

TEST_CASE("where the sizes of the files are known the estimate goes by bytes") {
  Estimate estimate(10'000, 4);
  Progress progress;
  progress.slides_total = 4;
  CHECK(estimate.fraction(progress) == 0.0);
  // Half of a first slide, of the usual size as far as is known.
  progress.pixels_started = 1000;
  progress.pixels = 500;
  CHECK(estimate.fraction(progress) == doctest::Approx(0.125));
  // It had 6,000 of the bytes.
  progress.pixels = 1000;
  estimate.slide_ended(slide_of(100, 10), 6000);
  CHECK(estimate.fraction(progress) == doctest::Approx(0.6));
  // One that couldn't be opened has no pixels, and is done all the same.
  estimate.slide_ended(slide_of(0, 0), 1000);
  CHECK(estimate.fraction(progress) == doctest::Approx(0.7));
  // A third of as many pixels a byte as the first: never more than is left, and never back.
  progress.pixels_started = 4000;
  progress.pixels = 3000;
  CHECK(estimate.fraction(progress) == 1.0);
  estimate.slide_ended(slide_of(300, 10), 1500);
  CHECK(estimate.fraction(progress) == 1.0);
}

TEST_CASE("slides that an earlier run has done are told") {
  Progress progress = some_progress();
  progress.slides_skipped = 300;
  CHECK(live_line(progress, usual, false, 200, Style{}).find("300 skipped") != std::string::npos);
  CHECK(progress_text(progress, usual).find("317/1200 slides, 12 failed, 300 of them skipped, 27 %") == 0);
}

TEST_CASE("what earlier starts did counts as done, but says nothing of the speed") {
  Estimate estimate(1000, 10, 3000);
  Progress progress = some_progress();
  progress.pixels = progress.pixels_started = 0;
  CHECK(estimate.share(progress).start == 0.0);
  CHECK(estimate.share(progress).all == doctest::Approx(0.75));
  estimate.slide_ended(slide_of(10, 10), 500);
  const Share share = estimate.share(progress);
  CHECK(share.start == doctest::Approx(0.5));
  CHECK(share.all == doctest::Approx(0.875));
  // Half of this start's work took 100 s.
  const std::string text = progress_text(progress, share);
  CHECK_MESSAGE(text.find("87 %") != std::string::npos, text);
  CHECK_MESSAGE(text.find("ETA 1:40") != std::string::npos, text);
}

TEST_CASE("tiles and bytes of images are told once there are images") {
  Progress progress = some_progress();
  CHECK(progress_text(progress, usual).find("tile") == std::string::npos);
  progress.images = {{"a.svs", "images/a.sobel.partial.ome.tif", 0, 100, 0}};
  CHECK(progress_text(progress, usual).find("0 tiles, 0 B written") != std::string::npos);
  progress.tiles_written = 12345;
  progress.bytes_written = 2'100'000'000;
  progress.files_made = 2;
  for (const std::string& text : {progress_text(progress, usual), live_line(progress, usual, false, 200, Style{})}) {
    CHECK_MESSAGE(text.find("2 files, 12,345 tiles, 2.10 GB written") != std::string::npos, text);
  }
}
