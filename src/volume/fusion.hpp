#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <slidestream/config.hpp>
#include <slidestream/network.hpp>
#include <span>
#include <vector>

#include "volume/fragments.hpp"

/// \file
/// One volume from what networks give for its fragments. All sums are whole numbers, so that the order in which
/// fragments come changes nothing.

namespace slidestream::volume {

/// What a network gives per fragment.
struct FragmentOutput {
  bool labels = false;  ///< one channel of whole numbers, which are labels; else scores of classes, or an image
  int channels = 1;
  int most_label = 255;  ///< labels: largest one. Classes: channels - 1
  int ignore = 255;      ///< label that doesn't vote, and that stands where nobody votes
  NetworkActivation activation = NetworkActivation::none;  ///< `MeanFusion`
  float low = 0.0F;  ///< value that becomes 0, and `high` becomes 65,535: `MeanFusion` and `BlendFusion`
  float high = 1.0F;
  const char* called = "the network";  ///< what computes, for messages
  const char* range_name = "model.range";
  const char* activation_name = "model.activation";
};

/// Puts the fragments of one volume together. Thread-safe: `put` for different fragments; then `planes`, once all
/// fragments were put.
class Fusion {
 public:
  virtual ~Fusion() = default;

  /// Takes what a network gave for a fragment. \param values  channels x fragment
  /// \throws Error that says which value can't be used, without the file's name
  virtual void put(std::size_t fragment, std::span<const float> values) = 0;
  /// The same of a fragment whose labels are known: of `make_vote`. \param labels  fragment, each a channel
  virtual void put_labels(std::size_t fragment, std::span<const std::uint16_t> labels);
  /// Labels of whole planes from `z` on, z by y by x; of a fusion that gives labels. A call takes some time beside that
  /// for its samples.
  virtual void planes(std::int64_t z, std::span<std::uint16_t> labels) const;
  /// Samples of whole planes; of a fusion that gives an image.
  virtual void planes(std::int64_t z, std::span<float> image) const;
  /// The share of the values that were put, after the activation, which the image has clamped to the range. 0 of a
  /// fusion that gives labels.
  virtual double clamped_share() const noexcept { return 0.0; }
};

/// The label of most fragments, the lowest of equals. A fragment's own label of a voxel is the channel with the largest
/// value, the lowest of equals.
std::unique_ptr<Fusion> make_vote(const FragmentGrid& grid, const FragmentOutput& output);

/// Values of classes are mapped to 0 .. 65,535 as images of networks are, and averaged over the n fragments of a voxel:
/// (2 sum + n) / (2 n). The label is the channel with the largest average, the lowest of equals.
/// \throws Error where more than 65,537 fragments overlap
std::unique_ptr<Fusion> make_mean(const FragmentGrid& grid, const FragmentOutput& output);

/// An image of one channel: values are mapped to 0 .. 65,535 and blended along three axes. Neighbours are
/// blended where they overlap; blends share by halves what three fragments have. Weights of an axis sum to 256, so that
/// a voxel is (sum of w_z w_y w_x v + 2^23) >> 24, mapped back to a value.
std::unique_ptr<Fusion> make_blend(const FragmentGrid& grid, const FragmentOutput& output, StitchWeights weights);

/// The one that the configuration names.
std::unique_ptr<Fusion> make_fusion(const Config& config, const FragmentGrid& grid, const FragmentOutput& output);

/// Whether fragments can be fused at all: `make_mean` takes 65,537 at a voxel. \throws Error where they can't
void check_fusion(VolumeFusion fusion, const FragmentGrid& grid);

/// Bytes of host memory that a fusion takes, at most, beside a little. Of `make_mean`, where no fragment is put while
/// one more than a layer of the grid's first axis before it is missing: planes become labels as soon as they are whole.
std::uint64_t fusion_bytes(VolumeFusion fusion, const FragmentGrid& grid, const FragmentOutput& output) noexcept;

}  // namespace slidestream::volume
