#include "operators/tissue/geojson_reader.hpp"

#include <algorithm>
#include <slidestream/error.hpp>
#include <string_view>
#include <utility>

namespace slidestream::operators {
namespace {

/// Around a geometry: lists and collections of features, features, and collections of geometries.
constexpr std::size_t max_depth = 16;
/// Arrays in coordinates are, too: those of a MultiPolygon's positions are four deep.
constexpr std::size_t max_array_depth = 8;
/// Of a feature, whose polygons are in memory until it ends.
constexpr std::size_t most_held = 65'536;
/// QuPath's class of regions to be ignored. Behind it stand the names of a derived class.
constexpr std::string_view ignored_class = "Ignore*";
/// Bytes of a class that is a text. A longer one is none.
constexpr std::size_t most_class_text = 4096;

[[noreturn]] void fail_reading(const std::string& cause) { throw Error(cause); }

[[noreturn]] void fail_of_repeated(const std::string& key) {
  fail_reading("\"" + key + "\" stands twice in an object");
}

[[noreturn]] void fail_of_missing(const char* key) {
  fail_reading(std::string("\"") + key + "\" is missing or no array");
}

/// Whether a class is to be ignored that is a text: its name, or an object as JSON, as tables of attributes hold it.
bool is_ignored_class(const std::string& text) {
  if (text.size() > most_class_text) return false;
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_object()) return text.starts_with(ignored_class);
  const auto is_ignored = [](const nlohmann::json& name) {
    return name.is_string() && name.get_ref<const std::string&>().starts_with(ignored_class);
  };
  const auto name = parsed.find("name");
  const auto names = parsed.find("names");
  return (name != parsed.end() && is_ignored(*name)) ||
         (names != parsed.end() && names->is_array() && std::any_of(names->begin(), names->end(), is_ignored));
}

/// Whether geometries of this type have no area.
bool is_flat(const std::string& type) {
  return type == "Point" || type == "MultiPoint" || type == "LineString" || type == "MultiLineString";
}

}  // namespace

bool GeoJsonReader::is_node_expected() const {
  if (other_depth_ > 0 || !children_.empty()) return false;
  return nodes_.empty() || nodes_.back().is_in_list || nodes_.back().next == Member::geometry;
}

bool GeoJsonReader::scalar(bool is_null) {
  if (!children_.empty()) {
    ++children_.back();
    coordinates_.are_sound = false;
    return true;
  }
  if (is_node_expected()) {
    const bool no_geometry = is_null && !nodes_.empty() && !nodes_.back().is_in_list;
    if (!no_geometry) fail_reading("an object with a \"type\" was expected");
    nodes_.back().has_geometry = true;
  }
  return true;
}

bool GeoJsonReader::boolean(bool /*value*/) { return scalar(false); }

bool GeoJsonReader::number_float(number_float_t value, const string_t& /*text*/) { return number(value); }

bool GeoJsonReader::binary(binary_t& /*value*/) { return scalar(false); }

bool GeoJsonReader::number(double value) {
  if (children_.empty()) {
    if (is_place_of_plane_ && value != 0.0) nodes_.back().is_of_other_plane = true;
    return scalar(false);
  }
  ++children_.back();
  const int depth = static_cast<int>(children_.size());
  if (coordinates_.depth == 0) coordinates_.depth = depth;
  if (coordinates_.depth != depth) coordinates_.are_sound = false;
  if (numbers_ == 0) position_.x = value;
  if (numbers_ == 1) position_.y = value;
  ++numbers_;
  return true;
}

bool GeoJsonReader::string(string_t& value) {
  const bool is_member = other_depth_ == 0 && children_.empty() && !nodes_.empty() && !nodes_.back().is_in_list;
  if (is_member && nodes_.back().next == Member::type) {
    nodes_.back().has_type = true;
    nodes_.back().type = value.substr(0, 64);
    return true;
  }
  const bool is_class =
      is_on_way_to_class() && (class_depth_ == 3 || (class_depth_ == 2 && next_of_class_ == ClassMember::name));
  if (is_class && value.starts_with(ignored_class)) nodes_.back().is_ignored = true;
  const bool is_whole_class =
      is_on_way_to_class() && class_depth_ == 1 && next_of_class_ == ClassMember::classification;
  if (is_whole_class && is_ignored_class(value)) nodes_.back().is_ignored = true;
  return scalar(false);
}

bool GeoJsonReader::start_object(std::size_t /*size*/) {
  if (!children_.empty()) {
    ++children_.back();
    coordinates_.are_sound = false;
    enter_other(false);
  } else if (is_node_expected()) {
    if (nodes_.size() > max_depth) fail_reading("collections inside collections go too deep");
    if (!nodes_.empty()) {
      if (!nodes_.back().is_in_list) nodes_.back().has_geometry = true;
      // There is one place for coordinates.
      nodes_.back().has_coordinates = false;
    }
    start_node();
  } else {
    enter_other(other_depth_ == 0 ? nodes_.back().next == Member::properties
                                  : class_depth_ == 1 && next_of_class_ == ClassMember::classification);
  }
  return true;
}

bool GeoJsonReader::key(string_t& value) {
  if (other_depth_ > 0) {
    key_of_other(value);
    return true;
  }
  Node& node = nodes_.back();
  node.next = value == "type"          ? Member::type
              : value == "coordinates" ? Member::coordinates
              : value == "geometry"    ? Member::geometry
              : value == "features"    ? Member::features
              : value == "geometries"  ? Member::geometries
              : value == "properties"  ? Member::properties
              : value == "plane"       ? Member::plane
                                       : Member::other;
  if (node.next == Member::other) return true;
  // Readers of JSON take the last one. What the first one held may be drawn already.
  const unsigned member = 1U << static_cast<unsigned>(node.next);
  if ((node.seen & member) != 0) fail_of_repeated(value);
  node.seen |= member;
  return true;
}

void GeoJsonReader::key_of_other(const std::string& key) {
  const bool is_in_plane = other_depth_ == 1 && children_.empty() && nodes_.back().next == Member::plane;
  is_place_of_plane_ = is_in_plane && (key == "z" || key == "t");
  next_of_class_ = key == "classification" ? ClassMember::classification
                   : key == "name"         ? ClassMember::name
                   : key == "names"        ? ClassMember::names
                                           : ClassMember::other;
  const bool is_class = next_of_class_ == ClassMember::classification;
  const bool is_name = next_of_class_ == ClassMember::name || next_of_class_ == ClassMember::names;
  const bool is_of_class = is_on_way_to_class() && ((class_depth_ == 1 && is_class) || (class_depth_ == 2 && is_name));
  if (!is_place_of_plane_ && !is_of_class) return;
  if (std::ranges::find(seen_of_other_, key) != seen_of_other_.end()) fail_of_repeated(key);
  seen_of_other_.push_back(key);
}

bool GeoJsonReader::end_object() {
  if (other_depth_ > 0) {
    leave_other();
    return true;
  }
  const Node node = std::move(nodes_.back());
  nodes_.pop_back();
  end_node(node);
  coordinates_ = {};
  return true;
}

bool GeoJsonReader::start_array(std::size_t /*size*/) {
  if (other_depth_ > 0) {
    enter_other(class_depth_ == 2 && next_of_class_ == ClassMember::names);
    return true;
  }
  if (!children_.empty()) {
    start_coordinates_array();
    return true;
  }
  if (is_node_expected()) {
    if (!nodes_.empty()) fail_reading("an object with a \"type\" was expected");
    // A bare list of features, as QuPath writes it.
    start_node();
    nodes_.back().is_in_list = true;
    nodes_.back().is_bare_list = true;
    return true;
  }
  Node& node = nodes_.back();
  switch (node.next) {
    case Member::coordinates:
      coordinates_ = {};
      node.has_coordinates = true;
      children_.push_back(0);
      break;
    case Member::features:
      node.has_features = true;
      node.is_in_list = true;
      break;
    case Member::geometries:
      node.has_geometries = true;
      node.is_in_list = true;
      break;
    default:
      enter_other(false);
  }
  return true;
}

bool GeoJsonReader::end_array() {
  if (other_depth_ > 0) {
    leave_other();
  } else if (!children_.empty()) {
    end_coordinates_array();
  } else {
    nodes_.back().is_in_list = false;
    if (nodes_.back().is_bare_list) nodes_.pop_back();
  }
  return true;
}

void GeoJsonReader::start_coordinates_array() {
  if (children_.size() == max_array_depth) fail_reading("arrays inside coordinates go too deep");
  ++children_.back();
  children_.push_back(0);
}

void GeoJsonReader::end_coordinates_array() {
  const int depth = static_cast<int>(children_.size());
  const bool is_empty = children_.back() == 0;
  children_.pop_back();
  if (is_empty) {
    coordinates_.empty |= 1U << depth;
  } else if (depth == coordinates_.depth) {
    if (numbers_ < 2) coordinates_.are_sound = false;
    if (held_positions_ + coordinates_.positions.size() >= most_positions) {
      fail_reading("a geometry has more than " + std::to_string(most_positions) + " positions");
    }
    coordinates_.positions.push_back(position_);
  } else if (depth == coordinates_.depth - 1) {
    coordinates_.rings.push_back(coordinates_.positions.size());
  } else if (depth == coordinates_.depth - 2) {
    coordinates_.polygons.push_back(coordinates_.rings.size());
  }
  numbers_ = 0;
}

void GeoJsonReader::enter_other(bool leads) {
  if (other_depth_ == 0) seen_of_other_.clear();
  // Only from one that leads there, too.
  if (leads && class_depth_ == other_depth_) ++class_depth_;
  ++other_depth_;
  next_of_class_ = ClassMember::other;
  is_place_of_plane_ = false;
}

void GeoJsonReader::leave_other() {
  if (class_depth_ == other_depth_) --class_depth_;
  --other_depth_;
  is_place_of_plane_ = false;
}

void GeoJsonReader::start_node() {
  nodes_.emplace_back();
  nodes_.back().first_held = held_.size();
}

bool GeoJsonReader::is_in_feature() const {
  return std::ranges::any_of(nodes_,
                             [](const Node& node) { return !node.is_in_list && node.next == Member::geometry; });
}

void GeoJsonReader::end_polygons(bool multiple) {
  if (!is_in_feature()) return sink_.polygons(coordinates_, multiple);
  if (held_.size() == most_held) fail_reading("a feature has more than " + std::to_string(most_held) + " geometries");
  held_positions_ += coordinates_.positions.size();
  held_.push_back({std::move(coordinates_), multiple});
}

void GeoJsonReader::end_feature(const Node& node) {
  if (node.is_ignored && held_.size() > node.first_held) {
    held_.resize(node.first_held);
    sink_.ignored();
  }
  if (is_in_feature()) return;
  for (const Held& held : held_) sink_.polygons(held.coordinates, held.is_multiple);
  held_.clear();
  held_positions_ = 0;
}

void GeoJsonReader::end_node(const Node& node) {
  if (!node.has_type) fail_reading("an object has no \"type\"");
  const std::string& type = node.type;
  if (type == "FeatureCollection" && !node.has_features) fail_of_missing("features");
  if (type == "GeometryCollection" && !node.has_geometries) fail_of_missing("geometries");
  if (type == "Feature" && !node.has_geometry) fail_reading("a feature has no \"geometry\"");
  // What lies in them was taken for what it says it is.
  if ((node.has_features && type != "FeatureCollection") || (node.has_geometries && type != "GeometryCollection") ||
      (node.has_geometry && type != "Feature")) {
    fail_reading("an object of another type holds \"features\", \"geometries\" or a \"geometry\"");
  }
  if (type == "Feature") return end_feature(node);
  if (type == "FeatureCollection" || type == "GeometryCollection") return;
  if (is_flat(type)) return sink_.flat();
  if (type == "Polygon" || type == "MultiPolygon") {
    if (!node.has_coordinates) fail_of_missing("coordinates");
    coordinates_.is_of_other_plane = node.is_of_other_plane;
    return end_polygons(type == "MultiPolygon");
  }
  const bool plain = !type.empty() && type.size() <= 32 && std::all_of(type.begin(), type.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  fail_reading("a geometry of type " + (plain ? type : std::string("unknown")) +
               "; Polygon and MultiPolygon can be read");
}

bool GeoJsonReader::parse_error(std::size_t position, const std::string& token,
                                const nlohmann::detail::exception& error) {
  if (dynamic_cast<const nlohmann::detail::out_of_range*>(&error) != nullptr) {
    constexpr std::size_t shown = 40;
    fail_reading("has a number that is too large at byte " + std::to_string(position) + ": " + token.substr(0, shown));
  }
  // "[...] parse error at line 1, column 2: what nobody here wrote"
  const std::string text = error.what();
  constexpr const char* before = "parse error at ";
  const std::size_t at = text.find(before);
  const std::size_t place = at == std::string::npos ? text.size() : at + std::string(before).size();
  const std::string where = text.substr(place, text.find(':', place) - place);
  const bool is_cut = text.find("unexpected end of input") != std::string::npos ||
                      text.find("missing closing quote") != std::string::npos;
  fail_reading("is not JSON" + (where.starts_with("line ") ? ": wrong at " + where : std::string()) +
               (is_cut ? ", where it ends" : ""));
}

}  // namespace slidestream::operators
