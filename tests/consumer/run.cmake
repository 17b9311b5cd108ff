# SPDX-License-Identifier: Apache-2.0
# Installs the build tree, then builds and runs a project that uses the package,
# with the C++ blocks of the README as its sources.
file(READ ${SOURCE_DIR}/README.md readme)

# Sets `example` to the next C++ block, which must be that of an example, and shortens readme.
function(next_example source)
  string(FIND "${readme}" "```cpp\n" begin)
  if(begin EQUAL -1)
    message(FATAL_ERROR "README.md lacks the C++ example of examples/${source}")
  endif()
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${readme}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} block)
  string(SUBSTRING "${rest}" ${end} -1 rest)
  file(READ ${SOURCE_DIR}/examples/${source} tested)
  string(FIND "${tested}" "${block}" found)
  if(found EQUAL -1)
    message(FATAL_ERROR "the README's C++ example is not that of examples/${source}")
  endif()
  set(example "${block}" PARENT_SCOPE)
  set(readme "${rest}" PARENT_SCOPE)
endfunction()

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(examples first_jacobian derivative_kinds sparse_jacobian batch_jacobian)  # in the README's order
foreach(name ${examples})
  next_example(${name}.cc)
  file(WRITE ${WORK_DIR}/${name}.cc "${example}\n")
endforeach()
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/consumer -B ${WORK_DIR}/build -G Ninja -DCMAKE_BUILD_TYPE=Release
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${CXX_FLAGS}"
    -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DEXAMPLE_FOLDER=${WORK_DIR})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
foreach(name ${examples})
  run(${WORK_DIR}/build/${name})
endforeach()
