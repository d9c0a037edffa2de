#include "cli/under_way.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <thread>

namespace slidestream::cli {

namespace {

/// Bytes of a path that are shown.
constexpr std::size_t most_shown = 300;

}  // namespace

void BoundedLine::add(std::string_view text) noexcept {
  const std::size_t count = std::min(text.size(), room());
  std::memcpy(bytes_.data() + size_, text.data(), count);
  size_ += count;
}

void BoundedLine::end() noexcept { bytes_[size_++] = '\n'; }

void BoundedLine::add(std::size_t number) noexcept {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
}

void BoundedLine::add_name(std::string_view name) noexcept {
  if (name.size() > most_shown) {
    add("...");
    name.remove_prefix(name.size() - most_shown);
  }
  for (const char each : name) {
    const auto byte = static_cast<unsigned char>(each);
    const char shown = byte < 0x20 || byte == 0x7f ? '?' : each;
    add(std::string_view(&shown, 1));
  }
}

void SlidesUnderWay::begin(std::string_view path) noexcept {
  const std::lock_guard lock(mutex_);
  if (count_ == most_kept) {
    ++more_;
    return;
  }
  Name& name = names_[count_++];
  name.kept = std::min(path.size(), most_bytes);
  name.whole = path.size();
  name.hash = std::hash<std::string_view>()(path);
  std::memcpy(name.end.data(), path.data() + (path.size() - name.kept), name.kept);
}

void SlidesUnderWay::end(std::string_view path) noexcept {
  const std::size_t hash = std::hash<std::string_view>()(path);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < count_; ++i) {
    if (names_[i].hash != hash || names_[i].whole != path.size()) continue;
    // In order: the first ones are the oldest.
    for (std::size_t next = i + 1; next < count_; ++next) names_[next - 1] = names_[next];
    --count_;
    return;
  }
  if (more_ > 0) --more_;
}

void SlidesUnderWay::reset() noexcept {
  end_all();
  noted_.clear();
}

void SlidesUnderWay::note() noexcept {
  if (noted_.text().empty()) add_to(noted_);
}

void SlidesUnderWay::end_all() noexcept {
  const std::lock_guard lock(mutex_);
  count_ = 0;
  more_ = 0;
}

void SlidesUnderWay::add_to(BoundedLine& line) noexcept {
  std::unique_lock lock(mutex_, std::try_to_lock);
  // The thread that ends the process may be the one that has it.
  for (int tries = 0; !lock.owns_lock() && tries < 1000; ++tries) {
    std::this_thread::yield();
    lock.try_lock();
  }
  if (!lock.owns_lock() || count_ == 0) return;
  line.add(count_ + more_ == 1 ? "; the slide under way: " : "; slides under way: ");
  const std::size_t named = std::min(count_, most_named);
  for (std::size_t i = 0; i < named; ++i) {
    if (i > 0) line.add(", ");
    const Name& name = names_[i];
    // `add_name` says so of one that is too long to be shown.
    if (name.kept < name.whole && name.kept <= most_shown) line.add("...");
    line.add_name({name.end.data(), name.kept});
  }
  if (count_ + more_ > named) {
    line.add(" and ");
    line.add(count_ + more_ - named);
    line.add(" more");
  }
}

SlidesUnderWay& slides_under_way() noexcept {
  static constinit SlidesUnderWay slides;
  return slides;
}

}  // namespace slidestream::cli
