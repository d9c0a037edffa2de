#pragma once

/// \file
/// Small DFTs in registers, and the twiddle factors between them. Forward, unnormalised, natural order in and out.

namespace slidestream::cuda {

namespace {

__device__ __forceinline__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ __forceinline__ float2 operator-(float2 a, float2 b) { return {a.x - b.x, a.y - b.y}; }
/// a + s b
__device__ __forceinline__ float2 scaled_sum(float2 a, float s, float2 b) {
  return {fmaf(s, b.x, a.x), fmaf(s, b.y, a.y)};
}
__device__ __forceinline__ float2 times(float2 a, float2 b) {
  return {fmaf(-a.y, b.y, a.x * b.x), fmaf(a.y, b.x, a.x * b.y)};
}
__device__ __forceinline__ float2 times_minus_i(float2 a) { return {a.y, -a.x}; }
/// (re + i im) a, for constants of which one is 1 or -1: two operations.
__device__ __forceinline__ float2 rotated(float2 a, float re, float im) {
  return {re * a.x - im * a.y, re * a.y + im * a.x};
}

constexpr float cos_45 = 0.70710678118654752F;
constexpr float cos_22_5 = 0.92387953251128674F;
constexpr float tan_22_5 = 0.41421356237309505F;

/// The four outputs v[0], v[step], v[2 step], v[3 step] of t0 + s13 u1 + s2 u2 + s13 u3 with the powers of -i: scale
/// factors that twiddles have in common cost nothing here.
__device__ __forceinline__ void butterfly4(float2* v, int step, float2 t0, float2 u1, float2 u2, float2 u3, float s2,
                                           float s13) {
  const float2 even = scaled_sum(t0, s2, u2);
  const float2 odd = scaled_sum(t0, -s2, u2);
  const float2 sum = u1 + u3;
  const float2 turned = times_minus_i(u1 - u3);
  v[0] = scaled_sum(even, s13, sum);
  v[2 * step] = scaled_sum(even, -s13, sum);
  v[step] = scaled_sum(odd, s13, turned);
  v[3 * step] = scaled_sum(odd, -s13, turned);
}

/// The second half of dft16: v[4 b + c] holds output c of the DFT over the inputs b, b + 4, b + 8, b + 12.
__device__ __forceinline__ void finish_dft16(float2* v) {
  constexpr float t = tan_22_5;
  float2 u[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) u[i] = v[i];
  butterfly4(v + 0, 4, u[0], u[4], u[8], u[12], 1.0F, 1.0F);
  butterfly4(v + 1, 4, u[1], rotated(u[5], 1.0F, -t), rotated(u[9], 1.0F, -1.0F), rotated(u[13], t, -1.0F), cos_45,
             cos_22_5);
  butterfly4(v + 2, 4, u[2], rotated(u[6], 1.0F, -1.0F), times_minus_i(u[10]), rotated(u[14], -1.0F, -1.0F), 1.0F,
             cos_45);
  butterfly4(v + 3, 4, u[3], rotated(u[7], t, -1.0F), rotated(u[11], -1.0F, -1.0F), rotated(u[15], -1.0F, t), cos_45,
             cos_22_5);
}

__device__ __forceinline__ void dft16(float2* v) {
  float2 u[16];
#pragma unroll
  for (int b = 0; b < 4; ++b) butterfly4(u + 4 * b, 1, v[b], v[b + 4], v[b + 8], v[b + 12], 1.0F, 1.0F);
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = u[i];
  finish_dft16(v);
}

/// As dft16 with inputs 8 to 15 zero.
__device__ __forceinline__ void dft16_of_8(float2* v) {
  float2 u[16];
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    const float2 turned = times_minus_i(v[b + 4]);
    u[4 * b] = v[b] + v[b + 4];
    u[4 * b + 1] = v[b] + turned;
    u[4 * b + 2] = v[b] - v[b + 4];
    u[4 * b + 3] = v[b] - turned;
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) v[i] = u[i];
  finish_dft16(v);
}

/// Outputs 2 k + parity of a DFT of 16, for k from 0 to 7, from the 8 sums (parity 0) or differences (parity 1) of
/// inputs n and n + 8.
template <int parity>
__device__ __forceinline__ void half_dft16(float2* v) {
  float2 even[4];
  float2 odd[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (parity == 0) {
      even[i] = v[i] + v[i + 4];
      odd[i] = v[i] - v[i + 4];
    } else {
      even[i] = v[i] + times_minus_i(v[i + 4]);
      odd[i] = v[i] - times_minus_i(v[i + 4]);
    }
  }
  if constexpr (parity == 0) {
    butterfly4(v, 2, even[0], even[1], even[2], even[3], 1.0F, 1.0F);
    butterfly4(v + 1, 2, odd[0], rotated(odd[1], 1.0F, -1.0F), times_minus_i(odd[2]), rotated(odd[3], -1.0F, -1.0F),
               1.0F, cos_45);
  } else {
    constexpr float t = tan_22_5;
    butterfly4(v, 2, even[0], rotated(even[1], 1.0F, -t), rotated(even[2], 1.0F, -1.0F), rotated(even[3], t, -1.0F),
               cos_45, cos_22_5);
    butterfly4(v + 1, 2, odd[0], rotated(odd[1], t, -1.0F), rotated(odd[2], -1.0F, -1.0F), rotated(odd[3], -1.0F, t),
               cos_45, cos_22_5);
  }
}

}  // namespace

}  // namespace slidestream::cuda
