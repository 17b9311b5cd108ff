// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backends/backend.h"

namespace loipe {

namespace {

/// Example `example` of a row-major [examples, shape].
template <class Span>
Span example_of(Span all, std::int64_t example, std::int64_t examples) {
  const std::size_t size = all.size() / static_cast<std::size_t>(examples);
  return all.subspan(static_cast<std::size_t>(example) * size, size);
}

/// Elements of `size` bytes at two strides, in bytes.
void copy_strided(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride,
                  std::int64_t count, std::size_t size) {
  for (std::int64_t e = 0; e < count; ++e, to += to_stride, from += from_stride) {
    if (size == 8) std::memcpy(to, from, 8);
    else if (size == 4) std::memcpy(to, from, 4);
    else std::memcpy(to, from, 1);
  }
}

void read_example(Tensor& to, ConstBytes rows, std::int64_t example, std::int64_t stride) {
  if (rows.empty()) return;  // and perhaps nowhere
  const std::size_t size = size_of(to.dtype());
  copy_strided(to.bytes().data(), size, rows.data() + static_cast<std::size_t>(example) * size,
               static_cast<std::size_t>(stride) * size, to.element_count(), size);
}

void write_example(Bytes rows, const Tensor& from, std::int64_t example, std::int64_t stride) {
  if (rows.empty()) return;
  const std::size_t size = size_of(from.dtype());
  copy_strided(rows.data() + static_cast<std::size_t>(example) * size,
               static_cast<std::size_t>(stride) * size, from.bytes().data(), size, from.element_count(),
               size);
}

}  // namespace

void Executable::run_batch_checked(const BatchRun& run) const {
  const auto scratch = loop_scratch_.take([&] {
    auto made = std::make_unique<LoopScratch>();
    made->arguments.resize(argument_types_.size());
    made->outputs.resize(output_types_.size());
    return made;
  });
  const bool rows_in = run.layouts.arguments == BatchLayout::structure_of_arrays;
  const bool rows_out = run.layouts.results == BatchLayout::structure_of_arrays;
  if (rows_in && scratch->argument_tensors.empty())
    scratch->argument_tensors = std::vector<Tensor>(argument_types_.begin(), argument_types_.end());
  if (rows_out && scratch->output_tensors.empty())
    scratch->output_tensors = std::vector<Tensor>(output_types_.begin(), output_types_.end());
  for (std::int64_t example = 0; example < run.examples; ++example) {
    for (std::size_t i = 0; i < run.arguments.size(); ++i) {
      if (run.is_shared[i]) {
        scratch->arguments[i] = run.arguments[i];
      } else if (rows_in) {
        Tensor& tensor = scratch->argument_tensors[i];
        read_example(tensor, run.arguments[i], example, run.layouts.argument_stride);
        scratch->arguments[i] = tensor.bytes();
      } else {
        scratch->arguments[i] = example_of(run.arguments[i], example, run.examples);
      }
    }
    for (std::size_t i = 0; i < run.outputs.size(); ++i)
      scratch->outputs[i] =
          rows_out ? scratch->output_tensors[i].bytes() : example_of(run.outputs[i], example, run.examples);
    run_checked(scratch->arguments, scratch->outputs);
    if (!rows_out) continue;
    for (std::size_t i = 0; i < run.outputs.size(); ++i)
      write_example(run.outputs[i], scratch->output_tensors[i], example, run.layouts.result_stride);
  }
}

}  // namespace loipe
