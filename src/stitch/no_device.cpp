#include <slidestream/error.hpp>
#include <slidestream/stitch.hpp>

namespace slidestream {

void resample_area(const PixelView<MemorySpace::device>&, const ConstPixelView<MemorySpace::device>&, std::int64_t,
                   void*) {
  throw CudaError("this program was built without CUDA");
}

}  // namespace slidestream
