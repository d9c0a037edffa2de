#include <array>
#include <cstddef>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sink/deep_zoom.hpp"
#include "sink/final_name.hpp"
#include "sink/image_formats.hpp"
#include "sink/ordered_sink.hpp"
#include "sink/partial_file.hpp"
#include "sink/partial_folder.hpp"
#include "sink/view_page.hpp"

namespace slidestream {

namespace {

/// https://learn.microsoft.com/previous-versions/windows/silverlight/dotnet-windows-silverlight/cc645077(v=vs.95)
std::string dzi_xml(const PyramidLayout& layout) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<Image xmlns=\"http://schemas.microsoft.com/deepzoom/2008\" Format=\"jpg\" Overlap=\"0\" TileSize=\"" +
         std::to_string(layout.tile()) + "\">\n  <Size Width=\"" + std::to_string(layout.size(0).width) +
         "\" Height=\"" + std::to_string(layout.size(0).height) + "\"/>\n</Image>\n";
}

/// Of the tiles, once it is known that nothing else than files has the names of files, and that none of these is half
/// of an image.
std::filesystem::path checked_folder(const std::filesystem::path& file) {
  for (const std::filesystem::path& name : {file, partial_name(file)}) {
    check_final_name(name);
    check_final_name(deep_zoom_page(name));
  }
  take_back_names(file);
  return deep_zoom_tiles(file);
}

/// A profile as a segment of a JPEG file (ICC.1:2022, B.4); empty for none, or one that is too large.
std::vector<std::byte> profile_segment(std::span<const std::byte> profile) {
  constexpr std::string_view begin("\xFF\xE2\0\0ICC_PROFILE\0\1\1", 18);  // the first part of one
  std::vector<std::byte> segment;
  if (profile.empty() || profile.size() > most_dzi_profile) return segment;
  for (const char c : begin) segment.push_back(static_cast<std::byte>(c));
  segment.insert(segment.end(), profile.begin(), profile.end());
  const std::size_t length = segment.size() - 2;  // without the marker
  segment[2] = static_cast<std::byte>(length >> 8);
  segment[3] = static_cast<std::byte>(length & 0xFF);
  return segment;
}

class DziSink final : public OrderedSink {
 public:
  DziSink(const std::filesystem::path& file, const ImageDescription& description, const ImageOptions& options)
      : OrderedSink(file, PyramidLayout(description.size, options.tile, options.levels)),
        options_(options),
        format_(description.format),
        partial_(partial_name(file)),
        final_{FinalName(file), FinalName(deep_zoom_page(file))},
        folder_(checked_folder(file), deep_zoom_tiles(partial_)),
        profile_(profile_segment(description.icc)) {
    const std::string xml = dzi_xml(layout());
    const std::string page = view_page(layout(), description, deep_zoom_tiles(file).filename().string(),
                                       deep_zoom_tiles(partial_).filename().string());
    // The page says whose image it is: whatever else there is of it, the page is there.
    folder_.begin([&] {
      folder_.write_beside(deep_zoom_page(partial_), page);
      folder_.write_beside(partial_, xml);
    });
    xml_bytes_ = xml.size();
    page_bytes_ = page.size();
  }

  std::unique_ptr<TileEncoder> make_encoder() const override {
    return make_jpeg_file_encoder(format_, options_.quality, options_.tile, options_.subsampling);
  }

  void discard() noexcept override { folder_.discard(); }

 protected:
  std::uint64_t write(const std::vector<Tile>& tiles) override {
    const std::uint64_t before = folder_.bytes();
    for (const Tile& tile : tiles) {
      // The other way round than everywhere else: 0 is the smallest level.
      folder_.write(std::to_string(layout().levels() - 1 - tile.level) + "/" + std::to_string(tile.index.column) + "_" +
                        std::to_string(tile.index.row) + ".jpg",
                    profile_.empty() ? tile.tile.bytes : with_profile(tile.tile.bytes));
    }
    return folder_.bytes() - before;
  }

  std::vector<PublishedFile> finish() override {
    for (const FinalName& name : final_) name.check();
    folder_.publish();
    give_name(partial_, file());
    give_name(deep_zoom_page(partial_), deep_zoom_page(file()));
    return {{file(), xml_bytes_},
            {deep_zoom_tiles(file()), folder_.bytes(), folder_.digest()},
            {deep_zoom_page(file()), page_bytes_}};
  }

 private:
  /// A tile with the profile behind its JFIF header, which comes first. Valid until the next call of the thread.
  std::span<const std::byte> with_profile(std::span<const std::byte> tile) const {
    constexpr std::ptrdiff_t jfif_end = 2 + 18;
    thread_local std::vector<std::byte> made;
    made.assign(tile.begin(), tile.begin() + jfif_end);
    made.insert(made.end(), profile_.begin(), profile_.end());
    made.insert(made.end(), tile.begin() + jfif_end, tile.end());
    return made;
  }

  ImageOptions options_;
  PixelFormat format_;
  std::filesystem::path partial_;   ///< name of the description until it is published
  std::array<FinalName, 2> final_;  ///< the description's and the page's
  PartialFolder folder_;            ///< whoever drains, and `publish`
  std::vector<std::byte> profile_;  ///< the segment of each tile that has it; empty: none
  std::uint64_t xml_bytes_ = 0;
  std::uint64_t page_bytes_ = 0;
};

bool is_own_dzi(const std::filesystem::path& file) {
  const std::filesystem::path page = deep_zoom_page(file);
  std::error_code code;
  return (std::filesystem::exists(page, code) && is_view_page(page)) || has_all_names_but_the_page(file);
}

}  // namespace

ImageFormatTraits dzi_traits() {
  return {.format = ImageFormat::dzi,
          .suffixes = {".dzi"},
          .compressions = {TileCompression::jpeg},
          .compression = [](const auto&, const auto&) { return TileCompression::jpeg; },
          .holds_8_bits = true,
          .tiles_folder = "_files",
          .goes_to_one_pixel = true,
          .make = make_dzi_sink,
          .is_own = is_own_dzi,
          .level_files = {"#_#.jpg"}};
}

std::unique_ptr<ImageSink> make_dzi_sink(const std::filesystem::path& file, const ImageDescription& description,
                                         const ImageOptions& options) {
  check_image(description, options);
  return std::make_unique<DziSink>(file, description, options);
}

}  // namespace slidestream
