// Few bytes of a DICOM file cost little, and files beside a slide cost it nothing twice.

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <slidestream/error.hpp>
#include <string>
#include <thread>

#include "slide/dicom/folder_heads.hpp"
#include "slide/dicom_pictures.hpp"
#include "slide/formats.hpp"
#include "support/failing_reads.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

namespace {

constexpr std::uintmax_t hole = std::uintmax_t{1} << 28;

void put(Bytes& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<std::byte>(value >> (8 * i)));
}

void put_element(Bytes& to, std::uint32_t tag, const std::string& value, std::uint32_t length) {
  put(to, tag >> 16, 2);
  put(to, tag & 0xFFFF, 2);
  put(to, length, 4);
  for (const char c : value) to.push_back(static_cast<std::byte>(c));
}

/// As far as the group about the file: what follows is implicit.
Bytes beginning() {
  Bytes bytes(128);
  for (const char c : std::string("DICM")) bytes.push_back(static_cast<std::byte>(c));
  put(bytes, 0x00100002, 4);
  for (const char c : std::string("UI")) bytes.push_back(static_cast<std::byte>(c));
  const std::string syntax("1.2.840.10008.1.2\0", 18);
  put(bytes, syntax.size(), 2);
  for (const char c : syntax) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

void put_endless_item(Bytes& to, std::uint32_t sequence) {
  put_element(to, sequence, {}, 0xFFFFFFFF);
  put_element(to, 0xFFFEE000, {}, 0xFFFFFFFF);
}

/// What opening a file says that ends in a hole, which would be thousands of reads.
std::string error_before_hole(const TemporaryFolder& folder, const Bytes& bytes) {
  const fs::path path = folder.write("slide.dcm", bytes);
  fs::resize_file(path, bytes.size() + hole);
  fail_reads("slide.dcm", 0, EIO);
  const std::string error = open_error(path);
  CHECK(reads_seen() > 0);
  CHECK(reads_seen() < 100);
  fail_nothing();
  return error;
}

}  // namespace

TEST_CASE("DICOM: a hole is no element") {
  const TemporaryFolder folder;
  Bytes bytes = beginning();
  const std::string says = "slide.dcm: has zeros at byte ";
  CHECK(error_before_hole(folder, bytes).find(says + std::to_string(bytes.size())) != std::string::npos);
  put_endless_item(bytes, 0x00081140);
  CHECK(error_before_hole(folder, bytes).find(says) != std::string::npos);
  // Behind all that tells which series a file is of.
  bytes = beginning();
  put_element(bytes, 0x00080016, std::string("1.2.840.10008.5.1.4.1.1.77.1.6"), 30);
  put_element(bytes, 0x0020000E, "1.29", 4);
  put_endless_item(bytes, 0x52009230);
  CHECK(error_before_hole(folder, bytes).find(says) != std::string::npos);
}

TEST_CASE("DICOM: what tells a file's series is bounded, and a file beyond costs its siblings nothing else") {
  const TemporaryFolder folder;
  const fs::path sound = folder.write("sound.dcm", make_dicom(make_picture(128, 96, 3, 1)).encode());
  Bytes bytes = beginning();
  for (int i = 0; i < 200'000; ++i) put_element(bytes, 0x00091001, {}, 0);
  const fs::path slow = folder.write("slow.dcm", bytes);
  CHECK(open_error(slow) == slow.string() + ": has more than 131072 elements");
  const auto slide = Slide::open(sound);
  CHECK(slide->info().warnings ==
        std::vector<std::string>{"files of its folder can't be read, and may be levels of it: 1, the first slow.dcm"});
}

TEST_CASE("DICOM: a folder's files are read once, whatever its time says (long)") {
  const TemporaryFolder folder;
  constexpr int slides = 20;
  const auto name = [](int i) { return "slide-" + std::to_string(i) + ".dcm"; };
  const auto in_a_year = fs::file_time_type::clock::now() + std::chrono::hours(24 * 365);
  for (int i = 0; i < slides; ++i) {
    const std::string series = "1.2." + std::to_string(i);
    const fs::path path = folder.write(
        name(i), make_dicom(make_picture(64, 64, 3, 1), {.series = series, .instance = series + ".1"}).encode());
    fs::last_write_time(path, in_a_year);
  }
  fs::last_write_time(folder.path(), in_a_year);
  Slide::open(folder.path() / name(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  Slide::open(folder.path() / name(0));
  const std::uint64_t before = dicom::heads_read();
  for (int i = 0; i < slides; ++i) {
    Slide::open(folder.path() / name(i));
    CHECK(files_of_slide(folder.path() / name(i)).size() == 1);
  }
  CHECK(dicom::heads_read() == before);
  // A file that comes is seen, and read alone.
  folder.write("more.dcm", make_dicom(make_picture(32, 32, 3, 1), {.series = "1.2.0", .instance = "1.2.0.2"}).encode());
  CHECK(files_of_slide(folder.path() / name(0)).size() == 2);
  CHECK(dicom::heads_read() - before <= 2);
  fs::remove(folder.path() / "more.dcm");
  CHECK(files_of_slide(folder.path() / name(0)).size() == 1);
}

TEST_CASE("DICOM: a file that changes all the time, and files that come, cost slides little (long)") {
  const TemporaryFolder folder;
  constexpr int slides = 40;
  const auto name = [](int i) { return "slide-" + std::to_string(i) + ".dcm"; };
  for (int i = 0; i < slides; ++i) {
    const std::string series = "1.2." + std::to_string(i);
    folder.write(name(i),
                 make_dicom(make_picture(64, 64, 3, 1), {.series = series, .instance = series + ".1"}).encode());
  }
  Slide::open(folder.path() / name(0));
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));
  Slide::open(folder.path() / name(0));
  const std::uint64_t before = dicom::files_looked_at();
  for (int i = 0; i < slides; ++i) {
    std::ofstream(folder.path() / "log.txt", std::ios::app) << "a line\n";
    CHECK(files_of_slide(folder.path() / name(i)).size() == 1);
  }
  // All of them when the folder changed and when that is two seconds ago, and the growing one each time.
  CHECK(dicom::files_looked_at() - before <= 3 * slides + 2);
}

TEST_CASE("DICOM: a file that the storage refuses holds up its folder's slides for two seconds (long)") {
  for (const std::string refused : {"refused.dcm", "refused.bin"}) {
    const TemporaryFolder folder;
    const fs::path path = folder.write("sound.dcm", make_dicom(make_picture(64, 64, 3, 1)).encode());
    folder.write(refused, make_dicom(make_picture(64, 64, 3, 1), {.series = "1.9", .instance = "1.9.1"}).encode());
    fail_reads(refused, 1'000'000, EIO);
    CHECK_THROWS_AS(Slide::open(path), StorageError);
    std::this_thread::sleep_for(std::chrono::milliseconds(2100));
    const auto slide = Slide::open(path);
    CHECK(files_of_slide(path).size() == 1);
    CHECK((slide->info().warnings.size() == 1) == (refused == "refused.dcm"));
    for (const std::string& line : slide->info().warnings) CHECK(line.ends_with("1, the first refused.dcm"));
    fail_nothing();
    // Read at last, it is another slide's.
    CHECK(Slide::open(path)->info().warnings.empty());
    CHECK(files_of_slide(folder.path() / refused).size() == 1);
  }
}

TEST_CASE("DICOM: listing a folder ends when the caller gives it up") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("slide.dcm", make_dicom(make_picture(64, 64, 3, 1)).encode());
  for (int i = 0; i < 20; ++i) fs::copy_file(path, folder.path() / ("copy-" + std::to_string(i) + ".dcm"));
  int asked = 0;
  CHECK_THROWS_AS(dicom::heads_of(folder.path(), [&asked] { return ++asked == 10; }), StoppedError);
  CHECK(asked == 10);
  CHECK(dicom::heads_of(folder.path(), {})->heads.size() == 21);
}

#ifndef SLIDESTREAM_SANITIZED
TEST_CASE("DICOM: without a descriptor nobody says which files a slide has") {
  const TemporaryFolder folder;
  const fs::path path = folder.write("slide.dcm", make_dicom(make_picture(64, 64, 3, 1)).encode());
  ::rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const ::rlimit none = {3, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  bool is_shortage = false;
  bool is_shortage_of_folder = false;
  try {
    files_of_slide(path);
  } catch (const DescriptorError&) {
    is_shortage = true;
  }
  try {
    dicom::series_in_folder(folder.path());
  } catch (const DescriptorError&) {
    is_shortage_of_folder = true;
  }
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  CHECK(is_shortage);
  CHECK(is_shortage_of_folder);
  CHECK(files_of_slide(path).size() == 1);
}
#endif

TEST_CASE("DICOM: heads of items that lie close together are read many at a time") {
  const TemporaryFolder folder;
  DicomFile file = make_dicom(cut(picture_for(Codec::jpeg), 0, 0, 64, 64));
  file.table = Table::none;
  const auto pixels = pixels_of(folder.write("slide.dcm", file.encode()));
  // All but the last are empty.
  file.fragments = 50'000;
  const auto path = folder.write("slide.dcm", file.encode());
  fail_reads("slide.dcm", 0, EIO);
  const auto slide = Slide::open(path);
  CHECK(reads_seen() < 200);
  fail_nothing();
  CHECK(pixels_of(path) == pixels);
}

}  // namespace slidestream::test
