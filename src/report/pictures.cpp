#include "report/pictures.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <filesystem>
#include <slidestream/error.hpp>
#include <system_error>
#include <thread>

#include "config/suggest.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"
#include "report/text_file.hpp"
#include "report/volume_cuts.hpp"

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

/// The picture that `read` gives of a file, or why there is none.
Thumbnail thumbnail_of(const std::string& file, std::size_t most, const std::function<std::string()>& read) {
  if (most == 0) return {.jpeg = {}, .absent = "no room for it in this file"};
  Thumbnail thumbnail;
  try {
    thumbnail.jpeg = read();
    if (thumbnail.jpeg.empty()) thumbnail.absent = "no room for it in this file";
  } catch (const Error& error) {
    thumbnail.absent = without_path(error.what(), file);
  } catch (const std::bad_alloc&) {
    thumbnail.absent = "out of memory";
  }
  return thumbnail;
}

/// The largest level that is one tile of at most `largest_thumbnail` pixels, which is a JPEG file by itself.
std::string deep_zoom_tile(const MadeImage& image, std::size_t most) {
  const std::filesystem::path folder = image.path.parent_path() / (image.path.stem().string() + "_files");
  const auto side = static_cast<unsigned>(std::clamp(image.tile, 1, largest_thumbnail));
  for (int level = std::bit_width(side) - 1; level >= 0; --level) {
    const std::filesystem::path file = folder / std::to_string(level) / "0_0.jpg";
    std::error_code code;
    if (!std::filesystem::exists(file, code)) continue;
    std::string bytes = read_text_file(file.string());
    if (bytes.size() <= most) return bytes;
  }
  return {};
}

/// \param source  the slide's file, or the volume's
Thumbnail picture_of(const MadeImage& image, const std::string& source, std::size_t most) {
  return thumbnail_of(image.path.string(), most, [&] {
    if (image.is_volume) {
      return fitting_jpeg(image.labels ? read_volume_cuts(source, image.path) : read_volume_cuts(image.path), most);
    }
    if (image.path.extension() == ".dzi") return deep_zoom_tile(image, most);
    return fitting_jpeg(image.labels ? read_label_thumbnail(image.path, largest_thumbnail, *image.labels)
                                     : read_thumbnail(image.path, largest_thumbnail),
                        most);
  });
}

Thumbnails thumbnails_of(const PictureSource& source, const Room& room) {
  // The file behind the path is known absolutely; the folder may have moved since, and the path may hold.
  std::error_code code;
  const std::string& file = std::filesystem::exists(source.canonical, code) ? source.canonical : source.path;
  Thumbnails made;
  made.slide = thumbnail_of(file, room.slide, [&] {
    return fitting_jpeg(
        source.is_volume ? read_volume_cuts(file) : read_thumbnail(file, largest_thumbnail, source.channel),
        room.slide);
  });
  for (const MadeImage& image : source.made) made.made.push_back(picture_of(image, file, room.made));
  return made;
}

std::vector<Thumbnails> make_thumbnails(const std::vector<PictureSource>& sources, const std::vector<Room>& rooms,
                                        int threads,
                                        const std::function<void(std::size_t, std::size_t)>& on_thumbnail) {
  std::vector<Thumbnails> thumbnails(sources.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) {
      thumbnails[i] = thumbnails_of(sources[i], rooms[i]);
      ++done;
    }
  };
  {
    std::vector<std::jthread> workers;
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), sources.size());
    try {
      for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
    } catch (const std::system_error&) {
      // Those that there are do it all.
      if (workers.empty()) work();
    }
    while (done < sources.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (on_thumbnail) on_thumbnail(done, sources.size());
    }
  }
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

Pictures make_pictures(const std::vector<PictureSource>& sources, std::uint64_t room, int threads,
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
  const std::vector<Thumbnails> found = make_thumbnails(sources, rooms, threads, on_thumbnail);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const PictureSource& source = sources[i];
    const Thumbnail& thumbnail = found[i].slide;
    const bool made = !thumbnail.jpeg.empty();
    thumbnails.push_back(made ? Json(base64(thumbnail.jpeg)) : Json());
    absent.push_back(made ? Json() : Json(thumbnail.absent));
    if (made) ++pictures.thumbnails_made;
    images.push_back(made_json(source, found[i].made));
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
                   {"made", std::move(images)}};
  return pictures;
}

}  // namespace slidestream::report
