#pragma once

#include <cstddef>

/// \file
/// What tests that are compiled once, for programs with made-up GPUs and for others, ask of those GPUs:
/// fake_cuda/fake_kernels.cpp answers, or no_made_up_gpus.cpp.

namespace slidestream::test {

/// Whether GPUs are made up in this program.
bool made_up_gpus();

/// Whether the decoders of JPEG and JPEG 2000 decode, with the device's own code on the host. At first they vouch for
/// no tile, so that the CPU's decoder gets them all: another way through the graph, and a quicker one. Where
/// $MADE_UP_GPU is set they decode at first. Does nothing where no GPU is made up.
void fake_decoding(bool on);

/// While it lives, made-up GPUs decode as real ones do.
struct FakeDecoding {
  FakeDecoding() { fake_decoding(true); }
  ~FakeDecoding() { fake_decoding(false); }
  FakeDecoding(const FakeDecoding&) = delete;
  FakeDecoding& operator=(const FakeDecoding&) = delete;
};

/// Pixels that were made of areas of rows, so far.
std::size_t fake_areas();

}  // namespace slidestream::test
