#include "report/pictures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "config/suggest.hpp"
#include "report/deep_zoom_picture.hpp"
#include "report/own_file.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"
#include "report/volume_cuts.hpp"
#include "slide/decode_memory.hpp"
#include "slide/open_options.hpp"

namespace slidestream::report {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes that a picture takes beside its own: quotes, numbers, or why it is missing.
constexpr std::uint64_t overhead = 160;

struct Thumbnail {
  std::string jpeg;
  std::string absent;  ///< why there is none
};

/// Of one slide.
struct Thumbnails {
  Thumbnail slide;
  std::vector<Thumbnail> made;  ///< as `PictureSource::made`
};

/// Bytes that pictures of a slide may take.
struct Room {
  std::size_t slide = 0;
  std::size_t map = 0;
  std::size_t made = 0;  ///< each
};

/// What base64 makes of so many bytes fits into `room`.
std::size_t before_base64(std::uint64_t room) { return static_cast<std::size_t>(room / 4 * 3); }

std::string without_path(std::string text, const std::string& path) {
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return one_line(text);
}

/// What all pictures of a report share.
struct SharedLimits {
  explicit SharedLimits(const PictureLimits& given)
      : limits(given),
        tiles(std::make_shared<DecodeMemory>(given.decode_bytes)),
        rows(std::make_shared<DecodeMemory>(given.row_bytes)) {}

  bool is_stopped() const { return limits.stopped && limits.stopped(); }

  const PictureLimits& limits;
  std::shared_ptr<DecodeMemory> tiles;
  std::shared_ptr<DecodeMemory> rows;
};

/// One picture that is being made: its time begins here. Used by one thread.
class PictureWork {
 public:
  PictureWork(const PictureSource& source, const SharedLimits& shared) : source_(source), shared_(shared) {
    const int own = source.config == nullptr ? 0 : source.config->input.max_seconds;
    seconds_ = own > 0 ? std::min(own, shared.limits.most_seconds) : shared.limits.most_seconds;
  }

  bool is_late() const { return Clock::now() - begin_ > std::chrono::seconds(seconds_); }
  std::string text_of_limit() const {
    const bool is_own = source_.config != nullptr && source_.config->input.max_seconds == seconds_;
    return "took longer than " + (is_own ? "input.max_seconds = " + std::to_string(seconds_)
                                         : std::to_string(seconds_) + " s, which a report gives a picture");
  }
  std::function<bool()> give_up() const {
    return [this] { return shared_.is_stopped() || is_late(); };
  }

  /// Of the slide, as its run opened it.
  Reading of_slide() {
    Reading reading = of_own();
    const OpenOptions own = std::move(reading.open);
    reading.open = picture_options(source_);
    reading.open.give_up = own.give_up;
    reading.open.decode_memory = own.decode_memory;
    return reading;
  }

  /// Of an image that a run made, which this program reads itself.
  Reading of_own() {
    Reading reading;
    reading.open.give_up = give_up();
    reading.open.decode_memory = shared_.tiles;
    reading.open.openslide = "never";
    reading.rows = shared_.rows;
    reading.waited = [this](double seconds) {
      begin_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    };
    return reading;
  }

 private:
  using Clock = std::chrono::steady_clock;

  const PictureSource& source_;
  const SharedLimits& shared_;
  int seconds_ = 0;
  Clock::time_point begin_ = Clock::now();
};

/// A setting that doesn't change what a report takes.
std::string without_advice(std::string text) {
  constexpr std::string_view advice = "; raise pipeline.memory_mib";
  if (const auto at = text.rfind(advice); at != std::string::npos) text.resize(at);
  return text;
}

/// The picture that `read` gives of a file, or why there is none.
Thumbnail thumbnail_of(const std::string& file, std::size_t most, const PictureWork& work,
                       const std::function<std::string()>& read) {
  if (most == 0) return {.jpeg = {}, .absent = "no room for it in this file"};
  Thumbnail thumbnail;
  try {
    thumbnail.jpeg = read();
    if (thumbnail.jpeg.empty()) thumbnail.absent = "no room for it in this file";
  } catch (const StoppedError&) {
    thumbnail.absent = work.text_of_limit();
  } catch (const std::bad_alloc&) {
    thumbnail.absent = "out of memory";
  } catch (const std::exception& error) {
    thumbnail.absent = without_path(without_advice(error.what()), file);
  }
  return thumbnail;
}

/// \param slide  the slide's file, or the volume's
Thumbnail picture_of(const MadeImage& image, const PictureSource& source, const std::string& slide, std::size_t most,
                     const SharedLimits& shared) {
  PictureWork work(source, shared);
  const std::filesystem::path path = image.path();
  return thumbnail_of(path.string(), most, work, [&] {
    if (path.extension() == ".dzi") return deep_zoom_picture(image.folder, image.name, image.bytes, most);
    check_own_file(image.folder, image.name, image.bytes);
    if (image.is_volume) {
      return fitting_jpeg(
          image.labels ? read_volume_cuts(slide, path, work.give_up()) : read_volume_cuts(path, work.give_up()), most);
    }
    const Reading reading = work.of_own();
    return fitting_jpeg(image.labels ? read_label_thumbnail(path, largest_thumbnail, *image.labels, reading)
                                     : read_thumbnail(path, largest_thumbnail, reading),
                        most);
  });
}

Thumbnails thumbnails_of(const PictureSource& source, const Room& room, const SharedLimits& shared) {
  Thumbnails made;
  if (source.failed) {
    // What failed may take as long, or as much memory, again.
    made.slide.absent = "its run failed on it, so its file isn't opened here";
    made.made.assign(source.made.size(), made.slide);
    return made;
  }
  // The file behind the path is known absolutely; the folder may have moved since, and the path may hold.
  std::error_code code;
  const std::string& file = std::filesystem::exists(source.canonical, code) ? source.canonical : source.path;
  PictureWork work(source, shared);
  made.slide = thumbnail_of(file, room.slide, work, [&] {
    return fitting_jpeg(source.is_volume ? read_volume_cuts(file, work.give_up())
                                         : read_thumbnail(file, largest_thumbnail, work.of_slide()),
                        room.slide);
  });
  for (const MadeImage& image : source.made) {
    if (shared.is_stopped()) break;
    made.made.push_back(picture_of(image, source, file, room.made, shared));
  }
  return made;
}

std::vector<Thumbnails> make_thumbnails(const std::vector<PictureSource>& sources, const std::vector<Room>& rooms,
                                        const PictureLimits& limits,
                                        const std::function<void(std::size_t, std::size_t)>& on_thumbnail) {
  const SharedLimits shared(limits);
  std::vector<Thumbnails> thumbnails(sources.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size() && !shared.is_stopped(); i = next++) {
      thumbnails[i] = thumbnails_of(sources[i], rooms[i], shared);
      ++done;
    }
  };
  {
    std::vector<std::jthread> workers;
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(std::max(limits.threads, 1)), sources.size());
    try {
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that there are do it all.
      if (workers.empty()) work();
    }
    while (done < sources.size() && !shared.is_stopped()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (on_thumbnail) on_thumbnail(done, sources.size());
    }
  }
  if (shared.is_stopped()) throw StoppedError("the report was stopped");
  return thumbnails;
}

/// Every slide has the same share of all.
std::vector<Room> rooms_of(const std::vector<PictureSource>& sources, std::uint64_t room, bool maps) {
  std::vector<Room> rooms;
  for (const PictureSource& source : sources) {
    const std::uint64_t share = room / sources.size();
    const std::uint64_t pictures = source.made.size() + (maps ? 1 : 0);
    const std::uint64_t taken = (pictures + 2) * overhead;
    const std::uint64_t part = share > taken ? (share - taken) / (3 + 2 * pictures) : 0;
    rooms.push_back({before_base64(3 * part), before_base64(maps ? 2 * part : 0), before_base64(2 * part)});
  }
  return rooms;
}

/// [[place of the file, picture], ...] of those that have one.
Json made_json(const PictureSource& source, const std::vector<Thumbnail>& made) {
  Json json = Json::array();
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (!made[k].jpeg.empty()) json.push_back({source.made[k].file, base64(made[k].jpeg)});
  }
  return json;
}

/// [[place of the file, why], ...] of those that have none.
Json lacking_json(const PictureSource& source, const std::vector<Thumbnail>& made) {
  Json json = Json::array();
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (made[k].jpeg.empty()) json.push_back({source.made[k].file, made[k].absent});
  }
  return json;
}

Json map_json(const MapPicture& picture) {
  Json json = {{"columns", picture.columns}, {"rows", picture.rows}, {"block", picture.block}};
  const auto channel = [](const MapPicture::Channel& values) {
    return Json{{"low", values.low}, {"high", values.high}, {"cells", base64(values.cells)}};
  };
  json["mean"] = channel(picture.channels[0]);
  json["std"] = channel(picture.channels[1]);
  return json;
}

}  // namespace

OpenOptions picture_options(const PictureSource& source) {
  if (source.config == nullptr) return {};
  const OpenOptions bounds;
  OpenOptions options = open_options(*source.config, source.path);
  options.max_tiles = std::min(options.max_tiles, bounds.max_tiles);
  if (options.openslide != "never") options.openslide = "auto";
  options.srgb_for_browsers = false;
  options.shrink_on_load = false;
  return options;
}

Pictures make_pictures(const std::vector<PictureSource>& sources, std::uint64_t room, const PictureLimits& limits,
                       const std::function<bool(const PictureSource&, WindowMap&)>& read_map,
                       const std::function<void(std::size_t done, std::size_t all)>& on_thumbnail) {
  Pictures pictures;
  const auto has_map = [](const PictureSource& source) { return source.map_columns > 0 && source.map_rows > 0; };
  const bool maps = std::ranges::any_of(sources, has_map);
  const std::vector<Room> rooms = rooms_of(sources, room, maps);

  Json thumbnails = Json::array();
  Json absent = Json::array();
  Json shown_maps = Json::array();
  Json images = Json::array();
  Json lacking = Json::array();
  const std::vector<Thumbnails> found = make_thumbnails(sources, rooms, limits, on_thumbnail);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const PictureSource& source = sources[i];
    const Thumbnail& thumbnail = found[i].slide;
    const bool made = !thumbnail.jpeg.empty();
    thumbnails.push_back(made ? Json(base64(thumbnail.jpeg)) : Json());
    absent.push_back(made ? Json() : Json(thumbnail.absent));
    if (made) ++pictures.thumbnails_made;
    images.push_back(made_json(source, found[i].made));
    lacking.push_back(lacking_json(source, found[i].made));
    WindowMap map;
    map.columns = source.map_columns;
    map.rows = source.map_rows;
    const bool read = has_map(source) && rooms[i].map > 0 && read_map(source, map);
    const MapPicture picture = read ? map_picture(map, rooms[i].map) : MapPicture();
    shown_maps.push_back(picture.columns > 0 ? map_json(picture) : Json());
    if (picture.columns > 0) ++pictures.maps_made;
  }
  pictures.json = {{"thumbnails", std::move(thumbnails)},
                   {"absent", std::move(absent)},
                   {"maps", std::move(shown_maps)},
                   {"made", std::move(images)},
                   {"lacking", std::move(lacking)}};
  return pictures;
}

}  // namespace slidestream::report
