#include "cli/left_images.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <optional>
#include <slidestream/error.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "cli/own_marks.hpp"
#include "config/suggest.hpp"
#include "ledger/artifact_files.hpp"
#include "ledger/schema.hpp"
#include "sink/deep_zoom.hpp"
#include "sink/file_calls.hpp"
#include "sink/file_digest.hpp"
#include "sink/image_formats.hpp"
#include "sink/partial_file.hpp"
#include "sink/partial_folder.hpp"

namespace slidestream::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view partial_mark = ".partial";
constexpr std::string_view earlier_end = ".earlier";

bool has_name(const fs::path& path) { return type_at(path) != fs::file_type::not_found; }

/// The name that it gets when it is whole.
fs::path final_of(const fs::path& partial) {
  std::string name = partial.filename().string();
  name.erase(name.rfind(partial_mark), partial_mark.size());
  return partial.parent_path() / name;
}

/// Removes a file or folder, unless somebody writes it, or a folder holds what is of no image.
void remove_part(const fs::path& part) {
  const fs::file_type type = type_at(part);
  const bool is_folder = type == fs::file_type::directory;
  if (!is_folder && type != fs::file_type::regular) return;
  if (is_folder && !may_be_image_folder(part)) return;
  // Who writes has it locked.
  const OpenFile open(part);
  if (open.descriptor >= 0 && ::flock(open.descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  std::error_code code;
  fs::path removed = part;
  if (is_folder && !part.string().ends_with(earlier_end)) {
    // An image of which parts are gone doesn't have its name.
    removed += earlier_end;
    fs::rename(part, removed, code);
    // Something of somebody else's has that name.
    if (code == std::errc::directory_not_empty || code == std::errc::file_exists) return;
  }
  if (!code) fs::remove_all(removed, code);
  if (code) spdlog::warn("{}: it is unfinished, and can't be removed: {}", one_line(part.string()), code.message());
}

/// Whether it is what the ledger lists under the other name, byte by byte.
bool is_listed_as(const fs::path& part, const fs::path& listed, const fs::path& folder,
                  const Ledger::LeftSlides& slides) {
  const auto made = slides.artifacts.find(listed.lexically_relative(folder).string());
  if (made == slides.artifacts.end() || path_bytes(part) != made->second.bytes) return false;
  const std::optional<PathContent> content = path_content(part);
  return content && content->digest == made->second.digest;
}

void remove_image(const fs::path& partial, const fs::path& folder, const Ledger::LeftSlides& slides) {
  const NamedKind kind = named_kind(partial);
  if (kind.is_deep_zoom) {
    take_back_names(final_of(partial));
    // The page says whose the parts are, and goes last.
    if (!has_own_page(partial)) return;
  }
  if (foreign_partial(partial)) return;
  if (!kind.is_deep_zoom && !kind.is_folder) return remove_part(partial);
  const fs::path filled = kind.is_deep_zoom ? deep_zoom_tiles(partial) : partial;
  const fs::path aside = filled.string() + std::string(earlier_end);
  if (type_at(aside) == fs::file_type::directory) {
    const fs::path whole = final_of(filled);
    std::error_code code;
    if (!has_name(whole) && is_listed_as(aside, whole, folder, slides)) {
      fs::rename(aside, whole, code);
    } else {
      remove_part(aside);
    }
  }
  remove_part(filled);
  if (!kind.is_deep_zoom || has_name(filled)) return;
  remove_part(partial);
  remove_part(deep_zoom_page(partial));
}

/// What is left of a slide's images, and lists of the tiles that they lack.
void remove_slide(const Config& config, const fs::path& images, const std::string& name,
                  const Ledger::LeftSlides& slides) {
  for (const std::string& op : config.operators.run) {
    const std::string stem = name + "." + op;
    try {
      remove_part(images / (stem + ".partial.csv"));
      if (config.image.format == ImageFormat::none) continue;
      const std::string suffix(traits_of(config.image.format).suffixes.front());
      remove_image(partial_name(images / (stem + suffix)), config.output.dir, slides);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
  }
}

}  // namespace

void remove_left_image(const fs::path& file, const fs::path& list) noexcept {
  try {
    remove_part(list);
    remove_image(partial_name(file), file.parent_path(), {});
  } catch (const std::exception& error) {
    spdlog::warn("{}", error.what());
  }
}

void remove_left_images(const Config& config, const Ledger::LeftSlides& slides) noexcept {
  const fs::path folder = config.output.dir;
  try {
    for (const char* name : {"images", "features"}) {
      const fs::path images = folder / name;
      // A link is somebody's who moved the folder away, and with a ledger it is another run's.
      if (type_at(images) != fs::file_type::directory || has_name(images / ledger_name)) continue;
      for (const std::string& slide : slides.names) remove_slide(config, images, slide, slides);
    }
  } catch (const std::exception& error) {
    spdlog::warn("{}: {}", folder.string(), error.what());
  }
}

}  // namespace slidestream::cli
