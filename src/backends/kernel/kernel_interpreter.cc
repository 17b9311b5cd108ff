// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel/kernel_interpreter.h"

#include <cmath>
#include <limits>

#include "base/check.h"

namespace loipe::kernel {

namespace {

template <class T>
T* element(std::byte* base, std::int64_t position) {
  return reinterpret_cast<T*>(base) + position;
}

double load(DType dtype, std::byte* base, std::int64_t position) {
  switch (dtype) {
    case DType::f32: return static_cast<double>(*element<float>(base, position));
    case DType::f64: return *element<double>(base, position);
    case DType::boolean: return *element<std::uint8_t>(base, position);
    case DType::i32: return *element<std::int32_t>(base, position);
    case DType::i64: return static_cast<double>(*element<std::int64_t>(base, position));
  }
  throw InternalError("no dtype");
}

void store(DType dtype, std::byte* base, std::int64_t position, double value) {
  if (dtype == DType::f32) *element<float>(base, position) = static_cast<float>(value);
  else if (dtype == DType::f64) *element<double>(base, position) = value;
  else *element<std::uint8_t>(base, position) = value != 0;
}

double rounded(DType dtype, double value) {
  if (dtype == DType::f32) return static_cast<double>(static_cast<float>(value));
  return dtype == DType::boolean ? value != 0 : value;
}

double combined(Reduction reduction, double best, double x) {
  if (reduction == Reduction::sum) return best + x;
  const bool is_better = reduction == Reduction::max ? x > best : x < best;
  return is_better || std::isnan(x) ? x : best;
}

double start_of(Reduction reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return reduction == Reduction::sum ? 0 : reduction == Reduction::max ? -kInfinity : kInfinity;
}

class Interpreter {
 public:
  Interpreter(const Kernel& kernel, std::byte* const* bases)
      : kernel_(kernel),
        bases_(bases),
        index_(kernel.rank(), 0),
        values_(kernel.body.size()),
        sums_(kernel.stores.size()) {}

  void run_tile(std::int64_t tile) {
    const std::int64_t chunks = kernel_.chunks(), chunk = tile % chunks;
    std::int64_t rest = tile / chunks;
    for (std::size_t loop = kernel_.chunked; loop-- > 0; rest /= kernel_.extents[loop])
      index_[loop] = rest % kernel_.extents[loop];
    const std::int64_t first = chunk * kernel_.chunk;
    run(kernel_.chunked, first,
        chunk + 1 == chunks ? kernel_.extents[kernel_.chunked] : first + kernel_.chunk);
  }

 private:
  /// All loops from this one on that are reduced, or all that are not, then the others.
  void run(std::size_t loop, std::int64_t first, std::int64_t last) {
    const bool is_next = loop < kernel_.rank() && kernel_.is_reduced(loop) == is_reducing_;
    if (is_next)
      for (index_[loop] = first; index_[loop] < last; ++index_[loop]) run_from(loop + 1);
    else if (loop < kernel_.rank()) run_from(loop + 1);
    else if (kernel_.reduced_loops == 0 || is_reducing_) run_body();
    else run_reduction();
  }
  void run_from(std::size_t loop) { run(loop, 0, loop < kernel_.rank() ? kernel_.extents[loop] : 0); }

  void run_reduction() {
    sums_.assign(sums_.size(), start_of(kernel_.reduction));
    is_reducing_ = true;
    run_from(kernel_.first_reduced());
    is_reducing_ = false;
    for (std::size_t loop = 0; loop < kernel_.rank(); ++loop)
      if (kernel_.is_reduced(loop)) index_[loop] = 0;
    for (std::size_t s = 0; s < sums_.size(); ++s)
      if (kernel_.stores[s].is_reduced) write(kernel_.stores[s], sums_[s]);
  }

  std::int64_t position(const Access& access) const {
    std::int64_t position = 0;
    for (std::size_t loop = 0; loop < kernel_.rank(); ++loop) position += access.strides[loop] * index_[loop];
    return position;
  }

  void write(const Store& s, double value) {
    const Access& access = kernel_.accesses[s.access];
    store(access.dtype, bases_[s.access], position(access), value);
  }

  void run_body() {
    for (std::size_t i = 0; i < kernel_.body.size(); ++i) values_[i] = compute(kernel_.body[i]);
    for (std::size_t s = 0; s < kernel_.stores.size(); ++s) {
      const double value = values_[kernel_.stores[s].value];
      if (!kernel_.stores[s].is_reduced) write(kernel_.stores[s], value);
      else sums_[s] = combined(kernel_.reduction, sums_[s], value);
    }
  }

  double compute(const Node& node) const {
    switch (node.kind) {
      case Kind::load: {
        const Access& access = kernel_.accesses[node.operands[0]];
        return load(access.dtype, bases_[node.operands[0]], position(access));
      }
      case Kind::constant: return rounded(node.dtype, node.value);
      case Kind::convert: return rounded(node.dtype, values_[node.operands[0]]);
      case Kind::scalar: break;
    }
    return rounded(node.dtype, scalar::evaluate(node.op, values_[node.operands[0]], values_[node.operands[1]],
                                                values_[node.operands[2]]));
  }

  const Kernel& kernel_;
  std::byte* const* bases_;
  Integers index_;
  std::vector<double> values_, sums_;
  bool is_reducing_ = false;
};

}  // namespace

void interpret(const Kernel& kernel, std::byte* const* bases, std::int64_t begin, std::int64_t end) {
  Interpreter interpreter(kernel, bases);
  for (std::int64_t tile = begin; tile < end; ++tile) interpreter.run_tile(tile);
}

}  // namespace loipe::kernel
