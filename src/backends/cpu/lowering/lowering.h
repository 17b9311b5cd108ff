// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "backends/cpu/kernel_collector.h"
#include "backends/cpu/kernels/kernel_table.h"
#include "backends/cpu/lowering/epilogues.h"
#include "backends/cpu/lowering/fusion.h"
#include "backends/cpu/lowering/pass_log.h"
#include "backends/cpu/plan.h"
#include "backends/cpu/steps/tiled_step.h"
#include "backends/cpu/tiling/tile_program.h"
#include "ir/program.h"

namespace loipe::cpu {

struct LoweringOptions {
  TilingOptions tiling = {};
  DisabledPasses disabled = {};
  PassLog* log = nullptr;  ///< null: nobody wants to know
  int threads = 1;         ///< of a run, at most
};

/// Compiles a program to steps, in time linear in its size but for the planning of
/// the arena: values become views of buffers, elementwise nodes collect in groups,
/// every other node is lowered by the function for its op (op_lowerings.h). Regions that are worth it run
/// in tiles, each as a program of its own.
Plan lower(const Program& program, const KernelTable& kernels, const LoweringOptions& options = {});

/// How the memory of arguments and outputs lies; the buffers are those of whoever runs the plan.
struct BorderViews {
  std::vector<StridedView> arguments, outputs;
  static BorderViews contiguous(const Program& program);
};

/// What the plan of a tile may ask of the plan around it.
class TileSurroundings {
 public:
  struct LaidOut {
    StridedView view;      ///< in the tile; its buffer is still to be named
    std::size_t position;  ///< among the arguments of the tile's plan
  };
  virtual ~TileSurroundings() = default;
  /// An argument of the tile with its axes in this order in memory, outer ones first: laid out once, as a
  /// whole, before the tiles.
  virtual LaidOut laid_out(std::size_t argument, const Integers& order) = 0;
};

/// Per node of a program with regions.
struct Leaving {
  std::vector<bool> is_written;     ///< by the region that computes it, as a whole
  std::vector<bool> is_made_again;  ///< around the region, by its node
};

class RegionInputs;

/// The state of lowering: which buffers and steps there are, where each value lies,
/// and how often it is still needed.
class Lowering {
 public:
  /// Kernels go to the collector; without one, to a new one that run() compiles.
  Lowering(const Program& program, const KernelTable& kernels, const LoweringOptions& options,
           BorderViews border, std::shared_ptr<KernelCollector> collector = nullptr,
           TileSurroundings* around = nullptr);
  Plan run();

  const Program& program() const { return program_; }
  const KernelTable& kernels() const { return kernels_; }
  Fusion& fusion() { return fusion_; }
  Epilogues& epilogues() { return epilogues_; }
  const std::shared_ptr<KernelCollector>& kernel_collector() const { return collector_; }
  /// The program is a tile of another one, so a run of that runs it several times.
  bool is_tile() const { return !compiles_kernels_; }
  bool does(BackendPass pass) const { return !options_.disabled.contains(pass); }
  PassLog* log() const { return options_.log; }
  int threads() const { return options_.threads; }

  /// What the step of a node leaves in memory beside its value, for steps that read the value.
  std::optional<StridedView> beside(Value node) const {
    const auto found = beside_.find(node.index);
    return found == beside_.end() ? std::nullopt : std::optional(found->second);
  }
  void set_beside(Value node, StridedView view) { beside_.emplace(node.index, std::move(view)); }

  /// Where the value lies; runs the group that computes it if that is still open.
  const StridedView& view(Value v);
  /// The same without strides, copied if necessary.
  StridedView contiguous(Value v);
  /// Says where a value lies.
  void define(Value v, StridedView view);
  /// Defines a value as a new contiguous buffer, which the next step shall write.
  StridedView define_new(Value v);
  StridedView temporary(DType dtype, const Shape& shape);
  StridedView constant(std::shared_ptr<const Tensor> tensor);

  /// True if nothing but the present use will read the buffer of v, so that the
  /// step may write into it. v must cover its buffer, an intermediate one.
  bool may_overwrite(Value v);

  void emit(std::unique_ptr<const Step> step, std::span<const StridedView> reads,
            std::span<const StridedView> writes);
  void emit(std::unique_ptr<const Step> step, std::initializer_list<StridedView> reads,
            const StridedView& written) {
    emit(std::move(step), std::span(reads.begin(), reads.size()), std::span(&written, 1));
  }
  void emit_copy(const StridedView& from, const StridedView& to);
  /// The same axes, but in memory they lie in this order, outer ones first: a copy unless they do already,
  /// made around all tiles that read it.
  StridedView copy_in_order(const StridedView& from, const Integers& order);
  /// The same, if the view is an argument of this tile as a whole; axes of extent 1 may be missing in the
  /// order. Nothing for other views.
  std::optional<StridedView> laid_out_around(const StridedView& view, const Integers& order);
  /// The operand of a loop over a space, copied if neighbours along the last axis lie apart and there are few
  /// of its elements, each of which the loop reads many times.
  StridedView with_near_neighbours(const StridedView& view);
  std::size_t step_count() const { return plan_.steps.size(); }
  /// Whether the step is the only one so far that uses the buffer, and there are `uses` to come.
  bool is_unread(BufferId buffer, std::size_t step, std::uint32_t uses) const;
  bool is_written_after(BufferId buffer, std::size_t step) const;
  /// Takes back a step, and the buffer that it writes.
  void drop_step(std::size_t step, BufferId written);
  /// Tells the log that an operand was copied to suit a product.
  void note_layout(const StridedView& from, const StridedView& to);

  /// Lowers a node with its operands in memory, by a function that defines its value.
  void lower_in_memory(Value node, void (*function)(Lowering&, Value));

  // Account of uses, for groups, whose operands are read later than their nodes are met.
  std::uint32_t remaining_uses(Value v) const { return uses_[v.index]; }
  void consume_value(Value v) { --uses_[v.index]; }
  void consume_buffer(BufferId buffer) { --pending_[buffer]; }

 private:
  void count_uses();
  Tiling regions() const;
  void lower_node(Value node);
  void lower_region(const Region& region, const Leaving& leaving);
  std::vector<StridedView> tile_inputs(const TileProgram& tile, std::int64_t extent);
  std::unique_ptr<TilePlan> plan_tile(const TileProgram& tile, RegionInputs& inputs,
                                      std::span<const StridedView> outputs);
  void consume_uses_inside(const Region& region, const Leaving& leaving);
  void write_outputs();
  void place_buffers();
  BufferId new_buffer(BufferKind kind, std::size_t bytes, std::size_t position = 0);
  void touch(BufferId buffer);

  const Program& program_;
  const KernelTable& kernels_;
  LoweringOptions options_;
  BorderViews border_;
  bool compiles_kernels_;
  std::shared_ptr<KernelCollector> collector_;
  Plan plan_;
  std::vector<std::uint32_t> uses_;       ///< per value: uses by nodes not yet lowered, and as output
  std::vector<std::uint32_t> pending_;    ///< per buffer: uses to come of the values that lie there
  std::vector<std::int32_t> last_write_;  ///< per buffer: the last step that writes it, -1 without any
  std::vector<StridedView> views_;        ///< per value
  std::vector<bool> is_defined_;          ///< per value
  std::unordered_map<std::uint32_t, StridedView> beside_;
  TileSurroundings* around_;                                          ///< null where this is no tile
  std::map<std::pair<std::size_t, Integers>, StridedView> laid_out_;  ///< by argument and order
  Fusion fusion_;
  Epilogues epilogues_;
};

}  // namespace loipe::cpu
