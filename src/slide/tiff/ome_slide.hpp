#pragma once

#include <cstddef>
#include <optional>
#include <slidestream/slide.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "slide/file.hpp"
#include "slide/pixel_size.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tiff/candidate.hpp"
#include "slide/tiff/ome_xml.hpp"
#include "slide/tiff/raw_directory.hpp"

namespace slidestream {

/// Which image of a file's OME-XML is the slide, and which directories it and the other images name. What is doubtful
/// goes into the slide's warnings. `main` is the file's main chain.
class OmeSlide {
 public:
  OmeSlide(Slide::Impl& slide, const File& file, const RawTiff& raw) : slide_(slide), file_(file), raw_(raw) {}

  /// OME-XML stands in the first directory. Where it doesn't, one in the largest describes the slide, but numbers of
  /// directories in it are of another file.
  void read(const std::vector<Candidate>& main);

  /// The directory of level 0, or of its first plane.
  std::size_t first_plane(const std::vector<Candidate>& main);

  /// Calls directories of labels and the like what the text calls them. \param first  the slide's
  void name_associated(std::vector<Candidate>& main, std::size_t first) const;

  bool is_there() const noexcept { return ome_.has_value(); }
  /// The slide's; null where there is none.
  const OmeImage* image() const { return ome_ ? ome_->slide_image() : nullptr; }
  /// Whether the directories that the slide's image names are those that are read.
  bool has_places() const noexcept { return has_places_; }
  /// Whether any of its images names a directory. Known behind `first_plane`.
  bool is_claimed(std::size_t directory) const { return claimed_.contains(directory); }
  /// Of a text that is there.
  const SaidPixelSize& pixel_size() const { return ome_->pixel_size; }

 private:
  std::size_t find_first_plane(const std::vector<Candidate>& main);
  /// The largest directory that no image names; where all are named, the largest.
  std::size_t largest_unnamed(const std::vector<Candidate>& main) const;
  /// Whether a directory that an image names is its own. Where the slide's image has none here, numbers may be of
  /// another file, and those of other images count if the directory has the image's size.
  bool is_own(const OmeImage& image, const Candidate& directory) const;
  /// Directories that images name as their own.
  std::unordered_set<std::size_t> named_by_images(const std::vector<Candidate>& main) const;
  std::optional<OmeXml> ome_of(const std::string& text, const std::vector<Candidate>& main,
                               std::optional<std::size_t> meant);
  /// What OME-XML in the first directory says of the slide becomes what it says of another image.
  void describe_by(const std::vector<Candidate>& main, std::size_t meant);
  /// Of OME-XML in the first directory, whose image hasn't the size of the directory that is read: images were taken
  /// out of the file, and the text stayed. An image with that size describes the directory. Else only one of nearly
  /// that size may.
  /// \return what counts, for a line
  std::string settle_image(const std::vector<Candidate>& main, std::size_t read);

  Slide::Impl& slide_;
  const File& file_;
  const RawTiff& raw_;
  std::optional<OmeXml> ome_;
  SlideInfo before_ome_;      ///< what was known before its text was read
  bool is_in_first_ = false;  ///< the text stands in the first directory, so that its numbers may be this file's
  bool has_places_ = false;
  std::unordered_set<std::size_t> claimed_;
};

}  // namespace slidestream
