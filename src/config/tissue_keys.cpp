#include "config/tissue_keys.hpp"

#include <string>

#include "config/key_makers.hpp"

namespace slidestream {

std::vector<ConfigKey> tissue_keys() {
  static const std::vector<std::string> tissue_names = {"auto", "geojson"};
  static const std::vector<std::string> method_names = {"auto", "otsu", "fixed"};
  static const std::vector<std::string> ink_names = {"drop", "keep"};
  return {
      choice("tissue", "source", &Config::tissue, &TissueConfig::source, tissue_names,
             "Where the mask of tissue comes from, for all that want one: auto (found by its saturation at 8 "
             "micrometres per pixel, or by tissue.model; holes in tissue are filled), or geojson (polygons in level 0 "
             "pixels, in SLIDE.geojson beside the slide). Memory: while a slide is looked at, about 10 bytes per pixel "
             "of that size, at most 640 MiB. Default auto."),
      real("tissue", "share", &Config::tissue, &TissueConfig::share, 0.0, 1.0,
           "Share of a window that is tissue from which on the window counts as tissue, 0 to 1. Default 0.5."),
      choice("tissue", "method", &Config::tissue, &TissueConfig::method, method_names,
             "How the threshold of saturation is found: auto (just above the saturation of glass, so that pale tissue "
             "is found beside strongly stained tissue), otsu (Otsu's threshold, at least 15), or fixed "
             "(tissue.threshold, 8 if that is 0). Default auto."),
      integer("tissue", "threshold", &Config::tissue, &TissueConfig::threshold, 0, 254,
              "Saturation above which a pixel is tissue, 1 to 254; 0 means the one that tissue.method finds. Default "
              "0."),
      path("tissue", "model", &Config::tissue, &TissueConfig::model,
           "A network that finds tissue in place of the rule of saturation: an ONNX file, with its settings in a file "
           "of the same name that ends in .toml beside it (MODEL.toml), in a section [model], of which mpp is needed. "
           "It gives a channel of probabilities, a channel for each of two classes, or labels, and runs on the CPU. "
           "Not beside tissue.source = \"geojson\", tissue.method and tissue.threshold. Memory: rows of its tiles "
           "while a slide is looked at, at most stitch.memory_mib. Default \"\"."),
      integer("tissue", "class", &Config::tissue, &TissueConfig::label, 0, 65535,
              "With tissue.model: the class that is tissue, from 0. A network of one channel gives the probability of "
              "class 1. Default 1."),
      real("tissue", "probability", &Config::tissue, &TissueConfig::probability, 0.001, 1.0,
           "With tissue.model: probability of tissue from which on a pixel is tissue, 0.001 to 1. Labels have none. "
           "Default 0.5."),
      real("tissue", "min_um2", &Config::tissue, &TissueConfig::min_um2, 0.0, 1e12,
           "Smallest area of a region of tissue in square micrometres; smaller ones are dropped. Default 2048.0, a "
           "square of 45 micrometres."),
      or_minus_one(real(
          "tissue", "fill_um2", &Config::tissue, &TissueConfig::fill_um2, -1.0, 1e12,
          "Largest area of a hole in tissue that is filled, in square micrometres; 0 means none, -1 all. What ink or a "
          "dark frame encloses is no hole in tissue. Default 262144.0, a square of 512 micrometres.")),
      choice("tissue", "ink", &Config::tissue, &TissueConfig::ink, ink_names,
             "Strokes of a pen: drop (they are no tissue), or keep (they may be; for stains that are as green or as "
             "blue as ink). With tissue.model and outlines it decides only what stains are fitted to. Default drop."),
      real("tissue", "simplify_px", &Config::tissue, &TissueConfig::simplify_px, 0.0, 10.0,
           "How far the outlines in SLIDE.tissue.geojson may lie from the mask's, in its pixels (8 micrometres), 0 to "
           "10: corners are left out accordingly. 0 means the mask's own outlines. Default 1.0."),
  };
}

}  // namespace slidestream
