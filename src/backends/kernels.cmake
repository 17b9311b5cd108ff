# SPDX-License-Identifier: Apache-2.0
# The CPU kernels are compiled once per instruction set; the running CPU chooses.
set(kernel_sources "")
file(GLOB attention_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/attention/*/kernels)
foreach(kernels ${CMAKE_CURRENT_LIST_DIR}/cpu/kernels ${attention_kernels})
  list(APPEND kernel_sources ${kernels}/baseline.cc)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND kernel_sources ${kernels}/avx2.cc ${kernels}/avx512.cc)
    set_property(SOURCE ${kernels}/avx2.cc APPEND PROPERTY COMPILE_OPTIONS -mavx2 -mfma)
    set_property(SOURCE ${kernels}/avx512.cc APPEND PROPERTY COMPILE_OPTIONS
      -mavx2 -mfma -mavx512f -mavx512dq -mavx512bw -mavx512vl)
  endif()
endforeach()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_definitions(loipe PRIVATE LOIPE_X86_KERNELS)
endif()
# Loops over libm and floor vectorise only when errno and floating-point traps do
# not matter. Vectors as parameters are fine, all functions that have them are
# inlined or private (-Wno-psabi); indices of small arrays are int; g++ 12 warns
# inside its own AVX-512 header (-Wno-maybe-uninitialized).
set_property(SOURCE ${kernel_sources} APPEND PROPERTY COMPILE_OPTIONS
  $<$<NOT:$<CONFIG:Debug>>:-O3> -fno-math-errno -fno-trapping-math
  -Wno-psabi -Wno-sign-conversion $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  get_target_property(sources loipe SOURCES)
  list(FILTER sources EXCLUDE REGEX "/kernels/avx[^/]*$")
  set_property(TARGET loipe PROPERTY SOURCES ${sources})
endif()
