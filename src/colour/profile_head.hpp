#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// \file
/// What the head of an ICC profile says of the memory that it takes.

namespace slidestream {

/// Numbers of the table that `read_colour_steps` reads (of A2B1, else A2B0). 0 where there is none, and where the
/// profile is too short for the table that its head claims.
std::uint64_t table_numbers(std::span<const std::byte> profile) noexcept;

/// Most bytes that `read_colour_steps` takes for a profile with a table: a copy of the profile, Little CMS' table, and
/// the one that is made of it. 0 for other profiles, which take little.
std::uint64_t reading_bytes(std::span<const std::byte> profile) noexcept;

/// Most bytes that Little CMS gets while it reads the steps of a profile.
std::uint64_t most_library_bytes(std::span<const std::byte> profile) noexcept;

}  // namespace slidestream
