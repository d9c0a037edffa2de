#pragma once

/// \file
/// Containers that are done with.

namespace slidestream {

/// Empties a container and frees its memory. Assigning `{}` to a vector or a text keeps the memory.
template <class Container>
void release_memory(Container& container) {
  Container().swap(container);
}

}  // namespace slidestream
