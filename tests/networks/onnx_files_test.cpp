// The files that networks and their library lie in, and what is said of those that can't be any.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <slidestream/config.hpp>
#include <slidestream/error.hpp>
#include <string>
#include <utility>
#include <vector>

#include "libraries/loaded_library.hpp"
#include "networks/network_order.hpp"
#include "networks/onnx_files.hpp"
#include "networks/onnx_runtime.hpp"
#include "networks/running.hpp"
#include "support/temporary_folder.hpp"

using namespace slidestream;
using namespace slidestream::networks;
using namespace slidestream::test;
namespace fs = std::filesystem;

TEST_CASE("The loader isn't asked where it would look in the working directory") {
  using libraries::folders_for_loader;
  for (const char* path : {"", "/a", "/a:/b", "/a;/b", "$ORIGIN/../lib:/b", "${ORIGIN}"}) {
    CHECK_MESSAGE(!folders_for_loader(path), path);
  }
  CHECK_FALSE(folders_for_loader(nullptr));
  for (const char* path : {":", "/a:", ":/a", "/a::/b", "/a;", "lib", "/a:./lib", "/a:../b", "."}) {
    CAPTURE(path);
    const auto folders = folders_for_loader(path);
    REQUIRE(folders);
    for (const std::string& folder : *folders) CHECK_MESSAGE(folder.starts_with('/'), folder);
    CHECK((folders->front() == "/a") == (std::string(path).find("/a") != std::string::npos));
    CHECK(folders->back() == "/usr/lib");
  }
}

TEST_CASE("Libraries are found in the absolute folders where the loader isn't asked") {
  const fs::path file = SLIDESTREAM_MADE_UP_RUNTIME;
  const std::string name = file.filename().string();
  const std::array<const char*, 1> names = {name.c_str()};
  const libraries::LibrarySearch search = {.product = "A library",
                                           .key = "a.key",
                                           .variable = "SLIDESTREAM_NO_SUCH_VARIABLE",
                                           .names = names,
                                           .file = "libslidestream-none.so",
                                           .package = "slidestream_no_such_package",
                                           .folder = "",
                                           .hint = "a hint"};
  const char* const there = std::getenv("LD_LIBRARY_PATH");
  const std::string before = there == nullptr ? "" : there;
  ::setenv("LD_LIBRARY_PATH", (file.parent_path().string() + ":").c_str(), 1);
  CHECK(libraries::find_library(search, "").file == file.string());
  ::setenv("LD_LIBRARY_PATH", ":", 1);
  std::string message;
  try {
    libraries::find_library(search, "");
  } catch (const ConfigError& error) {
    message = error.what();
  }
  ::setenv("LD_LIBRARY_PATH", before.c_str(), 1);
  CHECK_MESSAGE(message.find("; LD_LIBRARY_PATH has an empty or relative element, so only") != std::string::npos,
                message);
}

TEST_CASE("messages of the library that say that memory lacks, and what no machine has") {
  CHECK(says_no_memory("Conv node 'stem': Failed to allocate memory for requested buffer of size 4096"));
  CHECK(says_no_memory("Exception caught: std::bad_alloc"));
  CHECK_FALSE(says_no_memory("Expand node: Failed to allocate memory for requested buffer of size 211106232532992000"));
  CHECK_FALSE(says_no_memory("Failed to allocate memory for requested buffer of size 99999999999999999999999"));
  CHECK_FALSE(says_no_memory("Conv node 'stem': CUDA failure 2: out of memory ; GPU=0"));
  CHECK(says_gpu_is_full("Conv node 'stem': CUDA failure 2: out of memory ; GPU=0"));
  CHECK(says_gpu_is_full("MatMul node 'head': CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0"));
  CHECK_FALSE(says_gpu_is_full("Conv node 'stem': CUDA failure 700: an illegal memory access was encountered ; GPU=0"));
}

TEST_CASE("Of the library's messages what went wrong stays, and where in its sources doesn't") {
  CHECK(cause_in("Non-zero status code returned while running Expand node. Name:'' Status Message: "
                 "/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:360 void* "
                 "onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate "
                 "memory for requested buffer of size 211106232532992\n") ==
        "Expand node: Failed to allocate memory for requested buffer of size 211106232532992");
  CHECK(cause_in("Non-zero status code returned while running Conv node. Name:'stem' Status Message: "
                 "/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:129 std::conditional_t<THRW, void, "
                 "onnxruntime::common::Status> onnxruntime::CudaCall(ERRTYPE, const char*, int) [with ERRTYPE = "
                 "cudaError; bool THRW = true; SUCCTYPE = cudaError [x]] CUDA failure 2: out of memory ; GPU=0") ==
        "Conv node 'stem': CUDA failure 2: out of memory ; GPU=0");
  CHECK(
      cause_in("Load model from /slides/m.onnx failed:/onnxruntime_src/onnxruntime/core/graph/model.cc:181 "
               "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, const "
               "onnxruntime::IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&) Unsupported model "
               "IR version: 99, max supported IR version: 11\n") ==
      "Unsupported model IR version: 99, max supported IR version: 11");
  CHECK(cause_in("Exception during initialization: /src/core/optimizer/initializer.cc:43 auto "
                 "onnxruntime::read(const int&)::<lambda(int)> [with T = float] weights/w.bin: 7 < 8 at "
                 "/src/a.h:12 int f() twice") == "Exception during initialization: weights/w.bin: 7 < 8 at twice");
  CHECK(cause_in("Load model from m.onnx failed:Protobuf parsing failed.") == "Protobuf parsing failed.");
  CHECK(cause_in("Load model from m.onnx") == "Load model from m.onnx");
  CHECK(cause_in("Got invalid dimensions for input: tiles\n index: 3 Got: 65 Expected: 64\n") ==
        "Got invalid dimensions for input: tiles  index: 3 Got: 65 Expected: 64");
  // What looks otherwise stays as it is.
  CHECK(cause_in("/models/m.onnx failed: Protobuf parsing failed.") ==
        "/models/m.onnx failed: Protobuf parsing failed.");
  CHECK(cause_in("/a.cc:12 void f(int") == "/a.cc:12 void f(int");
  CHECK(cause_in("/a.cc:12 void f(int)") == "/a.cc:12 void f(int)");
  CHECK(cause_in("Status Message: ") == "");
  CHECK(cause_in("").empty());
}

TEST_CASE("Networks of a folder are ordered by the numbers in their names") {
  using Names = std::vector<std::string>;
  const TemporaryFolder folder;
  fs::create_directory(folder / "nets");
  Names paths;
  for (int i = 1; i <= 12; ++i) {
    paths.push_back(folder / ("nets/network-" + std::to_string(i) + ".onnx"));
    folder.write("nets/network-" + std::to_string(i) + ".onnx", std::string("made up"));
  }
  CHECK(volume_networks(folder / "nets") == paths);
  const auto as_named = [](const Names& names) { return in_order("nets", {names.rbegin(), names.rend()}) == names; };
  for (const int first : {0, 1}) {
    Names padded;
    Names plain;
    for (int i = first; i < first + 120; ++i) {
      const std::string number = std::to_string(i);
      padded.push_back("v2-network-" + std::string(number.size() < 2 ? 1 : 0, '0') + number + ".onnx");
      plain.push_back("net_" + number + "_of_120.onnx");
    }
    CHECK(as_named(padded));
    CHECK(as_named(plain));
  }
  CHECK(as_named({"9-a.onnx"}));
  CHECK(as_named({"left.onnx", "right.onnx"}));
  CHECK(as_named({"unet3d-left.onnx", "unet3d-right.onnx"}));
  CHECK(as_named({"01-front.onnx", "2-back.onnx"}));
  CHECK(as_named({"fold1-epoch90.onnx", "fold2-epoch7.onnx"}));
  CHECK(as_named({"z0-x1.onnx", "z0-x2.onnx", "z1-x1.onnx", "z1-x2.onnx"}));
  CHECK(in_order("nets", {}).empty());
}

TEST_CASE("Numbers of networks that leave their order open, or a fragment out, are refused") {
  using Names = std::vector<std::string>;
  const std::string huge(30, '9');
  const std::vector<std::pair<Names, std::string>> refused = {
      {{"1.onnx", "01.onnx"}, "nets: 01.onnx and 1.onnx have the same numbers"},
      {{"net-1.onnx", "net-2.onnx", "net-02.onnx"}, "nets: net-02.onnx and net-2.onnx have the same numbers"},
      {{"left-1.onnx", "left-2.onnx", "right-1.onnx"}, "nets: left-1.onnx and right-1.onnx have the same numbers"},
      {{"net.onnx", "net2.onnx"}, "nets: net.onnx and net2.onnx don't have as many numbers"},
      {{"01.onnx", "02.onnx", "03.onnx", "05.onnx"}, "nets: no network has the number 4, and 05.onnx comes next"},
      {{"2.onnx", "3.onnx"}, "nets: no network has the number 0 or 1, and 2.onnx comes next"},
      {{"0.onnx", huge + ".onnx"}, "nets: no network has the number 1, and " + huge + ".onnx comes next"},
      {{"z0-x0.onnx", "z0-x2.onnx", "z1-x0.onnx"}, "nets: no network has the number 1, and z0-x2.onnx comes next"},
      {{"z0-x0.onnx", "z0-x1.onnx", "z1-x0.onnx"},
       "nets: 3 networks, and the numbers in their names are those of 2 x 2"},
  };
  for (const auto& [names, words] : refused) {
    CHECK_THROWS_WITH_AS(in_order("nets", names), doctest::Contains(words.c_str()), ConfigError);
  }
}

TEST_CASE("The files that weights lie in are found in a network's own") {
  const TemporaryFolder folder;
  if (models().empty()) return;
  CHECK(weight_files(models() + "/blur.onnx").empty());
  CHECK(weight_files(models() + "/outside.onnx") == std::vector<std::string>{"filters.bin"});
  CHECK(weight_files(models() + "/none.onnx").empty());
  CHECK(bytes_of_network(models() + "/outside.onnx") ==
        fs::file_size(models() + "/outside.onnx") + fs::file_size(models() + "/filters.bin"));
  // Cut off, or of other bytes, it ends somewhere.
  std::ifstream stream(models() + "/outside.onnx", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  std::mt19937 random(7);
  for (std::size_t turn = 0; turn < 400; ++turn) {
    std::string damaged = whole;
    if (turn < whole.size()) {
      damaged.resize(turn);
    } else {
      for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    std::ofstream(folder / "damaged.onnx", std::ios::binary) << damaged;
    CHECK(weight_files(folder / "damaged.onnx").size() <= 2);
  }
}

TEST_CASE("What a protocol buffer's reader passes over hides no weights") {
  const TemporaryFolder folder;
  if (models().empty()) return;
  std::ifstream stream(models() + "/outside.onnx", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  using namespace std::string_literals;
  // Groups that are empty, hold a value of each kind, or another group; fields that nobody knows; tags that are longer
  // than they have to be, the last one with more than 32 bits.
  for (const std::string& front :
       {"\xa3\x06\xa4\x06"s,
        "\xa3\x06\x08\x01\x11"
        "12345678\x1a\x02"
        "ab\x25"
        "1234\xa4\x06"s,
        "\xa3\x06\x0b\x0c\xa4\x06"s, "\xa0\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"s, "\xaa\x86\x00\x00"s,
        "\xa1\x06"
        "12345678"s,
        "\xa0\x86\x80\x80\x70\x01"s}) {
    CHECK(weight_files(folder.write("m.onnx", front + whole)) == std::vector<std::string>{"filters.bin"});
  }
  // ONNX Runtime reads none of these.
  for (const std::string& front :
       {"\xa3\x06"s, "\xa3\x06\xac\x06"s, "\xa4\x06"s, "\x07"s, "\xa0\x86\x80\x80\x80\x01\x01"s}) {
    CHECK(weight_files(folder.write("m.onnx", front + whole)).empty());
  }
}

TEST_CASE("Files that no network can be are told before they are read") {
  const TemporaryFolder own;
  Config config = running((own / "m.onnx").string());
  own.write("m.onnx", std::string());
  fs::resize_file(own / "m.onnx", std::uintmax_t{1} << 31);
  CHECK(complaint(config) ==
        "m.onnx: it has 2147483648 bytes, and a network's file at most 2147483647; larger weights lie in files beside "
        "it");
  // Not one byte after the other: no message has a field 0.
  fs::resize_file(own / "m.onnx", (std::uintmax_t{1} << 31) - 1);
  CHECK(weight_files(own / "m.onnx").empty());
  REQUIRE(::mkfifo((own / "pipe").c_str(), 0600) == 0);
  config.model.file = (own / "pipe").string();
  CHECK(complaint(config) == "pipe: not a regular file");
}

TEST_CASE("Nobody waits for a pipe that takes the place of a network's file") {
  const TemporaryFolder own;
  const fs::path file = own.write("m.onnx", std::string("first"));
  const NetworkFile open(file);
  const NetworkState state = state_of_network(file);
  REQUIRE(::mkfifo((own / "pipe").c_str(), 0600) == 0);
  fs::rename(own / "pipe", file);
  CHECK(weight_files(file).empty());
  CHECK_FALSE(state_of_network(file) == state);
  CHECK(bytes_of_network(file) == 0);
  CHECK_THROWS_WITH_AS(content_of_network(file), (file.string() + ": not a regular file").c_str(), ConfigError);
  CHECK_THROWS_WITH_AS(NetworkFile{file}, (file.string() + ": not a regular file").c_str(), ConfigError);
  // The one that is open is the first still, by its other name, too.
  std::string bytes(open.size(), ' ');
  CHECK(open.read(0, bytes));
  CHECK(bytes == "first");
  CHECK_FALSE(open.read(1, bytes));
  std::ifstream again(open.open_name());
  CHECK(std::string((std::istreambuf_iterator<char>(again)), {}) == "first");
}

TEST_CASE("Nobody waits for a pipe that takes the place of a network's weights or settings") {
  const TemporaryFolder own;
  if (!models().empty()) {
    const fs::path file = own / "outside.onnx";
    fs::copy_file(models() + "/outside.onnx", file);
    REQUIRE(::mkfifo((own / "filters.bin").c_str(), 0600) == 0);
    const std::string expected = (own / "filters.bin").string() + ": not a regular file";
    CHECK_THROWS_WITH_AS(read_weights(NetworkFile(file), own.path()), expected.c_str(), ConfigError);
  }
  // Pipes of the shell lie below /dev, too.
  if (!fs::is_directory("/dev/shm")) return;
  const TemporaryFolder shared("/dev/shm");
  REQUIRE(::mkfifo((shared / "m.toml").c_str(), 0600) == 0);
  Config config;
  config.operators.run = {"model"};
  config.model.file = (shared / "m.onnx").string();
  CHECK_THROWS_WITH_AS(read_model_file(config), ((shared / "m.toml").string() + ": not a regular file").c_str(),
                       ConfigError);
}

TEST_CASE("Of a file with weights as much is read as tensors take up") {
  if (models().empty()) return;
  const TemporaryFolder own;
  const fs::path file = own / "outside.onnx";
  fs::copy_file(models() + "/outside.onnx", file);
  fs::copy_file(models() + "/filters.bin", own / "filters.bin");
  const std::uint64_t named = fs::file_size(own / "filters.bin");
  const std::uint64_t bytes = bytes_of_network(file);
  const auto length = [&] {
    const Weights weights = read_weights(NetworkFile(file), own.path());
    REQUIRE(weights.files.size() == 1);
    CHECK_FALSE(weights.has_inner);
    return weights.files.front().bytes.size();
  };
  CHECK(length() == named);
  // More than there is memory for.
  fs::resize_file(own / "filters.bin", std::uintmax_t{1} << 42);
  CHECK(length() == named);
  CHECK(bytes_of_network(file) == bytes);
}

TEST_CASE("Weights of attributes are told, and those without a length are read whole") {
  const TemporaryFolder own;
  own.write("w", std::string("0123456789"));
  const auto field = [](int number, const std::string& bytes) {
    REQUIRE(bytes.size() < 128);
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const auto entry = [&](const std::string& key, const std::string& value) {
    return field(13, field(1, key) + field(2, value));
  };
  const auto network = [&](const std::string& model) {
    const fs::path file = own.write("m.onnx", model);
    return read_weights(NetworkFile(file), own.path());
  };
  const std::string place = entry("location", "w");
  const std::string some = place + entry("offset", "2") + entry("length", "3");
  const auto in_graph = [&](const std::string& tensor) { return field(7, field(5, tensor)); };
  CHECK(network(in_graph(some)).files.front().bytes == "01234");
  CHECK_FALSE(network(in_graph(some)).has_inner);
  for (const std::string& all :
       {place, place + entry("length", "0"), place + entry("length", "-1"), place + entry("length", "4x"),
        place + entry("length", "18446744073709551615") + entry("offset", "2"), place + entry("length", "11")}) {
    CHECK(network(in_graph(all)).files.front().bytes == "0123456789");
  }
  // The tensor that ends last counts; what is behind the file's end isn't there.
  CHECK(network(in_graph(some) + in_graph(place + entry("length", "7"))).files.front().bytes == "0123456");
  CHECK(network(in_graph(some) + in_graph(place)).files.front().bytes == "0123456789");
  const std::string node = field(5, field(5, some));
  CHECK(network(field(7, field(1, node))).has_inner);
  CHECK(network(field(7, field(1, node))).files.front().bytes == "01234");
  const std::string inner_graph = field(5, field(6, field(5, some)));
  CHECK(network(field(7, field(1, inner_graph))).has_inner);
}

TEST_CASE("Weights lie in files of the network's folder") {
  const std::string folder = models();
  if (folder.empty()) return;
  const TemporaryFolder own;
  std::ifstream stream(folder + "/outside.onnx", std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(stream)), {});
  // Names as long as the one that is there.
  const auto naming = [&](const std::string& name) {
    std::string other = whole;
    const std::string there = "filters.bin";
    for (std::size_t at = 0; (at = other.find(there, at)) != std::string::npos; at += there.size()) {
      other.replace(at, there.size(), name);
    }
    return running(own.write("m.onnx", other).string());
  };
  CHECK(complaint(naming("filters.bin")) == "m.onnx: its weights lie in filters.bin: No such file or directory");
  CHECK(complaint(naming("///dev/zero")) == "m.onnx: its weights lie in ///dev/zero: that isn't in its folder");
  CHECK(complaint(naming("../lters.bi")) == "m.onnx: its weights lie in ../lters.bi: that isn't in its folder");
  REQUIRE(::mkfifo((own / "filters.bin").c_str(), 0600) == 0);
  CHECK(complaint(naming("filters.bin")) == "m.onnx: its weights lie in filters.bin: not a regular file");
  // A link to a file is one; where it may lead ONNX Runtime says.
  fs::remove(own / "filters.bin");
  fs::copy_file(folder + "/filters.bin", own / "blob.bin");
  fs::create_symlink("blob.bin", own / "filters.bin");
  CHECK(complaint(naming("filters.bin")) == "");
}

TEST_CASE("A runtime that isn't there, or isn't one, is told") {
  const std::string folder = models();
  if (folder.empty()) return;
  const TemporaryFolder own;
  Config config = running(folder + "/identity.onnx");
  config.model.runtime = (own / "libonnxruntime.so").string();
  CHECK(complaint(config).starts_with("model.runtime: ONNX Runtime can't be loaded: "));
  config.model.runtime = own.path().string();
  CHECK(complaint(config) == "model.runtime: " + own.path().string() + " holds no libonnxruntime.so");
  config.model.runtime = "libm.so.6";
  CHECK(complaint(config) == "libm.so.6: isn't ONNX Runtime: it has no OrtGetApiBase");
  // The loader would wait for one of these, and be ended by a signal within the other.
  const std::string mine = (own / "libonnxruntime.so").string();
  config.model.runtime = own.path().string();
  REQUIRE(::mkfifo(mine.c_str(), 0600) == 0);
  CHECK(complaint(config) == "model.runtime: ONNX Runtime can't be loaded: " + mine + ": not a regular file");
  fs::remove(mine);
  fs::copy_file(SLIDESTREAM_MADE_UP_RUNTIME, mine);
  fs::resize_file(mine, fs::file_size(mine) / 4);
  CHECK(complaint(config).find(mine + ": it is cut off: ") != std::string::npos);
  fs::resize_file(mine, 70);
  CHECK(complaint(config).find(mine) != std::string::npos);
  // By its own name it is found, too.
  config.model.runtime = folder + "/libonnxruntime.so";
  CHECK(complaint(config).empty());
}

TEST_CASE("What stands beside a model fills in what is left open, and nothing else") {
  const TemporaryFolder own;
  const std::string file = own.write("m.onnx", std::string("any")).string();
  const auto beside = [&](const std::string& text) { own.write("m.toml", text); };
  beside("[model]\ntile = 224\nmean = [1, 2, 3]\noverlap = 8\nwhere = \"tissue\"\nrange = [-1.0, 1.0]\n");
  Config config;
  config.model.file = file;
  config.model.overlap = 0;
  Config other = config;
  read_model_file(other);
  CHECK(other.model.tile == 0);  // the operator doesn't run
  config.operators.run = {"model"};
  read_model_file(config);
  CHECK(config.model.tile == 224);
  CHECK(config.model.mean == std::vector<double>{1.0, 2.0, 3.0});
  CHECK(config.model.overlap == 0);
  CHECK(config.model.where == ModelWhere::tissue);
  CHECK(config.model.range == std::array<double, 2>{-1.0, 1.0});
  const std::string once = to_toml(config);
  read_model_file(config);
  CHECK(to_toml(config) == once);
  CHECK(to_toml(parse_config(once, "again")) == once);
  for (const auto& [text, what] : {std::pair{"[model]\nfile = \"other.onnx\"\n", "model.file can't stand beside"},
                                   std::pair{"[image]\nquality = 3\n", "image.quality can't stand beside"},
                                   std::pair{"[model]\nprovider = \"cuda\"\n", "the same on every machine"},
                                   std::pair{"[model]\nmean = [1.0]\n", "model.mean has 1 numbers; expected 3"},
                                   std::pair{"[model]\ntyle = 3\n", "did you mean 'tile'"}}) {
    beside(text);
    try {
      read_model_file(config);
      FAIL(text);
    } catch (const ConfigError& error) {
      CHECK(std::string(error.what()).starts_with((own / "m.toml").string()));
      CHECK(std::string(error.what()).find(what) != std::string::npos);
    }
  }
  fs::remove(own / "m.toml");
  CHECK_NOTHROW(read_model_file(config));
  fs::create_symlink("gone.toml", own / "m.toml");
  CHECK_THROWS_WITH_AS(read_model_file(config), doctest::Contains("m.toml"), ConfigError);
}
