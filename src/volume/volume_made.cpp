#include "volume/volume_made.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <slidestream/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "output/folders.hpp"
#include "output/names.hpp"
#include "sink/file_digest.hpp"
#include "volume/nifti_file.hpp"
#include "volume/volume_run.hpp"

namespace slidestream::volume {
namespace {

/// Calls `make` for each plane, by all threads. What else waits isn't taken up meanwhile: it may take long.
template <class Make>
void for_planes(const Extent& volume, const Make& make) {
  tbb::this_task_arena::isolate(
      [&] { tbb::parallel_for(std::int64_t{0}, volume[0], [&](std::int64_t z) { make(z); }); });
}

/// For each sample of the scan along an axis, the one that networks saw.
std::vector<std::int64_t> seen_as(const VolumeWork& work, std::size_t axis) {
  if (work.resampling != nullptr) return work.resampling->nearest(axis);
  std::vector<std::int64_t> same(static_cast<std::size_t>(work.grid->volume()[axis]));
  std::iota(same.begin(), same.end(), std::int64_t{0});
  return same;
}

}  // namespace

void make_image(VolumeWork& work) {
  const Extent& volume = work.grid->volume();
  const auto plane = static_cast<std::size_t>(volume[1] * volume[2]);
  work.made = runtime::HostArray<std::byte>(static_cast<std::size_t>(count_of(volume)) * sizeof(float));
  const std::span<float> all(reinterpret_cast<float*>(work.made.data()), static_cast<std::size_t>(count_of(volume)));
  for_planes(volume,
             [&](std::int64_t z) { work.fusion->plane(z, all.subspan(static_cast<std::size_t>(z) * plane, plane)); });
  work.result.values.push_back({clamped_figure, work.fusion->clamped_share()});
}

void make_labels(VolumeWork& work, ScalarType sample) {
  const Extent& seen = work.grid->volume();
  const std::vector<std::int64_t> in_z = seen_as(work, 0);
  const std::vector<std::int64_t> in_y = seen_as(work, 1);
  const std::vector<std::int64_t> in_x = seen_as(work, 2);
  const bool narrow = sample == ScalarType::uint8;
  const std::size_t width = narrow ? sizeof(std::uint8_t) : sizeof(std::uint16_t);
  const std::size_t plane_bytes = in_y.size() * in_x.size() * width;
  work.made = runtime::HostArray<std::byte>(in_z.size() * plane_bytes);
  std::vector<std::atomic<std::uint64_t>> counts(std::size_t{1} << (8 * width));
  for_planes(seen, [&](std::int64_t z) {
    // Planes of the scan that are nearest to this one: `in_z` ascends.
    const auto [begin, end] = std::equal_range(in_z.begin(), in_z.end(), z);
    if (begin == end) return;
    const auto planes = static_cast<std::size_t>(end - begin);
    std::vector<std::uint16_t> labels(static_cast<std::size_t>(seen[1] * seen[2]));
    work.fusion->plane(z, std::span<std::uint16_t>(labels));
    std::vector<std::uint64_t> found(counts.size());
    const auto first = static_cast<std::size_t>(begin - in_z.begin());
    std::byte* to = work.made.data() + first * plane_bytes;
    for (const std::int64_t y : in_y) {
      const std::uint16_t* const row = labels.data() + y * seen[2];
      for (const std::int64_t x : in_x) {
        const std::uint16_t label = row[x];
        found[label] += planes;
        *to++ = static_cast<std::byte>(label & 0xff);
        if (!narrow) *to++ = static_cast<std::byte>(label >> 8);
      }
    }
    for (std::size_t i = 1; i < planes; ++i, to += plane_bytes) {
      std::memcpy(to, work.made.data() + first * plane_bytes, plane_bytes);
    }
    for (std::size_t label = 0; label < found.size(); ++label) {
      if (found[label] > 0) counts[label] += found[label];
    }
  });
  for (std::size_t label = 0; label < counts.size(); ++label) {
    if (counts[label] == 0) continue;
    work.result.values.push_back({label_figure + std::to_string(label), static_cast<double>(counts[label])});
  }
}

void name_made(VolumeWork& work, const Config& config, const RunControl& control) {
  constexpr std::size_t longest_stem = 180;
  const std::string stem = control.image_name ? control.image_name(work.path)
                                              : file_stem(work.path, longest_stem, config.output.portable_names);
  const bool image = config.volume.fusion == VolumeFusion::blend;
  const std::string name = stem + (image ? ".image" : ".labels") + ".nii.gz";
  work.made_name = "images/" + name;
  work.made_at = control.image_file ? control.image_file(work.path, name)
                                    : std::filesystem::path(config.output.dir) / "images" / name;
  if (control.check_file) control.check_file(work.made_at);
  if (control.on_files) control.on_files(work.path);
}

void write_made(VolumeWork& work, ScalarType sample, runtime::StageMeter::Busy& busy) {
  make_folder(work.made_at.parent_path());
  const bool labels = sample != ScalarType::float32;
  write_nifti(work.made_at, work.header, sample, labels, work.made);
  const auto content = path_content(work.made_at);
  if (!content) throw OutputError(work.made_at.string() + ": can't be read again");
  busy.add(1, content->bytes);
  work.result.artifacts = {{"volume", labels ? "labels" : "image", work.made_name, content->bytes, content->digest}};
  std::vector<NamedValue> figures = {{depth_figure, static_cast<double>(work.header.size[2])},
                                     {"volume.voxel_mm3", work.header.geometry.voxel_mm3()}};
  figures.insert(figures.end(), work.result.values.begin(), work.result.values.end());
  work.result.values = std::move(figures);
}

}  // namespace slidestream::volume
