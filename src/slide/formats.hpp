#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
#include <slidestream/slide.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "slide/slide_impl.hpp"

namespace slidestream {

/// Slides of several files, or of files that only their content tells, among the files of one folder.
struct SlidesInFolder {
  std::vector<std::string> slides;     ///< the file's name that each is called by
  std::vector<std::string> no_slides;  ///< names like those of slides, of files that are something else
  std::set<std::string> files;         ///< all names that are accounted for
};

/// A kind of container. To add one is a folder beside this file and a line in formats.cpp.
struct SlideFormat {
  const char* name;
  /// What its files' names end in, in lower case: searches of folders look for them.
  std::span<const std::string_view> suffixes;
  /// Whether a file is one, by its content, of which the first bytes are there: there may be fewer than `first_bytes`.
  /// A name alone is never enough. It throws nothing for damage.
  bool (*recognises)(std::span<const std::byte> first, const File& file);
  /// Fills in levels, codings, description and container. `file` is the one that was looked at, and `slide.files` is
  /// empty. \throws what `Slide::open` does
  void (*open)(Slide::Impl& slide, std::unique_ptr<File> file, const OpenOptions& options);
  /// The files of the slide that a file belongs to, first the one that it is called by. Null: each file is a slide.
  /// \throws SlideError
  std::vector<std::filesystem::path> (*files)(const std::filesystem::path& path) = nullptr;
  /// The slides of a folder, by content; files with another format's suffix are none. Null: each file with a suffix of
  /// this format is a slide. \throws SlideError; DescriptorError where files couldn't be looked at for want of one
  SlidesInFolder (*in_folder)(const std::filesystem::path& folder) = nullptr;
  /// Whether a folder belongs to a slide beside it, and is never searched. Null: none does.
  bool (*keeps_folder)(const std::filesystem::path& folder) = nullptr;
};

/// All of them. What nobody recognises is OpenSlide's to try, and else TIFF's, whose reader says what is wrong.
std::span<const SlideFormat> slide_formats() noexcept;

/// Bytes that a format may ask to see.
constexpr std::size_t first_bytes = 132;

/// The format of a file. \throws SlideError when it can't be read
const SlideFormat& format_of(const File& file);

/// Whether a path ends as the names of slides do, in any case.
bool has_slide_suffix(std::string_view path);
/// Whether a folder is part of a slide: `SlideFormat::keeps_folder`.
bool is_part_of_slide(const std::filesystem::path& folder);
/// Whether a path ends in `suffix` (which is in lower case), in any case.
bool has_suffix(std::string_view path, std::string_view suffix);

/// The file to open for a path: of a folder with one slide of several files, the one that the slide is called by; else
/// the path. \throws SlideError for a folder with several slides
std::filesystem::path file_to_open(const std::filesystem::path& path);

/// `SlideFormat::files` of the path's format; the path alone where it can't be looked at, or where it ends as files do
/// of which each is a slide. \throws DescriptorError, for what could be found then would be another slide
std::vector<std::filesystem::path> files_of_slide(const std::filesystem::path& path);

}  // namespace slidestream
