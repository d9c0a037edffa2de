#include "stages/images/tile_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <span>

#include "stages/images/copied_tiles.hpp"

namespace slidestream {
namespace {

/// Pixels that make a task of some milliseconds.
constexpr std::int64_t pixels_per_task = 4 * 256 * 256;

/// Threads that write. Where devices encode, processors have nothing else to do.
std::size_t writers(const RunContext& context) {
  const auto threads = static_cast<std::size_t>(context.threads);
  return context.gpus == nullptr ? std::clamp<std::size_t>(threads / 2, 2, 8) : std::clamp<std::size_t>(threads, 2, 16);
}

/// A tile's bytes, and the slot that isn't given back before they are written.
struct Encoded {
  std::vector<std::byte> bytes;
  std::shared_ptr<runtime::Slot> slot;
  std::shared_ptr<const CopiedTiles> copied = nullptr;
};

}  // namespace

TileWriter::TileWriter(RunContext& context, tbb::flow::graph& graph, runtime::GraphLifetime& lifetime,
                       std::function<void(const std::shared_ptr<SlideImages>&)> on_drop)
    : context_(context),
      graph_(graph),
      lifetime_(lifetime),
      on_drop_(std::move(on_drop)),
      encoders_([this] { return Encoders(context_.operators.size()); }),
      encode_(
          graph_, tbb::flow::unlimited, [this](const TilesToWrite& tiles) { return encode(tiles); },
          tbb::flow::node_priority_t{4}),
      io_(writers(context_)) {}

void TileWriter::send(const std::shared_ptr<SlideImages>& images, std::size_t image, std::vector<PyramidTile> made,
                      const std::shared_ptr<runtime::Slot>& slot, const std::shared_ptr<const CopiedTiles>& copied) {
  const auto tiles = std::make_shared<const std::vector<PyramidTile>>(std::move(made));
  const std::int64_t side = images->images[image].sink->layout().tile();
  const std::size_t at_once = static_cast<std::size_t>(std::max<std::int64_t>(1, pixels_per_task / (side * side)));
  for (std::size_t first = 0; first < tiles->size(); first += at_once) {
    encode_.try_put({images, image, tiles, first, std::min(at_once, tiles->size() - first), slot, copied});
  }
}

void TileWriter::send(const std::shared_ptr<SlideImages>& images, const Parcel& parcel) {
  guard(*images, [&] {
    for (const Parcel::Piece& piece : parcel.pieces) {
      if (piece.ends.empty()) {
        send_pixels(images, parcel, piece);
      } else {
        send_encoded(images, parcel, piece);
      }
    }
  });
}

/// Sends tiles that the host encodes.
void TileWriter::send_pixels(const std::shared_ptr<SlideImages>& images, const Parcel& parcel,
                             const Parcel::Piece& piece) {
  const SlideImages::Image& image = images->images[piece.image];
  const PyramidLayout& layout = image.sink->layout();
  const PixelFormat format = image_of(*context_.operators[image.op])->format;
  std::vector<PyramidTile> tiles;
  for (std::int64_t i = 0; i < piece.columns; ++i) {
    PyramidTile& tile = tiles.emplace_back();
    tile.level = piece.level;
    tile.index = {piece.first.column + i, piece.first.row};
    const Rect rect = layout.rect(piece.level, tile.index);
    const std::byte* const first = parcel.slot->memory().data() + piece.offset;
    tile.pixels = {first + i * layout.tile() * static_cast<std::int64_t>(format.pixel_bytes()), piece.pitch, rect,
                   layout.size(piece.level), format};
    tile.owner = parcel.slot;
  }
  images->handoff.give();
  send(images, piece.image, std::move(tiles), parcel.slot, nullptr);
}

/// Sends tiles that are as files hold them already.
void TileWriter::send_encoded(const std::shared_ptr<SlideImages>& images, const Parcel& parcel,
                              const Parcel::Piece& piece) {
  ImageSink& sink = *images->images[piece.image].sink;
  runtime::StageMeter::Busy busy(context_.encode);
  const std::span<const std::byte> bytes = parcel.slot->memory().subspan(piece.offset);
  std::uint64_t begin = 0;
  for (std::int64_t i = 0; i < piece.columns; ++i) {
    const std::uint64_t end = piece.ends[static_cast<std::size_t>(i)];
    const TileIndex index = {piece.first.column + i, piece.first.row};
    if (sink.put(piece.level, index, {bytes.subspan(begin, end - begin), parcel.slot})) drain(images, piece.image);
    busy.add(1, end - begin);
    begin = end;
  }
}

tbb::flow::continue_msg TileWriter::encode(const TilesToWrite& work) {
  const runtime::GraphLifetime::Body body(lifetime_);
  work.images->handoff.take();
  SlideImages::Image& image = work.images->images[work.image];
  runtime::StageMeter::Busy busy(context_.encode);
  guard(*work.images, [&] {
    Encoder& own = encoders_.local()[image.op];
    // Where tiles are copied, their side is each slide's own.
    if (own.encoder == nullptr || own.side != image.sink->layout().tile()) {
      own = {image.sink->layout().tile(), image.sink->make_encoder()};
    }
    for (std::size_t i = work.first; i < work.first + work.count && !work.images->dropped(); ++i) {
      const PyramidTile& tile = (*work.tiles)[i];
      EncodedTile encoded = encoded_tile(tile, work, *own.encoder);
      busy.add(1, encoded.bytes.size());
      if (image.sink->put(tile.level, tile.index, std::move(encoded))) drain(work.images, work.image);
    }
  });
  return {};
}

EncodedTile TileWriter::encoded_tile(const PyramidTile& tile, const TilesToWrite& work, TileEncoder& encoder) {
  if (tile.level == 0 && work.copied != nullptr) {
    return {work.copied->tile(tile.index), std::make_shared<Encoded>(Encoded{{}, work.slot, work.copied})};
  }
  auto bytes = std::make_shared<Encoded>(Encoded{encoder.encode(tile.pixels), work.slot});
  const std::span<const std::byte> view = bytes->bytes;
  return {view, std::move(bytes)};
}

void TileWriter::drain(const std::shared_ptr<SlideImages>& images, std::size_t image) {
  submit([this, held = images, image]() mutable {
    {
      runtime::StageMeter::Busy busy(context_.write);
      guard(*held, [&] {
        const WrittenTiles written = held->images[image].sink->drain();
        busy.add(written.tiles, written.bytes);
      });
    }
    held.reset();
  });
}

void TileWriter::fail(SlideImages& images, const std::exception_ptr& error) noexcept {
  images.drop();
  if (const auto held = images.weak_from_this().lock(); held != nullptr) on_drop_(held);
  // Where storage is full, what other slides write fails, too.
  if (context_.on_unwritten && !context_.output_failed.load()) context_.on_unwritten(images.slide());
  context_.on_output_failure(error);
}

}  // namespace slidestream
