#include "cli/progress.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/logging.hpp"
#include "cli/signals.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::cli {

namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds : 0.0; }

std::string eta_text(const Progress& progress, double fraction) {
  const std::optional<double> left = seconds_left(progress, fraction);
  return left ? clock_text(*left) : "-:--";
}

std::string bar(double fraction, std::size_t cells, const Style& style) {
  const auto full = static_cast<std::size_t>(fraction * static_cast<double>(cells) + 0.5);
  std::string done;
  std::string left;
  for (std::size_t i = 0; i < cells; ++i) {
    if (i < full) {
      done += style.unicode ? "\u2501" : "#";
    } else {
      left += style.unicode ? "\u2501" : ".";
    }
  }
  // Without colour the two halves of a line would look the same.
  if (style.unicode && !style.colour) left = std::string(cells - full, ' ');
  return style.cyan(done) + style.dim(left);
}

/// A piece of the live line; `rank` 0 always stays, the highest goes first.
struct Piece {
  std::string text;
  int rank = 0;
  bool failure = false;
};

std::string ended_text(const Progress& progress, RunOver over) {
  return std::to_string(progress.slides_done) + "/" + std::to_string(progress.slides_total) +
         (over == RunOver::volumes ? " volume" : " slide") + (progress.slides_total == 1 ? "" : "s");
}

std::string percent_text(double fraction) { return std::to_string(static_cast<int>(fraction * 100)) + " %"; }

std::string byte_rate_text(const Progress& progress) {
  return bytes_text(rate(static_cast<double>(progress.bytes_read), progress.seconds)) + "/s";
}

/// Of images, with tiles of those that aren't whole yet.
std::string written_text(const Progress& progress) {
  const std::string files = progress.files_made == 0   ? ""
                            : progress.files_made == 1 ? "1 file, "
                                                       : count_text(progress.files_made) + " files, ";
  return files + count_text(progress.tiles_written) + (progress.tiles_written == 1 ? " tile, " : " tiles, ") +
         bytes_text(static_cast<double>(progress.bytes_written)) + " written";
}

bool writes_images(const Progress& progress) { return progress.tiles_written > 0 || !progress.images.empty(); }

std::string pixel_rate(const Progress& progress, RunOver over) {
  const double per_second = rate(static_cast<double>(progress.pixels), progress.seconds);
  return over == RunOver::volumes ? voxel_rate_text(per_second) : pixel_rate_text(per_second);
}

}  // namespace

void Estimate::slide_ended(const SlideResult& slide, std::uint64_t bytes) {
  ++ended_;
  ended_bytes_ += static_cast<double>(bytes);
  if (slide.width <= 0) return;
  ++ended_with_size_;
  // Of a volume voxels are counted.
  const auto depth = std::ranges::find(slide.values, std::string(volume::depth_figure), &NamedValue::name);
  ended_pixels_ += static_cast<double>(slide.width) * static_cast<double>(slide.height) *
                   (depth == slide.values.end() ? 1.0 : depth->value);
}

double Estimate::fraction_by_bytes(const Progress& progress) const {
  const double left = std::max(0.0, bytes_ - ended_bytes_);
  const double pixels = std::max(0.0, static_cast<double>(progress.pixels) - ended_pixels_);
  const double started = std::max(1.0, static_cast<double>(progress.pixels_started) - ended_pixels_);
  // A pixel of the slides under way takes as many bytes as one of those that ended; before any did, the slide under
  // way is one of the usual size.
  const double under_way = ended_pixels_ > 0 ? pixels * ended_bytes_ / ended_pixels_
                                             : std::min(1.0, pixels / started) * bytes_ / std::max(1.0, slides_);
  return (ended_bytes_ + std::min(left, under_way)) / bytes_;
}

double Estimate::fraction(const Progress& progress) {
  if (bytes_ > 0) return shown_ = std::max(shown_, std::min(1.0, fraction_by_bytes(progress)));
  const double started = static_cast<double>(progress.pixels_started);
  const double unfinished = std::max(0.0, started - ended_pixels_);
  const double usual = ended_with_size_ > 0 ? ended_pixels_ / static_cast<double>(ended_with_size_) : unfinished;
  const double open = unfinished > 0 && usual > 0 ? std::max(1.0, std::round(unfinished / usual)) : 0.0;
  const double unopened =
      std::max(0.0, static_cast<double>(progress.slides_total) - static_cast<double>(ended_) - open);
  const double total = started + unopened * usual;
  if (total > 0) shown_ = std::max(shown_, std::min(1.0, static_cast<double>(progress.pixels) / total));
  return shown_;
}

Share Estimate::share(const Progress& progress) {
  const double start = fraction(progress);
  const double all = before_ + bytes_;
  return {start, bytes_ > 0 ? (before_ + start * bytes_) / all : start};
}

std::optional<double> seconds_left(const Progress& progress, double fraction) {
  // The first moments say nothing about the rest.
  if (fraction < 0.005 || progress.seconds < 0.5) return std::nullopt;
  return progress.seconds * (1 - fraction) / fraction;
}

std::string live_line(const Progress& progress, const Share& share, bool stopping, int width, const Style& style,
                      RunOver over) {
  std::vector<Piece> pieces = {{ended_text(progress, over), 0}};
  if (progress.slides_failed > 0) pieces.push_back({std::to_string(progress.slides_failed) + " failed", 1, true});
  if (progress.slides_skipped > 0) pieces.push_back({std::to_string(progress.slides_skipped) + " skipped", 5});
  pieces.push_back({percent_text(share.all), 1});
  pieces.push_back({pixel_rate(progress, over), 3});
  pieces.push_back({byte_rate_text(progress), 4});
  if (writes_images(progress)) pieces.push_back({written_text(progress), 4});
  pieces.push_back(stopping ? Piece{"stopping", 2} : Piece{"ETA " + eta_text(progress, share.start), 2});
  if (!progress.busiest_stage.empty()) pieces.push_back({"busiest " + progress.busiest_stage, 5});

  // The last column stays free: some terminals wrap when it is written.
  const auto room = static_cast<std::size_t>(std::max(width - 1, 0));
  const auto used = [&pieces] {
    std::size_t columns = 0;
    for (const Piece& piece : pieces) columns += display_width(piece.text) + 2;
    return columns - 2;
  };
  while (pieces.size() > 1 && used() > room) {
    pieces.erase(std::ranges::max_element(pieces, {}, &Piece::rank));
  }
  if (used() > room) return {};
  std::string line;
  constexpr std::size_t shortest_bar = 8;
  constexpr std::size_t longest_bar = 24;
  if (room >= used() + 2 + shortest_bar) {
    line = bar(share.all, std::min(longest_bar, room - used() - 2), style) + "  ";
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) line += "  ";
    line += pieces[i].failure ? style.red(pieces[i].text) : pieces[i].text;
  }
  return line;
}

std::string progress_text(const Progress& progress, const Share& share, RunOver over) {
  std::string text = ended_text(progress, over);
  if (progress.slides_failed > 0) text += ", " + std::to_string(progress.slides_failed) + " failed";
  if (progress.slides_skipped > 0) text += ", " + std::to_string(progress.slides_skipped) + " of them skipped";
  text += ", " + percent_text(share.all) + ", " + pixel_rate(progress, over) + ", " + byte_rate_text(progress) +
          ", ETA " + eta_text(progress, share.start);
  if (writes_images(progress)) text += ", " + written_text(progress);
  if (!progress.busiest_stage.empty()) text += ", busiest " + progress.busiest_stage;
  return text;
}

void ProgressDisplay::slide_ended(const SlideResult& slide, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  estimate_.slide_ended(slide, bytes);
}

Share ProgressDisplay::update(const Progress& progress) {
  const std::lock_guard lock(mutex_);
  const Share share = estimate_.share(progress);
  const bool stopping = SignalScope::received() != 0;
  if (stopping && !told_of_signal_) {
    told_of_signal_ = true;
    spdlog::warn(
        "stopping: {} that are done are kept, and others are left unless they are about to end; a second signal stops "
        "at once",
        over_ == RunOver::volumes ? "volumes" : "slides");
  }
  if (quiet_) return share;
  if (style_.terminal) {
    show_live_line(live_line(progress, share, stopping, terminal_width(2), style_, over_));
  } else if (Clock::now() - last_ >= std::chrono::seconds(5)) {
    last_ = Clock::now();
    spdlog::info("{}", progress_text(progress, share, over_));
  }
  return share;
}

void ProgressDisplay::end() { show_live_line({}); }

}  // namespace slidestream::cli
