// SPDX-License-Identifier: Apache-2.0
#include "attention/certificate/audit.h"

#include <array>

#include "attention/certificate/column_pass.h"
#include "attention/certificate/pair_pass.h"

namespace loipe::attention::certificate {

namespace {

/// energies[row] = squared norms of the rows of one head; returns their sum.
template <class E>
double set_energies(const statistics::BlockReader<E>& reader, std::int64_t head, std::int64_t rows,
                    double* energies) {
  const auto& kernels = statistics::moment_kernels_of_this_cpu<E>();
  double total = 0;
  for (std::int64_t first = 0; first < rows; first += kBlockRows) {
    const std::int64_t count = std::min<std::int64_t>(kBlockRows, rows - first);
    E norms[kBlockRows];
    kernels.squared_norms(reader.read({head, first, count}), reader.width, norms);
    for (std::int64_t i = 0; i < count; ++i) total += energies[first + i] = static_cast<double>(norms[i]);
  }
  return total;
}
template <class E>
double set_energies(const Rows<const E>& from, std::int64_t head, std::int64_t rows, std::int64_t columns,
                    E* block, double* energies) {
  const std::int64_t width = round_up(columns, statistics::kPad);
  return set_energies<E>({from, columns, width, nullptr, nullptr, block}, head, rows, energies);
}

/// |row|^(2 exponent), of queries or of centred keys. A polynomial of degree g leaves errors that grow as
/// |q|^(g + 1) |k|^(g + 1): rows are drawn accordingly.
template <class E>
struct Power {
  int exponent = 0;
  const Extents<E>* extents = nullptr;
  bool is_of_keys = false;

  void write(std::int64_t head, std::int64_t rows, E* block, double* out) const {
    const Problem<E>& p = extents->problem;
    const std::int64_t d = p.shape.head_size;
    if (!is_of_keys) set_energies<E>({p.q, d, extents->a_width, nullptr, nullptr, block}, head, rows, out);
    else
      set_energies<E>(
          {p.k, d, extents->a_width, extents->key_mean_of(head), key_mask_at(p.mask, head, 0), block}, head,
          rows, out);
  }
};

/// Rows of an array with heads, and what stands for their energy in draws.
template <class E>
struct Ranked {
  Rows<const E> rows;  ///< may be absent
  std::int64_t columns;
};

/// Energies by row, and draws from them.
template <class E>
struct Lot {
  std::int64_t heads, rows, draws;
  double* energies;  ///< [threads][kEnergies][rows]
  double* norms;     ///< [threads][rows]
  double* totals;    ///< [heads][kEnergies]
  Draw* drawn;       ///< [heads][draws]
  ThreadMemory blocks;

  Lot(const Extents<E>& e, std::int64_t h, std::int64_t r, std::int64_t d, int threads, Arena& arena)
      : heads(h), rows(r), draws(d) {
    constexpr auto kCount = static_cast<std::int64_t>(kEnergies);
    energies = arena.take<double>(threads * kCount * rows), norms = arena.take<double>(threads * rows);
    totals = arena.take<double>(heads * kCount);
    drawn = arena.take<Draw>(heads * draws);
    Arena one;
    one.take<E>(kBlockRows * std::max(e.a_width, e.b_width));
    blocks = ThreadMemory(arena, one.used(), threads);
  }
  E* block(int thread) const {
    Arena own = blocks.of(thread);
    return own.take<E>(0);
  }
  double total(std::int64_t head, std::int64_t which) const {
    return totals[head * static_cast<std::int64_t>(kEnergies) + which];
  }

  /// Rows in proportion to the energies of results times a power; where `last` is given, its energies
  /// last(head) are the last ones.
  template <class Last>
  void draw(const std::array<Ranked<E>, kEnergies>& results, const Power<E>& power, std::uint64_t seed,
            const Parallel& parallel, Last&& last) const {
    for_each(parallel, heads, [&](std::int64_t head, int thread) {
      double* const norm = norms + thread * rows;
      if (power.exponent > 0) power.write(head, rows, block(thread), norm);
      std::array<const double*, kEnergies> found{};
      for (std::size_t r = 0; r < kEnergies; ++r) {
        const auto at = static_cast<std::int64_t>(kEnergies) * thread + static_cast<std::int64_t>(r);
        double* const to = energies + at * rows;
        double& sum = totals[head * static_cast<std::int64_t>(kEnergies) + static_cast<std::int64_t>(r)] = 0;
        if (!results[r].rows) continue;
        sum = set_energies(results[r].rows, head, rows, results[r].columns, block(thread), to);
        for (std::int64_t i = 0; power.exponent > 0 && i < rows; ++i)
          for (int e = 0; e < power.exponent; ++e) to[i] *= norm[i];
        found[r] = to;
      }
      if (const double* const more = last(head)) found.back() = more;
      Rng rng(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(head));
      draw_rows(found, rows, rng, {drawn + head * draws, static_cast<std::size_t>(draws)});
    });
  }
};

/// Adds the draws of one head: rows of the approximate result against exact ones.
template <class E, class Exact>
void add_draws(RatioSums& sums, const Rows<const E>& approximate, std::int64_t head, std::int64_t columns,
               const Draw* draws, std::int64_t count, double total, Exact&& exact) {
  sums.add_known(total);
  for (std::int64_t draw = 0; draw < count; draw += 2) {
    double error[2] = {}, excess[2] = {};
    for (std::int64_t d = 0; d < 2; ++d)
      for (std::int64_t c = 0; c < columns; ++c) {
        const double is = static_cast<double>(get(approximate, head, draws[draw + d].row, c));
        const double should = exact(draw + d)[c];
        error[d] += (is - should) * (is - should);
        excess[d] += should * should - is * is;
      }
    sums.add(draws[draw], draws[draw + 1], error[0], error[1], excess[0], excess[1]);
  }
}

/// The same where rows of errors are found.
template <class Row>
void add_errors(RatioSums& sums, std::int64_t columns, const Draw* draws, std::int64_t count, double total,
                Row&& row) {
  sums.add_known(total);
  for (std::int64_t draw = 0; draw < count; draw += 2) {
    double error[2] = {};
    for (std::int64_t d = 0; d < 2; ++d)
      for (std::int64_t c = 0; c < columns; ++c) error[d] += row(draw + d)[c] * row(draw + d)[c];
    sums.add(draws[draw], draws[draw + 1], error[0], error[1], 0, 0);
  }
}

template <class E>
struct AuditMemory {
  Extents<E> extents;
  Lot<E> queries, keys;
  RowPass<E> rows;
  ColumnPass<E> columns;
  PairPass<E> pairs;

  AuditMemory(const Problem<E>& p, const Cotangents<E>& cotangents, const Approximate<E>& approximate,
              const ExactForward<E>& exact, const Polynomial<E>& polynomial, const Sampling& sampling,
              int threads, Arena& arena)
      : extents(p, sampling, arena),
        queries(extents, p.shape.heads, p.shape.queries, extents.rows, threads, arena),
        keys(extents, p.shape.kv_heads, p.shape.keys, extents.columns, threads, arena),
        rows(extents, queries.drawn, cotangents, exact, threads, arena),
        columns(extents, keys.drawn, cotangents, exact, polynomial, approximate.o, threads, arena),
        pairs(extents, rows, cotangents, approximate.o, polynomial, threads, arena) {}
};

bool is_empty(const Shape& s) { return s.heads == 0 || s.queries == 0 || s.keys == 0; }

}  // namespace

template <class E>
std::size_t audit_workspace(const Problem<E>& problem, const Sampling& sampling, int threads) {
  if (is_empty(problem.shape)) return 0;
  Arena arena;
  AuditMemory<E>(problem, {}, {}, {}, {}, sampling, threads, arena);
  return arena.used();
}

template <class E>
Audit audit(const Problem<E>& problem, const Cotangents<E>& cotangents, const Approximate<E>& approximate,
            const ExactForward<E>& exact, const Polynomial<E>& polynomial, const Sampling& sampling,
            const Parallel& parallel, std::span<std::byte> workspace) {
  const Shape& s = problem.shape;
  Audit result;
  if (is_empty(s)) return result;
  Arena arena(workspace);
  AuditMemory<E> m(problem, cotangents, approximate, exact, polynomial, sampling, parallel.threads, arena);
  m.extents.compute_means(polynomial.approximation);
  const bool has_exact_forward{exact.lse};
  const Rows<const E> o = has_exact_forward ? Rows<const E>{} : approximate.o, q = approximate.input.q,
                      k = approximate.input.k, v = approximate.input.v;
  const bool has_polynomial = !has_exact_forward && (k || v) && approximate.o && cotangents.o &&
                              polynomial.denominator && polynomial.approximation != nullptr;
  const bool has_pairs = has_polynomial && sampling.has_pairs && polynomial.approximation->rank == 0;
  const bool has_differences = has_polynomial && !sampling.has_pairs;
  const int exponent = polynomial.approximation == nullptr ? 0 : polynomial.approximation->degree + 1;
  const auto no_more = [](std::int64_t) -> const double* { return nullptr; };
  const bool has_columns = has_exact_forward && (k || v);
  if (o || q || has_pairs || has_columns) {
    m.queries.draw({{{o, s.value_size}, {q, s.head_size}, {cotangents.o, s.value_size}}},
                   {exponent, &m.extents, false}, 2 * sampling.seed, parallel, no_more);
    m.rows.run(parallel);
    RatioSums of_o, of_q;
    for (std::int64_t h = 0; h < s.heads; ++h) {
      const Draw* const draws = m.queries.drawn + h * m.queries.draws;
      if (o)
        add_draws(of_o, o, h, s.value_size, draws, m.queries.draws, m.queries.total(h, 0),
                  [&](std::int64_t draw) { return m.rows.o(h, draw); });
      if (q)
        add_draws(of_q, q, h, s.head_size, draws, m.queries.draws, m.queries.total(h, 1),
                  [&](std::int64_t draw) { return m.rows.dq(h, draw); });
    }
    result.o = of_o.estimate(Kind::sampled_rows), result.q = of_q.estimate(Kind::sampled_rows);
  }
  if (has_columns || has_differences) {
    m.keys.draw({{{k, s.head_size}, {v, s.value_size}, {}}}, {has_columns ? 0 : exponent, &m.extents, true},
                2 * sampling.seed + 1, parallel,
                [&](std::int64_t kh) { return has_columns ? m.rows.key_energies(kh) : nullptr; });
    m.columns.run(parallel);
    const auto estimate = [&](const Rows<const E>& from, std::int64_t columns, std::int64_t which,
                              auto&& row) {
      RatioSums sums;
      for (std::int64_t h = 0; h < s.kv_heads; ++h) {
        const Draw* const draws = m.keys.drawn + h * m.keys.draws;
        const double total = m.keys.total(h, which);
        const auto found = [&](std::int64_t draw) { return row(h, draw); };
        if (has_columns) add_draws(sums, from, h, columns, draws, m.keys.draws, total, found);
        else add_errors(sums, columns, draws, m.keys.draws, total, found);
      }
      return sums.estimate(has_columns ? Kind::sampled_columns : Kind::approximate_columns);
    };
    const auto dk = [&](std::int64_t h, std::int64_t draw) { return m.columns.dk(h, draw); };
    const auto dv = [&](std::int64_t h, std::int64_t draw) { return m.columns.dv(h, draw); };
    if (k) result.k = estimate(k, s.head_size, 0, dk);
    if (v) result.v = estimate(v, s.value_size, 1, dv);
  }
  if (has_pairs) {
    m.pairs.run(parallel);
    const auto estimate = [&](const Rows<const E>& from, std::int64_t columns, const auto& square) {
      double reference = 0;
      for (std::int64_t h = 0; h < s.kv_heads; ++h)
        reference += set_energies(from, h, s.keys, columns, m.keys.block(0), m.keys.norms);
      return estimate_of_square(square.value, square.deviation, reference);
    };
    if (k) result.k = estimate(k, s.head_size, m.pairs.dk());
    if (v) result.v = estimate(v, s.value_size, m.pairs.dv());
  }
  return result;
}

#define LOIPE_INSTANTIATE(E)                                                                           \
  template std::size_t audit_workspace(const Problem<E>&, const Sampling&, int);                       \
  template Audit audit(const Problem<E>&, const Cotangents<E>&, const Approximate<E>&,                 \
                       const ExactForward<E>&, const Polynomial<E>&, const Sampling&, const Parallel&, \
                       std::span<std::byte>);
LOIPE_INSTANTIATE(float)
LOIPE_INSTANTIATE(double)
#undef LOIPE_INSTANTIATE

}  // namespace loipe::attention::certificate
