#pragma once

#include <cstddef>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// \file
/// GeoJSON, geometry by geometry: positions are in memory until their geometry ends, or the feature that has it, and
/// nothing else is. A feature's class may stand behind its geometry.

namespace slidestream::operators {

/// A geometry of more positions is refused: these take 128 MiB.
inline constexpr std::size_t most_positions = std::size_t{1} << 23;

/// A position of a geometry, in the file's units.
struct GeoPosition {
  double x = 0.0;
  double y = 0.0;
};

/// What "coordinates" holds: positions in arrays in arrays.
struct GeoCoordinates {
  std::deque<GeoPosition> positions;
  std::vector<std::size_t> rings;     ///< ends of the arrays of positions, in positions
  std::vector<std::size_t> polygons;  ///< ends of the arrays of rings, in rings
  int depth = 0;                      ///< of the arrays that are positions: 3 for Polygon, 4 for MultiPolygon; 0: none
  unsigned empty = 0;                 ///< bit d is set where an array of depth d holds nothing
  bool are_sound = true;              ///< all of one depth, and two numbers or more
  bool is_of_other_plane = false;     ///< z or t of QuPath's "plane" isn't 0
};

/// Takes geometries. It may throw.
class GeometrySink {
 public:
  virtual ~GeometrySink() = default;
  /// A Polygon, or a MultiPolygon.
  virtual void polygons(const GeoCoordinates& coordinates, bool multiple) = 0;
  /// A point, a line, or several.
  virtual void flat() = 0;
  /// A feature with polygons, of QuPath's class "Ignore*".
  virtual void ignored() = 0;
};

/// Takes the events of nlohmann's parser, each of which throws Error with what is wrong, without the file's name.
class GeoJsonReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit GeoJsonReader(GeometrySink& sink) : sink_(sink) {}

  bool null() override { return scalar(true); }
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value)); }
  bool number_float(number_float_t value, const string_t& text) override;
  bool string(string_t& value) override;
  bool binary(binary_t& value) override;
  bool start_object(std::size_t size) override;
  bool key(string_t& value) override;
  bool end_object() override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& error) override;

 private:
  /// What the next value of an object is.
  enum class Member { other, type, coordinates, geometry, features, geometries, properties, plane };
  /// What the next value on the way to a feature's class is.
  enum class ClassMember { other, classification, name, names };
  /// An object that is a geometry, a feature or a collection.
  struct Node {
    Member next = Member::other;
    unsigned seen = 0;          ///< bit m is set where member m but `other` was there
    bool is_in_list = false;    ///< between the brackets of features or geometries
    bool is_bare_list = false;  ///< no object at all: the brackets are the file's outermost
    bool has_type = false;
    std::string type;
    bool has_coordinates = false;
    bool has_geometry = false;
    bool has_features = false;
    bool has_geometries = false;
    bool is_ignored = false;  ///< by its class
    bool is_of_other_plane = false;
    std::size_t first_held = 0;  ///< of what it has of `held_`
  };
  /// Polygons of a feature that is open.
  struct Held {
    GeoCoordinates coordinates;
    bool is_multiple = false;
  };

  bool scalar(bool is_null);
  bool number(double value);
  void start_coordinates_array();
  void end_coordinates_array();
  void start_node();
  void end_node(const Node& node);
  void end_polygons(bool multiple);
  void end_feature(const Node& node);
  bool is_in_feature() const;
  void key_of_other(const std::string& key);
  /// Goes into or out of an array or object that is no part of a geometry. \param leads  to a feature's class
  void enter_other(bool leads);
  void leave_other();
  /// Whether the array or object that is open leads to a feature's class.
  bool is_on_way_to_class() const { return other_depth_ > 0 && class_depth_ == other_depth_; }
  /// Whether a value lies where only geometries and features do.
  bool is_node_expected() const;

  GeometrySink& sink_;
  std::vector<Node> nodes_;      ///< that are open
  std::size_t other_depth_ = 0;  ///< of arrays and objects that are no part of a geometry
  std::size_t class_depth_ = 0;  ///< of those that lead to a class: 1 properties, 2 classification, 3 names
  ClassMember next_of_class_ = ClassMember::other;
  std::vector<std::string> seen_of_other_;  ///< those that are read of the member of a node that is open
  bool is_place_of_plane_ = false;          ///< the next value is z or t of a plane, unless it lies deeper
  std::vector<Held> held_;
  std::size_t held_positions_ = 0;
  std::vector<std::size_t> children_;  ///< of the arrays of coordinates that are open
  std::size_t numbers_ = 0;            ///< of the position that is open
  GeoPosition position_;
  GeoCoordinates coordinates_;
};

}  // namespace slidestream::operators
