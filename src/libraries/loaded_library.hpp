#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

/// \file
/// Libraries that the program isn't linked with, found and loaded when they are wanted.

namespace slidestream::libraries {

/// What is looked for, and where.
struct LibrarySearch {
  const char* product;                 ///< in messages, such as "ONNX Runtime"
  const char* key;                     ///< the configuration's
  const char* variable;                ///< the environment's
  std::span<const char* const> names;  ///< what the system's loader is asked for, in this order
  const char* file;                    ///< what files in folders begin with, such as "libonnxruntime.so"
  const char* package;                 ///< of Python; its folder holds the library
  const char* folder;                  ///< in the package's folder, where that is looked for as well; empty: none
  const char* hint;                    ///< how the package is installed
};

/// A library that the loader has loaded; never given back.
struct LoadedLibrary {
  std::string file;
  void* handle = nullptr;  ///< for dlsym
};

/// Finds and loads it: `named`, else what the environment's variable names, each a library or a folder with one; else
/// what the system's loader finds; else the library in the package of the Python that `python3` is, which runs
/// isolated from the working directory (its option -I). Where the loader would look in the working directory,
/// `folders_for_loader` are searched in its place. Thread-safe. \throws ConfigError that says where it was looked for.
LoadedLibrary find_library(const LibrarySearch& search, const std::string& named);

/// Where an element of LD_LIBRARY_PATH is empty or relative, so that the loader would look in the working directory, or
/// below it: the absolute ones, and behind them the system's usual folders. Nothing: the loader doesn't.
/// \param path  the variable's value; null where it isn't set
std::optional<std::vector<std::string>> folders_for_loader(const char* path);

}  // namespace slidestream::libraries
