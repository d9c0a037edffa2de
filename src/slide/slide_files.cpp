#include "slide/slide_files.hpp"

#include <algorithm>
#include <utility>

namespace slidestream {

std::uint64_t SlideFiles::add(std::unique_ptr<File> file) {
  std::uint64_t begin = 0;
  if (!files_.empty()) begin = (files_.back().begin + files_.back().file->size() + gap) / gap * gap + gap;
  files_.push_back({begin, std::move(file)});
  return begin;
}

SlideFiles::Place SlideFiles::at(std::uint64_t offset) const noexcept {
  std::size_t index = 0;
  if (files_.size() > 1) {
    const auto behind = std::ranges::upper_bound(files_, offset, {}, &Entry::begin);
    index = static_cast<std::size_t>(behind - files_.begin()) - 1;
  }
  return {*files_[index].file, files_[index].begin, index};
}

std::uint64_t SlideFiles::size() const noexcept {
  std::uint64_t bytes = 0;
  for (const Entry& entry : files_) bytes += entry.file->size();
  return bytes;
}

bool SlideFiles::contains(std::uint64_t offset, std::uint64_t length) const noexcept {
  const Place place = at(offset);
  return place.file.contains(offset - place.begin, length);
}

void SlideFiles::read(std::uint64_t offset, std::span<std::byte> to) const {
  const Place place = at(offset);
  place.file.read(offset - place.begin, to);
}

void SlideFiles::set_retries(int retries) noexcept {
  for (Entry& entry : files_) entry.file->set_retries(retries);
}

}  // namespace slidestream
