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
/// Pieces that are compressed before the first of them is written.
constexpr std::size_t at_once = 512;
/// How many bytes before a piece deflate may refer to.
constexpr std::size_t window = std::size_t{1} << 15;
/// zlib's windowBits: the window above. The sign asks for raw deflate, without a header and a checksum.
constexpr int raw_window_bits = -15;
/// For labels, level 6 takes three times as long, and files get a tenth to a third smaller.
constexpr int compression_level = 4;

const Bytef* bytes_of(Bytes bytes) { return reinterpret_cast<const Bytef*>(bytes.data()); }

/// What a piece became, and the CRC-32 of its bytes.
struct Piece {
  Bytes deflated;
  uLong checksum = 0;
};

/// A zlib stream that deflates.
struct Deflate {
  Deflate() {
    if (deflateInit2(&stream, compression_level, Z_DEFLATED, raw_window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Deflate() { deflateEnd(&stream); }
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  /// The most bytes that a piece of so many may become.
  std::size_t bound(std::size_t bytes) {
    // `deflateBound` doesn't count the empty block that a flush adds.
    constexpr std::size_t flush_bytes = 16;
    return deflateBound(&stream, static_cast<uLong>(bytes)) + flush_bytes;
  }

  z_stream stream{};
};

/// Compresses a piece. The output ends at a whole byte, so that another piece can follow.
/// \param before  the bytes before it; deflate may refer to the last of them
/// \param room  memory for the output: `Deflate::bound` bytes
Piece compress(Bytes bytes, Bytes before, bool is_last, std::span<std::byte> room) {
  Piece piece;
  piece.checksum = ::crc32(::crc32(0, nullptr, 0), bytes_of(bytes), static_cast<uInt>(bytes.size()));
  Deflate deflating;
  z_stream& stream = deflating.stream;
  const Bytes dictionary = before.last(std::min(before.size(), window));
  // No call fails here: the stream is new, and `room` holds whatever it can give.
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

std::string gzip_header(std::string_view comment) {
  constexpr unsigned has_comment = 0x10;
  constexpr unsigned unknown_system = 255;
  constexpr std::array<unsigned, 10> fixed = {0x1F, 0x8B, Z_DEFLATED, has_comment, 0, 0, 0, 0, 0, unknown_system};
  std::string bytes;
  bytes.reserve(fixed.size() + comment.size() + 1);
  for (const unsigned value : fixed) bytes += static_cast<char>(value);
  bytes += comment;
  bytes += '\0';
  return bytes;
}

void write_gzip(AtomicFile& file, std::string_view comment, Bytes head, Bytes body) {
  file.write(gzip_header(comment));
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
    // A thread that waits here takes no other work of the arena, which may take long.
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
