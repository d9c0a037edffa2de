#include "networks/onnx_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <slidestream/error.hpp>
#include <span>
#include <string_view>
#include <system_error>

#include "config/suggest.hpp"
#include "networks/network_order.hpp"
#include "networks/onnx_fields.hpp"
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

constexpr std::uint64_t whole_file = std::numeric_limits<std::uint64_t>::max();

/// A number in decimal digits.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

/// Where a tensor lies in a file beside the network, as its entries say.
struct Outside {
  std::vector<std::string> files;
  std::string offset = "0";
  std::string length;

  /// The byte behind the tensor; `whole_file` where the entries don't say it.
  std::uint64_t end() const {
    const auto from = whole_number(offset);
    const auto bytes = whole_number(length);
    return from && bytes && *bytes > 0 && *bytes < whole_file - *from ? *from + *bytes : whole_file;
  }
};

class Reader : private OnnxFields {
 public:
  explicit Reader(const NetworkFile& network) : OnnxFields(network) { read(Message::model, 0, file().size(), 0); }

  /// The names, and how many bytes of each file tensors lie in.
  const std::map<std::string, std::uint64_t>& files() const noexcept { return files_; }
  /// Whether one of these is for an attribute of a node, which graphs within a graph are, too, or for a function.
  bool has_inner() const noexcept { return has_inner_; }

 private:
  static constexpr std::uint64_t longest = 4096;  ///< of a key or a name

  /// Reads what lies at [at, end). False where it is damaged.
  bool read(Message message, std::uint64_t at, std::uint64_t end, int depth) {
    if (depth > most_depth) return false;
    if (message == Message::tensor) outside_ = {};
    const bool is_inner = message == Message::function || message == Message::attribute;
    inner_ += is_inner ? 1 : 0;
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
        if (!file().read(at, text)) return false;
      }
      at += *length;
    }
    inner_ -= is_inner ? 1 : 0;
    if (message == Message::entry) take_entry(key, value);
    if (message == Message::tensor) {
      for (const std::string& name : outside_.files) files_[name] = std::max(files_[name], outside_.end());
    }
    return true;
  }

  /// The last of a key holds, for ONNX Runtime too; of names each is looked at.
  void take_entry(const std::string& key, const std::string& value) {
    if (value.empty()) return;
    if (key == "offset") outside_.offset = value;
    if (key == "length") outside_.length = value;
    if (key != "location") return;
    outside_.files.push_back(value);
    has_inner_ = has_inner_ || inner_ > 0;
    files_.try_emplace(value, 0);
  }

  Outside outside_;  ///< of the tensor that is read
  int inner_ = 0;    ///< attributes and functions around what is read
  bool has_inner_ = false;
  std::map<std::string, std::uint64_t> files_;
};

/// Those of a network that can't be opened: none.
std::map<std::string, std::uint64_t> outside_files(const std::filesystem::path& file) {
  try {
    return Reader(NetworkFile(file)).files();
  } catch (const ConfigError&) {
    return {};
  }
}

}  // namespace

NetworkFile::NetworkFile(const std::filesystem::path& file) : open_(file) {
  const auto fail = [&](const std::string& what) { throw ConfigError(file.string() + ": " + what); };
  struct ::stat about {};
  // ENXIO: a socket, or a device that nobody drives.
  if (open_.descriptor < 0 && errno == ENXIO) fail("not a regular file");
  if (open_.descriptor < 0 || ::fstat(open_.descriptor, &about) != 0) fail(std::generic_category().message(errno));
  if (!S_ISREG(about.st_mode)) fail("not a regular file");
  size_ = static_cast<std::uint64_t>(about.st_size);
}

bool NetworkFile::read(std::uint64_t at, std::string& bytes) const noexcept {
  return read_at(open_.descriptor, at, std::as_writable_bytes(std::span(bytes.data(), bytes.size()))) == 0;
}

std::string NetworkFile::open_name() const { return "/proc/self/fd/" + std::to_string(open_.descriptor); }

std::vector<std::string> weight_files(const std::filesystem::path& file) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : outside_files(file)) names.push_back(name);
  return names;
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
    if (name.ends_with(".onnx") && !name.starts_with(".")) files.push_back(name);
  }
  if (error) throw ConfigError(path + ": " + error.message());
  if (files.empty()) throw ConfigError(path + ": a folder without a network: no file ends in .onnx");
  files = in_order(path, files);
  for (std::string& file : files) file = (std::filesystem::path(path) / file).string();
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

Weights read_weights(const NetworkFile& network, const std::filesystem::path& folder) {
  const Reader reader(network);
  Weights weights;
  for (const auto& [name, end] : reader.files()) {
    const std::filesystem::path path = folder / name;
    const NetworkFile file(path);
    WeightFile& read = weights.files.emplace_back(WeightFile{name, {}});
    read.bytes.resize(std::min(end, file.size()));
    if (!file.read(0, read.bytes)) throw ConfigError(path.string() + ": can't be read");
  }
  weights.has_inner = reader.has_inner();
  return weights;
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
  const auto add = [&](const std::filesystem::path& path, std::uint64_t most) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path, error);
    if (!error) bytes += std::min(size, most);
  };
  add(file, whole_file);
  for (const auto& [name, end] : outside_files(file)) add(file.parent_path() / name, end);
  return bytes;
}

}  // namespace slidestream::networks
