#include <cstdlib>
#include <iostream>

#include "cli/command_line.h"

int main(int argc, char** argv) {
  return holdfast::cli::run_command_line(
      argc, argv, {std::cout, std::cerr, [](const std::string& name) { return std::getenv(name.c_str()); }});
}
