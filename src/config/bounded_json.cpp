#include "config/bounded_json.hpp"

#include <algorithm>
#include <cstddef>
#include <istream>
#include <slidestream/error.hpp>

namespace slidestream {
namespace {

/// Whether a number can begin with it, or go on with it.
bool is_of_number(char c) { return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'; }

/// Where the last number begins that does so in `gap`; npos where none does. `is_first` where a number may begin with
/// the first byte.
std::size_t last_number(std::string_view gap, bool is_first) {
  const std::size_t end = gap.find_last_of("0123456789");
  if (end == std::string_view::npos) return end;
  std::size_t begin = end;
  while (begin > 0 && is_of_number(gap[begin - 1])) --begin;
  return begin > 0 || is_first ? begin : std::string_view::npos;
}

}  // namespace

std::size_t BoundedJson::read() {
  if (source_ != nullptr) {
    return static_cast<std::size_t>(source_->sgetn(block_.data(), static_cast<std::streamsize>(block_.size())));
  }
  const std::size_t bytes = text_.copy(block_.data(), block_.size());
  text_.remove_prefix(bytes);
  return bytes;
}

BoundedJson::int_type BoundedJson::underflow() {
  if (look_) look_();
  const std::size_t bytes = read();
  if (bytes == 0) return traits_type::eof();
  // The parser takes a zero byte for the end, and other control characters for faults.
  std::replace(block_.begin(), block_.begin() + static_cast<std::ptrdiff_t>(bytes), '\0', '\1');
  look_at({block_.data(), bytes});
  setg(block_.data(), block_.data(), block_.data() + bytes);
  return traits_type::to_int_type(block_.front());
}

void BoundedJson::look_at(std::string_view block) {
  std::size_t at = 0;
  while (at < block.size()) {
    if (is_in_text_) {
      for (; at < block.size() && (is_escaped_ || block[at] != '"'); ++at) {
        is_escaped_ = !is_escaped_ && block[at] == '\\';
      }
      is_in_text_ = at == block.size();
      ++at;
      continue;
    }
    const std::size_t quote = std::min(block.find('"', at), block.size());
    if (quote < block.size()) {
      began_ = seen_ + quote;
      is_in_text_ = true;
    } else if (const std::size_t number = last_number(block.substr(at), at > 0); number != std::string_view::npos) {
      began_ = seen_ + at + number;
    }
    at = quote + 1;
  }
  seen_ += block.size();
  if (seen_ - began_ > most_bytes) {
    throw Error("has a text, a number or a gap of more than 1 MiB at byte " + std::to_string(began_ + 1));
  }
}

bool JsonWalker::key(string_t& name) {
  on_key(name);
  return true;
}

bool JsonWalker::value(const nlohmann::json& given) {
  on_value(given);
  return true;
}

bool JsonWalker::start(bool is_object) {
  on_start(is_object);
  ++depth_;
  return true;
}

bool JsonWalker::end() {
  --depth_;
  on_end();
  return true;
}

nlohmann::ordered_json members_of(std::string_view text, std::initializer_list<std::string_view> names) {
  using Json = nlohmann::ordered_json;
  constexpr int most_depth = 64;
  constexpr std::size_t most_values = std::size_t{1} << 13;
  constexpr std::size_t most_text = std::size_t{1} << 20;
  std::size_t values = 0;
  std::size_t bytes = 0;
  bool is_wanted = false;
  const Json::parser_callback_t look = [&](int depth, Json::parse_event_t event, Json& parsed) {
    const bool is_key = event == Json::parse_event_t::key;
    if (depth == 1 && is_key) is_wanted = std::ranges::find(names, parsed.get_ref<const std::string&>()) != names.end();
    if (depth > most_depth) throw Error("too deep");
    if (depth == 0 || !is_wanted) return depth == 0;
    if (parsed.is_string()) bytes += parsed.get_ref<const std::string&>().size();
    if (++values > most_values || bytes > most_text) throw Error("too much");
    return true;
  };
  try {
    BoundedJson bounded(text);
    std::istream in(&bounded);
    Json found = Json::parse(in, look);
    return found.is_object() ? found : Json::object();
  } catch (const Json::exception&) {
    return Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

}  // namespace slidestream
