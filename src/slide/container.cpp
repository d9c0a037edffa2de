#include "slide/container.hpp"

#include <slidestream/error.hpp>

namespace slidestream {

void Container::make_associated(std::size_t) { throw Error("internal: the container's levels are certain"); }

void Container::decode(const TileJob&, std::span<const std::byte>, TileScratch&) const {
  throw Error("internal: the container has no codec of its own");
}

}  // namespace slidestream
