#include "slide/tiff/ome_slide.hpp"

#include <tiff.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "slide/open_budget.hpp"
#include "slide/tiff/level_candidates.hpp"
#include "slide/tiff/pyramid.hpp"

namespace slidestream {
namespace {

std::string description_of(const RawTiff& raw, const Candidate& candidate) {
  return raw.text(candidate.raw, TIFFTAG_IMAGEDESCRIPTION, OpenBudget::most_description);
}

}  // namespace

void OmeSlide::read(const std::vector<Candidate>& main) {
  before_ome_ = slide_.info;
  for (const std::size_t at : {std::size_t{0}, largest_image(main)}) {
    const std::string text = description_of(raw_, main[at]);
    if (text.find('<') == std::string::npos) continue;
    // It may be read as XML.
    slide_.compared_bytes = std::max(slide_.compared_bytes, OpenBudget::xml_tree_factor * text.size());
    ome_ = ome_of(text, main, {});
    if (!ome_) continue;
    is_in_first_ = at == 0;
    has_places_ = is_in_first_;
    return;
  }
}

std::size_t OmeSlide::first_plane(const std::vector<Candidate>& main) {
  const std::size_t first = find_first_plane(main);
  claimed_ = named_by_images(main);
  return first;
}

bool OmeSlide::is_own(const OmeImage& image, const Candidate& directory) const {
  if (has_places_) return true;
  if (!is_in_first_ || &image == this->image()) return false;
  const bool has_size = image.width > 0 && image.height > 0;
  return !has_size || (image.width == directory.width && image.height == directory.height);
}

std::unordered_set<std::size_t> OmeSlide::named_by_images(const std::vector<Candidate>& main) const {
  std::unordered_set<std::size_t> named;
  if (!ome_) return named;
  for (const OmeImage& image : ome_->images) {
    const auto add = [&](std::size_t at) {
      if (at < main.size() && is_own(image, main[at])) named.insert(at);
    };
    for (const auto& [plane, at] : image.directories) add(at);
    for (const std::size_t at : image.displaced) add(at);
  }
  return named;
}

std::size_t OmeSlide::largest_unnamed(const std::vector<Candidate>& main) const {
  const std::unordered_set<std::size_t> named = named_by_images(main);
  std::vector<Candidate> unnamed;
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < main.size(); ++i) {
    if (named.contains(i)) continue;
    unnamed.push_back(main[i]);
    numbers.push_back(i);
  }
  return unnamed.empty() ? largest_image(main) : numbers[largest_image(unnamed)];
}

std::size_t OmeSlide::find_first_plane(const std::vector<Candidate>& main) {
  const OmeImage* image = this->image();
  if (image == nullptr || !has_places_) return largest_image(main);
  const auto text = [](const ImageSize& s) { return std::to_string(s.width) + " x " + std::to_string(s.height); };
  const bool has_size = image->width > 0 && image->height > 0;
  const ImageSize size{image->width, image->height};
  const auto is_of_size = [size](const Candidate& c) { return c.width == size.width && c.height == size.height; };
  if (ome_->absent) {
    slide_.info.warnings.push_back("image " + std::to_string(*ome_->absent) +
                                   " of its OME-XML has no directory here: image " + std::to_string(ome_->slide) +
                                   " is read");
  }
  // The first plane may be missing, or lie in another file of a set: those that are there keep their numbers.
  if (image->directories.empty()) {
    has_places_ = false;
    const std::size_t largest = largest_unnamed(main);
    std::string line = "the image that its OME-XML declares isn't there";
    if (const auto named = ome_->image_at(largest, main[largest].width, main[largest].height)) {
      describe_by(main, *named);
      slide_.info.warnings.push_back(line + ": image " + std::to_string(*named) + ", which names directory " +
                                     std::to_string(largest) + ", is read");
      return largest;
    }
    if (has_size && !std::ranges::any_of(main, is_of_size)) {
      line += ", and directory " + std::to_string(largest) + " has " + text(main[largest].size()) +
              " pixels: " + settle_image(main, largest);
    }
    slide_.info.warnings.push_back(std::move(line));
    return largest;
  }
  const std::size_t said = image->directories.begin()->second;
  if (!has_size || is_of_size(main[said])) return said;
  const auto other = std::ranges::find_if(main, is_of_size);
  const std::string contradiction = "its OME-XML says " + text(size) + " pixels, and directory " +
                                    std::to_string(said) + " has " + text(main[said].size());
  if (other == main.end()) {
    const std::string counts = settle_image(main, said);
    slide_.info.warnings.push_back(contradiction + ": " + counts);
    return said;
  }
  has_places_ = false;
  const auto at = static_cast<std::size_t>(other - main.begin());
  slide_.info.warnings.push_back(contradiction + ": directory " + std::to_string(at) + ", which has them, is read");
  return at;
}

void OmeSlide::name_associated(std::vector<Candidate>& main, std::size_t first) const {
  if (!ome_) return;
  for (const OmeImage& image : ome_->images) {
    if (image.associated.empty()) continue;
    for (const auto& [plane, at] : image.directories) {
      if (at < main.size() && at != first && is_own(image, main[at])) main[at].associated = image.associated;
    }
  }
}

std::optional<OmeXml> OmeSlide::ome_of(const std::string& text, const std::vector<Candidate>& main,
                                       std::optional<std::size_t> meant) {
  std::vector<OmeDirectory> directories;
  directories.reserve(main.size());
  for (const Candidate& candidate : main) {
    const std::uint64_t samples = raw_.number(candidate.raw, TIFFTAG_SAMPLESPERPIXEL).value_or(1);
    directories.push_back({samples, candidate.width, candidate.height});
  }
  return read_ome_xml(text, directories, file_.path().filename().string(), slide_.info, meant);
}

void OmeSlide::describe_by(const std::vector<Candidate>& main, std::size_t meant) {
  slide_.info = before_ome_;
  ome_ = ome_of(description_of(raw_, main.front()), main, meant);
}

std::string OmeSlide::settle_image(const std::vector<Candidate>& main, std::size_t read) {
  const ImageSize size = main[read].size();
  const std::vector<OmeImage>& images = ome_->images;
  const auto fitting = std::ranges::find_if(images, [&](const OmeImage& image) {
    return image.associated.empty() && image.width == size.width && image.height == size.height;
  });
  if (fitting != images.end()) {
    const std::optional<std::size_t> named = ome_->image_at(read, size.width, size.height);
    const bool is_named = named && images[*named].associated.empty();
    const std::size_t meant = is_named ? *named : static_cast<std::size_t>(fitting - images.begin());
    describe_by(main, meant);
    has_places_ = false;
    return "image " + std::to_string(meant) + " of the OME-XML, which has that size, describes it";
  }
  const auto is_near = [](std::uint64_t said, std::uint64_t side) {
    const std::uint64_t apart = said > side ? said - side : side - said;
    return apart <= std::max<std::uint64_t>(2, side / 50);
  };
  const OmeImage& image = *this->image();
  if (is_near(image.width, size.width) && is_near(image.height, size.height)) return "the directory counts";
  ome_->pixel_size = {};
  OmeImage& not_read = ome_->images[ome_->slide];
  not_read.samples.clear();
  not_read.channel_samples.clear();
  slide_.info.magnification.reset();
  slide_.info.properties.erase("name");
  return "the directory counts, and that image's pixel size, magnification and name don't";
}

}  // namespace slidestream
