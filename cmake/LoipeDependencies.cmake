# SPDX-License-Identifier: Apache-2.0
# Everything found here comes from the system; nothing is downloaded.
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
# oneDNN's own CMake package asks for OpenCL, which its CPU engine does not need.
if(LOIPE_ONEDNN)
  find_path(dnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(dnnl_LIBRARY dnnl)
endif()
if(dnnl_INCLUDE_DIR AND dnnl_LIBRARY)
  set(dnnl_FOUND TRUE)
  message(STATUS "loipe: oneDNN found: ${dnnl_LIBRARY}")
else()
  set(dnnl_FOUND FALSE)
  message(STATUS "loipe: oneDNN not found: the library's own matrix products serve all sizes")
endif()
