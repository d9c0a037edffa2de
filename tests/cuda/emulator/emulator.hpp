#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

/// \file
/// Runs a kernel's thread block on the host, one thread after the other: each until it waits for others. So kernels'
/// logic is tested where there is no GPU: which thread does what, where data lie, who waits for whom. What it can't
/// show: a missing barrier that happens to do no harm in this order, and memory that becomes visible late.

namespace slidestream::test::emulator {

/// Runs `body` in each of `threads` threads of block `block` of `blocks`. Shared memory holds 0xFF bytes before.
/// \throws std::runtime_error when threads wait for each other for ever, or a barrier is left half full.
void run_block(unsigned block, unsigned blocks, unsigned threads, const std::function<void()>& body);

/// The block's shared memory from `offset` on. \throws std::runtime_error where `bytes` reach beyond it, or `offset` is
/// no multiple of them.
std::byte* shared_memory(std::size_t offset, std::size_t bytes);

/// Of the thread that runs.
unsigned thread();
unsigned block();
unsigned blocks();

void synchronise_warp();
void synchronise_block();
void arrive_at_barrier(unsigned number, unsigned threads);
void wait_at_barrier(unsigned number, unsigned threads);
/// The sum of what the warp's threads give.
unsigned sum_of_warp(unsigned value);
/// The sum of what the warp's threads up to this one give.
unsigned sum_up_to_lane(unsigned value);
/// What one of the warp's threads gives.
unsigned value_of_lane(unsigned value, unsigned lane);

}  // namespace slidestream::test::emulator
