// A profiler in miniature: NVTX loads it into a program, and it writes a line for every range that begins ("push DOMAIN
// NAME CATEGORY PAYLOAD") and ends ("pop DOMAIN") to the file that NVTX_LISTENER_LOG names.

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

namespace {

std::mutex mutex;

/// Kept for the life of the process: handles are pointers to its elements.
const std::string* kept(const char* text) {
  static std::set<std::string>& strings = *new std::set<std::string>;
  const std::lock_guard lock(mutex);
  return &*strings.insert(text).first;
}

std::FILE* log_file() {
  static std::FILE* file = std::fopen(std::getenv("NVTX_LISTENER_LOG"), "w");
  return file;
}

const char* text_of(const void* handle) { return static_cast<const std::string*>(handle)->c_str(); }

nvtxDomainHandle_t create_domain(const char* name) {
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<std::string*>(kept(name)));
}

nvtxStringHandle_t register_string(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<std::string*>(kept(text)));
}

int push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const bool as_expected =
      attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED && attributes->payloadType == NVTX_PAYLOAD_TYPE_INT64;
  const std::lock_guard lock(mutex);
  std::fprintf(log_file(), "push %s %s %u %lld\n", text_of(domain),
               as_expected ? text_of(attributes->message.registered) : "?", attributes->category,
               static_cast<long long>(attributes->payload.llValue));
  return 0;
}

int pop(nvtxDomainHandle_t domain) {
  const std::lock_guard lock(mutex);
  std::fprintf(log_file(), "pop %s\n", text_of(domain));
  std::fflush(log_file());
  return 0;
}

template <class Function>
void replace(NvtxFunctionTable table, unsigned index, Function* function) {
  *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  if (size <= NVTX_CBID_CORE2_DomainCreateA) return 0;
  replace(table, NVTX_CBID_CORE2_DomainCreateA, &create_domain);
  replace(table, NVTX_CBID_CORE2_DomainRegisterStringA, &register_string);
  replace(table, NVTX_CBID_CORE2_DomainRangePushEx, &push);
  replace(table, NVTX_CBID_CORE2_DomainRangePop, &pop);
  return 1;
}
