#include "networks/onnx_files.hpp"

#include <sys/stat.h>

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
      return field == 7 ? Message::node : field == 11 ? Message::attribute : Message::none;
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
  static constexpr int most_depth = 100;              ///< graphs lie in graphs
  static constexpr std::uint64_t longest = 4096;      ///< of a key or a name
  static constexpr std::uint64_t begin_of_group = 3;  ///< the kind of a tag
  static constexpr std::uint64_t end_of_group = 4;

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

  /// A tag as ONNX Runtime's reader has it: of five bytes at most, and of their bits the lower 32. Nothing where it is
  /// longer, which ends that reader.
  std::optional<std::uint64_t> tag_at(std::uint64_t& at, std::uint64_t end) {
    constexpr std::uint64_t longest_tag = 5;
    const std::uint64_t begin = at;
    const auto tag = number(at, end);
    if (!tag || at - begin > longest_tag) return std::nullopt;
    return *tag & std::numeric_limits<std::uint32_t>::max();
  }

  /// Passes over a group, as protocol buffers of long ago have them, and their readers skip, to its end. False where it
  /// is damaged.
  bool skip_group(std::uint64_t field, std::uint64_t& at, std::uint64_t end, int depth) {
    if (depth > most_depth) return false;
    while (at < end) {
      const auto tag = tag_at(at, end);
      if (!tag || *tag >> 3 == 0) return false;
      if ((*tag & 7) == end_of_group) return *tag >> 3 == field;
      if (!skip_value(*tag, at, end, depth)) return false;
    }
    return false;
  }

  /// Passes over the value behind a tag that isn't of a message.
  bool skip_value(std::uint64_t tag, std::uint64_t& at, std::uint64_t end, int depth) {
    if ((tag & 7) == begin_of_group) return skip_group(tag >> 3, at, end, depth + 1);
    if ((tag & 7) == 0) return number(at, end).has_value();
    const auto length = length_of(tag, at, end);
    if (!length) return false;
    skip(at, *length);
    return true;
  }

  /// Of the value behind a tag, in bytes; nothing where it goes beyond the end, or is of a kind without one.
  std::optional<std::uint64_t> length_of(std::uint64_t tag, std::uint64_t& at, std::uint64_t end) {
    std::optional<std::uint64_t> length;
    if ((tag & 7) == 1) length = 8;
    if ((tag & 7) == 5) length = 4;
    if ((tag & 7) == 2) length = number(at, end);
    return length && *length <= end - at ? length : std::nullopt;
  }

  void skip(std::uint64_t& at, std::uint64_t length) {
    at += length;
    stream_.seekg(static_cast<std::streamoff>(at));
  }

  /// Reads what lies at [at, end). False where it is damaged.
  bool read(Message message, std::uint64_t at, std::uint64_t end, int depth) {
    if (depth > most_depth) return false;
    stream_.seekg(static_cast<std::streamoff>(at));
    std::string key;
    std::string value;
    while (at < end) {
      const auto tag = tag_at(at, end);
      // No message has a field 0: what begins so is another kind of file.
      if (!tag || *tag >> 3 == 0) return false;
      const std::uint64_t field = *tag >> 3;
      const Message inner = field_of(message, field);
      const bool is_text = message == Message::entry && (field == 1 || field == 2);
      if ((*tag & 7) != 2 || (inner == Message::none && !is_text)) {
        if (!skip_value(*tag, at, end, depth)) return false;
        continue;
      }
      const auto length = length_of(*tag, at, end);
      if (!length) return false;
      if (inner != Message::none && !read(inner, at, at + *length, depth + 1)) return false;
      if (is_text) {
        std::string& text = field == 1 ? key : value;
        // A longer one is no file's name: what is left of it is refused as one that isn't there.
        text.resize(std::min(*length, longest));
        if (!stream_.read(text.data(), static_cast<std::streamsize>(text.size()))) return false;
      }
      skip(at, *length);
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

std::vector<std::string> volume_networks(const std::string& path) {
  if (path.empty()) {
    throw ConfigError("volume.networks isn't set: expected an ONNX file, or a folder with one network per fragment");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  std::filesystem::directory_iterator at(path, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.ends_with(".onnx") && !name.starts_with(".")) files.push_back(at->path().string());
  }
  if (error) throw ConfigError(path + ": " + error.message());
  if (files.empty()) throw ConfigError(path + ": a folder without a network: no file ends in .onnx");
  std::ranges::sort(files);
  return files;
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
    if (path.is_absolute() || std::ranges::find(path, "..") != path.end() || name.find('\0') != std::string::npos) {
      throw ConfigError(file + ": " + which + "that isn't in its folder");
    }
    check(whole.parent_path() / path, which);
  }
}

std::vector<WeightFile> read_weight_files(const std::filesystem::path& file) {
  std::vector<WeightFile> files;
  for (const std::string& name : weight_files(file)) {
    const std::filesystem::path path = file.parent_path() / name;
    std::error_code error;
    const std::uintmax_t size = std::filesystem::file_size(path, error);
    WeightFile& read = files.emplace_back(WeightFile{name, {}});
    std::ifstream stream(path, std::ios::binary);
    if (!error) read.bytes.resize(size);
    if (error || !stream.read(read.bytes.data(), static_cast<std::streamsize>(size))) {
      throw ConfigError(path.string() + ": can't be read");
    }
  }
  return files;
}

NetworkState& NetworkState::operator+=(const NetworkState& other) {
  written += other.written;
  changed += other.changed;
  return *this;
}

NetworkState state_of_network(const std::filesystem::path& file) {
  NetworkState all;
  const auto time_text = [](const struct ::timespec& time) {
    return std::to_string(time.tv_sec) + "." + std::to_string(time.tv_nsec);
  };
  const auto add = [&](const std::filesystem::path& path) {
    struct ::stat about {};
    const bool is_there = ::stat(path.c_str(), &about) == 0;
    const std::string what = std::to_string(about.st_dev) + " " + std::to_string(about.st_ino) + " " +
                             std::to_string(about.st_size) + " " + time_text(about.st_mtim);
    all.written += path.string() + " " + (is_there ? what : "isn't there") + "\n";
    all.changed += time_text(about.st_ctim) + "\n";
  };
  add(file);
  for (const std::string& name : weight_files(file)) add(file.parent_path() / name);
  return all;
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
