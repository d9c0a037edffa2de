#include "support/made_up_gpus.hpp"

namespace slidestream {

bool test::made_up_gpus() { return false; }
void test::fake_decoding(bool) {}
std::size_t test::fake_areas() { return 0; }

}  // namespace slidestream
