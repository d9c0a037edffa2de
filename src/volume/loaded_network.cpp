#include "volume/loaded_network.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <slidestream/error.hpp>
#include <utility>

#include "networks/network_gpus.hpp"
#include "networks/normalisation.hpp"
#include "networks/onnx_runtime.hpp"
#include "networks/tile_planes.hpp"
#include "runtime/device_full.hpp"
#include "runtime/host_array.hpp"

namespace slidestream::volume {

using networks::OnnxSession;
using networks::onnx::ElementType;

LoadedNetwork::LoadedNetwork(std::shared_ptr<const OnnxSession> session, std::vector<std::int64_t> input_shape,
                             std::vector<std::int64_t> output_shape)
    : session_(std::move(session)), input_shape_(std::move(input_shape)), output_shape_(std::move(output_shape)) {}

void LoadedNetwork::run(const FragmentMemory& memory, const Terminator& by) const {
  const ElementType takes = session_->input().type;
  const ElementType gives = session_->output().type;
  runtime::HostArray<std::uint16_t> halves;
  void* in = memory.fragment.data();
  std::size_t in_bytes = memory.fragment.size_bytes();
  if (takes == ElementType::float16) {
    halves = runtime::HostArray<std::uint16_t>(memory.fragment.size());
    std::ranges::transform(memory.fragment, halves.begin(), networks::to_half);
    in = halves.data();
    in_bytes = halves.size() * sizeof(std::uint16_t);
  }
  const auto input = session_->tensor(in, in_bytes, input_shape_, takes);
  if (memory.scores != nullptr) {
    auto output = session_->tensor(memory.scores->given(), memory.scores->given_bytes(), output_shape_, gives, true);
    return run(input, output, by);
  }
  const std::span<float> values = memory.values;
  const runtime::HostArray<std::byte> given(
      gives == ElementType::float32 ? 0 : values.size() * networks::onnx::bytes_of(gives));
  void* const out = given.empty() ? static_cast<void*>(values.data()) : given.data();
  const std::size_t out_bytes = given.empty() ? values.size_bytes() : given.size();
  auto output = session_->tensor(out, out_bytes, output_shape_, gives);
  run(input, output, by);
  if (gives == ElementType::float16) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, given.data() + i * sizeof half, sizeof half);
      values[i] = networks::from_half(half);
    }
  } else if (!given.empty()) {
    networks::widen_whole(given, gives, values);
  }
}

void LoadedNetwork::run(const OnnxSession::Value& input, OnnxSession::Value& output, const Terminator& by) const {
  const int gpu = session_->place().gpu;
  try {
    session_->run(input, output, by);
  } catch (const std::bad_alloc&) {
    if (gpu < 0) throw;
    throw runtime::DeviceFullError("there is no memory for it");
  } catch (const Error& error) {
    // A lost GPU fails every call, and what it says then is clearer.
    if (gpu >= 0) static_cast<void>(networks::free_memory(gpu));
    if (gpu >= 0 && networks::says_gpu_is_full(error.what())) throw runtime::DeviceFullError(error.what());
    throw;
  }
}

void FragmentMemory::put_into(Fusion& fusion, std::size_t number) const {
  if (scores == nullptr) return fusion.put(number, values);
  const std::span<const std::uint16_t> labels = scores->labels();
  if (std::ranges::find(labels, networks::DeviceScores::no_label) == labels.end()) {
    return fusion.put_labels(number, labels);
  }
  // It says which of the scores can't be used.
  std::vector<float> fetched(scores->given_values());
  scores->take(fetched);
  fusion.put(number, fetched);
}

}  // namespace slidestream::volume
