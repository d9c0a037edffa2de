#pragma once

// What tests of networks in ONNX files share: where they lie, settings to run one, and what is said of one that can't
// be.

#include <doctest/doctest.h>

#include <filesystem>
#include <iostream>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>

#include "networks/onnx_network.hpp"

namespace slidestream::test {

/// The folder of models that scripts/make-models.py made; empty, and a line says why, where there is none.
inline std::string models() {
  const std::string folder = SLIDESTREAM_TEST_MODELS;
  if (std::filesystem::exists(std::filesystem::path(folder) / "libonnxruntime.so")) return folder;
  std::cout << "SKIPPED: no networks, or nothing that runs them: scripts/install-deps.sh --tests installs it\n";
  return {};
}

inline Config running(const std::string& file) {
  Config config;
  config.operators.run = {"model"};
  config.model.file = file;
  config.model.runtime = SLIDESTREAM_TEST_MODELS;
  config.model.provider = ModelProvider::cpu;
  read_model_file(config);
  return config;
}

/// What a network is refused with, without its folder; empty: it isn't.
inline std::string complaint(const Config& config) {
  try {
    networks::open_network(config);
    return "";
  } catch (const ConfigError& error) {
    std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    // Folders differ.
    const std::string folder = std::filesystem::path(config.model.file).parent_path().string() + "/";
    for (auto at = text.find(folder); at != std::string::npos; at = text.find(folder)) text.erase(at, folder.size());
    return text;
  }
}

}  // namespace slidestream::test
