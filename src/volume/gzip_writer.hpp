#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "output/atomic_file.hpp"

namespace slidestream::volume {

/// Writes bytes as a gzip file of one member. The caller compresses `head`; the threads of its arena share `body`.
/// With one version of zlib, equal arguments give equal files for any number of threads.
/// \param comment  for the gzip header, which has no time and no name; without zero bytes
/// \param head  the first bytes of the content, at most some thousand: the NIfTI header. \param body  the rest
/// \throws OutputError, std::bad_alloc
void write_gzip(AtomicFile& file, std::string_view comment, std::span<const std::byte> head,
                std::span<const std::byte> body);

/// The gzip header with that comment: the first bytes of such a file.
std::string gzip_header(std::string_view comment);

}  // namespace slidestream::volume
