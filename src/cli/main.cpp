#include "cli/program.hpp"

int main(int argc, char** argv) { return slidestream::cli::run_program(argc, argv); }
