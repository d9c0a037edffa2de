#include "volume/gzip_writer.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "runtime/host_array.hpp"

namespace slidestream::volume {
namespace {

using Bytes = std::span<const std::byte>;

/// Bytes that one thread compresses at a time: few, so that all threads share the last volume of a run.
constexpr std::size_t piece_bytes = std::size_t{1} << 16;
/// Pieces in memory.
constexpr std::size_t at_once = 512;
/// How far back deflate looks.
constexpr std::size_t window = std::size_t{1} << 15;
constexpr int no_head = -15;
/// Of labels level 6 takes three times as long, for files that are a tenth to a third smaller.
constexpr int compression_level = 4;

const Bytef* bytes_of(Bytes bytes) { return reinterpret_cast<const Bytef*>(bytes.data()); }

struct Piece {
  Bytes deflated;
  uLong checksum = 0;
};

/// Raw deflate, without a head or a checksum.
struct Deflate {
  Deflate() {
    if (deflateInit2(&stream, compression_level, Z_DEFLATED, no_head, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflate() { deflateEnd(&stream); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  /// Bytes that so many may become, at most.
  std::size_t bound(std::size_t bytes) {
    // A flush adds an empty block.
    constexpr std::size_t flush_bytes = 16;
    return deflateBound(&stream, static_cast<uLong>(bytes)) + flush_bytes;
  }

  z_stream stream{};
};

/// Ends at a whole byte, so that another piece may follow. \param before  bytes in front of these, for deflate to refer
/// to. \param room  where it is put: `Deflate::bound`
Piece compress(Bytes bytes, Bytes before, bool is_last, std::span<std::byte> room) {
  Piece piece;
  piece.checksum = ::crc32(::crc32(0, nullptr, 0), bytes_of(bytes), static_cast<uInt>(bytes.size()));
  Deflate deflating;
  z_stream& stream = deflating.stream;
  const Bytes dictionary = before.last(std::min(before.size(), window));
  if (!dictionary.empty()) deflateSetDictionary(&stream, bytes_of(dictionary), static_cast<uInt>(dictionary.size()));
  // zlib only reads what it is given.
  stream.next_in = const_cast<Bytef*>(bytes_of(bytes));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(room.data());
  stream.avail_out = static_cast<uInt>(room.size());
  deflate(&stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
  piece.deflated = room.first(room.size() - stream.avail_out);
  return piece;
}

void put_little(std::span<std::byte> to, std::uint64_t number) {
  for (std::byte& byte : to) {
    byte = static_cast<std::byte>(number & 0xFF);
    number >>= 8;
  }
}

}  // namespace

std::string gzip_head(std::string_view comment) {
  constexpr unsigned has_comment = 0x10;
  constexpr unsigned unknown_system = 255;
  constexpr std::array<unsigned, 10> head = {0x1F, 0x8B, Z_DEFLATED, has_comment, 0, 0, 0, 0, 0, unknown_system};
  std::string bytes;
  bytes.reserve(head.size() + comment.size() + 1);
  for (const unsigned value : head) bytes += static_cast<char>(value);
  bytes += comment;
  bytes += '\0';
  return bytes;
}

void write_gzip(AtomicFile& file, std::string_view comment, Bytes head, Bytes body) {
  file.write(gzip_head(comment));
  std::vector<std::byte> of_head(Deflate().bound(head.size()));
  const Piece first = compress(head, {}, body.empty(), of_head);
  file.write(first.deflated);
  uLong checksum = first.checksum;
  std::vector<Piece> pieces;
  const std::size_t count = (body.size() + piece_bytes - 1) / piece_bytes;
  const std::size_t most = Deflate().bound(piece_bytes);
  const runtime::HostArray<std::byte> deflated(std::min(at_once, count) * most);
  for (std::size_t begin = 0; begin < count; begin += at_once) {
    pieces.resize(std::min(at_once, count - begin));
    // What else waits isn't taken up meanwhile: it may take long.
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(std::size_t{0}, pieces.size(), [&](std::size_t i) {
        const std::size_t at = (begin + i) * piece_bytes;
        const std::size_t size = std::min(piece_bytes, body.size() - at);
        pieces[i] = compress(body.subspan(at, size), body.first(at), at + size == body.size(),
                             std::span(deflated).subspan(i * most, most));
      });
    });
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t size = std::min(piece_bytes, body.size() - (begin + i) * piece_bytes);
      checksum = ::crc32_combine(checksum, pieces[i].checksum, static_cast<z_off_t>(size));
      file.write(pieces[i].deflated);
    }
  }
  std::array<std::byte, 8> end;
  put_little(std::span(end).first(4), checksum);
  put_little(std::span(end).last(4), head.size() + body.size());
  file.write(end);
}

}  // namespace slidestream::volume
