#include <benchmark/benchmark.h>

#include <cstdio>

// Figures of an unoptimised build mean nothing and would be quoted all the same.
int main(int argc, char** argv) {
#ifndef NDEBUG
  static_cast<void>(argc);
  std::fprintf(stderr, "%s: built without NDEBUG; build with CMAKE_BUILD_TYPE=Release to measure\n", argv[0]);
  return 2;
#else
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
#endif
}
