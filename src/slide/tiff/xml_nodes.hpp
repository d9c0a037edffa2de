#pragma once

#include <pugixml.hpp>
#include <string_view>

/// \file
/// Elements and attributes of XML by their names, whatever prefixes these have.

namespace slidestream::xml {

bool is_named(const pugi::xml_node& node, std::string_view name);
pugi::xml_node child_of(const pugi::xml_node& node, std::string_view name);
/// Empty where there is none.
std::string_view attribute_of(const pugi::xml_node& node, std::string_view name);
bool has_attribute(const pugi::xml_node& node, std::string_view name);

/// All elements of a tree, in their order, without recursion.
template <class See>
void for_each_element(const pugi::xml_node& root, const See& see) {
  for (pugi::xml_node node = root; node;) {
    if (node.type() == pugi::node_element) see(node);
    pugi::xml_node next = node.first_child();
    while (!next && node && node != root) {
      next = node.next_sibling();
      if (!next) node = node.parent();
    }
    node = next;
  }
}

}  // namespace slidestream::xml
