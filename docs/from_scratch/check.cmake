# SPDX-License-Identifier: Apache-2.0
# What the program prints stands in the README, word for word.
execute_process(COMMAND ${BINARY} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${README} text)
string(FIND "${text}" "```\n${printed}```" place)
if(NOT status EQUAL 0 OR place EQUAL -1)
  message(FATAL_ERROR "exit status ${status}; ${README} does not show\n${printed}")
endif()
