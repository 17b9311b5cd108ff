// SPDX-License-Identifier: Apache-2.0
// The equations left(labels) == right(labels), one per contracted axis, that a
// product of two terms has to satisfy. Each is solved exactly: bare labels are
// substituted, constants decoded, progressions intersected, mixed-radix lists
// peeled or split; what remains is enumerated, or becomes a mask when an index is
// only known at run time.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "jacobian/raw_term.h"

namespace loipe {

namespace {

std::int64_t floor_mod(std::int64_t a, std::int64_t m) { return ((a % m) + m) % m; }

/// The inverse of a modulo m, for coprime a and m (extended Euclid).
std::int64_t inverse_modulo(std::int64_t a, std::int64_t m) {
  if (m == 1) return 0;
  std::int64_t r0 = m, r1 = floor_mod(a, m), t0 = 0, t1 = 1;
  while (r1 != 0) {
    const std::int64_t q = r0 / r1;
    r0 = std::exchange(r1, r0 - q * r1);
    t0 = std::exchange(t1, t0 - q * t1);
  }
  return floor_mod(t0, m);
}

/// Smallest and largest position of an affine coordinate.
std::pair<std::int64_t, std::int64_t> range(const Coordinate& c, Extents extents) {
  std::int64_t low = c.offset, high = c.offset;
  for (const Stride& s : c.strides) (s.stride > 0 ? high : low) += s.stride * (extents[s.label] - 1);
  return {low, high};
}

/// offset + stride*l for l in 0..extent-1
struct Progression {
  std::int64_t offset, stride, extent;
};

/// All pairs (a0 + step_a*t, b0 + step_b*t), t in 0..count-1, where two progressions meet.
struct Meeting {
  std::int64_t a0, step_a, b0, step_b, count;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// The t with 0 <= start + step*t < extent, as low..high.
std::pair<std::int64_t, std::int64_t> steps_inside(std::int64_t start, std::int64_t step,
                                                   std::int64_t extent) {
  if (step > 0) return {ceil_div(-start, step), floor_div(extent - 1 - start, step)};
  return {ceil_div(extent - 1 - start, step), floor_div(-start, step)};
}

/// p.offset + p.stride*a == q.offset + q.stride*b is linear Diophantine: with
/// g = gcd of the strides, a runs modulo q.stride/g and b modulo p.stride/g.
Meeting meet(const Progression& p, const Progression& q) {
  const std::int64_t g = std::gcd(p.stride, q.stride);
  const std::int64_t difference = q.offset - p.offset;
  if (floor_mod(difference, g) != 0) return {0, 0, 0, 0, 0};
  const std::int64_t step_a = std::abs(q.stride / g);
  const std::int64_t a0 = floor_mod((difference / g) % step_a * inverse_modulo(p.stride / g, step_a), step_a);
  const std::int64_t b0 = (p.offset + p.stride * a0 - q.offset) / q.stride;
  const std::int64_t step_b = p.stride * step_a / q.stride;
  const auto [low_a, high_a] = steps_inside(a0, step_a, p.extent);
  const auto [low_b, high_b] = steps_inside(b0, step_b, q.extent);
  const std::int64_t low = std::max(low_a, low_b), high = std::min(high_a, high_b);
  if (low > high) return {0, 0, 0, 0, 0};
  return {a0 + step_a * low, step_a, b0 + step_b * low, step_b, high - low + 1};
}

/// start + step * label, or a fixed position when there is only one.
Coordinate progression(Label label, std::int64_t start, std::int64_t step, std::int64_t count) {
  return count == 1 ? Coordinate::fixed(start) : Coordinate::of(label, step, start);
}

/// Peels equal innermost digits of two mixed-radix lists, or splits the longer one.
/// With innermost stride s and extent e on both sides, all other strides and the
/// difference of the offsets divisible by s*e, the equation taken modulo s*e says
/// that the innermost labels are equal. Returns whether it did anything.
bool peel_or_split(Builder& builder, RawTerm& term, const RawTerm::Equation& equation) {
  const Coordinate &left = equation.left, &right = equation.right;
  if (!left.is_affine() || !right.is_affine() || left.is_fixed() || right.is_fixed()) return false;
  const Stride a = left.strides.back(), b = right.strides.back();
  if (a.label == b.label || a.stride != b.stride || a.stride <= 0) return false;
  const std::int64_t ea = term.extents[a.label], eb = term.extents[b.label];
  const std::int64_t e = std::min(ea, eb);
  if (std::max(ea, eb) % e != 0) return false;
  const std::int64_t period = a.stride * e;
  auto divisible = [&](const Coordinate& c) {
    return std::all_of(c.strides.begin(), c.strides.end() - 1,
                       [&](const Stride& s) { return s.stride % period == 0; });
  };
  if (!divisible(left) || !divisible(right) || (left.offset - right.offset) % period != 0) return false;
  if (contains(left, b.label) || contains(right, a.label)) return false;

  term.equations.push_back(equation);
  if (ea == eb) {
    term.substitute(builder, b.label, Coordinate::of(a.label));
  } else {
    const Stride& wide = ea > eb ? a : b;
    const Stride& narrow = ea > eb ? b : a;
    Coordinate digits = Coordinate::of(term.add_label(term.extents[wide.label] / e), e);
    add_affine(digits, Coordinate::of(narrow.label), 1);
    term.substitute(builder, wide.label, digits);
  }
  return true;
}

/// Removes labels that stand with the same stride on both sides.
RawTerm::Equation cancelled(RawTerm::Equation equation) {
  if (!equation.left.is_affine() || !equation.right.is_affine()) return equation;
  Coordinate difference = equation.left;
  add_affine(difference, equation.right, -1);
  Coordinate left, right;
  for (const Stride& s : difference.strides) {
    if (s.stride > 0) left.strides.push_back(s);
    else right.strides.push_back({s.label, -s.stride});
  }
  (difference.offset >= 0 ? left : right).offset = std::abs(difference.offset);
  return {left, right, equation.axis_extent};
}

constexpr std::int64_t kLargestEnumeration = std::int64_t{1} << 26;

/// All solutions of a static equation, one row of label values each.
class Enumeration {
 public:
  Enumeration(const RawTerm::Equation& equation, Extents extents)
      : left_labels_(labels_of(equation.left)), right_labels_(labels_of(equation.right)) {
    std::vector<Label> shared;
    std::set_intersection(left_labels_.begin(), left_labels_.end(), right_labels_.begin(),
                          right_labels_.end(), std::back_inserter(shared));
    std::set_union(left_labels_.begin(), left_labels_.end(), right_labels_.begin(), right_labels_.end(),
                   std::back_inserter(labels));
    columns.resize(labels.size());
    if (shared.empty()) join(equation, extents);
    else scan(equation, extents);
  }

  std::vector<Label> labels;
  std::vector<std::vector<std::int64_t>> columns;
  std::int64_t count = 0;

 private:
  void add(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const bool is_left = std::binary_search(left_labels_.begin(), left_labels_.end(), labels[i]);
      columns[i].push_back((is_left ? a : b)[labels[i]]);
    }
    ++count;
  }
  static void limit(std::int64_t steps) {
    if (steps > kLargestEnumeration)
      throw Unsupported("a product of local Jacobians needs an index table of more than " +
                        std::to_string(kLargestEnumeration) + " entries");
  }
  /// Labels on both sides: try all assignments.
  void scan(const RawTerm::Equation& equation, Extents extents) {
    limit(count_assignments(labels, extents));
    for_each_assignment(labels, extents, [&](std::span<const std::int64_t> at) {
      if (position(equation.left, at, extents) == position(equation.right, at, extents)) add(at, at);
    });
  }
  /// No label on both sides: a hash join on the position.
  void join(const RawTerm::Equation& equation, Extents extents) {
    limit(count_assignments(left_labels_, extents) + count_assignments(right_labels_, extents));
    std::unordered_map<std::int64_t, std::vector<std::vector<std::int64_t>>> by_position;
    for_each_assignment(right_labels_, extents, [&](std::span<const std::int64_t> at) {
      by_position[position(equation.right, at, extents)].emplace_back(at.begin(), at.end());
    });
    for_each_assignment(left_labels_, extents, [&](std::span<const std::int64_t> at) {
      auto found = by_position.find(position(equation.left, at, extents));
      if (found == by_position.end()) return;
      limit(count + static_cast<std::int64_t>(found->second.size()));
      for (const auto& other : found->second) add(at, other);
    });
  }

  std::vector<Label> left_labels_, right_labels_;
};

/// Puts the solutions under one new label.
bool enumerate(Builder& builder, RawTerm& term, const RawTerm::Equation& equation) {
  Enumeration solutions(equation, term.extents);
  if (solutions.count == 0) return false;
  const Label t = term.add_label(solutions.count);
  for (std::size_t i = 0; i < solutions.labels.size(); ++i)
    term.substitute(builder, solutions.labels[i],
                    simplified(Coordinate::table({t}, std::move(solutions.columns[i])), term.extents));
  return true;
}

/// An index known only at run time: entries exist where both sides agree.
void mask_dynamic(Builder& builder, RawTerm& term, const RawTerm::Equation& equation) {
  Recorder recorder(builder);
  std::vector<Label> labels = labels_of(equation.left);
  for (Label label : labels_of(equation.right)) labels.push_back(label);
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  const Value mask = recorder.equal(position_value(builder, equation.left, labels, term.extents),
                                    position_value(builder, equation.right, labels, term.extents));
  Access access{mask, {}};
  for (Label label : labels) access.at.push_back(Coordinate::of(label));
  term.masks.push_back(std::move(access));
}

/// Label l of one side with stride s: s*l == target. False when there is none.
bool solve_single(Builder& builder, RawTerm& term, const Coordinate& side, std::int64_t target) {
  const Stride s = side.strides[0];
  const std::int64_t distance = target - side.offset;
  if (distance % s.stride != 0) return false;
  const std::int64_t value = distance / s.stride;
  if (value < 0 || value >= term.extents[s.label]) return false;
  term.substitute(builder, s.label, Coordinate::fixed(value));
  return true;
}

}  // namespace

bool RawTerm::solve_by_bare_label(Builder& builder) {
  for (std::size_t i = 0; i < equations.size(); ++i) {
    for (bool swapped : {false, true}) {
      const Equation equation = equations[i];
      const Coordinate& bare = swapped ? equation.right : equation.left;
      const Coordinate& other = swapped ? equation.left : equation.right;
      if (!is_bare(bare, equation.axis_extent, extents) || contains(other, bare.label())) continue;
      equations.erase(equations.begin() + static_cast<std::ptrdiff_t>(i));
      substitute(builder, bare.label(), other);
      return true;
    }
  }
  return false;
}

bool RawTerm::solve_one(Builder& builder, const Equation& given) {
  const Equation equation = cancelled(given);
  const Coordinate &left = equation.left, &right = equation.right;
  if (left.is_dynamic() || right.is_dynamic()) return mask_dynamic(builder, *this, equation), true;
  if (left.is_affine() && right.is_affine()) {
    const auto [low_left, high_left] = range(left, extents);
    const auto [low_right, high_right] = range(right, extents);
    if (high_left < low_right || high_right < low_left) return false;
    if (left.is_fixed() && right.is_fixed()) return left.offset == right.offset;
    if (left.is_single() && right.is_fixed()) return solve_single(builder, *this, left, right.offset);
    if (right.is_single() && left.is_fixed()) return solve_single(builder, *this, right, left.offset);
    if (left.is_single() && right.is_single()) {
      const Stride a = left.strides[0], b = right.strides[0];
      const Meeting m =
          meet({left.offset, a.stride, extents[a.label]}, {right.offset, b.stride, extents[b.label]});
      if (m.count == 0) return false;
      const Label t = m.count > 1 ? add_label(m.count) : a.label;
      substitute(builder, a.label, progression(t, m.a0, m.step_a, m.count));
      substitute(builder, b.label, progression(t, m.b0, m.step_b, m.count));
      return true;
    }
    if (peel_or_split(builder, *this, equation)) return true;
  }
  return enumerate(builder, *this, equation);
}

bool RawTerm::solve(Builder& builder) {
  for (std::size_t label = 0; label < extents.size(); ++label)
    if (is_live[label] && extents[label] == 0) return false;
  while (!equations.empty()) {
    if (solve_by_bare_label(builder)) continue;
    const Equation equation = equations.back();
    equations.pop_back();
    if (!solve_one(builder, equation)) return false;
  }
  return true;
}

}  // namespace loipe
