// Files that OpenSlide would open by name for a slide: the made-up library, which takes them all, opens none.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>

#include "slide/loaded_openslide.hpp"
#include "slide/openslide/library.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace {

namespace fs = std::filesystem;

class Fixture {
 public:
  Fixture() {
    library().takes_all = true;
    library().vendor = "made-up";
    library().levels = {{100, 80, 1.0}};
    library().properties = {{"openslide.vendor", "made-up"}};
    library().images.clear();
    library().icc.clear();
    library().open_error.clear();
    library().bad_x = library().bad_y = -1;
    make_fifo("fifo");
  }
  ~Fixture() {
    library().takes_all = false;
    library().vendor = "made-up";
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  void make_fifo(const std::string& name) const { REQUIRE(mkfifo((folder / name).c_str(), 0600) == 0); }

  /// Behind the slide's path; empty: it opens. The library isn't asked to open what is refused.
  std::string refusal(const fs::path& path) const {
    const int opened = library().opened;
    try {
      Slide::open(path, {.openslide = SLIDESTREAM_MADE_UP_OPENSLIDE});
      return {};
    } catch (const SlideError& error) {
      CHECK(library().opened == opened);
      const std::string text = error.what();
      CHECK_MESSAGE(text.starts_with(path.string() + ": "), text);
      return text.substr(path.string().size() + 2);
    }
  }
  std::string refusal(const std::string& name, const std::string& content) const {
    return refusal(folder.write(name, content));
  }

  /// Of a handle alone.
  std::string fault(const fs::path& path) const {
    try {
      const openslide::Handle handle(openslide::Library::load(SLIDESTREAM_MADE_UP_OPENSLIDE), path);
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  TemporaryFolder folder;
};

const std::string vms = "[Virtual Microscope Specimen]\nNoLayers=1\n";

}  // namespace

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a VMS or VMU file that names a FIFO or a device is refused") {
  for (const char* line : {"ImageFile=fifo\n", "ImageFile(1,0)=fifo", "MapFile=fifo\r\n", " OptimisationFile = fifo \n",
                           "MacroImage=fifo", "ImageFile=/fifo", "ImageFile=./fifo"}) {
    CAPTURE(line);
    const std::string found = refusal("slide.vms", vms + line);
    CHECK_MESSAGE(found.ends_with("fifo, which is a FIFO"), found);
    CHECK_MESSAGE(found.starts_with("names "), found);
  }
  CHECK(refusal("slide.vmu", "[Uncompressed Virtual Microscope Specimen]\nNoLayers=1\nImageFile=fifo\n") ==
        "names fifo, which is a FIFO");
  // Whatever it is called, and wherever the mark stands.
  CHECK(refusal("slide.any", std::string(20'000, '\n') + vms + "MapFile=fifo") == "names fifo, which is a FIFO");
  make_fifo(" a\tb");
  CHECK(refusal("slide.vms", vms + "MapFile=\\sa\\tb").ends_with(", which is a FIFO"));
  fs::create_symlink("/dev/zero", folder / "zero");
  CHECK(refusal("slide.vms", vms + "ImageFile=zero") == "names zero, which is a device");
  fs::create_symlink("fifo", folder / "link");
  CHECK(refusal("slide.vms", vms + "ImageFile=link") == "names link, which is a FIFO");
  fs::create_directory(folder / "below");
  CHECK(refusal("below/slide.vms", vms + "ImageFile=../fifo") == "names ../fifo, which is a FIFO");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: files, folders and missing files that are named, and FIFOs that aren't") {
  folder.write("a.jpg", std::string("x"));
  fs::create_symlink("a.jpg", folder / "b.jpg");
  fs::create_directory(folder / "below");
  CHECK(refusal("slide.vms", vms + "ImageFile=a.jpg\nImageFile(1,0)=b.jpg\nMapFile=none\nOptimisationFile=below\n" +
                                 "Comment=fifo\n") == "");
  CHECK(refusal("slide.any", "ImageFile=fifo\n") == "");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: a MIRAX slide whose index is or names a FIFO is refused") {
  const fs::path slide = folder.write("m.mrxs", std::string("made up"));
  fs::create_directory(folder / "m");
  make_fifo("m/Slidedat.ini");
  CHECK(refusal(slide) == "names m/Slidedat.ini, which is a FIFO");
  fs::remove(folder / "m/Slidedat.ini");
  make_fifo("m/fifo");
  const auto with_index = [&](const std::string& text) {
    folder.write("m/Slidedat.ini", text);
    return refusal(slide);
  };
  CHECK(with_index("[HIERARCHICAL]\nINDEXFILE = fifo\n") == "names fifo, which is a FIFO");
  CHECK(with_index("[DATAFILE]\nFILE_COUNT = 1\nFILE_0 = ../fifo\n") == "names ../fifo, which is a FIFO");
  CHECK(with_index(std::string((std::size_t{1} << 20) + 1, '\n')) == "names m/Slidedat.ini, which has more than 1 MiB");
  CHECK(with_index("[DATAFILE]\nFILE_COUNT = 1\nFILE_0 = Data.dat\n") == "");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: what it looks for beside a slide is no FIFO") {
  const fs::path slide = folder.write("slide.tif", std::string("x"));
  CHECK(fault(slide) == "");
  make_fifo("slide.Full");
  CHECK(fault(slide) == "");
  library().vendor = "trestle";
  CHECK(fault(slide) == "names slide.Full, which is a FIFO");
  library().vendor = "made-up";
  const fs::path dicom = folder.write("slide.dcm", std::string(128, '\0') + "DICM");
  CHECK(fault(dicom).find(", which is a FIFO") != std::string::npos);
  fs::remove(folder / "fifo");
  fs::remove(folder / "slide.Full");
  CHECK(fault(dicom) == "");
  // A handle looks by itself: files may have changed since the slide was opened.
  make_fifo("late");
  CHECK(fault(folder.write("slide.vms", vms + "MapFile=late")) == "names late, which is a FIFO");
}

TEST_CASE_FIXTURE(Fixture, "OpenSlide: an opening that doesn't return is left behind, as few as eight") {
  const fs::path slide = folder.write("slide.any", std::string("made up"));
  const auto closed = [] {
    const std::lock_guard lock(library().mutex);
    return library().closed;
  };
  const int before = closed();
  const OpenOptions options = {.give_up = [] { return library().holds_open.load(); },
                               .openslide = SLIDESTREAM_MADE_UP_OPENSLIDE};
  library().holds_open = true;
  for (int i = 0; i < openslide::most_left_openings; ++i) CHECK_THROWS_AS(Slide::open(slide, options), StoppedError);
  CHECK_THROWS_WITH_AS(
      Slide::open(slide, options),
      (slide.string() + ": OpenSlide 4.9.made-up: hasn't returned from opening 8 other slides").c_str(), SlideError);
  library().holds_open = false;
  // They close what they have opened after all, and others are opened again.
  while (closed() < before + openslide::most_left_openings) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  bool opens = false;
  while (!opens) {
    try {
      opens = Slide::open(slide, options) != nullptr;
    } catch (const SlideError&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  CHECK(opens);
}
