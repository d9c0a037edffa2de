#pragma once

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sink/content_hash.hpp"
#include "support/pipeline_runs.hpp"
#include "support/temporary_folder.hpp"
#include "support/test_data.hpp"
#include "synth/synth.hpp"

/// \file
/// Results as they were when they were written down, to the bit: what no change of the engine may change. Vector units
/// and GPUs each have digests of their own, for they may round otherwise. Where those of a unit aren't written down,
/// that is said.

namespace slidestream::test {

/// "UNIT CASE" or "slide NAME" to 16 hexadecimal digits.
using Digests = std::map<std::string, std::string>;

/// Made by a run with SLIDESTREAM_RECORD_DIGESTS=FILE, which writes lines of it instead of comparing.
inline Digests written_down() {
  return {
#include "stages/spectrum_digests.inc"
  };
}

inline std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(value));
  return text;
}

template <class T>
void add(ContentHash& hash, const T* values, std::size_t count) {
  hash.add(std::as_bytes(std::span(values, count)));
}

inline std::string digest_of(const SlideResult& slide) {
  const SpectrumSums& sums = slide.sums;
  ContentHash hash;
  add(hash, sums.histogram.data(), sums.histogram.size());
  const std::uint64_t counts[] = {sums.windows, sums.values, sums.clipped, slide.missing_tiles, slide.bad_tiles};
  add(hash, counts, std::size(counts));
  add(hash, &sums.sum, 1);
  add(hash, &sums.sum_of_squares, 1);
  add(hash, slide.map.values.data(), slide.map.values.size());
  return hexadecimal(hash.value());
}

/// The real ones, which take longer, stand last.
struct Slides {
  std::vector<std::string> names;
  std::vector<std::string> files;
  std::size_t made = 0;
};

/// One of every codec and sampling, and one with missing and damaged tiles; the real ones where they are there.
inline Slides make_slides(const TemporaryFolder& folder) {
  const std::map<std::string, SynthCodec> codecs = {
      {"jpeg420", SynthCodec::jpeg_420}, {"jpeg422", SynthCodec::jpeg_422}, {"jpeg444", SynthCodec::jpeg_444},
      {"rgb", SynthCodec::jpeg_rgb},     {"grey", SynthCodec::jpeg_grey},   {"jpeg2000", SynthCodec::jpeg2000},
      {"none", SynthCodec::none},        {"defects", SynthCodec::jpeg_420}};
  Slides slides;
  for (const auto& [name, codec] : codecs) {
    SynthOptions options;
    options.width = 1300;
    options.height = 1100;
    options.tile = name == "jpeg444" ? 240 : 256;
    options.codec = codec;
    options.levels = 1;
    options.threads = 1;
    if (name == "defects") options.missing_tiles = options.corrupt_tiles = 2;
    const std::filesystem::path file = folder.path() / (name + ".svs");
    write_synthetic_slide(file, options);
    slides.names.push_back(name);
    slides.files.push_back(file.string());
  }
  slides.made = slides.files.size();
  if (const auto root = test_data_root()) {
    for (const char* name : {"cmu-1-small-region", "tcga-cr-7395"}) {
      slides.names.emplace_back(name);
      slides.files.push_back((*root / "data" / (std::string(name) + ".svs")).string());
    }
  }
  return slides;
}

struct Case {
  std::string name;
  AnalysisConfig analysis;
};

inline std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add_case = [&all](const std::string& name, int window, int stride, int radius, ValueKind value) {
    AnalysisConfig analysis;
    analysis.window = window;
    analysis.stride = stride;
    analysis.smoothing_radius = radius;
    analysis.value = value;
    if (value == ValueKind::linear) analysis.range = {0.0, 4000.0};
    all.push_back({name, analysis});
  };
  add_case("256/128 radius 3", 256, 128, 3, ValueKind::log1p_db);
  add_case("256/128 radius 0", 256, 128, 0, ValueKind::log1p_db);
  add_case("256/128 radius 5", 256, 128, 5, ValueKind::log1p_db);
  add_case("256/128 db", 256, 128, 3, ValueKind::db);
  add_case("256/128 linear", 256, 128, 2, ValueKind::linear);
  add_case("256/96 radius 3", 256, 96, 3, ValueKind::log1p_db);
  add_case("64/64 radius 3", 64, 64, 3, ValueKind::log1p_db);
  add_case("128/200 radius 1", 128, 200, 1, ValueKind::db);
  add_case("512/256 radius 3", 512, 256, 3, ValueKind::log1p_db);
  add_case("96/96 radius 3", 96, 96, 3, ValueKind::log1p_db);
  return all;
}

/// Digests of all slides and cases on one unit, beside those that are written down.
inline void check_unit(const std::string& unit, Backend backend) {
  const TemporaryFolder folder;
  const Slides slides = make_slides(folder);
  Digests found;
  for (std::size_t i = 0; i < slides.files.size(); ++i) {
    const auto hash = file_hash(slides.files[i]);
    REQUIRE(hash);
    found["slide " + slides.names[i]] = hexadecimal(*hash);
  }
  Config config = config_for(backend);
  config.pipeline.memory_mib = 64;
  config.decode.on_bad_tile = BadTilePolicy::white;
  for (const Case& one : cases()) {
    config.analysis = one.analysis;
    std::vector<std::string> files = slides.files;
    if (one.name != cases().front().name) files.resize(slides.made);
    const RunResult result = run(config, files);
    REQUIRE(result.slides.size() == files.size());
    require_done(result);
    for (std::size_t i = 0; i < files.size(); ++i) {
      found[unit + ", " + one.name + ", " + slides.names[i]] = digest_of(result.slides[i]);
    }
  }
  if (const char* record = std::getenv("SLIDESTREAM_RECORD_DIGESTS")) {
    std::ofstream file(record, std::ios::app);
    for (const auto& [name, digest] : found) file << "{\"" << name << "\", \"" << digest << "\"},\n";
    return;
  }
  const Digests expected = written_down();
  std::size_t compared = 0;
  for (const auto& entry : found) {
    const auto known = expected.find(entry.first);
    if (known == expected.end()) continue;
    ++compared;
    CHECK_MESSAGE(known->second == entry.second, entry.first);
  }
  if (compared < found.size() - slides.names.size()) report_skipped("no digests are written down for " + unit);
}

}  // namespace slidestream::test
