# SPDX-License-Identifier: Apache-2.0
# What every target of the project shares.
add_library(loipe_options INTERFACE)
target_compile_features(loipe_options INTERFACE cxx_std_20)
target_include_directories(loipe_options INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
# Contraction of a*b+c into one rounding would make results depend on the compiler.
target_compile_options(loipe_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wconversion -Wsign-conversion
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # false alarms on std::string operator+ (GCC bug 105651)
  -ffp-contract=off $<$<BOOL:${LOIPE_WARNINGS_AS_ERRORS}>:-Werror>)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(LOIPE_CCACHE ccache)
if(LOIPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LOIPE_CCACHE})
endif()
