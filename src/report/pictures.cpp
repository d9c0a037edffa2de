#include "report/pictures.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <slidestream/error.hpp>
#include <thread>

#include "config/suggest.hpp"
#include "report/page.hpp"
#include "report/picture.hpp"

namespace slidestream::report {

namespace {

using Json = nlohmann::ordered_json;

/// Bytes that a picture takes beside its own: quotes, numbers, or why it is missing.
constexpr std::uint64_t overhead = 160;

struct Thumbnail {
  std::string jpeg;
  std::string absent;  ///< why there is none
};

/// What base64 makes of so many bytes fits into `room`.
std::size_t before_base64(std::uint64_t room) { return static_cast<std::size_t>(room / 4 * 3); }

std::string without_path(std::string text, const std::string& path) {
  if (text.starts_with(path + ": ")) text.erase(0, path.size() + 2);
  return one_line(text);
}

Thumbnail make_thumbnail(const PictureSource& source, std::size_t most) {
  Thumbnail thumbnail;
  if (most == 0) return {.jpeg = {}, .absent = "no room for it in this file"};
  // The file behind the path is known absolutely; the folder may have moved since, and the path may hold.
  std::error_code code;
  const std::string& file = std::filesystem::exists(source.canonical, code) ? source.canonical : source.path;
  try {
    thumbnail.jpeg = fitting_jpeg(read_thumbnail(file, largest_thumbnail), most);
    if (thumbnail.jpeg.empty()) thumbnail.absent = "no room for it in this file";
  } catch (const Error& error) {
    thumbnail.absent = without_path(error.what(), file);
  } catch (const std::bad_alloc&) {
    thumbnail.absent = "out of memory";
  }
  return thumbnail;
}

std::vector<Thumbnail> make_thumbnails(const std::vector<PictureSource>& sources, std::size_t most, int threads,
                                       const std::function<void(std::size_t, std::size_t)>& on_thumbnail) {
  std::vector<Thumbnail> thumbnails(sources.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < sources.size(); i = next++) {
      thumbnails[i] = make_thumbnail(sources[i], most);
      ++done;
    }
  };
  {
    std::vector<std::jthread> workers;
    const auto count = std::min<std::size_t>(static_cast<std::size_t>(std::max(threads, 1)), sources.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
    while (done < sources.size()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (on_thumbnail) on_thumbnail(done, sources.size());
    }
  }
  return thumbnails;
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
  const std::uint64_t share = sources.empty() ? 0 : room / sources.size();
  const std::uint64_t usable = share > 2 * overhead ? share - 2 * overhead : 0;
  const std::uint64_t for_thumbnail = maps ? usable / 5 * 3 : usable;
  const std::size_t most_map = before_base64(usable - for_thumbnail);

  Json thumbnails = Json::array();
  Json absent = Json::array();
  Json shown_maps = Json::array();
  for (const Thumbnail& thumbnail : make_thumbnails(sources, before_base64(for_thumbnail), threads, on_thumbnail)) {
    const bool made = !thumbnail.jpeg.empty();
    thumbnails.push_back(made ? Json(base64(thumbnail.jpeg)) : Json());
    absent.push_back(made ? Json() : Json(thumbnail.absent));
    if (made) ++pictures.thumbnails_made;
  }
  for (const PictureSource& source : sources) {
    WindowMap map;
    map.columns = source.map_columns;
    map.rows = source.map_rows;
    const bool read = has_map(source) && most_map > 0 && read_map(source, map);
    const MapPicture picture = read ? map_picture(map, most_map) : MapPicture();
    shown_maps.push_back(picture.columns > 0 ? map_json(picture) : Json());
    if (picture.columns > 0) ++pictures.maps_made;
  }
  pictures.json = {
      {"thumbnails", std::move(thumbnails)}, {"absent", std::move(absent)}, {"maps", std::move(shown_maps)}};
  return pictures;
}

}  // namespace slidestream::report
