// SPDX-License-Identifier: Apache-2.0
// Loops that run inside the product whose results they read: the same bits as loops after it.
#include "backends/backend_testing.h"
#include "ops/recorded/einsum_spec.h"

namespace loipe {
namespace {

class Epilogues : public testing::TestWithParam<std::string> {
 protected:
  ForcedSimd simd_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Simd, Epilogues, testing::ValuesIn(simd_levels()),
                         [](const auto& level) { return level.param; });

/// A product, elementwise work on what it gives, and perhaps a reduction of that.
class ProgramOfProduct {
 public:
  ProgramOfProduct(std::uint64_t seed, DType dtype) : rng_(seed), dtype_(dtype) {
    for (std::int64_t& extent : extents_) extent = kExtents[rng_.below(std::ssize(kExtents))];
    spec_ = kSpecs[rng_.below(std::ssize(kSpecs))];
    Value v = product();
    const int length = 1 + static_cast<int>(rng_.below(4));
    std::vector<Value> outputs;
    if (rng_.chance(0.1)) outputs.push_back(v);  // then it exists all the same
    for (int i = 0; i < length; ++i) {
      v = next(v);
      if (rng_.chance(0.2)) outputs.push_back(v);
    }
    if (rng_.chance(0.3)) outputs.push_back(reduced(v));
    if (outputs.empty() || rng_.chance(0.5)) outputs.push_back(v);
    program_ = builder_.finish(outputs);
  }

  const Program& program() const { return *program_; }
  const std::vector<Tensor>& arguments() const { return arguments_; }
  const std::string& spec() const { return spec_; }

 private:
  static constexpr std::int64_t kExtents[] = {2, 3, 5, 8, 16, 17, 32, 33, 48, 64, 80};
  static constexpr const char* kSpecs[] = {"ab,bc->ac",    "ab,cb->ac",   "ba,bc->ca",   "dab,dbc->dac",
                                           "dab,dbc->adc", "ab,bcd->acd", "adb,bc->adc", "abd,dbc->dca",
                                           "ab,bc->ac",    "abd,bdc->ac"};

  Value argument(DType dtype, const Shape& shape) {
    Tensor tensor(TensorType{dtype, shape});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i)
      tensor.set(i, dtype == DType::boolean ? (rng_.chance(0.5) ? 1 : 0) : rng_.uniform(-1, 1));
    arguments_.push_back(std::move(tensor));
    return builder_.argument("x" + std::to_string(arguments_.size()), {dtype, shape});
  }

  Value product() {
    const EinsumSpec spec = EinsumSpec::parse(spec_);
    std::vector<Value> factors;
    for (const std::vector<Label>& labels : spec.operands) {
      Shape shape;
      for (Label label : labels) shape.push_back(extents_[label]);
      factors.push_back(argument(dtype_, shape));
    }
    return builder_.emit(find_op("einsum"), factors, {{"spec", spec_}});
  }

  /// An argument that is as large as v, or stands still along some of its axes.
  Value partner(Value v, DType dtype) {
    Shape shape = builder_.type(v).shape;
    for (std::int64_t& extent : shape)
      if (rng_.chance(0.4)) extent = 1;
    return argument(dtype, shape);
  }

  Value next(Value v) {
    switch (rng_.below(7)) {
      case 0: return builder_.emit("add", {v, partner(v, dtype_)});
      case 1: return builder_.emit("mul", {partner(v, dtype_), v});
      case 2: return builder_.emit("tanh", {v});
      case 3:
        return builder_.emit("select", {argument(DType::boolean, builder_.type(v).shape), v,
                                        argument(dtype_, builder_.type(v).shape)});
      case 4: return builder_.emit("sub", {product(), v});
      case 5: return builder_.emit("mul", {v, v});
      default: return builder_.emit("erf", {v});  // never compiled, see kernel_step.cc
    }
  }

  Value reduced(Value v) {
    constexpr const char* kReductions[] = {"reduce_sum", "reduce_max"};
    const auto rank = static_cast<std::int64_t>(builder_.type(v).shape.size());
    return builder_.emit(kReductions[rng_.below(2)], {v}, {{"axes", Integers{rng_.below(rank)}}});
  }

  Rng rng_;
  DType dtype_;
  Builder builder_;
  std::vector<Tensor> arguments_;
  std::array<std::int64_t, 4> extents_{};
  std::string spec_;
  std::optional<Program> program_;
};

TEST_P(Epilogues, HaveTheBitsOfLoopsInMemory) {
  std::int64_t inside = 0;
  bool compiles = false;
  for (std::uint64_t seed = 0; seed < 60; ++seed)
    for (DType dtype : {DType::f32, DType::f64}) {
      const ProgramOfProduct made(seed, dtype);
      SCOPED_TRACE(made.spec() + ", seed " + std::to_string(seed) + ", " + std::string(to_string(dtype)));
      const auto compile = [&](int threads, const std::vector<std::string>& disabled) {
        return find_backend("jit").compile(
            made.program(),
            {.threads = threads, .disabled = DisabledPasses(disabled), .report = [&](const auto& report) {
               if (report.pass.name == "epilogues") inside += report.after;
               if (report.pass.name == "kernels") compiles = compiles || report.after > 0;
             }});
      };
      const std::vector<Tensor> results = run_guarded(*compile(1, {}), made.arguments());
      for (const std::vector<std::string>& disabled : std::vector<std::vector<std::string>>{
               {"epilogues"}, {"kernels"}, {"fusion"}, {"tiling"}, {"tiling", "epilogues"}})
        EXPECT_TRUE(run_guarded(*compile(1, disabled), made.arguments()) == results) << disabled[0];
      EXPECT_TRUE(run_guarded(*compile(2, {}), made.arguments()) == results) << "two threads";
      expect_agreement(results, evaluate(made.program(), made.arguments()), 1e-12, 2e-4);
    }
  EXPECT_TRUE(inside > 60 || !compiles) << "only " << inside << " loops ran inside a product";
}

/// The last label of the result is one of the batch: along it a block of results has one element, so the loop
/// has no vectors in there and runs after the product.
TEST(Epilogues, ABatchLabelMayBeLast) {
  for (const char* spec : {"cab,cbd->adc", "bca,cbd->acd"}) {
    SCOPED_TRACE(spec);
    Builder b;
    const Value x = b.argument("x", {DType::f32, {32, 32, 32}}),
                y = b.argument("y", {DType::f32, {32, 32, 32}});
    const Value product = b.emit("einsum", {x, y}, {{"spec", std::string(spec)}});
    const Program program = b.finish({b.emit("add", {b.emit("mul", {product, product}), x})});
    Rng rng(3);
    std::vector<Tensor> arguments;
    for (Value argument : program.arguments()) {
      arguments.emplace_back(program.type(argument));
      for (float& element : arguments.back().elements<float>()) element = static_cast<float>(rng.normal());
    }
    const auto run = [&](const std::vector<std::string>& disabled) {
      return run_guarded(
          *find_backend("jit").compile(program, {.threads = 1, .disabled = DisabledPasses(disabled)}),
          arguments);
    };
    EXPECT_TRUE(run({}) == run({"epilogues"}));
    EXPECT_TRUE(run({"tiling"}) == run({"epilogues", "tiling"}));
  }
}

/// What a product gives is gone, and with it its memory, but for what others read.
TEST(Epilogues, ResultsOfProductsDoNotExist) {
  for (bool is_read_elsewhere : {false, true}) {
    Builder b;
    const Value x = b.argument("x", {DType::f32, {256, 32}}), w = b.argument("w", {DType::f32, {32, 256}});
    const Value bias = b.argument("bias", {DType::f32, {1, 256}});
    const Value product = b.emit("einsum", {x, w}, {{"spec", std::string("ab,bc->ac")}});
    std::vector<Value> outputs{b.emit("tanh", {b.emit("add", {product, bias})})};
    if (is_read_elsewhere)
      outputs.push_back(b.emit("reduce_sum",
                               {b.emit("transpose", {product}, {{"permutation", Integers{1, 0}}})},
                               {{"axes", Integers{0}}}));
    const Program program = b.finish(outputs);
    std::int64_t kernels = 0, inside = 0;
    const BackendOptions options{
        .threads = 1, .disabled = DisabledPasses({"tiling"}), .report = [&](const BackendPassReport& report) {
          if (report.pass.name == "kernels") kernels = report.after;
          if (report.pass.name == "epilogues") inside = report.after;
        }};
    const std::size_t peak = find_backend("jit").compile(program, options)->peak_bytes();
    if (kernels == 0) GTEST_SKIP() << "loops are not compiled here";
    EXPECT_EQ(inside, is_read_elsewhere ? 0 : 1);
    const std::size_t border = 4 * (2 * 256 * 32 + 256 + 256 * 256 + (is_read_elsewhere ? 256 : 0));
    if (!is_read_elsewhere) EXPECT_LT(peak, border + 4 * 256 * 256);
    else EXPECT_GE(peak, border + 4 * 256 * 256);
  }
}

}  // namespace
}  // namespace loipe
