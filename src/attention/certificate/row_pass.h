// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention/certificate/sampled_panels.h"

namespace loipe::attention::certificate {

/// Exact rows of O and dQ of the drawn queries. `draws` [heads][rows]; a draw that comes twice is computed
/// twice.
template <class E>
class RowPass {
 public:
  /// With exact lse and O one product for each pair is enough for the weights and none for their sums.
  RowPass(const Extents<E>& extents, const Draw* draws, const Cotangents<E>& cotangents,
          const ExactForward<E>& exact, int threads, Arena& arena);
  void run(const Parallel& parallel);

  double* o(std::int64_t head, std::int64_t draw) const { return o_ + at(head, draw) * e_.value_size(); }
  double* dq(std::int64_t head, std::int64_t draw) const { return dq_ + at(head, draw) * e_.head_size(); }
  /// lse less centred_logit, and <g, O - mean value> - dL/dlse.
  double centred_lse(std::int64_t head, std::int64_t draw) const { return lse_[at(head, draw)]; }
  double mean(std::int64_t head, std::int64_t draw) const { return mean_[at(head, draw)]; }
  /// With exact lse, about sum_i f_ij |g_i|^2 for the keys of a head: where errors of dK and dV may be large.
  const double* key_energies(std::int64_t kh) const { return key_energies_ + kh * e_.problem.shape.keys; }
  const Panel<E>& panel(std::int64_t head, std::int64_t panel) const {
    return panels_[head * e_.row_panels + panel];
  }
  const Draw& draw(std::int64_t head, std::int64_t draw) const { return draws_[at(head, draw)]; }

 private:
  /// The sums of a panel over a chunk of keys.
  struct Sums {
    E *maximum, *sum, *sum_dp, *b, *a, *dp_a;
  };
  std::int64_t at(std::int64_t head, std::int64_t draw) const { return head * e_.rows + draw; }
  Sums take_sums(Arena& arena) const;
  Sums sums_of(std::int64_t head, std::int64_t panel, std::int64_t chunk) const;
  void set_panels(std::int64_t head);
  void run_chunk(std::int64_t kh, std::int64_t chunk, const BlockMemory<E>& memory) const;
  void take_block(std::int64_t head, std::int64_t panel, std::int64_t chunk, const SampleTile<E>& tile,
                  E* key_energies) const;
  void finish(std::int64_t head, std::int64_t draw);
  void finish_online(std::int64_t head, std::int64_t draw);

  const Extents<E>& e_;
  const Draw* draws_;
  Cotangents<E> cotangents_;
  ExactForward<E> exact_;
  bool has_g_;
  Panel<E>* panels_;       ///< [heads][row_panels]
  E *shift_, *lane_mean_;  ///< [heads][row_panels][lanes]: of exact rows
  E* g_energy_;            ///< [heads][row_panels][lanes]: weight |g|^2
  double* key_energies_;   ///< [kv_heads][keys]
  std::byte* sums_;
  std::size_t sums_bytes_;
  double *o_, *dq_, *lse_, *mean_;
  ThreadMemory threads_;
};

}  // namespace loipe::attention::certificate
