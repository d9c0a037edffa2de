#include "ledger/side_inputs.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

#include "config/tissue_keys.hpp"
#include "ledger/fingerprint.hpp"
#include "sink/content_hash.hpp"

namespace slidestream {

namespace {

/// A part, with the name that tells it from others.
template <class Value>
void add(ContentHash& hash, std::string_view name, const Value& value) {
  hash.add(std::as_bytes(std::span(name)));
  hash.add(std::as_bytes(std::span(&value, 1)));
}

}  // namespace

SideInputs::SideInputs(const Config& config) : outlines_(reads_outlines(config)), mpp_(config.input.slide_mpp) {}

std::optional<std::uint64_t> SideInputs::of(const std::string& path) const {
  const auto mpp = mpp_.find(path);
  if (!outlines_ && mpp == mpp_.end()) return std::nullopt;
  ContentHash hash;
  if (mpp != mpp_.end()) add(hash, "mpp", mpp->second);
  if (outlines_) {
    // Others are as good as none: nobody reads them.
    const auto content = file_hash(outlines_beside(path), max_geojson_bytes);
    add(hash, content ? "outlines" : "no outlines", content.value_or(0));
  }
  return hash.value();
}

}  // namespace slidestream
