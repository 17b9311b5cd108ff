// SPDX-License-Identifier: Apache-2.0
#include "driver/pattern_check.h"

#include <algorithm>

#include "base/text.h"
#include "tensor/safetensors.h"

namespace loipe {

namespace {

std::string position_text(std::int64_t row, std::int64_t column) {
  return "(" + std::to_string(row) + ", " + std::to_string(column) + ")";
}

/// Reads the patterns of one file.
class PatternFile {
 public:
  explicit PatternFile(const std::filesystem::path& path) : path_(path), file_(SafetensorsFile::read(path)) {}

  std::optional<SparsePattern> pattern(const std::string& block, std::int64_t rows,
                                       std::int64_t columns) const {
    std::vector<std::int64_t> row_of, column_of;
    if (file_.has(block + ".rows")) {
      row_of = integers(block + ".rows", rows);
      column_of = integers(block + ".cols", columns);
    } else if (file_.has(block + ".indptr")) {
      column_of = integers(block + ".indices", columns);
      row_of = rows_of(block + ".indptr", rows, static_cast<std::int64_t>(column_of.size()));
    } else {
      return std::nullopt;
    }
    if (row_of.size() != column_of.size())
      fail(block + " has " + std::to_string(row_of.size()) + " rows, but " +
           std::to_string(column_of.size()) + " columns");
    return sorted(row_of, column_of, rows, columns);
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError("pattern file \"" + path_.string() + "\": " + what);
  }

 private:
  std::vector<std::int64_t> integers(const std::string& name, std::int64_t extent) const {
    const Tensor tensor = file_.tensor(name);
    if (is_floating(tensor.dtype()) || tensor.dtype() == DType::boolean || tensor.shape().size() != 1)
      fail(name + " is " + to_string(tensor.type()) + ", expected a list of integers");
    const Tensor wide = tensor.converted(DType::i64);
    const auto elements = wide.elements<std::int64_t>();
    for (std::int64_t index : elements)
      if (index < 0 || index >= extent)
        fail(name + " has " + std::to_string(index) + ", expected 0 to " + std::to_string(extent - 1));
    return {elements.begin(), elements.end()};
  }

  std::vector<std::int64_t> rows_of(const std::string& name, std::int64_t rows, std::int64_t entries) const {
    const std::vector<std::int64_t> first = integers(name, entries + 1);
    if (static_cast<std::int64_t>(first.size()) != rows + 1 || first.front() != 0 ||
        first.back() != entries || !std::ranges::is_sorted(first))
      fail(name + ": expected " + std::to_string(rows + 1) + " ascending numbers from 0 to " +
           std::to_string(entries));
    std::vector<std::int64_t> result;
    for (std::int64_t row = 0; row < rows; ++row)
      result.insert(result.end(),
                    static_cast<std::size_t>(first[static_cast<std::size_t>(row) + 1] -
                                             first[static_cast<std::size_t>(row)]),
                    row);
    return result;
  }

  static SparsePattern sorted(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                              std::int64_t row_count, std::int64_t column_count) {
    std::vector<std::pair<std::int64_t, std::int64_t>> positions;
    for (std::size_t i = 0; i < rows.size(); ++i) positions.emplace_back(rows[i], columns[i]);
    std::ranges::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    SparsePattern pattern{row_count, column_count, {}, {}};
    for (const auto& [row, column] : positions) {
      pattern.rows.push_back(row);
      pattern.columns.push_back(column);
    }
    return pattern;
  }

  std::filesystem::path path_;
  SafetensorsFile file_;
};

/// Positions of `a` that `b` lacks: how many, and the first.
std::int64_t count_beyond(const SparsePattern& a, const SparsePattern& b, std::string& first) {
  std::int64_t count = 0;
  std::size_t j = 0;
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    const std::pair at(a.rows[i], a.columns[i]);
    while (j < b.rows.size() && std::pair(b.rows[j], b.columns[j]) < at) ++j;
    if (j < b.rows.size() && std::pair(b.rows[j], b.columns[j]) == at) continue;
    if (count++ == 0) first = position_text(at.first, at.second);
  }
  return count;
}

}  // namespace

std::vector<BlockZeros> block_zeros(const TaskJacobian& jacobian, std::span<const Tensor> results) {
  std::vector<BlockZeros> all;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!jacobian.has_pattern(i)) continue;
    const SparsePattern pattern = jacobian.pattern(i);
    const Tensor& dense = results[i];
    const std::int64_t size = pattern.row_count * pattern.column_count;
    BlockZeros zeros{jacobian.result_name(i), pattern.row_count, pattern.column_count, pattern.entry_count(),
                     0};
    for (std::size_t e = 0; e < pattern.rows.size(); ++e) {
      bool is_zero = true;
      for (std::int64_t at = pattern.rows[e] * pattern.column_count + pattern.columns[e];
           at < dense.element_count(); at += size)
        is_zero = is_zero && dense.at(at) == 0;
      zeros.numeric_zeros += is_zero;
    }
    all.push_back(std::move(zeros));
  }
  return all;
}

PatternDifference compare_patterns(const std::string& name, const SparsePattern& declared,
                                   const SparsePattern& structural) {
  PatternDifference difference{name, 0, 0, {}, {}};
  difference.missing = count_beyond(structural, declared, difference.first_missing);
  difference.always_zero = count_beyond(declared, structural, difference.first_always_zero);
  return difference;
}

std::vector<PatternDifference> compare_with_file(const TaskJacobian& jacobian,
                                                 const std::filesystem::path& path) {
  const PatternFile file(path);
  std::vector<PatternDifference> all;
  std::string example;
  for (std::size_t i = 0; i < jacobian.result_types().size(); ++i) {
    if (!jacobian.has_pattern(i)) continue;
    if (example.empty()) example = jacobian.result_name(i);
    const SparsePattern structural = jacobian.pattern(i);
    if (const auto declared =
            file.pattern(jacobian.result_name(i), structural.row_count, structural.column_count))
      all.push_back(compare_patterns(jacobian.result_name(i), *declared, structural));
  }
  if (all.empty())
    file.fail("it declares no block; expected tensors like " + example + ".rows and " + example + ".cols");
  return all;
}

}  // namespace loipe
