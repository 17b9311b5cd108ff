// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/sampled_panels.h"

#include "base/simd_level.h"

namespace loipe::attention::certificate {

namespace {

/// Whole panels with at least so many draws for each head: few heads need more each.
std::int64_t chosen(std::int64_t asked, std::int64_t heads, std::int64_t lanes) {
  if (asked > 0) return round_up(asked, 2);
  return round_up(heads >= 4 ? 24 : 48, lanes);
}

}  // namespace

template <class E>
const SampleKernels<E>& sample_kernels_of_this_cpu() {
  [[maybe_unused]] const SimdLevel level = simd_level();
#ifdef LOIPE_X86_KERNELS
  if (level == SimdLevel::avx512) return avx512_sample_kernels<E>();
  if (level == SimdLevel::avx2) return avx2_sample_kernels<E>();
#endif
  return baseline_sample_kernels<E>();
}

template <class E>
Extents<E>::Extents(const Problem<E>& p, const Sampling& sampling, Arena& arena)
    : problem(p),
      kernels(sample_kernels_of_this_cpu<E>()),
      lanes(kernels.lanes),
      a_width(round_up(p.shape.head_size, statistics::kPad)),
      b_width(round_up(p.shape.value_size, statistics::kPad)),
      rows(chosen(sampling.rows, p.shape.heads, lanes)),
      columns(chosen(sampling.columns, p.shape.kv_heads, lanes)),
      row_panels(divide_up(rows, lanes)),
      column_panels(divide_up(columns, lanes)),
      keys(p.shape.keys),
      queries(p.shape.queries),
      key_mean(arena.take<E>(p.shape.kv_heads * a_width)),
      value_mean(arena.take<E>(p.shape.kv_heads * b_width)),
      block(arena.take<E>(kBlockRows * std::max(a_width, b_width))),
      sums(arena.take<double>(std::max(a_width, b_width))) {}

/// Of exact attention any vector near the keys is a centre, so that some of them are enough for it; that of a
/// polynomial is the mean of all, or 0.
template <class E>
void Extents<E>::compute_means(const almost_linear::Approximation* approximation) const {
  const std::int64_t count = problem.shape.keys, few = std::min<std::int64_t>(count, 8 * kBlockRows);
  const auto& kernels_of_sums = statistics::moment_kernels_of_this_cpu<E>();
  const auto mean_of = [&](const Rows<const E>& from, std::int64_t kh, std::int64_t size, std::int64_t width,
                           std::int64_t taken, E* mean) {
    const std::uint8_t* const is_allowed = key_mask_at(problem.mask, kh, 0);
    const std::int64_t allowed =
        is_allowed == nullptr ? taken : taken - std::count(is_allowed, is_allowed + taken, 0);
    std::fill_n(sums, width, 0.0);
    const statistics::BlockReader<E> reader{from, size, width, nullptr, is_allowed, block};
    reader.for_each({kh, 0, taken},
                    [&](const E* rows_of_block) { kernels_of_sums.add_rows(rows_of_block, width, sums); });
    for (std::int64_t c = 0; c < width; ++c)
      mean[c] = static_cast<E>(allowed == 0 ? 0 : sums[c] / static_cast<double>(allowed));
  };
  for (std::int64_t kh = 0; kh < problem.shape.kv_heads; ++kh) {
    E* const key = key_mean + kh * a_width;
    if (approximation != nullptr && !approximation->is_centred) std::fill_n(key, a_width, E{0});
    else mean_of(problem.k, kh, head_size(), a_width, approximation != nullptr ? count : few, key);
    mean_of(problem.v, kh, value_size(), b_width, few, value_mean + kh * b_width);
  }
}

template <class E>
double Extents<E>::centred_logit(std::int64_t head, std::int64_t i) const {
  const E* const mean = key_mean_of(problem.shape.key_head(head));
  double sum = 0;
  for (std::int64_t c = 0; c < head_size(); ++c)
    sum += static_cast<double>(get(problem.q, head, i, c)) * static_cast<double>(mean[c]);
  return problem.scale * sum;
}

template const SampleKernels<float>& sample_kernels_of_this_cpu();
template const SampleKernels<double>& sample_kernels_of_this_cpu();
template struct Extents<float>;
template struct Extents<double>;

}  // namespace loipe::attention::certificate
