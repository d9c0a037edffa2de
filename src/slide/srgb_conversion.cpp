#include "slide/srgb_conversion.hpp"

#include <mutex>
#include <slidestream/error.hpp>
#include <utility>
#include <vector>

#include "colour/profile_head.hpp"
#include "slide/decode_memory.hpp"
#include "slide/file.hpp"
#include "slide/slide_impl.hpp"

namespace slidestream {

namespace {

/// Of what reading a profile takes. None where slides have no limit, or the profile has no table.
DecodeMemory::Lease memory_for_profile(const Slide::Impl& slide, std::uint64_t bytes) {
  if (slide.decode_memory == nullptr || bytes == 0) return {};
  const auto mib = [](std::uint64_t number) { return std::to_string((number + (1U << 20) - 1) >> 20) + " MiB"; };
  if (bytes > slide.decode_memory->size()) {
    throw_slide_error(slide.info.path, "the table of its ICC profile takes " + mib(bytes) +
                                           " to read, and decoding may take " + mib(slide.decode_memory->size()) +
                                           "; raise pipeline.memory_mib, or set input.colour = \"file\"");
  }
  DecodeMemory::Lease lease = slide.decode_memory->take(bytes, slide.give_up);
  if (!lease) throw_stopped(slide.info.path, "waited for memory to read its ICC profile");
  return lease;
}

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

}  // namespace

SrgbConversion find_srgb_conversion(const Slide& slide) {
  const Colour colour = slide.info().levels.front().colour;
  if (colour != Colour::rgb && colour != Colour::ycbcr) return {nullptr, "it is grey"};
  const IccProfile profile = slide.icc_profile(0);
  const std::uint64_t size = profile.bytes.size();
  if (!profile.fault.empty()) return {nullptr, profile.fault, size};
  if (profile.bytes.empty()) return {nullptr, "it has no ICC profile", size};
  const std::uint64_t reading = reading_bytes(profile.bytes);
  const DecodeMemory::Lease lease = memory_for_profile(impl_of(slide), reading);
  try {
    return {conversions().shared(std::make_shared<const ColourConversion>(profile.bytes)), {}, size, reading};
  } catch (const Error& error) {
    return {nullptr, error.what(), size, reading};
  }
}

}  // namespace slidestream
