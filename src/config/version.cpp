#include <slidestream/pipeline.hpp>

namespace slidestream {

const char* version() noexcept { return SLIDESTREAM_VERSION; }

}  // namespace slidestream
