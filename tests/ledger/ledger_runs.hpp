#pragma once

#include <sqlite3.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <slidestream/results.hpp>

#include "ledger/ledger.hpp"
#include "ledger/ledger_view.hpp"
#include "ledger/row_digest.hpp"
#include "ledger/status.hpp"
#include "support/temporary_folder.hpp"

namespace slidestream::test {

inline constexpr int ledger_bins = 5;

/// A configuration whose results lie in the folder.
inline Config ledger_config(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Config config;
  config.output.dir = folder.string();
  config.output.maps = MapFormat::npy;
  config.analysis.bins = ledger_bins;
  return config;
}

/// Files that can be looked at, and their manifest.
inline std::vector<ManifestEntry> make_files(const TemporaryFolder& folder, int count) {
  std::vector<ManifestEntry> manifest;
  for (int i = 0; i < count; ++i) {
    const std::string file =
        folder.write("slide-" + std::to_string(i), std::string(static_cast<std::size_t>(i) + 1, 'x'));
    manifest.push_back({file, file, true});
  }
  return manifest;
}

/// A result that a run could have given: the counts are as many as the values.
inline SlideResult result_of(const std::string& path, std::uint64_t seed) {
  SlideResult slide;
  slide.path = path;
  slide.done = true;
  slide.width = 1000;
  slide.height = 700;
  slide.codec = "jpeg";
  slide.colour = "ycbcr";
  slide.mpp = 0.1;
  slide.backend = "cpu";
  slide.seconds = 1.0 / 3.0;
  slide.file_bytes = 12345;
  slide.missing_tiles = seed % 3;
  slide.map = {2, 1, {1.0F, 2.0F, 3.0F, static_cast<float>(seed)}};
  slide.map_file = "map.npy";
  SpectrumSums& sums = slide.sums;
  sums.histogram = {seed, 20, 0, std::uint64_t{1} << 40, 7};
  for (const std::uint64_t count : sums.histogram) sums.values += count;
  sums.windows = 2;
  sums.clipped = 3;
  sums.sum = -(Int128{1} << 100) - static_cast<Int128>(seed);
  sums.sum_of_squares = (Int128{1} << 120) + 1;
  sums.counters = {static_cast<Int128>(seed), -(Int128{1} << 100) - 1};
  return slide;
}

/// With attachments of every kind.
inline SlideResult attached_result_of(const std::string& path, std::uint64_t seed) {
  SlideResult slide = result_of(path, seed);
  const std::string name = "images/" + std::filesystem::path(path).stem().string();
  slide.artifacts = {{"sobel", "edges", name + ".sobel.ome.tif", 1000 + seed, ~seed},
                     {"tissue", "outlines", name + ".tissue.geojson", 0, 7}};
  slide.values = {{"tissue.share", 0.1 * static_cast<double>(seed)}, {"tissue.threshold", 17}};
  return slide;
}

/// Writes files of the artifacts' sizes.
inline void make_artifacts(const std::filesystem::path& folder, const SlideResult& slide) {
  for (const Artifact& artifact : slide.artifacts) {
    const std::filesystem::path file = folder / artifact.file;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << std::string(artifact.bytes, 'i');
  }
}

/// Ends a slide as a run does, which has made its artifacts unless it failed.
inline void end_with_files(Ledger& ledger, std::size_t place, SlideResult slide) {
  ledger.started(place);
  if (slide.done) make_artifacts(ledger.file().parent_path(), slide);
  ledger.ended(place, slide);
}

inline SlideResult failure_of(const std::string& path, SlideFailure why) {
  SlideResult slide;
  slide.path = path;
  slide.fail(std::move(why));
  slide.sums.histogram.assign(ledger_bins, 0);
  return slide;
}

inline std::vector<SlideResult> slides_in(const Ledger& ledger) {
  std::vector<SlideResult> slides;
  LedgerView view(ledger.file(), ledger_bins);
  view.for_each([&](const SlideResult& slide) { slides.push_back(slide); });
  return slides;
}

/// A run's status without what single slides say.
inline LedgerStatus read_status(const std::filesystem::path& folder, std::int64_t most_checked = most_checked_bytes) {
  return StatusReader(folder, most_checked).status();
}

/// Runs SQL on a ledger behind the library's back.
inline void tamper(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* database = nullptr;
  const bool done = sqlite3_open(file.c_str(), &database) == SQLITE_OK && add_row_digest(database) == SQLITE_OK &&
                    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  const std::string reason = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (!done) throw std::runtime_error(reason);
}

/// The same of settings, as if a program without a digest of them had written these.
inline void tamper_settings(const std::filesystem::path& file, const std::string& sql) {
  tamper(file, sql + "; DELETE FROM meta WHERE name = 'settings digest'");
}

template <class Exception, class Work>
std::string message_of(Work&& work) {
  try {
    work();
  } catch (const Exception& error) {
    return error.what();
  }
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace slidestream::test
