#include "volume/volume_made.hpp"

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
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

/// Samples that are made at a time, or one plane: as many as there may be labels, which take some time each.
constexpr std::int64_t samples_at_a_time = 65536;

/// Calls `make` for planes from one to before another, by all threads. What else waits isn't taken up meanwhile: it may
/// take long.
template <class Make>
void for_planes(const Extent& volume, const Make& make) {
  const std::int64_t planes = std::max<std::int64_t>(samples_at_a_time / (volume[1] * volume[2]), 1);
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(std::int64_t{0}, volume[0], planes,
                      [&](std::int64_t z) { make(z, std::min(z + planes, volume[0])); });
  });
}

/// The first of `count` samples that networks saw as `least` or a later one. \param seen_as  it ascends
template <class SeenAs>
std::int64_t first_seen_from(std::int64_t least, std::int64_t count, const SeenAs& seen_as) {
  std::int64_t begin = 0;
  while (count > 0) {
    const std::int64_t half = count / 2;
    const bool is_below = seen_as(begin + half) < least;
    if (is_below) begin += half + 1;
    count = is_below ? count - half - 1 : half;
  }
  return begin;
}

}  // namespace

void make_image(VolumeWork& work) {
  const Extent& volume = work.grid->volume();
  const auto plane = static_cast<std::size_t>(volume[1] * volume[2]);
  work.made = runtime::HostArray<std::byte>(static_cast<std::size_t>(count_of(volume)) * sizeof(float));
  const std::span<float> all(reinterpret_cast<float*>(work.made.data()), static_cast<std::size_t>(count_of(volume)));
  for_planes(volume, [&](std::int64_t z, std::int64_t end) {
    work.fusion->planes(z, all.subspan(static_cast<std::size_t>(z) * plane, static_cast<std::size_t>(end - z) * plane));
  });
  work.result.values.push_back({clamped_figure, work.fusion->clamped_share()});
}

void make_labels(VolumeWork& work, ScalarType sample) {
  const Extent& seen = work.grid->volume();
  const Extent scan = {work.header.size[2], work.header.size[1], work.header.size[0]};
  // What networks saw in the place of a sample of the scan.
  const auto seen_as = [&work](std::size_t axis, std::int64_t i) {
    return work.resampling != nullptr ? work.resampling->nearest(axis, i) : i;
  };
  const bool narrow = sample == ScalarType::uint8;
  const std::size_t width = narrow ? sizeof(std::uint8_t) : sizeof(std::uint16_t);
  const std::size_t plane_bytes = static_cast<std::size_t>(scan[1] * scan[2]) * width;
  work.made = runtime::HostArray<std::byte>(static_cast<std::size_t>(scan[0]) * plane_bytes);
  std::vector<std::atomic<std::uint64_t>> counts(std::size_t{1} << (8 * width));
  for_planes(seen, [&](std::int64_t from, std::int64_t to) {
    const auto in_z = [&seen_as](std::int64_t z) { return seen_as(0, z); };
    const std::int64_t begin = first_seen_from(from, scan[0], in_z);
    const std::int64_t end = first_seen_from(to, scan[0], in_z);
    if (begin == end) return;
    std::vector<std::uint16_t> labels(static_cast<std::size_t>((to - from) * seen[1] * seen[2]));
    work.fusion->planes(from, std::span<std::uint16_t>(labels));
    std::vector<std::uint64_t> found(counts.size());
    std::byte* made = work.made.data() + static_cast<std::size_t>(begin) * plane_bytes;
    for (std::int64_t z = begin; z < end; ++z) {
      for (std::int64_t y = 0; y < scan[1]; ++y) {
        const std::uint16_t* const row = labels.data() + ((in_z(z) - from) * seen[1] + seen_as(1, y)) * seen[2];
        for (std::int64_t x = 0; x < scan[2]; ++x) {
          const std::uint16_t label = row[seen_as(2, x)];
          ++found[label];
          *made++ = static_cast<std::byte>(label & 0xff);
          if (!narrow) *made++ = static_cast<std::byte>(label >> 8);
        }
      }
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
