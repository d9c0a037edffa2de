#include "cli/shortage.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <exception>
#include <fstream>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/signals.hpp"
#include "cli/terminate_handler.hpp"
#include "cli/under_way.hpp"
#include "ledger/start_notes.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::cli;
using namespace slidestream::test;

namespace {

std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct End {
  int status = -1;
  std::string line;
  std::string notes;
};

/// How a process ends where nobody can catch what `fail` throws, while it works on a slide.
template <class Fail>
End end_by(const Fail& fail) {
  const TemporaryFolder folder;
  const auto notes = folder / "notes", lines = folder / "lines";
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(lines.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    const StopNoteScope scope(::open(notes.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600));
    set_terminate_handler();
    slide_was_begun = true;
    try {
      fail();
    } catch (...) {
      std::terminate();
    }
    ::_exit(99);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(lines), content(notes)};
}

}  // namespace

TEST_CASE("memory that lacks is told with what it was for, and what to do") {
  const std::string text = cause_of(std::bad_alloc(), "a.svs");
  CHECK(text == std::string("a.svs: ") + memory_shortage);
  CHECK(text.starts_with("a.svs: out of memory: lower pipeline.memory_mib"));
  CHECK(cause_of(std::bad_array_new_length(), "a.svs") == text);
  CHECK(cause_of(OutputError("a.csv: No space left on device"), "a.svs") == "a.csv: No space left on device");
}

TEST_CASE("a process that ends where nobody can catch notes that memory or threads lack, and nothing else") {
  const End memory = end_by([] { throw std::bad_alloc(); });
  CHECK(memory.status == exit_ended_early);
  CHECK(memory.line == std::string("error: ") + memory_shortage + "\n");
  CHECK(memory.notes == shortage_note);
  const End threads =
      end_by([] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again)); });
  CHECK(threads.status == exit_ended_early);
  CHECK(threads.line == std::string("error: ") + thread_shortage + "\n");
  CHECK(threads.notes == shortage_note);
  const End other = end_by([] { throw std::logic_error("wrong"); });
  CHECK(other.status == exit_ended_early);
  CHECK(other.line == "error: internal error: wrong\n");
  CHECK(other.notes.empty());
}

TEST_CASE("a process that ends without memory names slides that were under way") {
  const auto line_with = [](std::size_t slides) {
    return end_by([slides] {
             SlidesUnderWay& under_way = slides_under_way();
             under_way.reset();
             for (std::size_t i = 0; i < slides; ++i) under_way.begin("/a/" + std::to_string(i) + "\n.svs");
             under_way.begin("/a/ended.svs");
             under_way.end("/a/ended.svs");
             throw std::bad_alloc();
           })
        .line;
  };
  const std::string begin = std::string("error: ") + memory_shortage;
  CHECK(line_with(0) == begin + "\n");
  CHECK(line_with(1) == begin + "; the slide under way: /a/0?.svs\n");
  CHECK(line_with(2) == begin + "; slides under way: /a/0?.svs, /a/1?.svs\n");
  CHECK(line_with(1000) == begin + "; slides under way: /a/0?.svs, /a/1?.svs, /a/2?.svs, /a/3?.svs and 996 more\n");
}

TEST_CASE("slides under way: the oldest first, the end of a long path, and none after the run") {
  SlidesUnderWay slides;
  BoundedLine line;
  slides.begin("a");
  slides.begin("b");
  slides.begin(std::string(5000, 'x') + "c");
  slides.end("a");
  slides.note();
  slides.end_all();
  slides.add_to(line);
  CHECK(line.text().empty());
  CHECK(slides.noted() == "; slides under way: b, ..." + std::string(299, 'x') + "c");
  slides.reset();
  CHECK(slides.noted().empty());
  for (int i = 0; i < 100; ++i) line.add_name(std::string(200, 'y'));
  line.end();
  CHECK(line.text().ends_with("y\n"));
}

TEST_CASE("a run needs open files for images that are folders, by operator and by two slides at most") {
  for (const ImageFormatTraits& format : image_formats()) {
    INFO(name_of(format.format));
    Config config;
    config.image.format = format.format;
    config.operators.run = {"spectrum", "tissue"};
    const std::size_t of_run = needed_descriptors(config, 9);
    const std::size_t of_image = format.format == ImageFormat::ome_tiff ? 0 : 24;
    for (const std::string_view name : operator_names) {
      if (name == "spectrum" || name == "tissue") continue;
      config.operators.run.emplace_back(name);
      const std::size_t images = config.operators.run.size() - 2;
      CHECK(needed_descriptors(config, 1) == of_run + images * of_image);
      CHECK(needed_descriptors(config, 9) == of_run + 2 * images * of_image);
    }
  }
}
