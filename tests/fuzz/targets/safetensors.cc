// SPDX-License-Identifier: Apache-2.0
#include "tensor/safetensors.h"

#include "base/check.h"
#include "fuzz/fuzz_target.h"

namespace loipe::testing {

/// Reads the header and every tensor. What is read was in the file: all elements
/// together are no more than its bytes.
void fuzz_safetensors(std::span<const std::uint8_t> bytes) {
  const MemoryFile memory(bytes);
  is_refused([&] {
    const SafetensorsFile file = SafetensorsFile::read(memory.path());
    std::size_t total = 0;
    for (const std::string& name : file.names()) {
      is_refused([&] {
        const Tensor tensor = file.tensor(name);
        require(tensor.type() == file.type(name), "a tensor has another type than its entry");
        total += tensor.bytes().size();
      });
      require(total <= bytes.size(), "tensors larger than their file");
    }
  });
}

}  // namespace loipe::testing
