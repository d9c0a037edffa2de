#include "gpu_startup.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include <slidestream/error.hpp>

#include "runtime/cuda/check.hpp"

namespace slidestream::bench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Seconds that a program takes. What it prints is dropped.
double wall_time(const std::vector<std::string>& command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = Clock::now();
  pid_t child = 0;
  const int failure = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failure != 0 || waitpid(child, &status, 0) != child || status != 0) throw Error(command[0] + " failed");
  return std::chrono::duration<double>(Clock::now() - start).count();
}

fs::path program_beside(const fs::path& own) {
  for (const fs::path& folder : {own.parent_path(), own.parent_path().parent_path()}) {
    if (fs::is_regular_file(folder / "pipeline")) return folder / "pipeline";
  }
  throw Error("no program `pipeline` beside " + own.string());
}

}  // namespace

void make_context_only() { SLIDESTREAM_CUDA(cudaFree(nullptr)); }

void bench_startup(GpuBench& bench) {
  const fs::path own = fs::read_symlink("/proc/self/exe");
  const std::string program = program_beside(own);
  // The program takes files that are one for one: each slide has a link of its own, which is another file to it.
  const fs::path first = fs::canonical(bench.headline(SynthCodec::jpeg_420, 1)[0]);
  const fs::path links = first.parent_path() / "startup-slides";
  fs::remove_all(links);
  fs::create_directory(links);
  std::vector<std::string> slides;
  for (int i = 0; i < 48; ++i) {
    slides.push_back((links / (std::to_string(i) + ".svs")).string());
    fs::create_hard_link(first, slides.back());
  }
  const fs::path out = first.parent_path() / "startup-out";
  const auto median_of = [&](std::size_t count, const std::vector<std::string>& settings, int rounds) {
    std::vector<std::string> command = {program, "--quiet", "--backend", "cuda", "--out", out.string()};
    for (const std::string& setting : settings) command.insert(command.end(), {"--set", setting});
    command.insert(command.end(), slides.begin(), slides.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(rounds));
    for (int i = 0; i < rounds; ++i) {
      fs::remove_all(out);
      seconds.push_back(wall_time(command));
    }
    fs::remove_all(out);
    return median(seconds);
  };
  std::vector<double> context;
  context.reserve(5);
  for (int i = 0; i < 5; ++i) context.push_back(wall_time({own.string(), "--context"}));
  bench.add("startup_context_s", median(context), "s");
  const std::vector<std::string> large = {"decode.device=gpu", "gpu.devices=[0]", "pipeline.queue_depth=8"};
  const auto with_memory = [&](const char* memory) {
    std::vector<std::string> settings = large;
    settings.emplace_back(memory);
    return settings;
  };
  bench.add("startup_one_slide_s", median_of(1, {"gpu.devices=[0]"}, 5), "s", "at_most", 0.40);
  bench.add("startup_one_slide_4gib_s", median_of(1, with_memory("pipeline.memory_mib=4096"), 5), "s", "at_most", 0.45);
  bench.add("startup_one_slide_8gib_s", median_of(1, with_memory("pipeline.memory_mib=8192"), 5), "s", "at_most", 0.45);
  bench.add("startup_48_slides_8gib_s", median_of(48, with_memory("pipeline.memory_mib=8192"), 3), "s", "at_most",
            1.95);
  fs::remove_all(links);
}

}  // namespace slidestream::bench
