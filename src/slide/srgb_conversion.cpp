#include "slide/srgb_conversion.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "colour/profile_head.hpp"
#include "slide/decode_memory.hpp"
#include "slide/file.hpp"
#include "slide/level_coding.hpp"
#include "slide/slide_impl.hpp"
#include "slide/tile_job.hpp"

namespace slidestream {

namespace {

/// One conversion for all open slides of the same steps, as those of a scanner have.
class Conversions {
 public:
  using Shared = std::shared_ptr<const ColourConversion>;

  Shared shared(Shared made) {
    for (const Shared& other : all()) {
      if (*other == *made) return other;
    }
    const std::lock_guard lock(mutex_);
    all_.push_back(made);
    return made;
  }

 private:
  /// Those that slides have. Two that are made at once may be there twice, which does no harm.
  std::vector<Shared> all() {
    std::vector<Shared> found;
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [&found](const std::weak_ptr<const ColourConversion>& one) {
      Shared conversion = one.lock();
      if (conversion == nullptr) return true;
      found.push_back(std::move(conversion));
      return false;
    });
    return found;
  }

  std::mutex mutex_;
  std::vector<std::weak_ptr<const ColourConversion>> all_;
};

Conversions& conversions() {
  static Conversions all;
  return all;
}

/// Whether segments in front of a JPEG's frame hold an ICC profile (ICC.1, B.4).
bool has_profile_segment(std::span<const std::byte> front) {
  constexpr std::string_view signature("ICC_PROFILE\0", 12);
  constexpr std::size_t head = 4;  // a marker and a length
  const auto at = [front](std::size_t place) { return std::to_integer<std::size_t>(front[place]); };
  for (std::size_t place = 2; place + head + signature.size() <= front.size();) {
    const std::size_t marker = at(place + 1);
    const bool is_header = at(place) == 0xFF && ((marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE ||
                                                 marker == 0xDB || marker == 0xC4 || marker == 0xDD);
    if (!is_header) return false;
    const auto* const text = reinterpret_cast<const char*>(front.data() + place + head);
    if (marker == 0xE2 && std::string_view(text, signature.size()) == signature) return true;
    place += 2 + (at(place + 2) << 8U | at(place + 3));
  }
  return false;
}

}  // namespace

bool has_profile_in_tiles(const Slide& slide) {
  constexpr std::uint64_t most_front = 4096;
  const Level& level = slide.coded_level(0);
  if (level.codec != Codec::jpeg || coding_of(slide, 0).in_items) return false;
  for (std::int64_t index = 0; index < level.columns * level.rows; ++index) {
    const TileRange tile = slide.tile(0, index);
    if (tile.length == 0) continue;
    if (!slide.contains(tile)) return false;
    std::vector<std::byte> front(static_cast<std::size_t>(std::min(tile.length, most_front)));
    slide.read(tile.offset, front);
    return has_profile_segment(front);
  }
  return false;
}

SrgbConversion find_srgb_conversion(const Slide& slide) {
  const Colour colour = slide.info().levels.front().colour;
  if (colour != Colour::rgb && colour != Colour::ycbcr) return {nullptr, "it is grey"};
  const IccProfile profile = slide.icc_profile(0);
  const std::uint64_t size = profile.bytes.size();
  if (!profile.fault.empty()) return {nullptr, profile.fault, size};
  if (profile.bytes.empty()) {
    return {nullptr,
            has_profile_in_tiles(slide) ? "the ICC profile in its JPEG tiles isn't read, and it has no other"
                                        : "it has no ICC profile",
            size};
  }
  const std::uint64_t reading = reading_bytes(profile.bytes);
  const DecodeMemory::Lease lease =
      memory_for(impl_of(slide), "the table of its ICC profile", reading, ", or set input.colour = \"file\"");
  try {
    return {conversions().shared(std::make_shared<const ColourConversion>(profile.bytes)), {}, size, reading};
  } catch (const Error& error) {
    return {nullptr, error.what(), size, reading};
  }
}

}  // namespace slidestream
