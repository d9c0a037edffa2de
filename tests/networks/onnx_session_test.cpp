// What ONNX Runtime is asked for where a network runs on a GPU, with a library that stands in for it.

#include "networks/onnx_session.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <slidestream/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "networks/made_up_runtime.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::networks;
using namespace slidestream::test;

namespace {

std::shared_ptr<const OnnxRuntime> runtime() { return OnnxRuntime::load(SLIDESTREAM_MADE_UP_RUNTIME); }

/// A file that the library which stands in takes for a network.
const std::string& any_file() {
  static const TemporaryFolder folder;
  static const std::string file = folder.write("m.onnx", std::string("made up")).string();
  return file;
}

/// What a file of the library that stands in does and was asked for.
MadeUpRuntime& made_up_of(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto find = reinterpret_cast<MadeUpRuntime* (*)()>(dlsym(library, "made_up_runtime"));
  REQUIRE((find != nullptr));
  return *find();
}

/// As it is at the beginning, but for the type.
MadeUpRuntime& made_up(onnx::ElementType type) {
  const auto keep = runtime();
  MadeUpRuntime& made = made_up_of(SLIDESTREAM_MADE_UP_RUNTIME);
  made.type = type;
  made.knows_channels_last = true;
  made.wanted_at_once = 0;
  made.loaded.clear();
  made.most_running = 0;
  return made;
}

/// How many of four threads ran a network at a time, at most; each waits until `wanted` did.
int most_at_once(const Place& place, int wanted) {
  MadeUpRuntime& made = made_up(onnx::ElementType::float32);
  const OnnxSession session(runtime(), any_file(), place);
  made.wanted_at_once = wanted;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&session] {
      const OnnxSession::Value input;
      OnnxSession::Value output;
      session.run(input, output);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return made.most_running;
}

}  // namespace

TEST_CASE("A library that fails to begin isn't begun again, and lack of memory is told") {
  const TemporaryFolder folder;
  const auto failure_of = [&](const std::string& name, const std::string& says) {
    const std::string file = (folder / name).string();
    std::filesystem::copy_file(SLIDESTREAM_MADE_UP_RUNTIME, file);
    MadeUpRuntime& made = made_up_of(file);
    made.fails_to_begin = says;
    std::string first;
    for (int i = 0; i < 3; ++i) {
      std::string text;
      try {
        OnnxRuntime::load(file);
      } catch (const ConfigError& error) {
        text = error.what();
      }
      if (i == 0) first = text;
      CHECK(text == first);
    }
    CHECK(made.beginnings == 1);
    CHECK(first.starts_with(file + ": ONNX Runtime "));
    return first.substr(first.find(" can't begin: ") + 1);
  };
  CHECK(failure_of("short.so", "Exception caught: std::bad_alloc") ==
        "can't begin: there is no memory for it; raise the limit of memory");
  CHECK(failure_of("other.so", "no such thing") == "can't begin: no such thing");
}

TEST_CASE("On a GPU algorithms are chosen by shape, without TF32, in as much memory as there is for them") {
  const MadeUpRuntime& made = made_up(onnx::ElementType::float32);
  const OnnxSession session(runtime(), any_file(), {2, std::size_t{5} << 30, 0});
  REQUIRE(made.loaded.size() == 1);
  CHECK(made.loaded.front() == MadeUpRuntime::Options{{"device_id", "2"},
                                                      {"gpu_mem_limit", "5368709120"},
                                                      {"cudnn_conv_algo_search", "HEURISTIC"},
                                                      {"arena_extend_strategy", "kSameAsRequested"},
                                                      {"use_tf32", "0"}});
}

TEST_CASE("A network that takes float16 is computed with channels last, where the library knows how, and loaded once") {
  MadeUpRuntime& made = made_up(onnx::ElementType::float16);
  {
    const OnnxSession session(runtime(), any_file(), {0, 1000, 0});
    REQUIRE(made.loaded.size() == 2);
    CHECK(made.loaded.front().count("prefer_nhwc") == 0);
    CHECK(made.loaded.back().at("prefer_nhwc") == "1");
    CHECK(made.loaded.back().at("gpu_mem_limit") == "1000");
    CHECK(made.sessions == 1);
  }
  CHECK(made.sessions == 0);
  made.loaded.clear();
  made.knows_channels_last = false;
  const OnnxSession session(runtime(), any_file(), {0, 1000, 0});
  CHECK(made.loaded.size() == 2);
  CHECK(made.loaded.back().count("prefer_nhwc") == 0);
  CHECK(made.sessions == 1);
}

TEST_CASE("The library reads the file that was looked at, whatever takes its place meanwhile") {
  const TemporaryFolder folder;
  const std::string file = folder.write("m.onnx", std::string("looked at")).string();
  MadeUpRuntime& made = made_up(onnx::ElementType::float32);
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  made.on_session = [&](const auto&, bool begins) {
    if (begins) std::filesystem::rename(folder / "pipe", file);
  };
  { const OnnxSession session(runtime(), file, {}); }
  made.on_session = {};
  CHECK(made.content == "looked at");
  // Now the pipe is there, and isn't waited for.
  CHECK_THROWS_WITH_AS(OnnxSession(runtime(), file, {}), (file + ": not a regular file").c_str(), ConfigError);
}

TEST_CASE("No more batches are computed at a time on a GPU than may be, and any number on the host") {
  CHECK(most_at_once({0, 1000, 2}, 2) == 2);
  CHECK(most_at_once({0, 1000, 1}, 1) == 1);
  CHECK(most_at_once({}, 4) == 4);
}
