#include "networks/onnx_graph.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "networks/onnx_fields.hpp"
#include "networks/onnx_files.hpp"

namespace slidestream::networks {
namespace {

/// Operators whose inputs from the second on are weights: their values decide no shape.
constexpr std::array<std::string_view, 9> weight_operators = {
    "BatchNormalization", "Conv",   "ConvTranspose", "Gemm", "GroupNormalization", "InstanceNormalization",
    "LayerNormalization", "MatMul", "PRelu"};

/// A field of a message of onnx.proto.
struct GraphField {
  std::uint64_t number = 0;
  std::uint64_t tag = 0;
  std::uint64_t at = 0;  ///< its value
  std::uint64_t bytes = 0;
  std::uint64_t end() const noexcept { return at + bytes; }
};

class GraphReader : private OnnxFields {
 public:
  explicit GraphReader(const NetworkFile& network) : OnnxFields(network) {}

  std::optional<std::string> text() {
    const bool is_sound = for_fields(0, file().size(), [this](const GraphField& field) {
      if (field.number == 7) return read_graph(field);
      // Versions, operator sets and functions; others describe the file.
      if (field.number == 25) has_functions_ = true;
      return (field.number != 1 && field.number != 8 && field.number != 25) || add(field);
    });
    if (!is_sound || !std::ranges::all_of(tensors_, [this](const GraphField& one) { return add_tensor(one); })) {
      return std::nullopt;
    }
    return std::move(text_);
  }

 private:
  static constexpr std::size_t longest = 4 << 20;  ///< text

  /// Calls `visit` for each field until it returns false. \return false then, and where they are damaged
  template <class Visit>
  bool for_fields(std::uint64_t at, std::uint64_t end, const Visit& visit) {
    while (at < end) {
      const auto tag = tag_at(at, end);
      if (!tag || *tag >> 3 == 0) return false;
      GraphField field = {*tag >> 3, *tag, at, 0};
      if ((*tag & 7) == 2) {
        const auto length = length_of(*tag, at, end);
        if (!length) return false;
        field.at = at;
        at += *length;
      } else if (!skip_value(*tag, at, end, 0)) {
        return false;
      }
      field.bytes = at - field.at;
      if (!visit(field)) return false;
    }
    return true;
  }

  bool value_of(const GraphField& field, std::string& value) const {
    if (field.bytes > longest) return false;
    value.resize(field.bytes);
    return value.empty() || file().read(field.at, value);
  }

  void add_size(const GraphField& field) {
    text_ += std::to_string(field.tag) + " " + std::to_string(field.bytes) + "\n";
  }

  bool add(const GraphField& field) {
    std::string value;
    if (text_.size() + field.bytes > longest || !value_of(field, value)) return false;
    add_size(field);
    text_ += value;
    return true;
  }

  bool read_graph(const GraphField& graph) {
    return for_fields(graph.at, graph.end(), [this](const GraphField& field) {
      if (field.number == 5) return tensors_.push_back(field), true;
      if (field.number == 10) return true;  // describes it
      return find_uses_of(field, 0) && add(field);
    });
  }

  /// By a field of a graph: a node, or what the graph gives, which may be of any use. Field 1 of both has names.
  bool find_uses_of(const GraphField& field, int depth) {
    return (field.number != 1 && field.number != 12) || find_uses(field, depth);
  }

  bool find_uses(const GraphField& node, int depth) {
    if (depth > most_depth) return false;
    std::vector<std::string> inputs;
    std::string type;
    std::string domain;
    const bool is_sound = for_fields(node.at, node.end(), [&](const GraphField& field) {
      if (field.number == 1) return value_of(field, inputs.emplace_back());
      if (field.number == 4) return value_of(field, type);
      if (field.number == 7) return value_of(field, domain);
      return field.number != 5 || find_inner_uses(field, depth);
    });
    const bool has_weights =
        (domain.empty() || domain == "ai.onnx") && std::ranges::find(weight_operators, type) != weight_operators.end();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i == 0 || !has_weights) used_otherwise_.insert(std::move(inputs[i]));
    }
    return is_sound;
  }

  /// By graphs within a node's attribute.
  bool find_inner_uses(const GraphField& attribute, int depth) {
    return for_fields(attribute.at, attribute.end(), [&](const GraphField& graph) {
      if (graph.number != 6 && graph.number != 11) return true;
      return for_fields(graph.at, graph.end(), [&](const GraphField& field) { return find_uses_of(field, depth + 1); });
    });
  }

  bool add_tensor(const GraphField& tensor) {
    std::string name;
    std::uint64_t type = 0;
    const bool is_sound = for_fields(tensor.at, tensor.end(), [&](const GraphField& field) {
      std::uint64_t at = field.at;
      if (field.number == 2) type = number(at, field.end()).value_or(0);
      return field.number != 8 || value_of(field, name);
    });
    // float, float16, double, bfloat16
    const bool is_real = type == 1 || type == 10 || type == 11 || type == 16;
    const bool is_weight = is_real && !has_functions_ && !used_otherwise_.contains(name);
    text_ += "tensor\n";
    return is_sound && for_fields(tensor.at, tensor.end(), [&](const GraphField& field) {
             if (field.number == 12) return true;  // describes it
             if (field.number == 13) return is_weight && add_entry(field);
             const bool is_value = field.number == 4 || field.number == 5 || field.number == 9 || field.number == 10;
             if (!is_weight || !is_value) return add(field);
             return add_size(field), true;
           });
  }

  /// Of a tensor in another file; which one doesn't matter.
  bool add_entry(const GraphField& entry) {
    std::string key;
    return for_fields(entry.at, entry.end(), [&](const GraphField& field) {
      if (field.number == 1 && !value_of(field, key)) return false;
      return key == "location" || add(field);
    });
  }

  std::vector<GraphField> tensors_;
  std::set<std::string> used_otherwise_;  ///< names of values
  bool has_functions_ = false;            ///< which may call an operator what they like
  std::string text_;
};

}  // namespace

std::optional<std::string> graph_of_network(const std::filesystem::path& file) {
  const NetworkFile network(file);
  auto text = GraphReader(network).text();
  // Files of weights that are cut short differ.
  if (text) *text += std::to_string(bytes_of_network(file) - network.size());
  return text;
}

}  // namespace slidestream::networks
