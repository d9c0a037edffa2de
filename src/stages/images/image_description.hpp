#pragma once

#include <string>

#include <slidestream/operator.hpp>

#include "planning/network_plan.hpp"
#include "sink/image_sink.hpp"
#include "stages/run/run_context.hpp"
#include "stages/run/slide_run.hpp"

/// \file
/// What a slide's files say of themselves: sizes, settings, colours.

namespace slidestream {

/// All that an image says, but for its profile. \param name  of the image
/// \param network  that makes it, and \param parameters  that it is made with; both may be null
ImageDescription describe_image(const RunContext& context, const SlideRun& slide, const Operator& op,
                                const Product& product, const std::string& name, const NetworkPlan* network,
                                const SlideParameters* parameters);

/// All that is known of a slide's vectors before there are any.
TileVectors describe_vectors(const SlideRun& slide, const NetworkPlan& network, const std::string& name);

/// The profile of the colours that images have as the slide has them.
IccProfile profile_of_images(const RunContext& context, const SlideRun& slide);

/// Says where a profile doesn't get into an image, whose colours may then look different.
void warn_of_profile(const RunContext& context, const SlideRun& slide, const ImageDescription& description,
                     ImageFormat format);

}  // namespace slidestream
