# SPDX-License-Identifier: Apache-2.0
# Everything found here comes from the system; nothing is downloaded.
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(Threads REQUIRED)
option(LOIPE_LLVM "Compile scalar programs to vector code with LLVM 19 when it is found" ON)
if(LOIPE_LLVM)
  # The version file accepts 19.1, not 19.
  find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19/lib/cmake/llvm)
endif()
if(LLVM_FOUND)
  message(STATUS "loipe: LLVM ${LLVM_PACKAGE_VERSION} found: scalar programs are compiled to vector code")
else()
  message(STATUS "loipe: LLVM 19 not found: batches of scalar programs run example by example")
endif()
