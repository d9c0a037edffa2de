#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "tiling/tile_stream.hpp"

namespace slidestream::python {

namespace {

/// x and y of the windows' corners, a row per window.
using Corners = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// One pass over slides, as Python walks it.
class TileIterator {
 public:
  TileIterator(const TileStreamOptions& options, bool copy)
      : options_(options), copy_(copy), stream_(std::make_shared<TileStream>(options)) {}

  using Found = std::tuple<Array<std::uint8_t>, Array<std::int64_t>, Array<std::int32_t>, std::int64_t>;

  /// Pixels, coords, slide and count, or nothing after the last batch. Waits unlocked, and lets signals through.
  std::optional<Found> next() {
    if (!copy_) lent_hand_back();
    TileBatch batch;
    if (!next_batch(stream_, batch)) return std::nullopt;
    if (!copy_) lent_ = batch.pixels;
    const auto windows = static_cast<std::size_t>(options_.batch);
    const auto count = static_cast<std::size_t>(batch.count);
    const auto height = static_cast<std::size_t>(options_.windows.size.height);
    const auto width = static_cast<std::size_t>(options_.windows.size.width);
    std::uint8_t* const data = batch.pixels->data();
    Array<std::uint8_t> pixels = options_.layout == WindowLayout::interleaved
                                     ? array_of(data, {windows, height, width, 3}, std::move(batch.pixels))
                                     : array_of(data, {windows, 3, height, width}, std::move(batch.pixels));
    return Found(std::move(pixels), array_of(std::move(batch.coords), {count, 2}),
                 array_of(std::move(batch.slides), {count}), batch.count);
  }

  void close() {
    lent_hand_back();
    const std::shared_ptr<TileStream> stream = stream_;
    const Unlocked unlocked;
    stream->close();
  }

  /// Windows that were begun, and tiles that were decoded for them.
  std::pair<std::int64_t, std::int64_t> figures() const {
    const TileStreamFigures figures = stream_->figures();
    return {figures.windows, figures.tiles_decoded};
  }

 private:
  void lent_hand_back() {
    if (lent_ != nullptr) lent_->hand_back();
    lent_ = nullptr;
  }

  const TileStreamOptions options_;
  const bool copy_;
  std::shared_ptr<TileStream> stream_;
  std::shared_ptr<BatchMemory::Lease> lent_;
};

}  // namespace

void bind_tiles(nb::module_& module) {
  nb::class_<TileStreamOptions>(module, "TileOptions")
      .def(
          "__init__",
          [](TileStreamOptions* to, const std::vector<std::filesystem::path>& slides,
             std::pair<std::int64_t, std::int64_t> size, std::pair<std::int64_t, std::int64_t> step, int level,
             std::optional<double> mpp, bool pad, bool tissue, double tissue_share, int shard, int shards, int batch,
             bool planar, int fill, int threads, int prefetch, int memory_mib, bool white, double slide_mpp,
             int channel, bool to_srgb, const std::vector<Corners>& corners, std::optional<std::uint64_t> shuffle) {
            if (fill < 0 || fill > 255) throw ConfigError("fill is " + std::to_string(fill) + "; expected 0 to 255");
            TileStreamOptions options;
            options.slides = slides;
            options.windows.size = {size.first, size.second};
            options.windows.step = {step.first, step.second};
            options.windows.level = level;
            options.windows.mpp = mpp;
            options.windows.edge = pad ? WindowEdge::pad : WindowEdge::drop;
            options.windows.tissue = tissue;
            options.windows.tissue_share = tissue_share;
            options.windows.shard = shard;
            options.windows.shards = shards;
            options.windows.on_bad_tile = bad_tile_policy(white);
            options.batch = batch;
            options.layout = planar ? WindowLayout::planar : WindowLayout::interleaved;
            options.fill = static_cast<std::uint8_t>(fill);
            options.threads = threads;
            options.prefetch = prefetch;
            options.memory_mib = memory_mib;
            options.open.mpp = slide_mpp;
            options.open.channel = channel;
            options.open.channel_name = "channel";
            options.open.to_srgb = to_srgb;
            for (const Corners& of_slide : corners) {
              std::vector<WindowCorner>& to_slide = options.corners.emplace_back();
              const auto view = of_slide.view();
              for (std::size_t i = 0; i < view.shape(0); ++i) to_slide.push_back({view(i, 0), view(i, 1)});
            }
            options.shuffle = shuffle;
            options.warnings = std::make_shared<OpeningWarnings>();
            check_options(options);
            new (to) TileStreamOptions(std::move(options));
          },
          nb::kw_only(), nb::arg("slides"), nb::arg("size"), nb::arg("step"), nb::arg("level"), nb::arg("mpp").none(),
          nb::arg("pad"), nb::arg("tissue"), nb::arg("tissue_share"), nb::arg("shard"), nb::arg("shards"),
          nb::arg("batch"), nb::arg("planar"), nb::arg("fill"), nb::arg("threads"), nb::arg("prefetch"),
          nb::arg("memory_mib"), nb::arg("white"), nb::arg("slide_mpp"), nb::arg("channel"), nb::arg("to_srgb"),
          nb::arg("corners"), nb::arg("shuffle").none())
      .def("count_windows", &TileStream::count_windows, nb::call_guard<Unlocked>())
      .def("take_warnings", [](const TileStreamOptions& options) {
        std::vector<nb::str> lines;
        for (const std::string& line : options.warnings->take()) lines.push_back(text_of(line));
        return lines;
      });
  nb::class_<TileIterator>(module, "TileIterator")
      .def(nb::init<const TileStreamOptions&, bool>(), nb::arg("options"), nb::arg("copy"))
      .def("next", &TileIterator::next)
      .def("close", &TileIterator::close)
      .def("figures", &TileIterator::figures);
}

}  // namespace slidestream::python
