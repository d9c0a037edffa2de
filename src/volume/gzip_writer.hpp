#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "output/atomic_file.hpp"

namespace slidestream::volume {

/// Compresses bytes into a gzip file of one member, by the threads of the caller's arena. Equal bytes give equal files,
/// for any number of threads. \param comment  in the member's head, which has no time and no name
/// \param head  what comes first, at most some thousand bytes. \param body  the rest
/// \throws OutputError, std::bad_alloc
void write_gzip(AtomicFile& file, std::string_view comment, std::span<const std::byte> head,
                std::span<const std::byte> body);

/// The first bytes of a file with that comment.
std::string gzip_head(std::string_view comment);

}  // namespace slidestream::volume
