#include "slide/tiff/aperio_images.hpp"

#include <tiff.h>

#include <algorithm>
#include <string_view>

namespace slidestream {
namespace {

bool has_name(const std::vector<Candidate>& main, std::string_view name) {
  return std::ranges::any_of(main, [name](const Candidate& c) { return c.associated == name; });
}

bool is_reduced(const Candidate& image) { return (image.type & FILETYPE_REDUCEDIMAGE) != 0; }

/// Numbers of images in strips that are neither the slide nor have a name.
std::vector<std::size_t> unnamed_strips(const std::vector<Candidate>& main, std::size_t slide) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < main.size(); ++i) {
    if (i != slide && !main[i].tiled && main[i].associated.empty()) found.push_back(i);
  }
  return found;
}

bool is_placed_as_thumbnail(const std::vector<Candidate>& main, std::size_t slide, std::size_t image) {
  return image == 1 && has_shape_of(main[slide].size(), main[image].size());
}

void name_thumbnail(std::vector<Candidate>& main, std::size_t slide) {
  if (has_name(main, "thumbnail")) return;
  const std::vector<std::size_t> images = unnamed_strips(main, slide);
  auto found = std::ranges::find_if(images, [&](std::size_t i) { return main[i].is_thumbnail; });
  if (found == images.end()) {
    found = std::ranges::find_if(
        images, [&](std::size_t i) { return is_placed_as_thumbnail(main, slide, i) && !is_reduced(main[i]); });
  }
  if (found != images.end()) main[*found].associated = "thumbnail";
}

void name_label(std::vector<Candidate>& main, std::size_t slide) {
  // Aperio's slides have tiles. In strips it is a file of others, whose reduced images are smaller slides.
  if (!main[slide].tiled || has_name(main, "label")) return;
  const bool lacks_thumbnail = !has_name(main, "thumbnail");
  std::vector<std::size_t> images = unnamed_strips(main, slide);
  std::erase_if(images, [&](std::size_t i) {
    return main[i].type != FILETYPE_REDUCEDIMAGE || (lacks_thumbnail && is_placed_as_thumbnail(main, slide, i));
  });
  if (images.size() == 1) main[images.front()].associated = "label";
}

/// Other programs that keep Aperio's description mark all of the smaller levels as reduced, which says nothing.
void leave_out_reduced(std::vector<Candidate>& main, std::size_t slide) {
  const auto is_smaller_level = [&](const Candidate& c) {
    return c.tiled && c.associated.empty() && &c != &main[slide];
  };
  const bool says_something =
      std::ranges::any_of(main, [&](const Candidate& c) { return is_smaller_level(c) && !is_reduced(c); });
  for (Candidate& image : main) {
    if (&image == &main[slide] || !is_reduced(image) || !image.associated.empty()) continue;
    image.is_beside = says_something || !image.tiled;
  }
}

}  // namespace

void name_aperios_images(std::vector<Candidate>& main, std::size_t slide) {
  name_thumbnail(main, slide);
  name_label(main, slide);
  leave_out_reduced(main, slide);
}

std::vector<std::string> lines_of_types(const std::vector<Candidate>& main, std::size_t slide) {
  constexpr std::uint64_t macros_bit = 8;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < main.size(); ++i) {
    const Candidate& image = main[i];
    if (i == slide || image.associated.empty()) continue;
    const bool is_macro_by_type = (image.type & macros_bit) != 0;
    const bool has_name = !image.says_so.empty();
    const bool is_macro_by_name = image.associated == "macro" || image.associated == "overview";
    const bool may_be_level = image.tiled && has_size_of_level(main[slide].size(), image.size());
    const std::string name = "image " + std::to_string(i);
    const std::string type = "NewSubfileType " + std::to_string(image.type);
    if (has_name && is_macro_by_type && !is_macro_by_name) {
      lines.push_back(name + " is called " + image.associated + " by its description, and macro by " + type +
                      ": the description counts");
    } else if (may_be_level && has_name && !is_macro_by_type) {
      lines.push_back(name + " has tiles and the size of a level, and its description calls it " + image.associated +
                      ": it is no level");
    } else if (may_be_level && !has_name && is_macro_by_type) {
      lines.push_back(name + " has tiles and the size of a level, and " + type + " calls it macro: it is no level");
    }
  }
  return lines;
}

std::vector<std::string> names_of_focuses(const std::vector<Candidate>& main, const std::vector<std::size_t>& planes) {
  std::vector<std::string> names;
  for (const std::size_t plane : planes) {
    names.push_back(main[plane].focus);
    if (names.back().empty()) return {};
  }
  return names;
}

std::string warning_of_unnamed(const std::string& first, std::size_t more) {
  if (more == 0) return first + " doesn't say what it is: it may be the slide's label";
  return first + " and " + std::to_string(more) + " more don't say what they are: one may be the slide's label";
}

}  // namespace slidestream
