#include "cuda/emulator/emulator.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace slidestream::test::emulator {

namespace {

constexpr std::size_t stack_bytes = 96 * 1024;
constexpr std::size_t shared_bytes = 227 * 1024;
constexpr unsigned warp_size = 32;
constexpr unsigned most_barriers = 16;

struct Barrier {
  unsigned arrived = 0;
  unsigned generation = 0;
};

/// One thread of every block, on a stack that stays: switching is two jumps, which the system isn't asked for.
struct Thread {
  std::unique_ptr<char[]> stack;
  ucontext_t context;
  jmp_buf place;
  bool begun = false;
  bool done = false;
};

/// Those of the largest block so far.
std::vector<std::unique_ptr<Thread>>& all_threads() {
  static std::vector<std::unique_ptr<Thread>> threads;
  return threads;
}

struct Block {
  unsigned threads = 0;
  jmp_buf scheduler;
  unsigned running = 0;
  unsigned number = 0;
  unsigned count = 0;
  std::uint64_t progress = 0;
  std::vector<Barrier> warps;
  std::array<Barrier, most_barriers> barriers;  ///< the first is the whole block's
  std::vector<unsigned> exchange;               ///< a word a thread
  std::string failure;
  const std::function<void()>* body = nullptr;
};

Block* current = nullptr;
alignas(1024) std::array<std::byte, shared_bytes> shared;

Thread& running_thread() { return *all_threads()[current->running]; }

void leave() {
  if (_setjmp(running_thread().place) == 0) _longjmp(current->scheduler, 1);
}

/// Has a thread go on until it leaves.
void enter(Block& block, Thread& thread) {
  if (_setjmp(block.scheduler) != 0) return;
  if (thread.begun) _longjmp(thread.place, 1);
  thread.begun = true;
  setcontext(&thread.context);
}

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error("emulator: " + why); }

void arrive(Barrier& barrier, unsigned expected) {
  ++current->progress;
  if (++barrier.arrived > expected) fail("more threads at a barrier than it is for");
  if (barrier.arrived == expected) {
    barrier.arrived = 0;
    ++barrier.generation;
  }
}

void wait(Barrier& barrier, unsigned expected) {
  const unsigned generation = barrier.generation;
  arrive(barrier, expected);
  while (barrier.generation == generation) leave();
}

Barrier& numbered(unsigned number) {
  if (number == 0 || number >= most_barriers) fail("no barrier " + std::to_string(number));
  return current->barriers[number];
}

/// All that a thread does: its part of one block after the other.
void run_thread() {
  for (;;) {
    try {
      (*current->body)();
    } catch (const std::exception& error) {
      if (current->failure.empty()) current->failure = error.what();
    }
    running_thread().done = true;
    leave();
  }
}

/// Threads for a block, each at its begin.
void prepare_threads(unsigned count) {
  auto& threads = all_threads();
  while (threads.size() < count) {
    auto thread = std::make_unique<Thread>();
    thread->stack.reset(new char[stack_bytes]);
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack.get();
    thread->context.uc_stack.ss_size = stack_bytes;
    thread->context.uc_link = nullptr;
    makecontext(&thread->context, run_thread, 0);
    threads.push_back(std::move(thread));
  }
  for (unsigned i = 0; i < count; ++i) threads[i]->done = false;
}

/// One turn: every thread runs until it waits. Returns how many aren't done.
unsigned run_turn(Block& block, unsigned first) {
  unsigned left = 0;
  for (unsigned i = 0; i < block.threads; ++i) {
    block.running = (first + i) % block.threads;
    Thread& thread = running_thread();
    if (thread.done) continue;
    enter(block, thread);
    if (thread.done) {
      ++block.progress;
    } else {
      ++left;
    }
  }
  return left;
}

}  // namespace

void run_block(unsigned number, unsigned blocks, unsigned threads, const std::function<void()>& body) {
  Block block;
  block.threads = threads;
  block.number = number;
  block.count = blocks;
  block.warps.resize((threads + warp_size - 1) / warp_size);
  block.exchange.resize(threads);
  block.body = &body;
  std::memset(shared.data(), 0xFF, shared.size());
  prepare_threads(threads);
  current = &block;
  unsigned first = 1;
  unsigned left = threads;
  while (left > 0 && block.failure.empty()) {
    const std::uint64_t before = block.progress;
    first = first * 1664525U + 1013904223U;  // another order each turn
    left = run_turn(block, (first >> 8) % threads);
    if (left > 0 && block.progress == before) block.failure = "emulator: threads wait for each other for ever";
  }
  current = nullptr;
  if (!block.failure.empty()) {
    all_threads().clear();  // some stand in the middle of the block
    throw std::runtime_error(block.failure);
  }
  for (const Barrier& barrier : block.barriers) {
    if (barrier.arrived != 0) fail("a barrier is left half full");
  }
}

std::byte* shared_memory(std::size_t offset, std::size_t bytes) {
  if (offset % bytes != 0 || offset + bytes > shared.size()) fail("bad address in shared memory");
  return shared.data() + offset;
}

unsigned thread() { return current->running; }
unsigned block() { return current->number; }
unsigned blocks() { return current->count; }

void synchronise_warp() { wait(current->warps[thread() / warp_size], warp_size); }
void synchronise_block() { wait(current->barriers[0], current->threads); }
void arrive_at_barrier(unsigned number, unsigned threads) { arrive(numbered(number), threads); }
void wait_at_barrier(unsigned number, unsigned threads) { wait(numbered(number), threads); }

namespace {

/// What `read` makes of the values that the warp's threads give.
template <class Read>
unsigned exchange(unsigned value, const Read& read) {
  current->exchange[thread()] = value;
  synchronise_warp();
  const unsigned result = read(&current->exchange[thread() / warp_size * warp_size]);
  synchronise_warp();
  return result;
}

}  // namespace

unsigned sum_of_warp(unsigned value) {
  return exchange(value, [](const unsigned* values) { return std::accumulate(values, values + warp_size, 0U); });
}
unsigned sum_up_to_lane(unsigned value) {
  const unsigned lane = thread() % warp_size;
  return exchange(value, [&](const unsigned* values) { return std::accumulate(values, values + lane + 1, 0U); });
}
unsigned value_of_lane(unsigned value, unsigned lane) {
  return exchange(value, [&](const unsigned* values) { return values[lane]; });
}

}  // namespace slidestream::test::emulator
