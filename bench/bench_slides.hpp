#pragma once

#include <filesystem>

#include "synth/synth.hpp"

namespace slidestream::bench {

/// A synthetic slide of `side` x `side` pixels, made once and kept in $SLIDESTREAM_BENCH_DIR (else the system's
/// temporary folder), and read once so that it lies in the page cache.
std::filesystem::path bench_slide(std::int64_t side, SynthCodec codec);

}  // namespace slidestream::bench
