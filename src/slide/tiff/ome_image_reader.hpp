#pragma once

#include <cstddef>
#include <cstdint>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "slide/tiff/ome_image.hpp"

namespace slidestream {

/// Reads the images of an OME-XML text, in their order: one that doesn't say its directories has the next ones.
class OmeImageReader {
 public:
  /// \param main  the directories of the main chain
  /// \param file_name  of the slide, for planes in several files
  OmeImageReader(const pugi::xml_node& root, const std::vector<OmeDirectory>& main, const std::string& file_name);

  /// \param node  an Image, or the root, which may have Pixels of its own
  OmeImage read(const pugi::xml_node& node);

 private:
  std::size_t count_like(std::size_t first, const std::vector<pugi::xml_node>& data, bool of_all);
  void place(OmeImage& image, const std::vector<pugi::xml_node>& data);
  void place_elsewhere(OmeImage& image, std::size_t plane, std::uint64_t count, std::string_view file);
  bool is_here(const pugi::xml_node& part) const;
  void identify_file();

  const pugi::xml_node root_;
  const std::vector<OmeDirectory>& main_;
  const std::string& file_name_;
  const std::string uuid_;     ///< of this file, if the text says it
  bool is_alone_ = true;       ///< there is no other Image
  std::string_view own_name_;  ///< what the text calls this file; empty: it doesn't, or several names may be meant
  std::string own_text_;       ///< the UUID that it gives this file beside that name, if any
  bool is_renamed_ = false;    ///< this file, and all parts lie in it: the text knows one file, of another name
  std::size_t counted_ = 0;    ///< directories, by `count_like`
  std::size_t next_ = 0;       ///< directory behind those that images before were found to have
  std::size_t named_ = 0;      ///< directories, by all images
  std::size_t elsewhere_ = 0;  ///< planes in other files, of all images
};

}  // namespace slidestream
