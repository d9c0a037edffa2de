#include "networks/onnx_files.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <string_view>
#include <system_error>

#include "config/suggest.hpp"
#include "sink/content_hash.hpp"

namespace slidestream::networks {
namespace {

/// Messages of onnx.proto on the way to the names of files.
enum class Message { none, model, graph, node, attribute, function, sparse, tensor, entry };

/// What the field of a message is, where names may be in it.
Message field_of(Message message, std::uint64_t field) {
  switch (message) {
    case Message::model:
      return field == 7 ? Message::graph : field == 25 ? Message::function : Message::none;
    case Message::graph:
      return field == 1 ? Message::node : field == 5 ? Message::tensor : field == 15 ? Message::sparse : Message::none;
    case Message::node:
      return field == 5 ? Message::attribute : Message::none;
    case Message::attribute:
      if (field == 5 || field == 10) return Message::tensor;
      if (field == 6 || field == 11) return Message::graph;
      return field == 22 || field == 23 ? Message::sparse : Message::none;
    case Message::function:
      return field == 7 ? Message::node : Message::none;
    case Message::sparse:
      return field == 1 || field == 2 ? Message::tensor : Message::none;
    case Message::tensor:
      return field == 13 ? Message::entry : Message::none;
    case Message::entry:
    case Message::none:
      return Message::none;
  }
  return Message::none;
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& file) : stream_(file, std::ios::binary) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (!error) read(Message::model, 0, size, 0);
  }

  const std::set<std::string>& names() const noexcept { return names_; }

 private:
  static constexpr int most_depth = 100;          ///< graphs lie in graphs
  static constexpr std::uint64_t longest = 4096;  ///< of a key or a name

  std::optional<std::uint64_t> number(std::uint64_t& at, std::uint64_t end) {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && at < end; shift += 7) {
      const int byte = stream_.rdbuf()->sbumpc();
      if (byte == std::ifstream::traits_type::eof()) return std::nullopt;
      ++at;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  /// Reads what lies at [at, end). False where it is damaged.
  bool read(Message message, std::uint64_t at, std::uint64_t end, int depth) {
    if (depth > most_depth) return false;
    stream_.seekg(static_cast<std::streamoff>(at));
    std::string key;
    std::string value;
    while (at < end) {
      const auto tag = number(at, end);
      // No message has a field 0: what begins so is another kind of file.
      if (!tag || *tag >> 3 == 0) return false;
      std::uint64_t length = 0;
      switch (*tag & 7) {
        case 0:
          if (!number(at, end)) return false;
          continue;
        case 1:
          length = 8;
          break;
        case 5:
          length = 4;
          break;
        case 2:
          if (const auto said = number(at, end)) {
            length = *said;
            break;
          }
          return false;
        default:
          return false;
      }
      if (length > end - at) return false;
      const std::uint64_t field = *tag >> 3;
      const Message inner = (*tag & 7) == 2 ? field_of(message, field) : Message::none;
      if (inner != Message::none && !read(inner, at, at + length, depth + 1)) return false;
      if (message == Message::entry && (field == 1 || field == 2) && length <= longest) {
        std::string& text = field == 1 ? key : value;
        text.resize(length);
        if (!stream_.read(text.data(), static_cast<std::streamsize>(length))) return false;
      }
      at += length;
      stream_.seekg(static_cast<std::streamoff>(at));
    }
    if (key == "location" && !value.empty()) names_.insert(value);
    return true;
  }

  std::ifstream stream_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<std::string> weight_files(const std::filesystem::path& file) {
  const Reader reader(file);
  return {reader.names().begin(), reader.names().end()};
}

void check_network_files(const std::string& file) {
  if (file.empty()) throw ConfigError("model.file isn't set: the operator model wants a network, an ONNX file");
  const auto check = [&](const std::filesystem::path& path, const std::string& which) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) {
      throw ConfigError(file + ": " + which + (error ? error.message() : "No such file or directory"));
    }
    if (!std::filesystem::is_regular_file(status)) throw ConfigError(file + ": " + which + "not a regular file");
  };
  check(file, "");
  // A protocol buffer is no longer than that, and a reader of one no further.
  constexpr std::uintmax_t longest = std::numeric_limits<std::int32_t>::max();
  const std::uintmax_t size = std::filesystem::file_size(file);
  if (size > longest) {
    throw ConfigError(file + ": it has " + std::to_string(size) + " bytes, and a network's file at most " +
                      std::to_string(longest) + "; larger weights lie in files beside it");
  }
  const std::filesystem::path whole = file;
  for (const std::string& name : weight_files(whole)) {
    const std::filesystem::path path = name;
    const std::string which = "its weights lie in " + one_line(name) + ": ";
    if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) {
      throw ConfigError(file + ": " + which + "that isn't in its folder");
    }
    check(whole.parent_path() / path, which);
  }
}

std::string content_of_network(const std::filesystem::path& file) {
  check_network_files(file.string());
  std::string all;
  const auto add = [&all](const std::string& name, const std::filesystem::path& path) {
    const auto digest = file_hash(path);
    if (!digest) throw ConfigError(path.string() + ": can't be read");
    all += name + " " + std::to_string(*digest) + "\n";
  };
  add("", file);
  for (const std::string& name : weight_files(file)) add(name, file.parent_path() / name);
  return std::to_string(stable_hash(all));
}

std::uint64_t bytes_of_network(const std::filesystem::path& file) {
  std::uint64_t bytes = 0;
  const auto add = [&](const std::filesystem::path& path) {
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (!error) bytes += size;
  };
  add(file);
  for (const std::string& name : weight_files(file)) add(file.parent_path() / name);
  return bytes;
}

}  // namespace slidestream::networks
