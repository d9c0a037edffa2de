#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda/colour/host_device.hpp"
#include "cuda/jpeg/word_bits.hpp"

/// \file
/// Operations on words that the encoder is made of, for the device and for the host. Each is an instruction or two of
/// the device.

#if defined(__CUDA_ARCH__)
#define SLIDESTREAM_UNROLL _Pragma("unroll")
#define SLIDESTREAM_TWICE _Pragma("unroll 2")
#define SLIDESTREAM_ROLLED _Pragma("unroll 1")
#else
#define SLIDESTREAM_UNROLL
#define SLIDESTREAM_TWICE
#define SLIDESTREAM_ROLLED
#endif

namespace slidestream::cuda {

/// Eight bytes of a row.
struct alignas(8) WordPair {
  std::uint32_t first;
  std::uint32_t second;
};

#if defined(__CUDA_ARCH__)

SLIDESTREAM_HOST_DEVICE std::uint32_t choose_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  return __byte_perm(low, high, selector);
}
SLIDESTREAM_HOST_DEVICE float as_float(std::uint32_t bits) { return __uint_as_float(bits); }
SLIDESTREAM_HOST_DEVICE std::uint32_t as_bits(float value) { return __float_as_uint(value); }
SLIDESTREAM_HOST_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
SLIDESTREAM_HOST_DEVICE std::uint32_t shift_to_top(std::int32_t value) {
  std::uint32_t shift;
  asm("bfind.shiftamt.s32 %0, %1;" : "=r"(shift) : "r"(value));
  return shift;
}
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_right(std::uint32_t value, std::uint32_t count) {
  return __funnelshift_r(value, 0, count);
}
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_out(std::uint32_t value, std::uint32_t count) {
  return __funnelshift_r(0, value, count);
}
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_in(std::uint32_t value, std::uint32_t below, std::uint32_t count) {
  return __funnelshift_l(below, value, count);
}
SLIDESTREAM_HOST_DEVICE std::uint32_t high_product(std::uint32_t a, std::uint32_t b) { return __umulhi(a, b); }
SLIDESTREAM_HOST_DEVICE std::uint32_t dot_low(std::uint32_t factors, std::uint32_t bytes, std::uint32_t sum) {
  std::uint32_t result;
  asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(factors), "r"(bytes), "r"(sum));
  return result;
}
SLIDESTREAM_HOST_DEVICE std::uint32_t dot_high(std::uint32_t factors, std::uint32_t bytes, std::uint32_t sum) {
  std::uint32_t result;
  asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(factors), "r"(bytes), "r"(sum));
  return result;
}
SLIDESTREAM_HOST_DEVICE std::int32_t signed_dot_low(std::uint32_t factors, std::uint32_t bytes, std::int32_t sum) {
  std::int32_t result;
  asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(factors), "r"(bytes), "r"(sum));
  return result;
}
SLIDESTREAM_HOST_DEVICE std::int32_t signed_dot_high(std::uint32_t factors, std::uint32_t bytes, std::int32_t sum) {
  std::int32_t result;
  asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(factors), "r"(bytes), "r"(sum));
  return result;
}
SLIDESTREAM_HOST_DEVICE void or_into(std::uint32_t* word, std::uint32_t bits) { atomicOr(word, bits); }
SLIDESTREAM_HOST_DEVICE WordPair load_pair(const std::uint8_t* from) {
  const uint2 words = __ldg(reinterpret_cast<const uint2*>(from));
  return {words.x, words.y};
}

/// A word of the block's shared memory, by an address of 32 bits: a pointer would cost a second register, and sums.
class WordPlace {
 public:
  SLIDESTREAM_HOST_DEVICE explicit WordPlace(const std::uint32_t* word)
      : address_(static_cast<std::uint32_t>(__cvta_generic_to_shared(word))) {}
  SLIDESTREAM_HOST_DEVICE void advance(int words) { address_ += 4 * words; }
  SLIDESTREAM_HOST_DEVICE bool operator==(const WordPlace& other) const { return address_ == other.address_; }
  /// The word that lies so many bytes, a multiple of 4, behind this one.
  SLIDESTREAM_HOST_DEVICE std::uint32_t read(std::uint32_t behind = 0) const {
    std::uint32_t value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address_ + behind) : "memory");
    return value;
  }
  SLIDESTREAM_HOST_DEVICE void write(std::uint32_t value) const {
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address_), "r"(value) : "memory");
  }

 private:
  std::uint32_t address_;
};

#else

/// The bytes that the selector's four hexadecimal digits name, the last one first: 0 to 3 are those of `low`, 4 to 7
/// those of `high`.
SLIDESTREAM_HOST_DEVICE std::uint32_t choose_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{high} << 32 | low;
  std::uint32_t chosen = 0;
  for (unsigned i = 0; i < 4; ++i) {
    chosen |= static_cast<std::uint32_t>(bytes >> 8 * (selector >> 4 * i & 7U) & 0xFFU) << 8 * i;
  }
  return chosen;
}
SLIDESTREAM_HOST_DEVICE float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
SLIDESTREAM_HOST_DEVICE std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
/// a b + c, rounded once.
SLIDESTREAM_HOST_DEVICE float fused(float a, float b, float c) { return std::fma(a, b, c); }
/// By how much a value that is neither 0 nor -1 is shifted left for its first bit unlike the sign to be the highest.
SLIDESTREAM_HOST_DEVICE std::uint32_t shift_to_top(std::int32_t value) {
  return leading_zeros(static_cast<std::uint32_t>(value ^ value >> 31));
}
/// By `count` modulo 32.
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_right(std::uint32_t value, std::uint32_t count) {
  return value >> (count & 31U);
}
/// What a shift by `count` modulo 32 loses, from the highest bit on.
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_out(std::uint32_t value, std::uint32_t count) {
  return (count & 31U) == 0 ? 0 : value << (32U - (count & 31U));
}
/// `value` shifted left by `count` modulo 32, with the highest bits of `below` behind it.
SLIDESTREAM_HOST_DEVICE std::uint32_t shifted_in(std::uint32_t value, std::uint32_t below, std::uint32_t count) {
  return value << (count & 31U) | ((count & 31U) == 0 ? 0 : below >> (32U - (count & 31U)));
}
SLIDESTREAM_HOST_DEVICE std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}
/// `sum` and two factors of 16 bits times the first two bytes, the lowest of each first.
SLIDESTREAM_HOST_DEVICE std::uint32_t dot_low(std::uint32_t factors, std::uint32_t bytes, std::uint32_t sum) {
  return sum + (factors & 0xFFFFU) * (bytes & 0xFFU) + (factors >> 16) * (bytes >> 8 & 0xFFU);
}
/// Times the last two bytes.
SLIDESTREAM_HOST_DEVICE std::uint32_t dot_high(std::uint32_t factors, std::uint32_t bytes, std::uint32_t sum) {
  return dot_low(factors, bytes >> 16, sum);
}
/// The same with signed factors.
SLIDESTREAM_HOST_DEVICE std::int32_t signed_dot_low(std::uint32_t factors, std::uint32_t bytes, std::int32_t sum) {
  return sum + static_cast<std::int16_t>(factors & 0xFFFFU) * static_cast<std::int32_t>(bytes & 0xFFU) +
         static_cast<std::int16_t>(factors >> 16) * static_cast<std::int32_t>(bytes >> 8 & 0xFFU);
}
SLIDESTREAM_HOST_DEVICE std::int32_t signed_dot_high(std::uint32_t factors, std::uint32_t bytes, std::int32_t sum) {
  return signed_dot_low(factors, bytes >> 16, sum);
}
SLIDESTREAM_HOST_DEVICE void or_into(std::uint32_t* word, std::uint32_t bits) { *word |= bits; }
/// `from` is a multiple of 8.
SLIDESTREAM_HOST_DEVICE WordPair load_pair(const std::uint8_t* from) {
  WordPair words;
  std::memcpy(&words, from, sizeof(words));
  return words;
}

/// A word of what is the block's shared memory on the device.
class WordPlace {
 public:
  explicit WordPlace(std::uint32_t* word) : word_(word) {}
  void advance(int words) { word_ += words; }
  bool operator==(const WordPlace& other) const { return word_ == other.word_; }
  /// The word that lies so many bytes, a multiple of 4, behind this one.
  std::uint32_t read(std::uint32_t behind = 0) const { return word_[behind / 4]; }
  void write(std::uint32_t value) const { *word_ = value; }

 private:
  std::uint32_t* word_;
};

#endif

}  // namespace slidestream::cuda
