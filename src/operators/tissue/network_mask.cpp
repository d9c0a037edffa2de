#include "operators/tissue/network_mask.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <slidestream/error.hpp>
#include <span>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "image/views.hpp"
#include "operators/common/tile_grid.hpp"
#include "operators/tissue/small_image.hpp"

namespace slidestream::operators {
namespace {

/// Rows of an image that tiles are cut from: always the last ones, as many as a tile has, side by side in memory.
class LastRows {
 public:
  LastRows(Size image, std::int64_t kept)
      : image_(image),
        kept_(std::min(kept, image.height)),
        pitch_(image.width * 3),
        pixels_(static_cast<std::size_t>(room(image, kept) * pitch_)) {}

  static std::int64_t room(Size image, std::int64_t kept) noexcept { return std::min(2 * kept, image.height); }

  void add(const std::uint8_t* row) {
    if ((end_ - first_ + 1) * pitch_ > std::ssize(pixels_)) {
      const std::int64_t gone = end_ - first_ - (kept_ - 1);
      std::copy(pixels_.begin() + gone * pitch_, pixels_.begin() + (end_ - first_) * pitch_, pixels_.begin());
      first_ += gone;
    }
    std::copy_n(row, pitch_, pixels_.begin() + (end_ - first_) * pitch_);
    ++end_;
  }

  /// Of the image so many have come.
  std::int64_t come() const noexcept { return end_; }
  ConstHostView view() const noexcept {
    return {reinterpret_cast<const std::byte*>(pixels_.data()),
            pitch_,
            {0, first_, image_.width, end_ - first_},
            image_,
            rgb_format};
  }

 private:
  Size image_;
  std::int64_t kept_;
  std::int64_t pitch_;
  std::int64_t first_ = 0;  ///< row of the image that is first in memory
  std::int64_t end_ = 0;
  std::vector<std::uint8_t> pixels_;
};

/// Interrupts a network once its slide is given up.
class Watch {
 public:
  Watch(NetworkSession& session, const std::function<bool()>& given_up) {
    if (!given_up) return;
    thread_ = std::jthread([&session, &given_up](const std::stop_token& ends) {
      constexpr auto pause = std::chrono::milliseconds(20);
      std::mutex mutex;
      std::unique_lock lock(mutex);
      std::condition_variable_any ended;
      while (!given_up()) {
        ended.wait_for(lock, ends, pause, [] { return false; });
        if (ends.stop_requested()) return;
      }
      session.interrupt(true);
    });
  }

 private:
  std::jthread thread_;
};

std::size_t values_of_tile(const StitchPlan& plan, const NetworkOutput& output) noexcept {
  return static_cast<std::size_t>(plan.x.tile * plan.y.tile * output.channels);
}

/// Runs a network over an image whose rows come from the top, and marks a mask as far as it is known.
class NetworkMarker {
 public:
  NetworkMarker(Mask& mask, const std::string& path, const Network& network, const TissueNetworkTiles& tiles,
                const TissueChoice& choice, const std::function<bool()>& given_up)
      : mask_(mask),
        path_(path),
        network_(network),
        output_(network.output()),
        plan_(tiles.stitch),
        choice_(choice),
        given_up_(given_up),
        session_(network.session(-1)),
        watch_(*session_, given_up_),
        rows_(plan_.input, plan_.side),
        band_(plan_, output_, StitchWeights::tent),
        batch_(network.tiles().batch),
        pixels_(static_cast<std::size_t>(batch_ * plan_.side * plan_.side * 3)),
        values_(static_cast<std::size_t>(batch_) * values_of_tile(plan_, output_)),
        row_(static_cast<std::size_t>(plan_.image.width) * StitchBand::format(output_).channels),
        pixel_{tiles.image.scale.x * static_cast<double>(plan_.scale),
               tiles.image.scale.y * static_cast<double>(plan_.scale)} {
    for (std::int64_t x = 0; x < mask.size.width; ++x) {
      columns_.push_back(place_of(x, mask.scale.x, pixel_.x, plan_.image.width));
    }
  }

  void take(const std::uint8_t* row) {
    rows_.add(row);
    while (next_row_ < plan_.y.count && rows_.come() >= plan_.input_rows(next_row_).second) {
      for (std::int64_t column = 0; column < plan_.x.count; column += batch_) compute(column);
      ++next_row_;
      mark();
    }
  }

 private:
  /// The pixel of the network's image that the centre of a mask pixel lies in.
  static std::int64_t place_of(std::int64_t at, double scale, double pixel, std::int64_t size) noexcept {
    const double place = (static_cast<double>(at) + 0.5) * scale / pixel;
    return std::min(static_cast<std::int64_t>(place), size - 1);
  }

  /// The tiles of a batch, from `column` on in the next row of tiles; the rest of the batch is zeros.
  void compute(std::int64_t column) {
    require_wanted();
    const std::int64_t count = std::min(batch_, plan_.x.count - column);
    const auto samples = static_cast<std::size_t>(plan_.side * plan_.side * 3);
    for (std::int64_t i = 0; i < count; ++i) {
      cut_tile(std::span(pixels_).subspan(static_cast<std::size_t>(i) * samples, samples), rows_.view(),
               plan_.input_of({column + i, next_row_}));
    }
    std::fill(pixels_.begin() + static_cast<std::ptrdiff_t>(count) * static_cast<std::ptrdiff_t>(samples),
              pixels_.end(), std::uint8_t{0});
    try {
      session_->run(pixels_, values_);
    } catch (const Error&) {
      require_wanted();  // else it was interrupted
      throw;
    }
    const std::size_t values = values_of_tile(plan_, output_);
    for (std::int64_t i = 0; i < count; ++i) {
      const StitchTile tile = {column + i, next_row_};
      require_sound(band_.put(tile, std::span(values_).subspan(static_cast<std::size_t>(i) * values, values)));
      band_.arrived(tile, true);
    }
  }

  /// \throws StoppedError
  void require_wanted() const {
    if (!given_up_ || !given_up_()) return;
    throw StoppedError(path_ + ": its tissue was being looked for when the run gave it up");
  }

  /// \throws Error where values are neither probabilities nor labels
  void require_sound(const MappedValues& values) const {
    const std::string gave = network_.called() + " gave ";
    if (values.not_finite >= 0) throw Error(gave + "a value that isn't a finite number");
    if (values.outside == 0) return;
    std::ostringstream text;
    text << gave << "values from " << values.least << " to " << values.largest << ", and ";
    if (output_.kind == NetworkOutput::Kind::labels) {
      text << "labels are whole numbers from 0 to " << output_.high;
    } else {
      text << network_.setting_name("range") << " is " << output_.low << " to " << output_.high << ": set "
           << network_.setting_name("activation") << " to \"sigmoid\" or \"softmax\"";
    }
    throw Error(text.str());
  }

  /// Marks the rows of the mask whose pixels the network's image has by now.
  void mark() {
    const std::int64_t ready = band_.ready();
    for (; marked_ < mask_.size.height; ++marked_) {
      const std::int64_t y = place_of(marked_, mask_.scale.y, pixel_.y, plan_.image.height);
      if (y >= ready) break;
      const PixelFormat format = StitchBand::format(output_);
      band_.gather({reinterpret_cast<std::byte*>(row_.data()),
                    static_cast<std::ptrdiff_t>(row_.size() * sizeof(row_.front())),
                    {0, y, plan_.image.width, 1},
                    plan_.image,
                    format});
      const std::span<std::uint8_t> to = mask_.row(marked_);
      for (std::size_t x = 0; x < to.size(); ++x) {
        to[x] = is_tissue(&row_[static_cast<std::size_t>(columns_[x]) * format.channels]) ? 1 : 0;
      }
    }
    band_.release(ready);
  }

  bool is_tissue(const std::uint16_t* samples) const noexcept {
    if (output_.kind == NetworkOutput::Kind::labels) return samples[0] == choice_.label;
    const int given = output_.channels == 1 ? samples[0] : samples[choice_.label];
    const int share = output_.channels == 1 && choice_.label == 0 ? 65535 - given : given;
    return share >= 65535.0 * choice_.probability;
  }

  Mask& mask_;
  std::string path_;
  const Network& network_;
  NetworkOutput output_;
  StitchPlan plan_;
  TissueChoice choice_;
  const std::function<bool()>& given_up_;
  std::unique_ptr<NetworkSession> session_;
  Watch watch_;  ///< ends before the session does
  LastRows rows_;
  StitchBand band_;
  std::int64_t batch_;
  std::vector<std::uint8_t> pixels_;   ///< of a batch
  std::vector<float> values_;          ///< of a batch
  std::vector<std::uint16_t> row_;     ///< of the network's image
  GridScale pixel_;                    ///< of that image, in pixels of level 0
  std::vector<std::int64_t> columns_;  ///< of that image, by the mask's
  std::int64_t next_row_ = 0;          ///< of tiles
  std::int64_t marked_ = 0;            ///< rows of the mask
};

}  // namespace

TissueNetworkTiles plan_tissue_tiles(const SlideInfo& info, const Network& network, std::uint64_t most_bytes) {
  const NetworkTiles cut = network.tiles();
  const NetworkOutput output = network.output();
  info.require_square_pixels("tissue.model", "set input.mpp to take them as square");
  const std::optional<double> mpp = info.mean_mpp();
  if (!mpp) {
    throw Error(network.called() + " looks at pixels of a size, and the slide's isn't known; set input.mpp");
  }
  check_fine_enough(cut, *mpp, names_of(network));
  TissueNetworkTiles tiles;
  tiles.image = choose_reduction(info, *cut.mpp / *mpp, cut.mpp_tolerance);
  tiles.stitch = plan_stitching(tiles.image.size, cut.side, cut.overlap, output.scale, StitchEdge::shift,
                                output.kind == NetworkOutput::Kind::labels);
  const auto row = static_cast<std::uint64_t>(tiles.image.size.width) * 3;
  const std::uint64_t tile = static_cast<std::uint64_t>(cut.side) * static_cast<std::uint64_t>(cut.side) * 3 +
                             values_of_tile(tiles.stitch, output) * sizeof(float);
  tiles.bytes = row * static_cast<std::uint64_t>(LastRows::room(tiles.image.size, cut.side)) +
                small_rows_bytes(info, tiles.image) + StitchBand::bytes(tiles.stitch, output) +
                static_cast<std::uint64_t>(cut.batch) * tile;
  if (tiles.bytes > most_bytes) {
    throw Error("finding its tissue takes " + std::to_string((tiles.bytes >> 20) + 1) +
                " MiB, and stitch.memory_mib is " + std::to_string(most_bytes >> 20) + "; raise it");
  }
  return tiles;
}

std::int64_t mark_by_network(Mask& mask, const Slide& slide, const Network& network, const TissueNetworkTiles& tiles,
                             const TissueChoice& choice, const std::function<bool()>& given_up) {
  NetworkMarker marker(mask, slide.info().path.string(), network, tiles, choice, given_up);
  return read_small_rows(slide, tiles.image, choice.on_bad_tile, [&](const std::uint8_t* row) { marker.take(row); });
}

}  // namespace slidestream::operators
