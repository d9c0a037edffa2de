#include "planning/network_plan.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include <slidestream/error.hpp>

#include "operators/common/network_operator.hpp"
#include "operators/common/tile_grid.hpp"

namespace slidestream {

std::uint64_t network_batch_bytes(const Network& network) {
  const NetworkTiles tiles = network.tiles();
  const NetworkOutput output = network.output();
  const auto batch = static_cast<std::uint64_t>(tiles.batch);
  const auto side = static_cast<std::uint64_t>(tiles.side);
  const auto out = output.kind == NetworkOutput::Kind::vector ? 1 : side / static_cast<std::uint64_t>(output.scale);
  return batch * (side * side * 3 + static_cast<std::uint64_t>(output.channels) * out * out * sizeof(float));
}

std::int64_t network_tiles_aside(const Network& network, std::size_t lanes) {
  const NetworkTiles tiles = network.tiles();
  const std::size_t sessions = static_cast<std::size_t>(network.sessions()) * lanes;
  return tiles.mixed ? static_cast<std::int64_t>(network_batches(sessions)) * tiles.batch : 0;
}

StitchEdge edge_of(StitchEdge asked, const NetworkOutput& output) {
  if (asked != StitchEdge::automatic) return asked;
  return output.kind == NetworkOutput::Kind::vector ? StitchEdge::mirror : StitchEdge::shift;
}

NetworkPlan plan_network(const Network& network, Size level, const std::optional<double>& mpp,
                         const StitchConfig& config, int tile_rows, bool devices, int asked_level) {
  const NetworkTiles tiles = network.tiles();
  const NetworkOutput output = network.output();
  const bool image = output.kind != NetworkOutput::Kind::vector;
  NetworkPlan plan;
  const operators::TileGrid grid =
      operators::tile_grid(tiles, level, mpp, image ? output.scale : 1, edge_of(config.edge, output),
                           output.kind == NetworkOutput::Kind::labels, operators::names_of(network, asked_level));
  plan.factor = grid.factor;
  plan.stitch = grid.stitch;
  plan.on_devices = devices && plan.factor != 65536 && plan.factor <= operators::network_halo * 65536;
  const Size input = plan.stitch.input;
  const std::int64_t rows = std::min<std::int64_t>(tiles.side, input.height);
  plan.bytes = static_cast<std::uint64_t>(rows * input.width * 3);
  if (!plan.on_devices) plan.bytes += AreaResampler::bytes(level, plan.factor);
  if (image) {
    plan.format = StitchBand::format(output);
    plan.chunk_rows = std::min<std::int64_t>(tile_rows, plan.stitch.image.height);
    plan.chunk_bytes = static_cast<std::size_t>(
        plan.chunk_rows * image_pitch(plan.stitch.image.width, static_cast<std::int64_t>(plan.format.pixel_bytes())));
    plan.bytes += StitchBand::bytes(plan.stitch, output) + network_chunks * plan.chunk_bytes;
  } else {
    plan.bytes += static_cast<std::uint64_t>(plan.stitch.tiles() * output.channels) * sizeof(float);
  }
  const std::uint64_t most = static_cast<std::uint64_t>(config.memory_mib) << 20;
  if (plan.bytes > most) {
    throw Error("stitching it takes " + std::to_string((plan.bytes >> 20) + 1) + " MiB, and stitch.memory_mib is " +
                std::to_string(config.memory_mib) + "; raise it" +
                (network_chunks * plan.chunk_bytes > plan.bytes / 2 ? " or lower image.tile" : ""));
  }
  return plan;
}

void check_network(const Operator& op) {
  const Network* const network = op.network();
  if (network == nullptr) return;
  const NetworkTiles tiles = network->tiles();
  const NetworkOutput output = network->output();
  const auto refuse = [&](const std::string& why) { throw ConfigError("the network of " + op.name() + ": " + why); };
  constexpr int most_side = 16384;
  if (tiles.side < 1 || tiles.side > most_side) {
    refuse("its tiles have a side of " + std::to_string(tiles.side) + "; expected 1 to " + std::to_string(most_side));
  }
  if (tiles.overlap < 0 || tiles.overlap > tiles.side / 2) {
    refuse("tiles of " + std::to_string(tiles.side) + " pixels can't share " + std::to_string(tiles.overlap) +
           " with their neighbours; at most half of them");
  }
  if (tiles.batch < 1 || network->sessions() < 1) refuse("batches and sessions must be 1 or more");
  if (output.kind == NetworkOutput::Kind::vector) {
    if (output.channels < 1) refuse("its vectors are empty");
    return;
  }
  if (output.channels < 1 || output.channels > 16) {
    refuse("an image has 1 to 16 channels, and it gives " + std::to_string(output.channels));
  }
  if (output.scale < 1 || tiles.side % output.scale != 0 || tiles.overlap % output.scale != 0) {
    refuse("tiles of " + std::to_string(tiles.side) + " pixels that share " + std::to_string(tiles.overlap) +
           " aren't whole at a scale of 1/" + std::to_string(output.scale));
  }
  if (!(output.low < output.high) || !std::isfinite(output.high - output.low) ||
      !std::isfinite(65535.0F / (output.high - output.low))) {
    std::ostringstream text;
    text << "its range, " << output.low << " to " << output.high << ", is empty in float32";
    refuse(text.str());
  }
  if (output.activation != NetworkActivation::none && (output.low != 0.0F || output.high != 1.0F)) {
    refuse("its range isn't 0 to 1, and its activation gives values from 0 to 1");
  }
  if (output.kind == NetworkOutput::Kind::classes && output.channels == 1) {
    refuse(
        "it gives one channel, so class 0 would be everywhere; set model.output to \"image\" and write its values, "
        "with "
        "model.activation = \"sigmoid\" if they are scores");
  }
  if (output.kind == NetworkOutput::Kind::classes && (output.ignore < output.channels || output.ignore > 255)) {
    refuse("model.ignore is " + std::to_string(output.ignore) + ", and it has classes 0 to " +
           std::to_string(output.channels - 1) + "; expected a label above these, up to 255");
  }
  const int most_label = output.sample == SampleType::uint8 ? 255 : 65535;
  if (output.kind == NetworkOutput::Kind::labels &&
      (output.channels != 1 || output.low != 0.0F || output.high != static_cast<float>(most_label) ||
       output.activation != NetworkActivation::none)) {
    refuse("labels are one channel of whole numbers, without range and activation");
  }
  if (output.kind == NetworkOutput::Kind::labels && (output.ignore < 0 || output.ignore > most_label)) {
    refuse("model.ignore is " + std::to_string(output.ignore) + "; expected at most " + std::to_string(most_label));
  }
  if (output.kind != NetworkOutput::Kind::classes && output.sample == SampleType::float32) {
    refuse("images are of uint8 or uint16");
  }
}

std::optional<double> mpp_of(const SlideInfo& info, std::size_t level) {
  if (!info.mpp) return std::nullopt;
  return *info.mpp * info.levels[level].downsample;
}

std::size_t level_of(const Config& config, const Operators& operators, const SlideInfo& info) {
  const auto asked = static_cast<std::size_t>(config.input.level);
  if (asked >= info.levels.size()) {
    throw Error("level " + std::to_string(asked) + " was asked for, but the slide has " +
                std::to_string(info.levels.size()) + (info.levels.size() == 1 ? " level" : " levels"));
  }
  const Operators readers = readers_of(operators);
  if (readers.size() != 1 || readers.front()->network() == nullptr) return asked;
  const NetworkTiles tiles = readers.front()->network()->tiles();
  if (!tiles.mpp || !info.mpp) return asked;
  return area_level(info.levels, *info.mpp, *tiles.mpp, asked, tiles.mpp_tolerance);
}

}  // namespace slidestream
