#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "support/test_data.hpp"
#include "support/test_slides.hpp"
#include "support/wide.hpp"
#include "synth/synth.hpp"

// Other programs must be able to read the slides.

namespace slidestream {
namespace {

using test::TemporaryFolder;

/// What a command wrote to standard output, and its status.
struct Answer {
  int status = -1;
  std::string text;
};

Answer run(const std::string& command) {
  Answer answer;
  std::FILE* const pipe = popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return answer;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe))
    answer.text.append(part.data(), count);
  answer.status = pclose(pipe);
  return answer;
}

/// Files are the same with sanitizers, and to make them takes long there.
bool left_to_release() {
#ifdef SLIDESTREAM_SANITIZED
  test::report_skipped("other programs look at the files of builds without sanitizers");
  return true;
#else
  return false;
#endif
}

bool installed(const std::string& program) { return run("command -v " + program).status == 0; }

std::string quoted(const std::filesystem::path& path) { return "'" + path.string() + "'"; }

/// Neither side is a multiple of a tile's, and other programs are done with the smaller one sooner.
SynthOptions slide_of(SynthCodec codec) {
  SynthOptions options;
  options.width = test::wide_or_few(1100, 560);
  options.height = test::wide_or_few(900, 440);
  options.levels = 2;
  options.codec = codec;
  options.quality = 90;
  return options;
}

constexpr std::array codecs{SynthCodec::none,     SynthCodec::jpeg_420, SynthCodec::jpeg_rgb, SynthCodec::jpeg_grey,
                            SynthCodec::jpeg2000, SynthCodec::jpeg_422, SynthCodec::jpeg_444};

TEST_CASE("OpenSlide opens and decodes every codec") {
  if (left_to_release()) return;
  if (!installed("openslide-show-properties") || !installed("openslide-write-png")) {
    test::report_skipped("OpenSlide's tools aren't installed (openslide-tools)");
    return;
  }
  const TemporaryFolder folder;
  for (const SynthCodec codec : codecs) {
    CAPTURE(static_cast<int>(codec));
    const SynthOptions options = slide_of(codec);
    write_synthetic_slide(folder / "slide.svs", options);
    const std::string slide = quoted(folder / "slide.svs");
    const std::string width = std::to_string(options.width), height = std::to_string(options.height);
    const std::string lower_width = std::to_string(options.width / 4),
                      lower_height = std::to_string(options.height / 4);
    const Answer properties = run("openslide-show-properties " + slide);
    CHECK(properties.status == 0);
    for (const std::string& line :
         {std::string("openslide.vendor: 'aperio'"), std::string("openslide.level-count: '2'"),
          std::string("openslide.mpp-x: '0.25'"), std::string("openslide.objective-power: '40'"),
          std::string("openslide.level[0].tile-width: '256'"), "openslide.level[0].width: '" + width + "'",
          "openslide.level[1].height: '" + lower_height + "'"}) {
      CAPTURE(line);
      CHECK(properties.text.find(line) != std::string::npos);
    }
    const auto write_png = [&](const std::string& region, const char* file) {
      return run("openslide-write-png " + slide + " 0 0 " + region + " " + quoted(folder / file)).status;
    };
    CHECK(write_png("0 " + width + " " + height, "0.png") == 0);
    CHECK(write_png("1 " + lower_width + " " + lower_height, "1.png") == 0);
  }
}

TEST_CASE("OpenSlide finds thumbnail, label and macro (long)") {
  const std::string python = run("python3 -c 'import openslide'").status == 0 ? "python3" : "/usr/bin/python3";
  if (run(python + " -c 'import openslide'").status != 0) {
    test::report_skipped("OpenSlide's Python module isn't installed (python3-openslide)");
    return;
  }
  const TemporaryFolder folder;
  SynthOptions options = slide_of(SynthCodec::jpeg_420);
  options.width = 1100;
  options.height = 900;
  write_synthetic_slide(folder / "slide.svs", options);
  const Answer answer = run(python +
                            " -c 'import sys, openslide; images = openslide.OpenSlide(sys.argv[1]).associated_images; "
                            "print([(name, images[name].size) for name in sorted(images)])' " +
                            quoted(folder / "slide.svs"));
  CHECK(answer.status == 0);
  CHECK(answer.text == "[('label', (387, 463)), ('macro', (1280, 431)), ('thumbnail', (275, 225))]\n");
}

TEST_CASE("vips opens and decodes every codec") {
  if (left_to_release()) return;
  if (!installed("vips")) {
    test::report_skipped("vips isn't installed (libvips-tools)");
    return;
  }
  const TemporaryFolder folder;
  const std::string pixels = quoted(folder / "pixels.v");
  const bool through_openslide = run("vips -l").text.find("openslideload") != std::string::npos;
  double plain = 0.0;
  // To start a program takes most of the time: JPEG in YCbCr is looked at once.
  for (const SynthCodec codec : std::span(codecs).first(test::is_wide() ? codecs.size() : 5)) {
    CAPTURE(static_cast<int>(codec));
    write_synthetic_slide(folder / "slide.svs", slide_of(codec));
    const std::string slide = quoted(folder / "slide.svs");
    // Pages beside the levels don't depend on the codec.
    const int pages = codec == codecs.front() ? 5 : 1;
    for (int page = 0; page < pages; ++page) {
      CAPTURE(page);
      CHECK(run("vips tiffload " + slide + " " + pixels + " --page " + std::to_string(page)).status == 0);
      CHECK(run("vips avg " + pixels).status == 0);
    }
    if (through_openslide) {
      CHECK(run("vips openslideload " + slide + " " + pixels).status == 0);
      const double average = std::strtod(run("vips avg " + pixels).text.c_str(), nullptr);
      if (codec == SynthCodec::none) plain = average;
      // Grey has no colour to average, the others the same.
      CHECK(std::abs(average - plain) < (codec == SynthCodec::jpeg_grey ? 15.0 : 1.0));
    }
  }
}

}  // namespace
}  // namespace slidestream
