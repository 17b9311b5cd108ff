# SPDX-License-Identifier: Apache-2.0
# Everything found here comes from the system; nothing is downloaded.
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2 REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED)
if(LOIPE_ONEDNN)
  find_package(dnnl QUIET)
endif()
if(dnnl_FOUND)
  message(STATUS "loipe: oneDNN ${dnnl_VERSION} found, used for large f32 matrix products")
else()
  message(STATUS "loipe: oneDNN not found, the library's own matrix products are used for all sizes")
endif()
