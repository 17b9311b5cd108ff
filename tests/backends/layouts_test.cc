// SPDX-License-Identifier: Apache-2.0
// Factors that lie badly are laid out around the tiles that read them: the same bits, and once for all.
#include <algorithm>

#include "backends/backend_testing.h"
#include "backends/cpu/executable.h"
#include "backends/cpu/lowering/lowering.h"
#include "backends/cpu/simd_level.h"
#include "ir/builder.h"
#include "ir/interpreter.h"

namespace loipe {
namespace {

constexpr cpu::TilingOptions kNoTiles{std::int64_t{1} << 40, false};

/// Batched products of a large value with factors whose axes stand in any order, and loops that read
/// small operands across.
class ProductsInTiles {
 public:
  ProductsInTiles(std::uint64_t seed, DType dtype) : rng_(seed), dtype_(dtype), builder_("products") {
    for (char label : std::string("abcdefg")) extents_[label] = kExtents[rng_.below(std::ssize(kExtents))];
    Value value = product(argument("ebc"), "ebc", argument(shuffled("cd")), "ebcd");
    value = builder_.emit("tanh", {value});
    value = product(argument(shuffled("aeb")), value, "ebcd", shuffled("ab") + "cd");
    if (rng_.chance(0.5)) value = scaled(value);
    value = product(argument(shuffled("fba")), value, result_, "fcd");
    program_ = builder_.finish({value});
  }

  const Program& program() const { return *program_; }
  const std::vector<Tensor>& arguments() const { return arguments_; }
  const std::string& specs() const { return specs_; }

 private:
  static constexpr std::int64_t kExtents[] = {5, 8, 16, 17, 24};

  struct Named {
    Value value;
    std::string labels;
  };

  std::string shuffled(std::string labels) {
    for (std::size_t i = labels.size(); i > 1; --i)
      std::swap(labels[i - 1], labels[static_cast<std::size_t>(rng_.below(static_cast<std::int64_t>(i)))]);
    return labels;
  }

  Named argument(const std::string& labels) {
    Tensor tensor(TensorType{dtype_, shape(labels)});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, rng_.uniform(-1, 1));
    arguments_.push_back(std::move(tensor));
    return {builder_.argument("x" + std::to_string(arguments_.size()), arguments_.back().type()), labels};
  }
  Shape shape(const std::string& labels) const {
    Shape result;
    for (char label : labels) result.push_back(extents_.at(label));
    return result;
  }

  Value einsum(Value x, const std::string& of_x, Value y, const std::string& of_y,
               const std::string& result) {
    const std::string spec = of_x + "," + of_y + "->" + result;
    specs_ += spec + " ";
    result_ = result;
    return builder_.emit("einsum", {x, y}, {{"spec", spec}});
  }
  Value product(const Named& x, const std::string&, const Named& y, const std::string& result) {
    return einsum(x.value, x.labels, y.value, y.labels, result);
  }
  Value product(const Named& x, Value y, const std::string& of_y, const std::string& result) {
    return einsum(x.value, x.labels, y, of_y, result);
  }

  /// Times an outer product of which one factor lies across the last axis.
  Value scaled(Value v) {
    const std::string all = result_;
    const Named row = argument("dc");
    const Value outer = product(argument("ab"), row.value, row.labels, all);
    return builder_.emit("mul", {v, outer});
  }

  Rng rng_;
  DType dtype_;
  Builder builder_;
  std::map<char, std::int64_t> extents_;
  std::vector<Tensor> arguments_;
  std::string specs_, result_;
  std::optional<Program> program_;
};

class Layouts : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Layouts, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

TEST_P(Layouts, RandomProductsHaveTheSameBits) {
  std::int64_t copies = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    for (DType dtype : {DType::f32, DType::f64}) {
      const ProductsInTiles made(seed, dtype);
      SCOPED_TRACE(made.specs() + "seed " + std::to_string(seed) + ", " + std::string(to_string(dtype)));
      const auto run = [&](const cpu::TilingOptions& tiling, const DisabledPasses& disabled, int threads) {
        cpu::PassLog log;
        const cpu::CpuExecutable executable(
            made.program(),
            cpu::lower(made.program(), cpu::kernels_of_this_cpu(), {tiling, disabled, &log, threads}),
            threads);
        for (const BackendPassReport& report : log.reports(disabled))
          if (report.pass.name == "layout") copies += report.after;
        return run_guarded(executable, made.arguments());
      };
      const std::vector<Tensor> whole = run(kNoTiles, {}, 1);
      expect_agreement(whole, evaluate(made.program(), made.arguments()), 1e-12, 2e-4);
      for (std::int64_t tile_bytes : {512, 4096, 32768})
        for (bool is_parallel : {false, true})
          EXPECT_TRUE(run({tile_bytes, is_parallel}, {}, is_parallel ? 2 : 1) == whole)
              << "tiles of " << tile_bytes;
      EXPECT_TRUE(run({4096, true}, DisabledPasses({"layout"}), 1) ==
                  run(kNoTiles, DisabledPasses({"layout"}), 1));
      if (HasFailure()) return;
    }
  EXPECT_GT(copies, 40) << "the random products hardly exercise layouts";
}

/// One copy around the tiles where each of them would make one.
TEST(Layouts, AFactorIsLaidOutOnce) {
  Builder b;
  const Value x = b.argument("x", {DType::f32, {32, 32, 32}}), y = b.argument("y", {DType::f32, {32, 32}});
  const Value factor = b.argument("factor", {DType::f32, {16, 32, 32}});
  const Value outer = b.emit("einsum", {x, y}, {{"spec", std::string("ebc,cd->ebcd")}});
  const Value large = b.emit("tanh", {outer});
  const Program program =
      b.finish({b.emit("einsum", {factor, large}, {{"spec", std::string("abe,ebcd->acd")}})});
  cpu::PassLog log;
  const cpu::LoweringOptions options{.tiling = {std::int64_t{1} << 16, true}, .disabled = {}, .log = &log};
  const cpu::Plan plan = cpu::lower(program, cpu::kernels_of_this_cpu(), options);
  std::int64_t regions = 0, copies = 0;
  for (const BackendPassReport& report : log.reports({})) {
    if (report.pass.name == "tiling") regions = report.after;
    if (report.pass.name == "layout") copies = report.after;
  }
  EXPECT_GE(regions, 1);
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(plan.steps.size(), 2u) << "the copy, and the tiles that read it";
}

}  // namespace
}  // namespace loipe
