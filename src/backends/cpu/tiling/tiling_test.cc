// SPDX-License-Identifier: Apache-2.0
// Regions and their tile programs, by the interpreter on random programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "backends/cpu/tiling/growth.h"
#include "backends/cpu/tiling/tile_program.h"
#include "backends/random_program.h"
#include "ir/interpreter.h"

namespace loipe::cpu {
namespace {

constexpr TilingOptions kEager{.tile_bytes = 64, .is_parallel = true};

/// The values of all nodes: the program with every node as an output.
std::vector<Tensor> evaluate_all(Program program, const std::vector<Tensor>& arguments) {
  std::vector<Value> all;
  for (std::uint32_t i = 0; i < program.size(); ++i) all.push_back(Value{i});
  program.set_outputs(std::move(all));
  return evaluate(program, arguments);
}

/// `count` elements from `start` on along the axis.
Tensor slice_of(const Tensor& whole, std::int64_t axis, std::int64_t start, std::int64_t count) {
  if (axis < 0) return whole;
  const auto a = static_cast<std::size_t>(axis);
  Shape shape = whole.shape();
  shape[a] = count;
  Tensor slice(TensorType{whole.dtype(), shape});
  std::int64_t inner = 1;
  for (std::size_t k = a + 1; k < shape.size(); ++k) inner *= shape[k];
  const std::int64_t extent = whole.shape()[a];
  for (std::int64_t i = 0; i < slice.element_count(); ++i) {
    const std::int64_t outer = i / (inner * count), along = i / inner % count, rest = i % inner;
    slice.set(i, whole.at((outer * extent + start + along) * inner + rest));
  }
  return slice;
}

std::vector<bool> needed_outside(const Program& program, const Tiling& tiling) {
  std::vector<bool> needed(program.size(), false);
  for (Value output : program.outputs()) needed[output.index] = true;
  for (Value node : tiling.order)
    for (Value operand : program.operands(node))
      if (tiling.region_of[operand.index] != tiling.region_of[node.index]) needed[operand.index] = true;
  return needed;
}

void expect_order_holds(const Program& program, const Tiling& tiling) {
  ASSERT_EQ(tiling.order.size(), program.size());
  std::vector<std::size_t> place(program.size(), ~std::size_t{0});
  for (std::size_t i = 0; i < tiling.order.size(); ++i) place[tiling.order[i].index] = i;
  const Surroundings around(program);
  for (Value node : tiling.order)
    if (around.is_live(node)) {
      for (Value operand : program.operands(node)) EXPECT_LT(place[operand.index], place[node.index]);
    }
  for (const Region& region : tiling.regions) {
    const std::size_t first = place[region.nodes.front().index];
    for (std::size_t i = 0; i < region.nodes.size(); ++i) EXPECT_EQ(place[region.nodes[i].index], first + i);
  }
}

void expect_tile_equals_slice(const Region& region, const TileProgram& tile,
                              const std::vector<Tensor>& values, std::int64_t start, std::int64_t count) {
  std::vector<Tensor> arguments;
  for (const TileProgram::Input& input : tile.inputs) {
    if (input.axis == TileProgram::Input::kPositions) {
      Tensor positions(TensorType{DType::i64, {count}});
      for (std::int64_t i = 0; i < count; ++i) positions.set(i, static_cast<double>(start + i));
      arguments.push_back(std::move(positions));
    } else {
      arguments.push_back(slice_of(values[input.value.index], input.axis, start, count));
    }
  }
  const std::vector<Tensor> results = evaluate(tile.program, arguments);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Tensor expected = slice_of(values[tile.outputs[i].value.index], tile.outputs[i].axis, start, count);
    ASSERT_EQ(results[i].type(), expected.type());
    for (std::int64_t k = 0; k < expected.element_count(); ++k)
      ASSERT_NEAR(results[i].at(k), expected.at(k), 1e-9 * (1 + std::abs(expected.at(k))))
          << "member %" << tile.outputs[i].value.index << " of a region of " << region.nodes.size();
  }
}

TEST(Tiling, TilesOfRandomProgramsAreSlicesOfTheWhole) {
  std::size_t regions = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomProgram random = random_program(seed, DType::f64, 40);
    const Tiling tiling = find_regions(random.program, kEager);
    regions += tiling.regions.size();
    expect_order_holds(random.program, tiling);
    const std::vector<bool> needed = needed_outside(random.program, tiling);
    const std::vector<Tensor> values = evaluate_all(random.program, random.arguments);
    for (const Region& region : tiling.regions) {
      const TileProgram tile = tile_program(random.program, region, region.slice, needed);
      for (std::int64_t start = 0; start + region.slice <= region.extent; start += region.slice)
        expect_tile_equals_slice(region, tile, values, start, region.slice);
      if (const std::int64_t rest = region.extent % region.slice; rest != 0)
        expect_tile_equals_slice(region, tile_program(random.program, region, rest, needed), values,
                                 region.extent - rest, rest);
    }
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GT(regions, 200u) << "the random programs hardly exercise tiling";
}

/// softmax over the rows of x y: rows can be tiled, columns cannot, for their sum is needed in between.
TEST(Tiling, ARegionEndsWhereAMemberIsNeededWhole) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {64, 32}}), y = b.argument("y", {DType::f64, {32, 128}});
  const Value product = b.emit("einsum", {x, y}, {{"spec", std::string("ab,bc->ac")}});
  const Value e = b.emit("exp", {product});
  const Value sum = b.emit("reduce_sum", {e}, {{"axes", Integers{1}}});
  const Value column = b.emit("reshape", {sum}, {{"shape", Integers{64, 1}}});
  const Value softmax = b.emit("div", {e, column});
  const Program program = b.finish({softmax});
  const Tiling tiling = find_regions(program, {.tile_bytes = 4096, .is_parallel = true});
  ASSERT_EQ(tiling.regions.size(), 1u);
  const Region& region = tiling.regions[0];
  EXPECT_EQ(region.nodes.size(), 5u);
  EXPECT_EQ(region.extent, 64);
  EXPECT_GE(region.slice, 16) << "rows of a matrix product";
  for (const auto& [node, member] : region.members) EXPECT_EQ(member.axis, 0) << "member %" << node;
}

TEST(Tiling, SmallProgramsAreLeftAlone) {
  Builder b;
  const Value x = b.argument("x", {DType::f64, {8, 8}});
  const Program program = b.finish({b.emit("exp", {b.emit("reduce_sum", {x}, {{"axes", Integers{1}}})})});
  EXPECT_TRUE(find_regions(program, {}).regions.empty());
}

}  // namespace
}  // namespace loipe::cpu
