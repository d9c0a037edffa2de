#include "networks/onnx_graph.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <slidestream/error.hpp>
#include <string>
#include <vector>

#include "support/temporary_folder.hpp"

namespace slidestream::networks {
namespace {

// Messages of onnx.proto, written field by field.

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>((value & 127) | 128);
  return bytes + static_cast<char>(value);
}

std::string number_in(std::uint64_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }

std::string bytes_in(std::uint64_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

constexpr int type_float = 1;
constexpr int type_int64 = 7;
constexpr int type_float16 = 10;

std::string onnx_tensor(const std::string& name, const std::string& values, int type = type_float,
                        const std::vector<std::uint64_t>& shape = {2, 2}) {
  std::string bytes;
  for (const std::uint64_t side : shape) bytes += number_in(1, side);
  return bytes_in(5, bytes + number_in(2, static_cast<std::uint64_t>(type)) + bytes_in(8, name) + values);
}

std::string raw_values(char value, std::size_t bytes = 16) { return bytes_in(9, std::string(bytes, value)); }

std::string values_in_file(const std::string& file, const std::string& offset = "0", const std::string& length = "16") {
  const auto entry = [](const std::string& key, const std::string& value) {
    return bytes_in(13, bytes_in(1, key) + bytes_in(2, value));
  };
  return entry("location", file) + entry("offset", offset) + entry("length", length) + number_in(14, 1);
}

std::string onnx_node(const std::string& type, std::initializer_list<std::string> inputs,
                      const std::string& more = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += bytes_in(1, input);
  return bytes_in(1, bytes + bytes_in(2, "made") + bytes_in(4, type) + more);
}

std::string onnx_attribute(const std::string& name, const std::string& value) {
  return bytes_in(5, bytes_in(1, name) + value);
}

/// \param parts  of its graph. \param more  fields of the model
std::string onnx_model(const std::string& parts, const std::string& more = "") {
  return number_in(1, 8) + bytes_in(7, parts + bytes_in(11, bytes_in(1, "in")) + bytes_in(12, bytes_in(1, "out"))) +
         bytes_in(8, number_in(2, 17)) + more;
}

class GraphFolder {
 public:
  std::optional<std::string> graph(const std::string& bytes) {
    return graph_of_network(folder_.write("network.onnx", bytes));
  }
  /// Of a network that has one text.
  std::string text(const std::string& bytes) {
    const auto made = graph(bytes);
    REQUIRE(made);
    return *made;
  }
  void write(const std::string& name, const std::string& bytes) { folder_.write(name, bytes); }

 private:
  test::TemporaryFolder folder_;
};

const std::string plain_conv = onnx_node("Conv", {"in", "w"}, onnx_attribute("group", number_in(3, 1)));

TEST_CASE("networks that differ in values of weights alone have one text") {
  GraphFolder folder;
  CHECK(folder.text(onnx_model(plain_conv + onnx_tensor("w", raw_values('a')))) ==
        folder.text(onnx_model(plain_conv + onnx_tensor("w", raw_values('b')))));
  for (const std::uint64_t field : {4, 5, 10}) {
    CAPTURE(field);
    const auto with = [&](char value) {
      return folder.text(
          onnx_model(plain_conv + onnx_tensor("w", bytes_in(field, std::string(16, value)), type_float16)));
    };
    CHECK(with('a') == with('b'));
  }
  folder.write("a.bin", std::string(16, 'a'));
  folder.write("b.bin", std::string(16, 'b'));
  const std::string a = folder.text(onnx_model(plain_conv + onnx_tensor("w", values_in_file("a.bin"))));
  CHECK(a == folder.text(onnx_model(plain_conv + onnx_tensor("w", values_in_file("b.bin")))));
  // Descriptions of graphs and tensors, and names of producers.
  CHECK(folder.text(onnx_model(plain_conv + onnx_tensor("w", raw_values('a')))) ==
        folder.text(
            onnx_model(plain_conv + bytes_in(10, "words") + onnx_tensor("w", raw_values('a') + bytes_in(12, "words")),
                       bytes_in(2, "producer"))));
  folder.write("b.bin", std::string(8, 'b'));
  CHECK(a != folder.text(onnx_model(plain_conv + onnx_tensor("w", values_in_file("b.bin")))));
  folder.write("b.bin", std::string(32, 'b'));
  CHECK(a == folder.text(onnx_model(plain_conv + onnx_tensor("w", values_in_file("b.bin")))));
  CHECK(a != folder.text(onnx_model(plain_conv + onnx_tensor("w", values_in_file("b.bin", "16")))));
}

TEST_CASE("networks that differ otherwise have texts of their own") {
  GraphFolder folder;
  const std::string weight = onnx_tensor("w", raw_values('a'));
  const std::vector<std::string> models = {
      onnx_model(plain_conv + weight),
      onnx_model(onnx_node("Conv", {"in", "w"}, onnx_attribute("group", number_in(3, 2))) + weight),
      onnx_model(onnx_node("Conv", {"in", "w"}, onnx_attribute("strides", number_in(3, 1))) + weight),
      onnx_model(onnx_node("ConvTranspose", {"in", "w"}, onnx_attribute("group", number_in(3, 1))) + weight),
      onnx_model(plain_conv + onnx_tensor("w", raw_values('a'), type_float, {4, 1})),
      onnx_model(plain_conv + onnx_tensor("w", raw_values('a'), type_float, {2, 2, 1})),
      onnx_model(plain_conv + onnx_tensor("w", raw_values('a', 8))),
      onnx_model(plain_conv + onnx_tensor("w", raw_values('a'), type_float16)),
      onnx_model(plain_conv + onnx_tensor("v", raw_values('a'))),
      onnx_model(plain_conv + weight + onnx_tensor("v", raw_values('a'))),
      onnx_model(plain_conv + weight + plain_conv),
      onnx_model(plain_conv + weight + bytes_in(11, bytes_in(1, "in") + bytes_in(2, "a shape"))),
      onnx_model(plain_conv + weight, bytes_in(8, number_in(2, 18))),
      onnx_model(plain_conv + weight, bytes_in(25, "")),
  };
  std::set<std::string> texts;
  for (const std::string& each : models) texts.insert(folder.text(each));
  CHECK(texts.size() == models.size());
}

TEST_CASE("values that aren't those of weights alone are in the text") {
  GraphFolder folder;
  const auto differ = [&](const std::string& nodes, int type = type_float, const std::string& more = "") {
    return folder.text(onnx_model(nodes + onnx_tensor("w", raw_values('a'), type), more)) !=
           folder.text(onnx_model(nodes + onnx_tensor("w", raw_values('b'), type), more));
  };
  CHECK_FALSE(differ(plain_conv));
  CHECK_FALSE(differ(onnx_node("Conv", {"in", "w"}, bytes_in(7, "ai.onnx"))));
  CHECK(differ(plain_conv, type_int64));
  CHECK(differ(onnx_node("Conv", {"w", "in"})));
  CHECK(differ(onnx_node("Reshape", {"in", "w"})));
  CHECK(differ(plain_conv + onnx_node("Reshape", {"in", "w"})));
  CHECK(differ(onnx_node("Conv", {"in", "w"}, bytes_in(7, "another domain"))));
  // The graph gives it.
  CHECK(differ(plain_conv + bytes_in(12, bytes_in(1, "w"))));
  // A graph within a node takes it, or gives it.
  CHECK(differ(plain_conv +
               onnx_node("If", {"in"}, onnx_attribute("then", bytes_in(6, onnx_node("Reshape", {"in", "w"}))))));
  CHECK(differ(plain_conv +
               onnx_node("If", {"in"}, onnx_attribute("then", bytes_in(11, bytes_in(12, bytes_in(1, "w")))))));
  CHECK_FALSE(differ(plain_conv +
                     onnx_node("If", {"in"}, onnx_attribute("then", bytes_in(6, onnx_node("Conv", {"in", "w"}))))));
  // A function may call whatever it does a convolution.
  CHECK(differ(plain_conv, type_float, bytes_in(25, "")));
}

TEST_CASE("what is damaged or too large has no text, and a file that isn't there is refused") {
  GraphFolder folder;
  const std::string whole = onnx_model(plain_conv + onnx_tensor("w", raw_values('a')));
  REQUIRE(folder.graph(whole));
  const std::string behind = bytes_in(8, number_in(2, 17));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CAPTURE(bytes);
    const auto cut = folder.graph(whole.substr(0, bytes));
    // There a field ends.
    if (bytes == 0 || bytes == number_in(1, 8).size() || bytes == whole.size() - behind.size()) {
      CHECK(cut != folder.graph(whole));
    } else {
      CHECK_FALSE(cut);
    }
  }
  // Within a graph, a tensor, and a node.
  CHECK_FALSE(folder.graph(onnx_model(plain_conv + std::string("\x2a\x7f"))));
  CHECK_FALSE(folder.graph(onnx_model(plain_conv + bytes_in(5, "\x4a\x7f"))));
  CHECK_FALSE(folder.graph(onnx_model(bytes_in(1, "\x0a\x7f"))));
  // No message has a field 0.
  CHECK_FALSE(folder.graph(onnx_model(plain_conv) + std::string(2, '\0')));
  CHECK_FALSE(
      folder.graph(onnx_model(plain_conv + onnx_tensor("w", bytes_in(9, std::string(5 << 20, 'a')), type_int64))));
  CHECK(folder.graph(onnx_model(plain_conv + onnx_tensor("w", bytes_in(9, std::string(5 << 20, 'a'))))));
  folder.write("a.bin", std::string(16, 'a'));
  CHECK_FALSE(folder.graph(onnx_model(plain_conv + onnx_tensor("w", values_in_file("a.bin"), type_int64))));
  // Graphs within graphs.
  std::string deep = plain_conv;
  for (int i = 0; i < 200; ++i) deep = onnx_node("If", {"in"}, onnx_attribute("then", bytes_in(6, deep)));
  CHECK_FALSE(folder.graph(onnx_model(deep)));
  const test::TemporaryFolder none;
  CHECK_THROWS_AS(graph_of_network(none / "none.onnx"), ConfigError);
}

}  // namespace
}  // namespace slidestream::networks
