#pragma once

#include <memory>
#include <slidestream/config.hpp>
#include <slidestream/operator.hpp>

namespace slidestream::operators {

/// Where tissue is: the share of the slide's small level ("tissue.share"), the outlines (NAME.tissue.geojson) and the
/// mask (NAME.tissue.ome.tif: 1 where there is tissue, else 0). All of it comes from `prepare`.
std::shared_ptr<const Operator> make_tissue_operator(const Config& config);

}  // namespace slidestream::operators
