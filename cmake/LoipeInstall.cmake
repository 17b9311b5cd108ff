# SPDX-License-Identifier: Apache-2.0
# find_package(loipe) after cmake --install.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS loipe EXPORT loipe_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET loipe_cli)
  install(TARGETS loipe_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY include/loipe DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT loipe_targets NAMESPACE loipe:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loipe)
configure_package_config_file(cmake/loipe-config.cmake.in ${PROJECT_BINARY_DIR}/loipe-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loipe)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/loipe-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/loipe-config.cmake ${PROJECT_BINARY_DIR}/loipe-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/loipe)
