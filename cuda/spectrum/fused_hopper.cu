// The fused kernel for compute capability 9.x: thread blocks have 227 KB of shared memory, and warps can hand registers
// to each other. Four warps transform rows, eight transform columns and count, each at its own pace, a strip apart.

#include <cstddef>

#include "cuda/spectrum/fused_kernel.cuh"
#include "runtime/cuda/check.hpp"

namespace slidestream::cuda {

namespace {

struct HopperShape {
  static constexpr int row_threads = 128;
  static constexpr int threads = row_threads + column_threads;
  static constexpr int row_groups = row_threads / row_lanes;
  static constexpr int rounds = pairs / row_groups;
  static constexpr int buffers = 2;
  // Registers a thread: 128 x 72 + 256 x 216 are all that a multiprocessor has. Columns need theirs for the last strip.
  static constexpr int row_registers = 72;
  static constexpr int column_registers = 216;
  static constexpr int shared_bytes = 227 * 1024;
};

/// One pair's pixels, on their way from device memory. Two groups of 8 lanes read at a time, from different banks.
struct StagedPair {
  float upper[side];
  float lower[side];
  float padding[16];
};

/// Arrivals of warps at a point, counted in shared memory.
class WarpBarrier {
 public:
  __device__ void initialise(unsigned warps) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(warps) : "memory");
  }
  /// The whole warp is here: what it wrote before is seen by those who wait.
  __device__ __forceinline__ void arrive() {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
    }
  }
  /// Waits for the end of the phase with this parity: 0 for the first, 1 for the second, 0 for the third...
  __device__ __forceinline__ void wait(unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
        "@!over bra again;\n"
        "}" ::"r"(address()),
        "r"(parity)
        : "memory");
  }

 private:
  __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word_)); }
  unsigned long long word_;
};

struct HopperShared {
  RowBuffer rows[HopperShape::buffers];
  WideExchange exchanges[column_groups];
  StagedPair staged[HopperShape::row_groups];
  float2 roots[side];
  WarpBarrier full[HopperShape::buffers];
  WarpBarrier empty[HopperShape::buffers];
  int window[HopperShape::buffers];  ///< that the strip in the buffer completes; no_window; no_more: there is no strip
};

constexpr int hopper_histogram_bytes = HopperShape::shared_bytes - static_cast<int>(sizeof(HopperShared));

/// Starts copying this lane's 16-byte pieces of a row: every eighth. The numbers are bytes.
template <int... piece>
__device__ __forceinline__ void stage_row(unsigned to, const std::byte* from, std::integer_sequence<int, piece...>) {
  (..., [&] {
    asm volatile("cp.async.cg.shared.global [%0 + %2], [%1 + %2], 16;" ::"r"(to), "l"(from), "n"(piece * 16 * row_lanes)
                 : "memory");
  }());
}

__device__ __forceinline__ void wait_for_staged() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
}

/// The warps that transform rows. Pixels are loaded one pair ahead.
template <int parity>
__device__ __forceinline__ void transform_rows(const FusedTask& task, HopperShared& shared) {
  const int lane = static_cast<int>(threadIdx.x) % row_lanes;
  const int group = static_cast<int>(threadIdx.x) / row_lanes;
  // Neighbouring groups write rows that differ by 8, whose places lie in different banks.
  const int first_row = group / 2 + 8 * (group % 2);
  const RowTwiddles twiddles(shared.roots, 2 * lane + parity);
  StagedPair& staged = shared.staged[group];
  const float2* const upper = reinterpret_cast<const float2*>(staged.upper) + lane;
  const float2* const lower = reinterpret_cast<const float2*>(staged.lower) + lane;

  Walk walk(task);
  constexpr auto pieces = std::make_integer_sequence<int, side / (4 * row_lanes)>();
  const std::int64_t pitch_bytes = task.pitch * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t lane_offset = first_row * pitch_bytes + 16 * lane;
  const auto stage = [&](int round) {
    const std::byte* const strip = reinterpret_cast<const std::byte*>(walk.pixels(task));
    const std::byte* const from = strip + HopperShape::row_groups * round * pitch_bytes + lane_offset;
    stage_row(shared_address(staged.upper) + 16 * lane, from, pieces);
    stage_row(shared_address(staged.lower) + 16 * lane, from + pairs * pitch_bytes, pieces);
  };
  if (!walk.done()) stage(0);
  unsigned strips = 0;
  for (bool more = !walk.done(); more; ++strips) {
    const unsigned buffer = strips % HopperShape::buffers;
    const int window = walk.window();
#pragma unroll 1
    for (int round = 0; round < HopperShape::rounds; ++round) {
      wait_for_staged();
      RowInputs in = fold_pair<parity>(upper, lower);
      __syncwarp();
      if (round + 1 < HopperShape::rounds) {
        stage(round + 1);
      } else {
        walk.next();
        more = !walk.done();
        if (more) stage(0);
      }
      if (round == 0) {
        if (strips >= HopperShape::buffers) shared.empty[buffer].wait((strips / HopperShape::buffers - 1) % 2);
        if (threadIdx.x == 0) shared.window[buffer] = window;
      }
      static_assert(HopperShape::row_groups == 16);
      transform_pair<parity>(in, shared.rows[buffer].at[HopperShape::row_groups * round + first_row], first_row, lane,
                             twiddles);
    }
    shared.full[buffer].arrive();
  }
  const unsigned buffer = strips % HopperShape::buffers;
  if (strips >= HopperShape::buffers) shared.empty[buffer].wait((strips / HopperShape::buffers - 1) % 2);
  if (threadIdx.x == 0) shared.window[buffer] = no_more;
  shared.full[buffer].arrive();
}

template <int copies>
__device__ __forceinline__ void transform_columns(const FusedTask& task, HopperShared& shared, const unsigned* counts) {
  ColumnWorker<WideExchange, copies> worker(task, counts, shared.exchanges,
                                            static_cast<int>(threadIdx.x) - HopperShape::row_threads, block_parity(),
                                            shared.roots);
  for (unsigned strips = 0;; ++strips) {
    const unsigned buffer = strips % HopperShape::buffers;
    shared.full[buffer].wait(strips / HopperShape::buffers % 2);
    const int window = *const_cast<volatile int*>(&shared.window[buffer]);
    if (window == no_more) break;
    worker.run(task, shared.rows[buffer], window, [&] { shared.empty[buffer].arrive(); });
  }
}

template <int copies>
__global__ void __launch_bounds__(HopperShape::threads, 1) fused_hopper(const __grid_constant__ FusedTask task) {
  extern __shared__ __align__(1024) unsigned char memory[];
  HopperShared& shared = *reinterpret_cast<HopperShared*>(memory);
  unsigned* const counts = reinterpret_cast<unsigned*>(memory + sizeof(HopperShared));
  clear_counts<HopperShape::threads, copies>(counts, task);
  if (threadIdx.x < side) shared.roots[threadIdx.x] = root256(static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0) {
    for (int i = 0; i < HopperShape::buffers; ++i) {
      shared.full[i].initialise(HopperShape::row_threads / 32);
      shared.empty[i].initialise(column_threads / 32);
    }
  }
  __syncthreads();

  if (threadIdx.x < HopperShape::row_threads) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(HopperShape::row_registers));
    if (block_parity() == 0) {
      transform_rows<0>(task, shared);
    } else {
      transform_rows<1>(task, shared);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(HopperShape::column_registers));
    transform_columns<copies>(task, shared, counts);
  }
  __syncthreads();
  merge_counts<HopperShape::threads, copies>(counts, task);
}

void prepare_hopper() {
  for (const auto kernel : {fused_hopper<1>, fused_hopper<2>}) {
    SLIDESTREAM_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, HopperShape::shared_bytes));
  }
}

void launch_hopper(const FusedTask& task, int multiprocessors, cudaStream_t stream) {
  const std::size_t bytes = sizeof(HopperShared) + sizeof(unsigned) * static_cast<std::size_t>(task.bins) *
                                                       static_cast<std::size_t>(task.copies);
  const auto kernel = task.copies == 1 ? fused_hopper<1> : fused_hopper<2>;
  kernel<<<blocks_for(task, multiprocessors), HopperShape::threads, bytes, stream>>>(task);
  SLIDESTREAM_CUDA_LAUNCHED();
}

}  // namespace

const FusedKernel& fused_hopper_kernel() {
  static const FusedKernel kernel = {"hopper", hopper_histogram_bytes, prepare_hopper, launch_hopper};
  return kernel;
}

}  // namespace slidestream::cuda
