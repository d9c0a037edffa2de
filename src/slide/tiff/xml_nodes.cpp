#include "slide/tiff/xml_nodes.hpp"

namespace slidestream::xml {

namespace {

/// A name without its prefix.
std::string_view local(const char* name) {
  const std::string_view whole = name;
  const std::size_t colon = whole.find(':');
  return colon == std::string_view::npos ? whole : whole.substr(colon + 1);
}

}  // namespace

bool is_named(const pugi::xml_node& node, std::string_view name) {
  return node.type() == pugi::node_element && local(node.name()) == name;
}

pugi::xml_node child_of(const pugi::xml_node& node, std::string_view name) {
  return node.find_child([name](const pugi::xml_node& child) { return is_named(child, name); });
}

std::string_view attribute_of(const pugi::xml_node& node, std::string_view name) {
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    if (local(attribute.name()) == name) return attribute.value();
  }
  return {};
}

bool has_attribute(const pugi::xml_node& node, std::string_view name) {
  return !node.find_attribute([name](const pugi::xml_attribute& a) { return local(a.name()) == name; }).empty();
}

}  // namespace slidestream::xml
