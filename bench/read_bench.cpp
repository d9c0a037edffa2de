// Reading the tiles of a slide into a slot, and nothing else, in each way that there is: processor time, and the rate
// from storage beside reading the file's blocks alone.
//   read_bench [SLIDE...] [--dir DIR] [--size WxH] [--threads N] [--rounds N] [--json FILE]
// Without slides it makes three of that size in DIR, which are the headline slide's otherwise. Writes figures as
// gpu-check.sh judges them.
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <slidestream/error.hpp>
#include <slidestream/slide.hpp>
#include <string>
#include <thread>
#include <vector>

#include "planning/tile_ranges.hpp"
#include "runtime/page_cache.hpp"
#include "slide/level_coding.hpp"
#include "stages/run/run_context.hpp"
#include "stages/slot_reads.hpp"
#include "synth/synth.hpp"

using namespace slidestream;

namespace {

/// What reading all slides once took.
struct Cost {
  double seconds = 0.0;
  double processor_seconds = 0.0;  ///< of all threads of this process, and of those that the kernel starts for it
};

double processor_seconds() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost cost_of(const std::function<void()>& work) {
  const double processor = processor_seconds();
  const auto start = runtime::Clock::now();
  work();
  return {std::chrono::duration<double>(runtime::Clock::now() - start).count(), processor_seconds() - processor};
}

void on_threads(std::size_t threads, const std::function<void()>& work) {
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

class Bench {
 public:
  Bench(const std::vector<std::string>& paths, std::size_t threads, int rounds) : threads_(threads), rounds_(rounds) {
    std::size_t most = 0;
    for (const std::string& path : paths) {
      slides_.push_back(Slide::open(path));
      paths_.push_back(path);
      bytes_ += static_cast<double>(slides_.back()->info().file_size);
      most = std::max(most, static_cast<std::size_t>(slides_.back()->info().file_size));
    }
    // As many as keep each other out of the processor's caches.
    slots_ = std::make_unique<runtime::SlotPool>(3, most + most / 4 + (std::size_t{16} << 20));
    for (std::size_t i = 0; i < slots_->size(); ++i) runtime::populate(slots_->memory(i));
    original_.resize(std::size_t{64} << 20, std::byte{1});
  }

  void run() {
    measure();
    if (!valid_) throw Error("the bytes of tiles differ");
  }

  nlohmann::json figures = nlohmann::json::array();

 private:
  void measure() {
    for (const std::string& path : paths_) read_once(path);
    measure_warm("memcpy", [this] { copy(); });
    measure_warm("dd", [this] { read_small(); });
    for (const InputIo io : {InputIo::posix, InputIo::uring, InputIo::automatic}) {
      measure_warm(name(io), [this, io] { read(io); });
    }
    for (const std::string& path : paths_) runtime::drop_from_cache(path);
    if (files_of(*slides_.front())[0].direct_descriptor() < 0 || runtime::cached_share(paths_).value_or(1.0) > 0.5) {
      std::printf("these files stay in memory: nothing is read from storage\n");
      for (const char* figure :
           {"uring_cold_over_storage", "uring_cold_cores", "direct_cold_over_storage", "direct_cold_cores"}) {
        figures.push_back({{"name", figure}, {"value", nullptr}, {"skipped", "the files stay in memory"}});
      }
      return;
    }
    measure_cold("blocks", [this] { read_blocks(); });
    for (const InputIo io : {InputIo::posix, InputIo::uring, InputIo::direct, InputIo::automatic}) {
      measure_cold(name(io), [this, io] { read(io); });
    }
  }

  static std::string name(InputIo io) {
    constexpr const char* names[] = {"auto", "posix", "uring", "direct"};
    return names[static_cast<std::size_t>(io)];
  }

  void add(const std::string& figure, double value, const char* unit) {
    std::printf("%-36s %10.3f %s\n", figure.c_str(), value, unit);
    std::fflush(stdout);
    figures.push_back(
        {{"name", figure}, {"value", value}, {"unit", unit}, {"direction", "report"}, {"target", nullptr}});
  }

  Cost median(std::vector<Cost> costs) const {
    std::ranges::sort(costs, {}, &Cost::processor_seconds);
    Cost middle = costs[costs.size() / 2];
    std::ranges::sort(costs, {}, &Cost::seconds);
    middle.seconds = costs[costs.size() / 2].seconds;
    return middle;
  }

  void measure_warm(const std::string& way, const std::function<void()>& work) {
    std::vector<Cost> costs(static_cast<std::size_t>(rounds_));
    for (Cost& cost : costs) cost = cost_of(work);
    const Cost cost = median(costs);
    add(way + "_warm_ms", 1e3 * cost.processor_seconds / static_cast<double>(slides_.size()),
        "ms of processor time a slide");
    if (way == "memcpy") {
      copy_processor_seconds_ = cost.processor_seconds;
    } else {
      add(way + "_warm_over_memcpy", cost.processor_seconds / copy_processor_seconds_, "");
    }
    add(way + "_warm_GBps", 1e-9 * bytes_ / cost.seconds, "GB/s");
  }

  void measure_cold(const std::string& way, const std::function<void()>& work) {
    std::vector<Cost> costs(static_cast<std::size_t>(rounds_));
    for (Cost& cost : costs) {
      for (const std::string& path : paths_) runtime::drop_from_cache(path);
      cost = cost_of(work);
    }
    const Cost cost = median(costs);
    add(way + "_cold_ms", 1e3 * cost.processor_seconds / static_cast<double>(slides_.size()),
        "ms of processor time a slide");
    add(way + "_cold_cores", cost.processor_seconds / cost.seconds, "cores");
    add(way + "_cold_GBps", 1e-9 * bytes_ / cost.seconds, "GB/s");
    if (way == "blocks") {
      storage_seconds_ = cost.seconds;
    } else {
      add(way + "_cold_over_storage", storage_seconds_ / cost.seconds, "");
    }
  }

  /// As the pipeline does it, whole slides one after the other.
  void read(InputIo io) {
    Config config;
    config.input.io = io;
    RunContext context(config, 2, {});
    context.slides = slides_.size();
    context.on_message = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
    SlotReads reads(context);
    for (const auto& slide : slides_) {
      Batch batch;
      batch.slot = *slots_->try_acquire();
      batch.slide = std::make_shared<SlideRun>();
      batch.slide->slide = slide;
      batch.slide->io = reads.choose(*slide);
      const Level& level = slide->info().levels[0];
      batch.tiles.resize(static_cast<std::size_t>(level.columns * level.rows));
      for (std::size_t i = 0; i < batch.tiles.size(); ++i) batch.tiles[i].index = static_cast<std::int64_t>(i);
      plan_reads(batch.chunks, batch.tiles, {*slide, 0}, 0, slots_->bytes_per_slot(),
                 SlotReads::block(batch.slide->io));
      for (const ReadChunk& chunk : batch.chunks) {
        batch.compressed_end = std::max(batch.compressed_end, chunk.slot_offset + chunk.length);
      }
      const std::size_t threads = std::clamp<std::size_t>(reads.share_out(batch), 1, threads_);
      on_threads(threads, [&] {
        for (;;) {
          SlotReads::Turn turn = reads.take(batch);
          if (turn.empty()) return;
          std::size_t at = 0;
          reads.read(batch, turn, at);
        }
      });
      check(batch);
    }
  }

  /// Some tiles of each batch, against reading them plainly.
  void check(const Batch& batch) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < batch.tiles.size(); i += 1 + batch.tiles.size() / 8) {
      const BatchTile& tile = batch.tiles[i];
      if (tile.source != BatchTile::Source::file) continue;
      bytes.resize(tile.length);
      batch.slide->slide->read(batch.slide->slide->tile(0, tile.index).offset, bytes);
      if (std::memcmp(bytes.data(), batch.slot.memory().data() + tile.offset, tile.length) != 0) valid_ = false;
    }
  }

  /// Memory to memory: what a copy costs that no file is behind.
  void copy() {
    each_part([this](std::size_t slide, std::uint64_t offset, std::size_t length, std::vector<std::byte>&) {
      std::memcpy(slots_->memory(slide % slots_->size()).data() + offset,
                  original_.data() + offset % original_.size() / length * length, length);
    });
  }
  /// From the page cache into a small buffer: what `dd` does.
  void read_small() {
    each_part([this](std::size_t slide, std::uint64_t offset, std::size_t length, std::vector<std::byte>& buffer) {
      for (std::size_t done = 0; done < length; done += std::size_t{128} << 10) {
        files_of(*slides_[slide])[0].read_some(offset + done, std::span(buffer).first(std::size_t{128} << 10));
      }
    });
  }
  /// The file's blocks past the cache, by all threads: the rate that storage has.
  void read_blocks() {
    each_part([this](std::size_t slide, std::uint64_t offset, std::size_t length, std::vector<std::byte>&) {
      const std::size_t place = offset % (std::size_t{64} << 20);
      if (File::read_once(files_of(*slides_[slide])[0].direct_descriptor(), offset,
                          slots_->memory(0).subspan(place, length)) < 0) {
        throw Error("the blocks of " + slides_[slide]->info().path.string() + " can't be read");
      }
    });
  }
  /// Parts of 1 MiB of all files.
  void each_part(const std::function<void(std::size_t, std::uint64_t, std::size_t, std::vector<std::byte>&)>& work) {
    constexpr std::size_t part = std::size_t{1} << 20;
    for (std::size_t slide = 0; slide < slides_.size(); ++slide) {
      const std::size_t parts = static_cast<std::size_t>(slides_[slide]->info().file_size) / part;
      std::atomic<std::size_t> next{0};
      on_threads(threads_, [&] {
        std::vector<std::byte> buffer(part);
        for (std::size_t i = next++; i < parts; i = next++) work(slide, i * part, part, buffer);
      });
    }
  }

  static void read_once(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::vector<char> buffer(8 << 20);
    while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()))) {
    }
  }

  std::vector<std::string> paths_;
  std::vector<std::shared_ptr<const Slide>> slides_;
  double bytes_ = 0.0;  ///< of all slides
  std::size_t threads_;
  int rounds_;
  std::unique_ptr<runtime::SlotPool> slots_;
  std::vector<std::byte> original_;
  double copy_processor_seconds_ = 0.0;
  double storage_seconds_ = 0.0;
  bool valid_ = true;
};

/// Three files of one content, which `synth` makes.
std::vector<std::string> make_slides(const std::filesystem::path& folder, const std::string& size) {
  SynthOptions options;
  options.width = std::atoll(size.c_str());
  const std::size_t by = size.find('x');
  options.height = by == std::string::npos ? 0 : std::atoll(size.c_str() + by + 1);
  options.distinct = 300;
  options.levels = 1;
  if (options.width < 256 || options.height < 256) throw ConfigError("--size is WIDTHxHEIGHT, 256 or more of each");
  std::filesystem::create_directories(folder);
  std::vector<std::string> slides;
  for (const char* name : {"read-a.svs", "read-b.svs", "read-c.svs"}) {
    slides.push_back(folder / name);
    if (slides.size() == 1) {
      write_synthetic_slide(slides[0], options);
    } else {
      std::filesystem::copy_file(slides[0], slides.back(), std::filesystem::copy_options::overwrite_existing);
    }
  }
  return slides;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> slides;
  std::string json;
  std::string folder;
  std::string size = "65664x43264";
  std::size_t threads = 8;
  int rounds = 5;
  try {
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      const auto value = [&]() -> std::string {
        if (++i == argc) throw ConfigError(argument + " wants a value");
        return argv[i];
      };
      if (argument == "--threads") {
        threads = static_cast<std::size_t>(std::max(1, std::atoi(value().c_str())));
      } else if (argument == "--rounds") {
        rounds = std::max(1, std::atoi(value().c_str()));
      } else if (argument == "--dir") {
        folder = value();
      } else if (argument == "--size") {
        size = value();
      } else if (argument == "--json") {
        json = value();
      } else if (argument.starts_with("-")) {
        throw ConfigError(
            "usage: read_bench [SLIDE...] [--dir DIR] [--size WxH] [--threads N] [--rounds N] [--json FILE]");
      } else {
        slides.push_back(argument);
      }
    }
    if (slides.empty() && folder.empty()) throw ConfigError("name slides, or a folder to make them in (--dir)");
    if (slides.empty()) slides = make_slides(folder, size);
    Bench bench(slides, threads, rounds);
    bench.run();
    if (!json.empty()) std::ofstream(json) << nlohmann::json{{"figures", bench.figures}}.dump(1) << "\n";
  } catch (const ConfigError& error) {
    std::fprintf(stderr, "read_bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "read_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
