// SPDX-License-Identifier: Apache-2.0
#include "cli/application.h"
#include "cli/interrupt.h"

int main(int argc, char** argv) {
  loipe::cli::install_interrupt_handler();
  return loipe::cli::run_application({argv + 1, argv + argc});
}
