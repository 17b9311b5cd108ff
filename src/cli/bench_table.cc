// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_table.h"

#include <array>
#include <cstdio>

#include "base/text.h"
#include "cli/table.h"

namespace loipe::cli {

namespace {

std::string formatted(const char* format, double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  return buffer.data();
}

/// Three or four digits, whatever the size.
std::string milliseconds(double value) {
  return formatted(value < 0.1 ? "%.5f" : value < 10 ? "%.3f" : value < 1000 ? "%.2f" : "%.0f", value);
}

std::string megabytes(std::size_t bytes) { return formatted("%.1f", static_cast<double>(bytes) / 1e6); }

std::string or_dash(std::optional<std::int64_t> value) { return value ? with_thousands(*value) : "-"; }

Json row_json(const BenchRow& row) {
  Json json;
  json["order"] = row.order;
  json["multiplications"] = multiplications_json(row.counts);
  json["additions"] = additions_json(row.counts);
  json["executed"] = operations_json(row.counts.executed);
  json["flops"] = row.flops;
  json["compile_ms"] = row.compile_ms;
  json["median_ms"] = row.median_ms;
  json["p10_ms"] = row.p10_ms;
  json["p90_ms"] = row.p90_ms;
  json["min_ms"] = row.min_ms;
  json["repetitions"] = row.repetitions;
  json["gflops"] = row.gflops;
  json["fraction_of_peak"] = row.fraction_of_peak;
  json["peak_bytes"] = row.peak_bytes;
  json["max_rel_error"] = row.max_rel_error;
  json["published_ms"] = {{"cpu", row.published_ms ? Json(row.published_ms->cpu) : Json(nullptr)},
                          {"gpu", row.published_ms ? Json(row.published_ms->gpu) : Json(nullptr)}};
  return json;
}

std::string heading(const BenchResult& result) {
  std::string text = result.task + ", scale " + std::to_string(result.scale) + ", batch " +
                     std::to_string(result.batch) + ", " + std::string(loipe::to_string(result.dtype)) +
                     ", " + to_string(result.inputs) +
                     " inputs: value and full Jacobian by all floating arguments" +
                     (result.block_values == BlockValues::entries ? ", structural non-zeros only" : "") +
                     (result.flush_subnormals ? ", subnormal numbers taken for 0\n" : "\n");
  return text + speed_text(result.machine, result.speed, result.dtype, result.threads);
}

/// What the columns mean.
std::string legend(const BenchResult& result) {
  const char* unit = result.inputs == InputKind::rich ? "of the largest of its block (of a block\n           "
                                                        "    below 1e-6 of the whole Jacobian: of that)"
                                                      : "of the largest of the whole Jacobian, as\n          "
                                                        "     most blocks are rounding noise around zero";
  return std::string(R"(
published mul  by the counting rule of the AlphaGrad papers
executed mul   in one run of the compiled program, value included; of one example where
               the program has no batch axis
GFLOP/s        executed multiplications, additions, divisions and functions over the median
of peak        of the FMA loop
paper          medians of the published experiments: AMD EPYC 9684X (96 cores), NVIDIA RTX 4090
max error      against float64 in reverse order at the same inputs: of each entry, in units
               )") +
         unit + "\n";
}

}  // namespace

std::string to_string(InputKind inputs) { return inputs == InputKind::rich ? "rich" : "published"; }

std::string speed_text(const Machine& machine, const MachineSpeed& speed, DType dtype, int threads) {
  return machine.cpu + " (" + machine.simd + ", " + std::to_string(machine.cores) + " cores), " +
         std::to_string(threads) + " threads; measured now in " + std::string(loipe::to_string(dtype)) +
         ": FMA loop " + formatted("%.1f", speed.fma_gflops) + " GFLOP/s, matrix product of 1024^3 " +
         formatted("%.1f", speed.gemm_gflops) + " GFLOP/s\n";
}

Json machine_json(const Machine& machine, const MachineSpeed& speed) {
  return {{"cpu", machine.cpu},
          {"simd", machine.simd},
          {"cores", machine.cores},
          {"fma_gflops", speed.fma_gflops},
          {"gemm_gflops", speed.gemm_gflops}};
}

std::string bench_text(const BenchResult& result) {
  Table table({"order", "published mul", "executed mul", "compile ms", "median ms", "p10 ms", "p90 ms",
               "GFLOP/s", "of peak", "peak MB", "max error", "paper CPU ms", "paper GPU ms"});
  for (const BenchRow& row : result.rows)
    table.add({row.order, or_dash(row.counts.published), with_thousands(row.counts.executed.multiplications),
               milliseconds(row.compile_ms), milliseconds(row.median_ms), milliseconds(row.p10_ms),
               milliseconds(row.p90_ms), formatted("%.1f", row.gflops),
               formatted("%.0f", 100 * row.fraction_of_peak) + " %", megabytes(row.peak_bytes),
               formatted("%.1e", row.max_rel_error),
               row.published_ms ? formatted("%.2f", row.published_ms->cpu) : "-",
               row.published_ms ? formatted("%.2f", row.published_ms->gpu) : "-"});
  return heading(result) + "\n" + table.text() + legend(result);
}

Json bench_json(const BenchResult& result) {
  Json json;
  json["schema"] = kJsonSchema;
  json["task"] = result.task;
  json["scale"] = result.scale;
  json["batch"] = result.batch;
  json["dtype"] = loipe::to_string(result.dtype);
  json["inputs"] = to_string(result.inputs);
  json["flush_subnormals"] = result.flush_subnormals;
  json["format"] = result.block_values == BlockValues::entries ? "coo" : "dense";
  json["threads"] = result.threads;
  json["machine"] = machine_json(result.machine, result.speed);
  json["rows"] = Json::array();
  for (const BenchRow& row : result.rows) json["rows"].push_back(row_json(row));
  return json;
}

}  // namespace loipe::cli
