// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_peak_table.h"

#include <array>
#include <cstdio>

#include "cli/bench_table.h"
#include "cli/table.h"

namespace loipe::cli {

namespace {

std::string one_decimal(double value) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.1f", value);
  return buffer.data();
}

std::string percent(double fraction) {
  std::array<char, 64> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.0f %%", 100 * fraction);
  return buffer.data();
}

std::string size_text(std::size_t bytes) {
  const double kilobytes = static_cast<double>(bytes) / 1024;
  return kilobytes < 1024 ? one_decimal(kilobytes) + " kB" : one_decimal(kilobytes / 1024) + " MB";
}

std::string product_name(ProductSize size) {
  const std::string cube = std::to_string(size.rows) + "^3";
  return size.count == 1 ? cube : std::to_string(size.count) + " x " + cube;
}

std::string arithmetic_text(const PeakResult& result) {
  Table table({"arithmetic", "threads", "GFLOP/s", "of peak"});
  // Rows lie thread count by thread count; the widest loop of each is its peak.
  double peak = 0;
  int threads = 0;
  for (const PeakResult::Fma& row : result.fma) {
    if (row.threads != threads) peak = row.gflops;
    threads = row.threads;
    table.add({"FMA loop, " + row.simd + " (" + std::to_string(row.bits) + " bits)",
               std::to_string(row.threads), one_decimal(row.gflops), percent(row.gflops / peak)});
  }
  for (const PeakResult::Product& row : result.products)
    table.add({"matrix product " + product_name(row.size), std::to_string(row.threads),
               one_decimal(row.gflops), percent(row.fraction_of_peak)});
  return table.text();
}

std::string memory_text(const PeakResult& result) {
  Table table({"memory", "threads", "per thread", "read GB/s", "copy GB/s", "triad GB/s"});
  for (const PeakResult::Memory& row : result.memory)
    table.add({row.level.name, std::to_string(row.threads), size_text(row.level.bytes),
               one_decimal(row.gb_per_second.read), one_decimal(row.gb_per_second.copy),
               one_decimal(row.gb_per_second.triad)});
  return table.text();
}

}  // namespace

std::string peak_text(const PeakResult& result) {
  return speed_text(result.machine, result.speed, result.dtype, result.threads) + "\n" +
         arithmetic_text(result) + "\n" + memory_text(result) + R"(
FMA loop        multiply-adds on registers, two operations each; the best of many trials
matrix product  through the fast back end, operands in cache where they fit
memory          bytes read and written, ordinary stores, median of many trials; read sums
                one array, copy is a = b, triad a = b + s c; the size is of all arrays
)";
}

Json peak_json(const PeakResult& result) {
  Json json;
  json["schema"] = kJsonSchema;
  json["dtype"] = loipe::to_string(result.dtype);
  json["threads"] = result.threads;
  json["machine"] = machine_json(result.machine, result.speed);
  for (const char* kind : {"fma", "products", "memory"}) json[kind] = Json::array();
  for (const PeakResult::Fma& row : result.fma)
    json["fma"].push_back(
        {{"simd", row.simd}, {"bits", row.bits}, {"threads", row.threads}, {"gflops", row.gflops}});
  for (const PeakResult::Product& row : result.products)
    json["products"].push_back({{"count", row.size.count},
                                {"rows", row.size.rows},
                                {"threads", row.threads},
                                {"gflops", row.gflops},
                                {"fraction_of_peak", row.fraction_of_peak}});
  for (const PeakResult::Memory& row : result.memory)
    json["memory"].push_back({{"level", row.level.name},
                              {"bytes_per_thread", row.level.bytes},
                              {"threads", row.threads},
                              {"read_gb_per_s", row.gb_per_second.read},
                              {"copy_gb_per_s", row.gb_per_second.copy},
                              {"triad_gb_per_s", row.gb_per_second.triad}});
  return json;
}

}  // namespace loipe::cli
