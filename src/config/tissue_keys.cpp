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
             "Tissue mask. auto: by saturation at 8 micrometres per pixel, or tissue.model. geojson: polygons in "
             "SLIDE.geojson beside the slide. Memory: about 10 bytes per pixel of that size, at most 640 "
             "MiB. Default auto."),
      real("tissue", "share", &Config::tissue, &TissueConfig::share, 0.0, 1.0,
           "Smallest share of tissue in a tissue window (analysis.split), 0 to 1; 0: any. Default 0.5."),
      choice("tissue", "method", &Config::tissue, &TissueConfig::method, method_names,
             "Saturation threshold. auto: just above glass, also for pale tissue. otsu: Otsu's, at least 15. fixed: "
             "tissue.threshold, else 8. Default auto."),
      integer("tissue", "threshold", &Config::tissue, &TissueConfig::threshold, 0, 254,
              "Saturation above which pixels are tissue, 1 to 254; 0: by tissue.method. Default 0."),
      path("tissue", "model", &Config::tissue, &TissueConfig::model,
           "ONNX network that finds tissue (docs/tissue.md). Its MODEL.toml must set mpp. Not with tissue.source = "
           "\"geojson\", tissue.method and tissue.threshold. Memory: at most stitch.memory_mib. "
           "Default \"\"."),
      integer("tissue", "class", &Config::tissue, &TissueConfig::label, 0, 65535,
              "With tissue.model: tissue's class, from 0. Default 1."),
      real("tissue", "probability", &Config::tissue, &TissueConfig::probability, 0.001, 1.0,
           "With tissue.model: smallest probability of tissue, 0.001 to 1. Ignored for labels. Default 0.5."),
      real("tissue", "min_um2", &Config::tissue, &TissueConfig::min_um2, 0.0, 1e12,
           "Smallest tissue region, in square micrometres. Default 2048.0 (45 x 45)."),
      or_minus_one(real("tissue", "fill_um2", &Config::tissue, &TissueConfig::fill_um2, -1.0, 1e12,
                        "Largest hole to fill, in square micrometres; 0: none, -1: all. Areas inside ink or a dark "
                        "frame aren't holes. Default 262144.0 (512 x 512).")),
      choice("tissue", "ink", &Config::tissue, &TissueConfig::ink, ink_names,
             "Pen strokes. drop: no tissue. keep: possibly tissue, for green or blue stains. With tissue.model or "
             "outlines, only for fitting stains. Default drop."),
      real("tissue", "simplify_px", &Config::tissue, &TissueConfig::simplify_px, 0.0, 10.0,
           "Largest distance of outlines from the mask's, in mask pixels (8 micrometres), 0 to 10; 0 keeps all "
           "corners. Default 1.0."),
  };
}

}  // namespace slidestream
