#include "stages/forecast_machine.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <slidestream/error.hpp>

#include "planning/staging_plan.hpp"
#include "runtime/machine.hpp"
#include "stages/gpu/gpu_set.hpp"
#include "stages/run/run_context.hpp"

namespace slidestream {
namespace {

/// Assumed where a configuration wants a GPU and none is here.
constexpr const char* default_model = "h100";

void forecast_gpus(RunForecast& forecast, ForecastMachine& machine, const Config& config, const DeviceWork& work,
                   const DeviceFacts& facts, std::size_t slides, std::size_t count) {
  forecast.backend = "cuda";
  forecast.gpus = static_cast<int>(count);
  forecast.gpu = facts.name;
  forecast.engine = facts.engine;
  forecast.gpu_unknown = facts.unknown;
  forecast.gpu_free_bytes = facts.free;
  forecast.gpu_allowed_bytes = static_cast<std::uint64_t>(static_cast<double>(facts.free) * config.gpu.memory_fraction);
  const HostSlots host = device_host_slots(config.pipeline, work, count);
  const DeviceLayout layout = lay_out(config, work, host, facts.sizing, forecast.gpu_allowed_bytes);
  machine = {device_slot_limits(work, host, layout, facts.sizing), count, true, work};
  forecast.gpu_bytes = layout.total();
  PipelineConfig other = config.pipeline;
  other.residency = other.residency == Residency::whole ? Residency::strips : Residency::whole;
  DeviceWork other_work = work;
  other_work.batch_pixels = batch_pixels_for(other, most_batch_pixels(slides, count));
  forecast.gpu_other_residency_bytes =
      lay_out(config, other_work, host, facts.sizing, forecast.gpu_allowed_bytes).total();
  forecast.slots = static_cast<int>(layout.slots * count);
  forecast.slot_bytes = host.slot_bytes;
  forecast.output_slots = static_cast<int>(host.output_slots);
  forecast.output_slot_bytes = host.output_bytes;
  forecast.results_bytes = count * layout.host_bytes();
  forecast.staging_bytes = count * staging_plan(config.gpu, runtime::last_cache_bytes(), count).bytes();
}

ForecastMachine forecast_cpu(RunForecast& forecast, const Config& config, const Operators& all_operators) {
  ForecastMachine machine;
  forecast.backend = "cpu";
  machine.limits = slot_limits(config.pipeline, needs_of(readers_of(all_operators)));
  forecast.slots = config.pipeline.queue_depth;
  forecast.slot_bytes = machine.limits.slot_bytes;
  forecast.output_slots = static_cast<int>(machine.limits.output_slots);
  forecast.output_slot_bytes = machine.limits.output_bytes;
  forecast.carry_bytes = (static_cast<std::uint64_t>(config.pipeline.queue_depth) + 1) * machine.limits.carry_bytes;
  return machine;
}

/// Takes GPUs of this model, as none of this machine is used.
ForecastMachine assume_gpus(RunForecast& forecast, const Config& config, const Operators& operators, std::size_t slides,
                            const GpuModel& model, const std::string& why) {
  const std::size_t count = std::max<std::size_t>(1, config.gpu.devices.size());
  forecast.gpus_assumed = true;
  forecast.why = why;
  const DeviceWork work = device_work(config, operators, slides, count);
  ForecastMachine machine;
  forecast_gpus(forecast, machine, config, work, facts_of(config, work, model), slides, count);
  return machine;
}

ForecastMachine take_gpus(RunForecast& forecast, const Config& config, const Operators& operators, std::size_t slides,
                          const std::vector<int>& devices) {
  // The fullest one decides; they are alike, as a rule.
  std::optional<DeviceFacts> fullest;
  const DeviceWork work = device_work(config, operators, slides, devices.size());
  for (const int ordinal : devices) {
    DeviceFacts facts = facts_of_device(config, work, ordinal);
    if (!fullest || facts.free < fullest->free) fullest = std::move(facts);
  }
  ForecastMachine machine;
  forecast_gpus(forecast, machine, config, work, *fullest, slides, devices.size());
  return machine;
}

GpuChoice gpus_of_machine(const Config& config) {
  try {
    return choose_gpus(config);
  } catch (const ConfigError& error) {
    return GpuChoice{{}, error.what()};
  }
}

}  // namespace

ForecastMachine choose_machine(RunForecast& forecast, const Config& config, const Operators& all_operators,
                               std::size_t slides, const ForecastOptions& options) {
  const bool wants = config.pipeline.backend == Backend::cuda || config.decode.device == DecodeDevice::gpu;
  if (config.pipeline.backend == Backend::cpu) {
    if (options.assumed) throw ConfigError("a GPU was assumed, but pipeline.backend is \"cpu\"");
    return forecast_cpu(forecast, config, all_operators);
  }
  forecast.why = why_not_on_gpus(config, all_operators);
  if (!forecast.why.empty()) {
    if (options.assumed) throw ConfigError("a GPU was assumed, but " + forecast.why);
    if (wants) throw ConfigError("a GPU is asked for, but " + forecast.why);
    return forecast_cpu(forecast, config, all_operators);
  }
  const Operators operators = readers_of(all_operators);
  if (options.assumed) {
    return assume_gpus(forecast, config, operators, slides, *options.assumed, "as was asked for");
  }
  const GpuChoice choice = gpus_of_machine(config);
  if (!choice.devices.empty()) return take_gpus(forecast, config, operators, slides, choice.devices);
  if (wants) return assume_gpus(forecast, config, operators, slides, gpu_model(default_model), choice.why_none);
  ForecastMachine machine = forecast_cpu(forecast, config, all_operators);
  forecast.why = choice.why_none;
  return machine;
}

}  // namespace slidestream
