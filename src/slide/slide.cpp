#include <algorithm>
#include <slidestream/error.hpp>

#include "slide/directories.hpp"
#include "slide/slide_impl.hpp"

namespace slidestream {

const char* name(Codec codec) noexcept {
  switch (codec) {
    case Codec::none:
      return "none";
    case Codec::jpeg:
      return "jpeg";
    case Codec::jpeg2000:
      return "jpeg2000";
    case Codec::lzw:
      return "lzw";
    case Codec::deflate:
      return "deflate";
    case Codec::zstd:
      return "zstd";
    case Codec::webp:
      return "webp";
    case Codec::lzma:
      return "lzma";
    case Codec::lerc:
      return "lerc";
    case Codec::packbits:
      return "packbits";
    case Codec::other:
      break;
  }
  return "other";
}

const char* name(Colour colour) noexcept {
  switch (colour) {
    case Colour::grey:
      return "grey";
    case Colour::grey_inverted:
      return "grey_inverted";
    case Colour::rgb:
      return "rgb";
    case Colour::ycbcr:
      break;
  }
  return "ycbcr";
}

namespace {

/// Halves what tiles decode to, where libjpeg can.
void shrink(Level& level) {
  if (level.codec != Codec::jpeg || level.tile_width % 16 != 0 || level.tile_height % 16 != 0) return;
  level.width = (level.width + 1) / 2;
  level.height = (level.height + 1) / 2;
  level.tile_width /= 2;
  level.tile_height /= 2;
  level.shrunk = true;
}

}  // namespace

Slide::Slide(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Slide::~Slide() = default;

std::shared_ptr<const Slide> Slide::open(const std::filesystem::path& path, const OpenOptions& options) {
  auto impl = std::make_unique<Impl>(path, options);
  impl->info.path = path;
  impl->info.file_size = impl->file.size();
  read_directories(*impl, options);
  if (options.mpp > 0.0) impl->info.mpp = options.mpp;
  impl->coded = impl->info.levels;
  if (options.shrink_on_load) std::ranges::for_each(impl->info.levels, shrink);
  impl->file.set_retries(options.retries);
  return std::shared_ptr<const Slide>(new Slide(std::move(impl)));
}

const SlideInfo& Slide::info() const noexcept { return impl_->info; }

const Level& Slide::coded_level(std::size_t level) const { return impl_->coded.at(level); }

TileRange Slide::tile(std::size_t level, std::int64_t index) const {
  return impl_->details.at(level).tiles.at(static_cast<std::size_t>(index));
}

bool Slide::contains(const TileRange& range) const noexcept {
  return range.length == 0 || (range.offset != 0 && impl_->file.contains(range.offset, range.length));
}

void Slide::read(std::uint64_t offset, std::span<std::byte> to) const { impl_->file.read(offset, to); }

}  // namespace slidestream
