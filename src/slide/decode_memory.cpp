#include "slide/decode_memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "slide/jpeg2000_decoder.hpp"
#include "slide/jpeg_decoder.hpp"
#include "slide/tile_bytes.hpp"
#include "slide/tile_head.hpp"

namespace slidestream {

DecodeMemory::DecodeMemory(std::uint64_t bytes, std::string setting, std::uint64_t divisor)
    : size_(bytes), setting_(std::move(setting)), divisor_(divisor), process_(::getpid()) {}

std::string DecodeMemory::advice(std::uint64_t bytes) const {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  return "raise " + setting_ + " to " + std::to_string((divisor_ * bytes + mib - 1) / mib);
}

bool DecodeMemory::is_foreign() const noexcept { return ::getpid() != process_; }

DecodeMemory::Lease::~Lease() {
  if (memory_ != nullptr) memory_->give_back(bytes_, is_input_);
}

DecodeMemory::Lease::Lease(Lease&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      is_input_(std::exchange(other.is_input_, false)) {}

DecodeMemory::Lease& DecodeMemory::Lease::operator=(Lease&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(is_input_, other.is_input_);
  return *this;
}

bool DecodeMemory::wait_while(std::unique_lock<std::mutex>& lock, const Lacks& lacks,
                              const std::function<bool()>& give_up) {
  constexpr auto between_questions = std::chrono::milliseconds(50);
  bool gave_up = false;
  while (lacks(gave_up)) {
    changed_.wait_for(lock, between_questions);
    gave_up = gave_up || (give_up && give_up());
  }
  return !gave_up;
}

DecodeMemory::Lease DecodeMemory::take(std::uint64_t bytes, const std::function<bool()>& give_up) {
  if (is_foreign()) return {*this, 0};
  std::unique_lock lock(mutex_);
  const auto is_short = [&](bool gave_up) { return !gave_up && bytes > size_ - taken_; };
  bool is_there = false;
  if (input_bytes_ > 0 && input_thread_ == std::this_thread::get_id()) {
    // Behind one who waits for what this thread holds it would wait for ever.
    input_waits_ = true;
    is_there = wait_while(lock, is_short, give_up);
    input_waits_ = false;
  } else {
    const std::uint64_t ticket = next_ticket_++;
    // One that gives up keeps its turn, so that no turn is left out.
    const auto has_no_turn = [&](bool gave_up) {
      return served_ != ticket || (!gave_up && input_waits_) || is_short(gave_up);
    };
    is_there = wait_while(lock, has_no_turn, give_up);
    ++served_;
  }
  if (is_there) taken_ += bytes;
  lock.unlock();
  changed_.notify_all();
  return is_there ? Lease(*this, bytes) : Lease();
}

DecodeMemory::Lease DecodeMemory::take_input(std::uint64_t bytes, const std::function<bool()>& give_up) {
  if (is_foreign()) return {*this, 0};
  {
    std::unique_lock lock(mutex_);
    if (!wait_while(
            lock, [this](bool gave_up) { return !gave_up && has_input_; }, give_up))
      return {};
    has_input_ = true;
  }
  Lease lease = take(bytes, give_up);
  const std::lock_guard lock(mutex_);
  has_input_ = static_cast<bool>(lease);
  lease.is_input_ = has_input_;
  input_bytes_ = has_input_ ? bytes : 0;
  input_thread_ = std::this_thread::get_id();
  return lease;
}

std::uint64_t DecodeMemory::input_held_here() const {
  if (is_foreign()) return 0;
  const std::lock_guard lock(mutex_);
  return input_thread_ == std::this_thread::get_id() ? input_bytes_ : 0;
}

void DecodeMemory::give_back(std::uint64_t bytes, bool is_input) noexcept {
  if (is_foreign()) return;
  {
    const std::lock_guard lock(mutex_);
    taken_ -= bytes;
    if (is_input) {
      has_input_ = false;
      input_bytes_ = 0;
    }
  }
  changed_.notify_all();
}

std::uint64_t table_bytes(const Slide& slide) noexcept {
  std::uint64_t tiles = 0;
  for (const LevelCoding& coding : impl_of(slide).codings) tiles += coding.tiles.capacity();
  const ColourConversion* const conversion = impl_of(slide).conversion.get();
  return tiles * sizeof(TileRange) + impl_of(slide).container->kept_bytes() +
         (conversion == nullptr ? 0 : conversion->bytes());
}

std::uint64_t opening_bytes(const Slide& slide) noexcept { return impl_of(slide).compared_bytes; }

std::uint64_t profile_reading_bytes(const Slide& slide) noexcept { return impl_of(slide).profile_reading_bytes; }

std::uint64_t several_scans_bytes(const Slide& slide, std::size_t level) {
  constexpr std::size_t most_looked_at = 16;
  const Level& coded = slide.coded_level(level);
  if (coded.codec != Codec::jpeg) return 0;
  const LevelCoding& coding = coding_of(slide, level);
  const auto is_there = [&](const TileRange& range) {
    return range.length > 0 && slide.contains(range) && !claims_too_many_bytes(coded, range);
  };
  const auto read = [&slide](std::uint64_t offset, std::span<std::byte> to) { slide.read(offset, to); };
  const auto bytes_of = [&coding](std::span<const std::byte> front) {
    return several_scans_jpeg_bytes(coding.jpeg_tables, front);
  };
  const std::size_t step = (coding.tiles.size() + most_looked_at - 1) / most_looked_at;
  std::uint64_t most = 0;
  for (std::span<const TileRange> left = coding.tiles; !left.empty();) {
    const std::span<const TileRange> part = left.first(std::min(step, left.size()));
    left = left.subspan(part.size());
    const auto tile = std::ranges::find_if(part, is_there);
    if (tile != part.end()) most = std::max(most, parse_tile_head(*tile, coding, read, bytes_of).value_or(0));
  }
  return most;
}

std::uint64_t decoding_bytes(const Level& coded, const LevelCoding& coding) noexcept {
  constexpr std::uint64_t state = std::uint64_t{1} << 20;  // of a codec, whatever the tile
  const auto samples = static_cast<std::uint64_t>(coding.samples);
  const auto width = static_cast<std::uint64_t>(coded.tile_width);
  const std::uint64_t pixels = width * static_cast<std::uint64_t>(coded.tile_height);
  const std::uint64_t tile = pixels * samples;
  switch (coded.codec) {
    case Codec::none:
      return 0;
    case Codec::jpeg:
      return sequential_jpeg_bytes(width, samples);
    case Codec::jpeg2000:
      return jpeg2000_bytes(pixels * samples, 0) + state;
    case Codec::jpegls:  // components one after the other, and side by side
      return 2 * tile + state;
    case Codec::lzw:
    case Codec::deflate:
    case Codec::packbits:
      return tile + state;
    case Codec::zstd:  // its window, and the dictionary of LZMA, hold no more than was decoded
    case Codec::lzma:
      return 2 * tile + state;
    case Codec::webp:  // a picture of its own, and 32 bits per pixel where it is lossless
      return 2 * tile + 4 * pixels + 2 * state;
    case Codec::openslide:  // words of its pixels; words and compressed bytes of a tile of the file
      return 4 * pixels + 7 * std::max(pixels, coding.pixels_behind) + state;
    case Codec::planes:  // samples of all, and a plane, which may be a JPEG of several scans
      return tile + 2 * pixels + coding.plane_bytes + state;
    case Codec::lerc:  // a picture of its own, a mask, and what was compressed once more
      return 6 * tile + state;
  }
  return 6 * tile + state;
}

}  // namespace slidestream
