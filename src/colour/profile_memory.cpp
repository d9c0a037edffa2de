#include "colour/profile_memory.hpp"

#include <lcms2_plugin.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace slidestream {

namespace {

/// In front of each block that the library has.
struct alignas(std::max_align_t) BlockHead {
  ProfileMemory* owner;  ///< null: of the context itself, before it knows its owner
  std::uint64_t bytes;
};

BlockHead* head_of(void* block) noexcept { return static_cast<BlockHead*>(block) - 1; }

void* take_block(cmsContext context, cmsUInt32Number size) {
  auto* const owner = static_cast<ProfileMemory*>(cmsGetContextUserData(context));
  const std::uint64_t bytes = size + sizeof(BlockHead);
  if (owner != nullptr && !owner->take(bytes)) return nullptr;
  void* const room = std::malloc(bytes);
  if (room == nullptr) {
    if (owner != nullptr) owner->give_back(bytes);
    return nullptr;
  }
  return new (room) BlockHead{owner, bytes} + 1;
}

void give_block_back(cmsContext, void* block) {
  if (block == nullptr) return;
  BlockHead* const head = head_of(block);
  if (head->owner != nullptr) head->owner->give_back(head->bytes);
  std::free(head);
}

void* resize_block(cmsContext context, void* block, cmsUInt32Number size) {
  void* const resized = take_block(context, size);
  if (resized == nullptr || block == nullptr) return resized;
  std::memcpy(resized, block, std::min<std::uint64_t>(size, head_of(block)->bytes - sizeof(BlockHead)));
  give_block_back(context, block);
  return resized;
}

cmsContext make_context(ProfileMemory* owner) {
  // Of any version 2; the library copies it.
  cmsPluginMemHandler plugin{};
  plugin.base = {cmsPluginMagicNumber, 2000, cmsPluginMemHandlerSig, nullptr};
  plugin.MallocPtr = take_block;
  plugin.FreePtr = give_block_back;
  plugin.ReallocPtr = resize_block;
  const cmsContext context = cmsCreateContext(&plugin, owner);
  if (context == nullptr) throw std::bad_alloc();
  return context;
}

}  // namespace

ProfileMemory::ProfileMemory(std::uint64_t most_bytes) : most_bytes_(most_bytes), context_(make_context(this)) {}

bool ProfileMemory::take(std::uint64_t bytes) noexcept {
  if (bytes > most_bytes_ - taken_) return false;
  taken_ += bytes;
  return true;
}

}  // namespace slidestream
