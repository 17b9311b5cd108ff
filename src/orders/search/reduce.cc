// SPDX-License-Identifier: Apache-2.0
#include "orders/search/reduce.h"

#include "orders/search/vertex_cut.h"

namespace loipe::search {

namespace {

int only(Game::Row row) {
  int node = -1;
  Game::for_each(row, [&](int n) { node = n; });
  return node;
}

/// (a) A vertex without predecessors or without successors. It never gains any (fill-in
/// gives a node new predecessors only through one that it has), so it costs nothing at
/// any time; and with it go edges of others, whose costs can only fall. This holds for
/// tensor graphs too: no product is formed, so no edge changes its type.
bool is_inert(const Game& game, int j) {
  return Game::count(game.predecessors(j)) == 0 || Game::count(game.successors(j)) == 0;
}

/// (b) i -> j -> k, where j has no other predecessor and successor, and i no other
/// successor than j (or, mirrored, k no other predecessor). Take any order.
/// If it eliminates i before j, then at that moment the predecessors of i pass to j, and j
/// stands exactly as i would stand had j been contracted. So eliminate j first, for 1
/// multiplication, and let i do what j did: all else costs the same, and the elimination
/// of i, which cost at least 1, is gone.
/// If it eliminates j before i, then up to that moment i has the one successor j. With j
/// gone first, i has the successors of j in its place: each of those has i as a
/// predecessor where it had j, the same number; i and its predecessors are as before. So
/// nothing else becomes dearer, and j costs 1, its minimum.
bool is_chain_link(const Game& game, int j) {
  if (Game::count(game.predecessors(j)) != 1 || Game::count(game.successors(j)) != 1) return false;
  const int i = only(game.predecessors(j)), k = only(game.successors(j));
  return Game::count(game.successors(i)) == 1 || Game::count(game.predecessors(k)) == 1;
}

/// (c) The only predecessor is an input x, and the successors are as few as the smallest
/// cut between j and the outputs (or, mirrored, the only successor is an output).
/// x is never eliminated, so it stays the only predecessor. With j gone, every node has x
/// as a predecessor where it had j: no degree grows but that of x, which does not count.
/// And j itself costs 1 * cut, its minimum.
bool is_next_to_input(const Game& game, VertexCut& cuts, int j) {
  if (Game::count(game.predecessors(j)) != 1 || only(game.predecessors(j)) >= game.input_count())
    return false;
  return cuts.of(game.vertex_of(j), VertexCut::Direction::to_outputs) == Game::count(game.successors(j));
}

bool is_next_to_output(const Game& game, VertexCut& cuts, int j) {
  if (Game::count(game.successors(j)) != 1 || !game.is_output(only(game.successors(j)))) return false;
  return cuts.of(game.vertex_of(j), VertexCut::Direction::to_inputs) == Game::count(game.predecessors(j));
}

/// (d) i -> j is a copy in a nearly scalar graph, i has no other successor, j no other
/// predecessor. As in (b): an order that eliminates i first does so for nothing and leaves j
/// standing as i would have stood, so j may go first for nothing instead, and i do what j
/// did; in an order that eliminates j before i, j may as well go first, for nothing. A copy
/// passes the other factor's type on, so that i's edges are then those that j had.
bool is_copy_of_one(const Game& game, int j) {
  if (!game.is_nearly_scalar() || Game::count(game.predecessors(j)) != 1) return false;
  const int i = only(game.predecessors(j));
  return game.edge(i, j).type == published::EdgeType::copy && Game::count(game.successors(i)) == 1;
}

}  // namespace

int eliminate_safe_vertices(Game& game) {
  VertexCut cuts(game);
  int eliminated = 0;
  const auto sweep = [&](auto is_safe) {
    const int before = eliminated;
    for (int vertex : game.legal_vertices()) {
      if (!is_safe(game.node_of(vertex))) continue;
      game.apply(vertex);
      ++eliminated;
    }
    return eliminated > before;
  };
  for (bool changed = true; changed;) {
    changed = sweep([&](int j) { return is_inert(game, j); });
    if (changed) continue;
    if (!game.is_scalar()) {
      changed = sweep([&](int j) { return is_copy_of_one(game, j); });
      game.become_scalar();
      changed = changed || game.is_scalar();
      continue;
    }
    changed = sweep([&](int j) {
      return is_chain_link(game, j) || is_next_to_input(game, cuts, j) || is_next_to_output(game, cuts, j);
    });
  }
  return eliminated;
}

}  // namespace loipe::search
