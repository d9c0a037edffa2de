// Any bytes are a ledger that can be merged and looked at, or an error of one line. An input that begins with 'R' is a
// file as it is; every other is a list of changes to a sound ledger, of the first version where it begins with 'V' and
// of the current one where it doesn't: what is behind SQLite's own checks is reached so, and half of them get sound
// digests again, or none, for what is behind those.

#include <sqlite3.h>
#include <stdlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>

#include "ledger/ledger.hpp"
#include "ledger/merge.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"

namespace {

namespace fs = std::filesystem;
using namespace slidestream;

/// What must hold, also where NDEBUG is set.
void require(bool holds) {
  if (!holds) std::abort();
}

constexpr int bins = 3;

SlideResult some_result(const std::string& path) {
  SlideResult slide;
  slide.path = path;
  slide.done = true;
  slide.width = slide.height = 256;
  slide.codec = "jpeg";
  slide.map = {1, 1, {1.0F, 2.0F}};
  slide.map_file = "x.npy";
  slide.sums.histogram = {1, 2, 3};
  slide.sums.values = 6;
  slide.sums.windows = 1;
  slide.sums.sum = 12345;
  slide.sums.sum_of_squares = 123456789;
  return slide;
}

/// The folders that every input uses, and a sound ledger.
class Place {
 public:
  Place() {
    const char* memory = fs::exists("/dev/shm") ? "/dev/shm" : "/tmp";
    std::string name = std::string(memory) + "/slidestream-fuzz-XXXXXX";
    require(mkdtemp(name.data()) != nullptr);
    root_ = name;
    fs::create_directory(part());
    Config config;
    config.output.dir = part();
    config.output.maps = MapFormat::npy;
    config.analysis.bins = bins;
    {
      Ledger ledger(config);
      ledger.begin({{"/a.svs", "/a.svs", true}, {"/b.svs", "/b.svs", true}, {"/c.svs", "/c.svs", true}}, false);
      SlideResult slide = some_result("/a.svs");
      slide.artifacts = {{"sobel", "edges", "images/a.sobel.ome.tif", 7, 8}};
      slide.values = {{"tissue.share", 0.5}};
      require(ledger.image_name(0) == "a");
      ledger.ended(0, slide);
      slide = {};
      slide.path = "/b.svs";
      slide.fail({"decode", 3, "gone"});
      slide.sums.histogram.assign(bins, 0);
      ledger.ended(1, slide);
    }
    sound_ = bytes_of(file());
    // Fuzz targets run in the folder of the project.
    first_version_ = bytes_of("tests/ledger/data/version-1/part-1.sqlite");
    require(!first_version_.empty());
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string part() const { return (root_ / "part").string(); }
  std::string out() const { return (root_ / "out").string(); }
  std::string file() const { return (root_ / "part/run.sqlite").string(); }
  const std::string& sound() const { return sound_; }
  const std::string& first_version() const { return first_version_; }

  void write(std::string_view bytes) const {
    fs::remove(file() + "-wal");
    fs::remove(file() + "-journal");
    std::ofstream(file(), std::ios::binary | std::ios::trunc)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    fs::remove_all(out());
  }

 private:
  static std::string bytes_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path root_;
  std::string sound_;
  std::string first_version_;
};

/// Sets a column of a row, or a setting, to a value of the input's.
void change(sqlite3* database, std::uint8_t what, std::uint8_t kind, std::string_view value) {
  constexpr std::array statements = {
      "UPDATE slides SET canonical = ?1 WHERE windows > 0",
      "UPDATE slides SET path = ?1 WHERE windows > 0",
      "UPDATE slides SET position = ?1 WHERE windows > 0",
      "UPDATE slides SET state = ?1 WHERE state = 'failed'",
      "UPDATE slides SET stage = ?1, tile = ?1, cause = ?1 WHERE state = 'failed'",
      "UPDATE slides SET error = ?1 WHERE state = 'failed'",
      "UPDATE slides SET width = ?1, height = ?1 WHERE windows > 0",
      "UPDATE slides SET codec = ?1 WHERE windows > 0",
      "UPDATE slides SET level = ?1 WHERE windows > 0",
      "UPDATE slides SET mpp = ?1 WHERE windows > 0",
      "UPDATE slides SET missing_tiles = ?1 WHERE windows > 0",
      "UPDATE slides SET seconds = ?1 WHERE windows > 0",
      "UPDATE slides SET windows = ?1 WHERE windows > 0",
      "UPDATE slides SET value_count = ?1 WHERE windows > 0",
      "UPDATE slides SET clipped = ?1 WHERE windows > 0",
      "UPDATE slides SET value_sum = ?1 WHERE windows > 0",
      "UPDATE slides SET square_sum = ?1 WHERE windows > 0",
      "UPDATE slides SET map_columns = ?1 WHERE windows > 0",
      "UPDATE slides SET map_rows = ?1 WHERE windows > 0",
      "UPDATE slides SET map_name = ?1 WHERE windows > 0",
      "UPDATE slides SET histogram = ?1 WHERE windows > 0",
      "UPDATE slides SET size = ?1, modified = ?1, hash = ?1",
      "UPDATE slides SET attempts = ?1, ended_at = ?1",
      "UPDATE maps SET bytes = ?1",
      "UPDATE meta SET value = ?1",
      "UPDATE settings SET value = ?1 WHERE rowid = 3",
      "INSERT OR REPLACE INTO owner VALUES(1, 'x', ?1, ?1, 'x', 1, 1, 1, 1, 1)",
      "INSERT INTO slides(canonical, path, position, mine, state) VALUES(?1, ?1, 1, 1, 'done')",
  };
  sqlite3_stmt* statement = nullptr;
  const char* sql = statements[what % statements.size()];
  if (sqlite3_prepare_v2(database, sql, -1, &statement, nullptr) != SQLITE_OK) return;
  std::int64_t number = 0;
  for (const char c : value.substr(0, 8))
    number = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) << 8) | static_cast<std::uint8_t>(c);
  const int length = static_cast<int>(value.size());
  switch (kind % 4) {
    case 0:
      sqlite3_bind_int64(statement, 1, number);
      break;
    case 1:
      sqlite3_bind_text(statement, 1, value.data(), length, SQLITE_TRANSIENT);
      break;
    case 2:
      sqlite3_bind_blob(statement, 1, value.data(), length, SQLITE_TRANSIENT);
      break;
    default:
      sqlite3_bind_double(statement, 1, static_cast<double>(number) * 1e-3);
  }
  sqlite3_step(statement);
  sqlite3_finalize(statement);
}

void change_all(const std::string& file, std::string_view input) {
  sqlite3* database = nullptr;
  require(sqlite3_open(file.c_str(), &database) == SQLITE_OK);
  sqlite3_exec(database, "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON; BEGIN", nullptr, nullptr,
               nullptr);
  for (int changes = 0; input.size() >= 3 && changes < 8; ++changes) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(input[i]); };
    const std::string_view value = input.substr(3, byte(2));
    change(database, byte(0), byte(1), value);
    input.remove_prefix(3 + value.size());
  }
  sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(database);
}

/// Gives every row the digest of what is in it now. \param current  it is the current version's, else the first's
void seal_all(const std::string& file, bool current) {
  Database database(file, DatabaseAccess::read_write);
  if (!current) {
    return database.execute(
        "UPDATE slides SET digest = row_digest(path, state, error, width, height, codec, colour, level, mpp, "
        "missing_tiles, bad_tiles, backend, seconds, file_bytes, windows, value_count, clipped, value_sum, square_sum, "
        "map_columns, map_rows, histogram, gpu_fallback_tiles, map_digest, canonical)");
  }
  for (const std::int64_t id : {1, 2, 3, 4}) seal_row(database, id);
}

template <class Work>
void attempt(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string_view text = error.what();
    require(!text.empty() && text.find_first_of("\r\n") == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Place place;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('R')) {
    place.write(input.substr(1));
  } else {
    const bool current = !input.starts_with('V');
    if (!current) input.remove_prefix(1);
    place.write(current ? place.sound() : place.first_version());
    const bool seal = !input.empty() && (input.front() & 1) != 0;
    change_all(place.file(), input.empty() ? input : input.substr(1));
    if (seal) attempt([current] { seal_all(place.file(), current); });
  }
  attempt([] { StatusReader(place.part()).status(); });
  attempt([] {
    const MergeResult merged = merge_ledgers({place.part()}, place.out());
    require(merged.corpus.done + merged.corpus.failed + merged.missing.size() <= 16);
    std::uint64_t total = 0;
    for (const std::uint64_t count : merged.corpus.sums.histogram) total += count;
    require(total == merged.corpus.sums.values);
  });
  return 0;
}
