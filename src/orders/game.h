// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "orders/published/graph.h"

namespace loipe {

/// The elimination game under the published counting rule: a move eliminates a vertex
/// and costs its multiplications; the fewest in all win. Same moves and costs as
/// published::State, plus undo, a hash of the position, and speed: neighbours are rows
/// of bits, so that a move takes time proportional to the edges it touches (and to
/// rows of node_count / 64 words). apply and undo allocate nothing once the log has
/// grown to the longest game.
///
/// A cost that does not fit in 64 bits counts as kTooMuch; sums saturate there.
class Game {
 public:
  static constexpr std::int64_t kTooMuch = std::int64_t{1} << 61;

  enum class Moves : std::uint8_t { vertices, vertices_and_edges };

  explicit Game(const published::Graph& graph, published::RuleSet rules = published::RuleSet::published,
                Moves moves = Moves::vertices);

  int input_count() const { return input_count_; }
  int node_count() const { return node_count_; }
  int node_of(int vertex) const { return input_count_ + vertex - 1; }
  int vertex_of(int node) const { return node - input_count_ + 1; }

  /// Every edge is one number, and every product costs one multiplication: a position
  /// then depends on the set of eliminated vertices only, not on their order.
  bool is_scalar() const { return is_scalar_; }
  /// Every edge is one number or an exact copy, which is free to multiply by. A product or
  /// sum is a copy only if all its parts are, so here too the set decides the position.
  bool is_nearly_scalar() const { return is_nearly_scalar_; }
  /// If no copies are left, plays on as a scalar game, which is faster. Moves made before
  /// can then no longer be taken back.
  void become_scalar();

  /// The vertices that may be eliminated now, ascending.
  std::vector<int> legal_vertices() const;
  bool is_legal(int vertex) const;
  /// A node that is never eliminated and that others end in.
  bool is_output(int node) const { return is_output_[static_cast<std::size_t>(node)]; }
  /// The copy of an output that is also used: a node outside the numbering of vertices.
  bool is_copy(int node) const { return node >= first_copy_; }

  /// What eliminating the vertex now would cost.
  std::int64_t cost(int vertex) const;
  /// Eliminates a legal vertex; returns its cost.
  std::int64_t apply(int vertex);
  /// Multiplies the edge source -> destination with all edges out of the destination (in
  /// front) or into the source (behind), and removes it; returns the cost. 0 without that
  /// edge. Only in games with edges.
  std::int64_t apply_edge(int source, int destination, bool is_in_front);
  /// Takes the last move back.
  void undo();
  void undo_to(std::size_t depth) {
    while (steps_.size() > depth) undo();
  }

  /// Moves made.
  std::size_t depth() const { return steps_.size(); }
  /// Their costs together.
  std::int64_t total() const { return total_; }
  /// Of a game without edges: the vertices in the order of their elimination.
  std::vector<int> moves() const;

  /// Equal positions have equal hashes, and different ones with overwhelming probability
  /// different ones: a sum of random words, one per eliminated vertex and per typed edge.
  std::uint64_t hash() const { return hash_; }
  /// Elementary steps since construction, a measure of time that does not depend on the
  /// machine: search plans its work in it.
  std::uint64_t work() const { return work_; }

  using Row = std::span<const std::uint64_t>;
  Row successors(int node) const { return row(successors_, node); }
  Row predecessors(int node) const { return row(predecessors_, node); }
  /// Between two nodes of the position; type none without an edge.
  published::Edge edge(int source, int destination) const;

  template <typename Visit>
  static void for_each(Row row, Visit visit) {
    for (std::size_t w = 0; w < row.size(); ++w)
      for (std::uint64_t bits = row[w]; bits != 0; bits &= bits - 1)
        visit(static_cast<int>(w * 64) + std::countr_zero(bits));
  }
  /// As std::popcount, which is a call where the instruction is not in the least instruction set.
  static int bits_in(std::uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555U;
    word = (word & 0x3333333333333333U) + ((word >> 2) & 0x3333333333333333U);
    return static_cast<int>(((word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fU) * 0x0101010101010101U >> 56);
  }
  static int count(Row row) {
    int bits = 0;
    for (std::uint64_t word : row) bits += bits_in(word);
    return bits;
  }

 private:
  struct Cell {
    published::Edge edge;
    std::uint64_t hash = 0;
  };
  struct Change {
    std::size_t place;
    Cell old;
  };
  struct Step {
    int node;                    ///< -1: of an edge
    std::size_t changes, words;  ///< how long the logs were before
    std::int64_t cost, total;
    std::uint64_t hash;
  };

  using Rows = std::vector<std::uint64_t>;
  Row row(const Rows& rows, int node) const {
    return {rows.data() + static_cast<std::size_t>(node) * words_, words_};
  }
  std::uint64_t* row_of(Rows& rows, int node) {
    return rows.data() + static_cast<std::size_t>(node) * words_;
  }
  std::size_t place(int source, int destination) const {
    return static_cast<std::size_t>(source) * static_cast<std::size_t>(node_count_) +
           static_cast<std::size_t>(destination);
  }
  void connect(int source, int destination);
  void disconnect(int source, int destination);
  void detach(int node);
  void attach(int node);
  void merge_rows(int node);
  void unmerge_rows(int node, std::size_t words);
  std::int64_t multiply_edges(int node);
  std::int64_t multiply(int i, int k, const published::Edge& pre, const published::Edge& post);
  void absorb(int source, int destination, const published::Edge& added);

  const published::EdgeAlgebra* algebra_;
  Moves kinds_;
  int input_count_, node_count_, first_copy_;
  std::size_t words_;
  bool is_scalar_ = true, is_nearly_scalar_ = true;
  std::size_t floor_ = 0;  ///< moves that are not taken back
  std::vector<bool> is_output_;
  std::vector<char> is_legal_;  ///< by node
  Rows successors_, predecessors_;
  std::vector<Cell> cells_;  ///< [source][destination], of graphs that are not scalar
  std::vector<Change> changes_;
  std::vector<std::uint64_t> fill_ins_;  ///< bits added to rows, of scalar graphs
  std::vector<Step> steps_;
  std::int64_t total_ = 0;
  std::uint64_t hash_ = 0, work_ = 0;
};

/// a + b, at most Game::kTooMuch.
constexpr std::int64_t saturated_sum(std::int64_t a, std::int64_t b) {
  return a + b < Game::kTooMuch ? a + b : Game::kTooMuch;
}

}  // namespace loipe
