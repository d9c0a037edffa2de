#include "ledger/ledger.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/toml_text.hpp"
#include "ledger/fingerprint.hpp"
#include "ledger/preview.hpp"
#include "ledger/schema.hpp"
#include "ledger/slide_row.hpp"
#include "ledger/status.hpp"
#include "ledger_runs.hpp"

using namespace slidestream;
using namespace slidestream::test;

namespace fs = std::filesystem;

TEST_CASE("decimals of 128 bits") {
  Int128 value = 0;
  for (const char* wrong :
       {"", "-", "1x", "+1", " 1", "170141183460469231731687303715884105728",
        "-170141183460469231731687303715884105729", "1000000000000000000000000000000000000000000"}) {
    CHECK_FALSE(parse_decimal(wrong, value));
  }
  CHECK(parse_decimal("-170141183460469231731687303715884105728", value));
  CHECK(value == -(Int128{1} << 126) - (Int128{1} << 126));
  CHECK(parse_decimal("170141183460469231731687303715884105727", value));
  CHECK(value == (Int128{1} << 126) - 1 + (Int128{1} << 126));
}

TEST_CASE("what was kept comes back exactly, in the manifest's order") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  auto manifest = make_files(folder, 3);
  manifest.push_back({folder / "\xff, not UTF-8", folder / "\xff, not UTF-8", true});
  std::vector<SlideResult> kept;
  {
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    CHECK(start.todo == std::vector<std::size_t>{0, 1, 2, 3});
    CHECK(start.bytes_left == 6);
    for (const std::size_t i : {2, 3, 0}) {
      ledger.started(i);
      SlideResult slide = i == 3 ? failure_of(manifest[3].path, {"decode", 7, "\xfe"}) : result_of(manifest[i].path, i);
      ledger.ended(i, slide);
      kept.push_back(slide);
    }
  }
  Ledger ledger(config);
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.todo == std::vector<std::size_t>{1});
  CHECK(start.done == 2);
  CHECK(start.failed == 1);
  CHECK(start.bytes_left == 2);
  const auto slides = slides_in(ledger);
  REQUIRE(slides.size() == 3);
  for (std::size_t i = 0; i < 2; ++i) {
    const SlideResult& slide = slides[i];
    const SlideResult& before = kept[i == 0 ? 2 : 0];
    CHECK(same_result(slide, before));
    CHECK(slide.path == before.path);
    CHECK(slide.seconds == before.seconds);
    CHECK(slide.file_bytes == before.file_bytes);
    CHECK(slide.map_file == "map.npy");
  }
  CHECK(slides[2].path == manifest[3].path);
  CHECK(slides[2].error == "decode: \xfe");
  CHECK(slides[2].failure.stage == "decode");
  CHECK(slides[2].failure.tile == 7);
  CHECK(slides[2].failure.cause == "\xfe");
  LedgerView view(ledger.file(), ledger_bins);
  std::size_t maps = 0;
  view.for_each_map([&](std::size_t place, const SlideResult& slide) {
    WindowMap map = slide.map;
    view.read_map(place, map);
    CHECK(map.values == std::vector<float>{1.0F, 2.0F, 3.0F, static_cast<float>(place)});
    ++maps;
  });
  CHECK(maps == 2);
  CHECK(ledger.begin(manifest, true).todo == std::vector<std::size_t>{1, 3});
}

TEST_CASE("it is durable as it says") {
  const TemporaryFolder folder;
  const Ledger ledger(ledger_config(folder / "out"));
  Database database(ledger.file(), DatabaseAccess::read);
  Statement journal(database, "PRAGMA journal_mode");
  REQUIRE(journal.step());
  // The folder for temporary files may lie on a network.
  CHECK((journal.text(0) == "wal" || journal.text(0) == "delete"));
}

TEST_CASE("another configuration is refused with the key and both values") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  config.analysis.window = 512;
  { const Ledger ledger(config); }
  config.analysis.window = 300;  // nothing was decided by the other
  { Ledger(config).begin(manifest, false); }
  config.analysis.window = 256;  // nor by a start that came to no slide
  CHECK(preview_start(config, {manifest[0].path}, {manifest[0].canonical})->refusal.empty());
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    ledger.started(0);
  }
  config.pipeline.strip_height = 7;
  config.pipeline.threads = 3;
  config.pipeline.backend = Backend::cpu;
  config.input.max_pixels = 5;
  config.output.checkpoint_seconds = 1;
  { const Ledger ledger(config); }
  config.analysis.stride = 64;
  config.analysis.window = 128;
  const std::string message = message_of<ConfigError>([&] { const Ledger ledger(config); });
  CHECK_MESSAGE(contains(message, "analysis.window is 128 here and was 256; name another folder, or use --fresh"),
                message);
  CHECK(preview_start(config, {}, {})->refusal == "analysis.window is 128 here and was 256");
  config = ledger_config(folder / "out");
  config.decode.on_bad_tile = BadTilePolicy::white;
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }),
                 "decode.on_bad_tile is \"white\" here and was \"fail\""));
  tamper_settings(folder / "out/run.sqlite", "DELETE FROM settings WHERE name = 'analysis.bins'");
  config = ledger_config(folder / "out");
  CHECK(contains(message_of<ConfigError>([&] { const Ledger ledger(config); }),
                 "analysis.bins is 5 here and was nothing"));
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-1").string());
  { const Ledger ledger(config); }
  CHECK(Ledger::move_aside(config, {}) == (folder / "out/earlier-2").string());
  CHECK(Ledger::move_aside(config, {}).empty());
  CHECK(fs::exists(folder / "out/earlier-1/run.sqlite"));
  CHECK(fs::exists(folder / "out/earlier-2/run.sqlite"));
}

TEST_CASE("a status knows what the run is over") {
  const TemporaryFolder folder;
  { Ledger(ledger_config(folder / "out")).begin(make_files(folder, 1), false); }
  CHECK_FALSE(read_status(folder / "out").of_volumes);
  CHECK(to_toml_value(std::vector<std::string>{"volume"}) == R"(["volume"])");
  tamper_settings(folder / "out/run.sqlite",
                  R"(UPDATE settings SET value = '["volume"]' WHERE name = 'operators.run')");
  CHECK(read_status(folder / "out").of_volumes);
}

TEST_CASE("networks are as they were where their bytes are, whatever times say that can be put back") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("network.onnx", std::string("first"));
  Config model = ledger_config(folder / "out");
  model.operators.run = {"model"};
  model.model.file = file.string();
  Config volume = ledger_config(folder / "out");
  volume.operators.run = {"volume"};
  volume.volume.networks = file.string();
  const auto time_of_change = [&file] {
    struct ::stat about {};
    REQUIRE(::stat(file.c_str(), &about) == 0);
    return std::pair{about.st_ctim.tv_sec, about.st_ctim.tv_nsec};
  };
  for (const Config* config : {&model, &volume}) {
    // The system's clock of files has steps of some milliseconds.
    const auto until_seen = [&](const std::function<void()>& work) {
      const auto before = time_of_change();
      do {
        work();
      } while (time_of_change() == before);
    };
    folder.write("network.onnx", std::string("first"));
    NetworkGuard guard(*config);
    const auto contents = network_contents(*config);
    REQUIRE(contents.size() == 1);
    CHECK(guard.is_as_it_was(contents));
    until_seen([&] { fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write); });
    CHECK(guard.is_as_it_was(contents));
    until_seen([&] {
      fs::remove(folder / "other name");
      fs::create_hard_link(file, folder / "other name");
    });
    CHECK(guard.is_as_it_was(contents));
    const auto written = fs::last_write_time(file);
    until_seen([&] {
      folder.write("network.onnx", std::string("other"));
      fs::last_write_time(file, written);
    });
    CHECK_FALSE(guard.is_as_it_was(contents));
    fs::remove(folder / "other name");
  }
}

TEST_CASE("the version of Zarr decides nothing where images are no Zarr") {
  Config config;
  config.operators.run = {"identity"};
  const auto decides = [&](ImageFormat format) {
    config.image.format = format;
    config.image.zarr_version = 2;
    const auto before = ledger_settings(config);
    config.image.zarr_version = 3;
    return before != ledger_settings(config);
  };
  CHECK(decides(ImageFormat::ome_zarr));
  CHECK_FALSE(decides(ImageFormat::ome_tiff));
  CHECK_FALSE(decides(ImageFormat::dzi));
}

TEST_CASE("a slide that has changed is done again") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  auto manifest = make_files(folder, 2);
  const auto run = [&](ContentHashPolicy policy) {
    config.input.content_hash = policy;
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    for (const std::size_t place : start.todo) {
      ledger.started(place);
      SlideResult slide = result_of(manifest[place].path, 1);
      ledger.ended(place, slide);
      CHECK(slide.done);
    }
    CHECK(start.changed.size() == (start.todo.size() == 1 ? 1 : 0));
    return start.todo.size();
  };
  const auto touch = [&] {
    fs::last_write_time(manifest[1].path, fs::last_write_time(manifest[1].path) + std::chrono::seconds(5));
  };
  CHECK(run(ContentHashPolicy::none) == 2);
  CHECK(run(ContentHashPolicy::none) == 0);
  touch();
  CHECK(run(ContentHashPolicy::none) == 1);
  std::ofstream(manifest[1].path, std::ios::app) << "y";
  CHECK(run(ContentHashPolicy::changed) == 1);
  touch();
  CHECK(run(ContentHashPolicy::changed) == 0);
  CHECK(run(ContentHashPolicy::none) == 0);
  const auto time = fs::last_write_time(manifest[1].path);
  std::ofstream(manifest[1].path) << "abc";  // as long as before
  fs::last_write_time(manifest[1].path, time);
  CHECK(run(ContentHashPolicy::changed) == 0);
  CHECK(run(ContentHashPolicy::always) == 1);
  // One that is gone was done.
  fs::remove(manifest[0].path);
  CHECK(run(ContentHashPolicy::none) == 0);
}

TEST_CASE("a preview looks at no files that a damaged list names") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  {
    Ledger ledger(config);
    ledger.begin(manifest, false);
    end_with_files(ledger, 0, attached_result_of(manifest[0].path, 1));
  }
  const auto changed = [&] { return preview_start(config, {manifest[0].path}, {manifest[0].canonical})->changed; };
  CHECK(changed() == 0);
  // A file that is there, in its size.
  folder.write("other", std::string(1001, 'i'));
  tamper(folder / "out/run.sqlite", "UPDATE artifacts SET file = '../other' WHERE number = 0");
  CHECK(changed() == 1);
}

TEST_CASE("a slide whose side inputs are others is done again") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.operators.run = {"spectrum", "tissue"};
  const auto manifest = make_files(folder, 2);
  const fs::path outlines = outlines_beside(manifest[1].path);
  const auto write = [&](const std::string& text) { std::ofstream(outlines) << text; };
  std::vector<std::string> other_inputs;
  const auto run = [&] {
    std::vector<std::string> paths;
    std::vector<std::string> canonical;
    for (const ManifestEntry& entry : manifest) {
      paths.push_back(entry.path);
      canonical.push_back(entry.canonical);
    }
    const auto preview = preview_start(config, paths, canonical);
    Ledger ledger(config);
    const LedgerStart start = ledger.begin(manifest, false);
    if (preview) CHECK(preview->done == start.done);
    for (const std::size_t place : start.todo) {
      ledger.started(place);
      SlideResult slide = result_of(manifest[place].path, 1);
      ledger.ended(place, slide);
      CHECK(slide.done);
    }
    other_inputs = start.other_inputs;
    CHECK(start.changed.empty());
    return start.todo.size();
  };
  write("one");
  SUBCASE("outlines") {
    config.tissue.source = TissueSource::geojson;
    CHECK(run() == 2);
    CHECK(run() == 0);
    const auto time = fs::last_write_time(outlines);
    write("two");
    // Their content counts, not their time.
    fs::last_write_time(outlines, time);
    CHECK(run() == 1);
    CHECK(other_inputs == std::vector{manifest[1].path});
    CHECK(run() == 0);
    fs::remove(outlines);
    CHECK(run() == 1);
    CHECK(run() == 0);
    write("two");
    CHECK(run() == 1);
  }
  SUBCASE("outlines without an end, or too large to be read") {
    config.tissue.source = TissueSource::geojson;
    CHECK(run() == 2);
    fs::remove(outlines);
    fs::create_symlink("/dev/zero", outlines);
    CHECK(run() == 1);
    CHECK(run() == 0);
    fs::remove(outlines);
    write("one");
    fs::resize_file(outlines, std::uintmax_t{1} << 40);
    CHECK(run() == 0);
  }
  SUBCASE("outlines that nobody reads") {
    CHECK(run() == 2);
    write("two");
    CHECK(run() == 0);
    config.operators.run = {"spectrum"};
    config.tissue.source = TissueSource::geojson;
    CHECK_FALSE(SideInputs(config).of(manifest[1].path).has_value());
  }
  SUBCASE("its pixel size in a list") {
    CHECK(run() == 2);
    config.input.slide_mpp[manifest[0].path] = 0.5;
    CHECK(run() == 1);
    CHECK(other_inputs == std::vector{manifest[0].path});
    CHECK(run() == 0);
    config.input.slide_mpp[manifest[0].path] = 0.25;
    config.input.slide_mpp["/another/slide"] = 0.25;
    CHECK(run() == 1);
    config.input.slide_mpp.clear();
    CHECK(run() == 1);
  }
}

TEST_CASE("outlines that change while a slide is read fail it") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.operators.run = {"tissue"};
  config.tissue.source = TissueSource::geojson;
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  ledger.started(0);
  std::ofstream(outlines_beside(manifest[0].path)) << "new";
  SlideResult slide = result_of(manifest[0].path, 1);
  ledger.ended(0, slide);
  CHECK_FALSE(slide.done);
  CHECK(contains(slides_in(ledger).at(0).error, "its outlines changed while it was read"));
}

TEST_CASE("what stands beside the reference decides, too") {
  const TemporaryFolder folder;
  Config config = ledger_config(folder / "out");
  config.operators.run = {"stain"};
  config.tissue.source = TissueSource::geojson;
  config.stain.reference = folder.write("reference.svs", std::string("slide")).string();
  const auto setting = [&] {
    for (const auto& [name, value] : deciding_settings(config)) {
      if (name == "the digest of the stain reference's outlines") return value;
    }
    return std::string("none");
  };
  CHECK(setting() == "unreadable");
  folder.write("reference.geojson", std::string("one"));
  const std::string one = setting();
  CHECK(one != "unreadable");
  folder.write("reference.geojson", std::string("two"));
  CHECK(setting() != one);
  config.tissue.source = TissueSource::automatic;
  CHECK(setting() == "none");
}

TEST_CASE("a slide that changes while it is read fails") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const auto manifest = make_files(folder, 1);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  ledger.started(0);
  std::ofstream(manifest[0].path, std::ios::app) << "y";
  SlideResult slide = result_of(manifest[0].path, 1);
  ledger.ended(0, slide);
  CHECK_FALSE(slide.done);
  CHECK(contains(slides_in(ledger).at(0).error, "changed while it was read"));
}

TEST_CASE("slides that the manifest doesn't name stay, but in no result") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  auto manifest = make_files(folder, 2);
  Ledger ledger(config);
  ledger.begin(manifest, false);
  for (const std::size_t i : {0, 1}) {
    ledger.started(i);
    SlideResult slide = result_of(manifest[i].path, i);
    ledger.ended(i, slide);
  }
  const std::vector<ManifestEntry> second = {manifest[1]};
  const LedgerStart start = ledger.begin(second, false);
  CHECK(start.done == 1);
  CHECK(start.left_out == 1);
  CHECK(slides_in(ledger).size() == 1);
  CHECK(ledger.begin(manifest, false).done == 2);
}

TEST_CASE("a slide of another shard that was done here is said to be that shard's") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  auto manifest = make_files(folder, 2);
  Ledger ledger(config);
  manifest[1].mine = false;
  ledger.begin(manifest, false);
  ledger.started(0);
  SlideResult slide = result_of(manifest[0].path, 1);
  ledger.ended(0, slide);
  manifest[0].mine = false;
  manifest[1].mine = true;
  const LedgerStart start = ledger.begin(manifest, false);
  CHECK(start.left_out == 0);
  CHECK(start.of_others == 1);
  manifest[0].mine = true;
  CHECK(ledger.begin(manifest, false).of_others == 0);
  CHECK(slides_in(ledger).size() == 1);
}

TEST_CASE("a start tells of rows that somebody deleted") {
  for (const int place : {0, 2}) {
    CAPTURE(place);
    const TemporaryFolder folder;
    const Config config = ledger_config(folder / "out");
    const auto manifest = make_files(folder, 3);
    CHECK_FALSE(Ledger(config).begin(manifest, false).list_damaged);
    CHECK_FALSE(Ledger(config).begin(manifest, false).list_damaged);
    tamper(folder / "out/run.sqlite", "DELETE FROM slides WHERE position = " + std::to_string(place));
    const LedgerStart start = Ledger(config).begin(manifest, false);
    CHECK(start.list_damaged);
    CHECK(start.todo.size() == 3);
    CHECK_FALSE(Ledger(config).begin(manifest, false).list_damaged);
  }
}

TEST_CASE("lines about damaged rows have no bytes that aren't UTF-8") {
  const TemporaryFolder folder;
  const Config config = ledger_config(folder / "out");
  const std::string file = folder.write("M\xfcller", std::string("x"));
  {
    Ledger ledger(config);
    ledger.begin({{file, file, true}}, false);
    ledger.started(0);
    SlideResult slide = result_of(file, 1);
    ledger.ended(0, slide);
  }
  const auto line = [&](const std::string& change) {
    tamper(folder / "out/run.sqlite", change);
    const LedgerStart start = Ledger(config).begin({{file, file, true}}, false);
    REQUIRE(start.damaged.size() == 1);
    return start.damaged[0];
  };
  SUBCASE("a row") { CHECK(contains(line("UPDATE slides SET seconds = seconds + 1"), "M\\xfcller isn't what was")); }
  SUBCASE("a value") { CHECK(contains(line("UPDATE slides SET width = -1"), "M\\xfcller can't be what was written")); }
  SUBCASE("a map") {
    CHECK(contains(line("UPDATE maps SET bytes = zeroblob(4)"), "M\\xfcller isn't what was written"));
  }
  SUBCASE("a state") {
    tamper(folder / "out/run.sqlite", "PRAGMA ignore_check_constraints = 1; UPDATE slides SET state = 'gone'");
    CHECK(
        contains(message_of<DamagedError>([&] { open_to_read(folder / "out/run.sqlite"); }), "M\\xfcller isn't what"));
  }
}
