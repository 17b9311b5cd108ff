// SPDX-License-Identifier: Apache-2.0
#include "orders/game.h"

#include <algorithm>

#include "base/check.h"

namespace loipe {

using published::Edge;
using published::EdgeType;

namespace {

/// splitmix64: the random word of a key.
std::uint64_t word_of(std::uint64_t key) {
  key += 0x9e3779b97f4a7c15u;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

std::uint64_t edge_hash(std::size_t place, const Edge& edge) {
  std::uint64_t key = place * 64 + static_cast<std::uint64_t>(code(edge.type) - published::kMinTypeCode);
  for (std::int32_t extent : edge.extents)
    key = key * 0x2545f4914f6cdd1du + static_cast<std::uint64_t>(extent);
  return word_of(key);
}

void set_bit(std::uint64_t* row, int node) { row[node / 64] |= std::uint64_t{1} << (node % 64); }
void clear_bit(std::uint64_t* row, int node) { row[node / 64] &= ~(std::uint64_t{1} << (node % 64)); }
bool has_bit(const std::uint64_t* row, int node) { return (row[node / 64] >> (node % 64) & 1) != 0; }

/// EdgeAlgebra::multiplications without its exception: search walks through absurd
/// orders on its way.
std::int64_t multiplications(const published::ProductRule& rule, const Edge& pre, const Edge& post) {
  if (rule.is_free) return 0;
  const std::int32_t extents[] = {post.extents[0], post.extents[1], pre.extents[2],
                                  pre.extents[3],  post.extents[2], post.extents[3]};
  std::int64_t result = 1;
  for (unsigned rest = rule.factors; rest != 0; rest &= rest - 1)
    if (__builtin_mul_overflow(result, extents[std::countr_zero(rest)], &result)) return Game::kTooMuch;
  return std::min(result, Game::kTooMuch);
}

/// A dense edge of extent 1. The edge to the copy of a used output has a type of its own,
/// whose product with a dense edge is dense and costs as much.
bool is_scalar_edge(const Edge& edge, bool ends_in_copy) {
  const bool has_type =
      edge.type == EdgeType::dense || (ends_in_copy && edge.type == EdgeType::delta_00_diagonal_11);
  return has_type && edge.extents == published::Extents{1, 1, 1, 1};
}

bool is_copy_edge(const Edge& edge) {
  return edge.type == EdgeType::copy && edge.extents == published::Extents{1, 1, 1, 1};
}

}  // namespace

Game::Game(const published::Graph& graph, published::RuleSet rules, Moves moves)
    : algebra_(&published::EdgeAlgebra::get(rules)),
      kinds_(moves),
      input_count_(graph.input_count()),
      node_count_(graph.node_count()),
      first_copy_(input_count_ + graph.vertex_count()),
      words_((static_cast<std::size_t>(node_count_) + 63) / 64),
      is_output_(static_cast<std::size_t>(node_count_), false),
      is_legal_(static_cast<std::size_t>(node_count_), 0),
      successors_(static_cast<std::size_t>(node_count_) * words_),
      predecessors_(successors_.size()) {
  for (int vertex = 1; vertex <= graph.vertex_count(); ++vertex) {
    const auto node = static_cast<std::size_t>(node_of(vertex));
    is_output_[node] = graph.is_pure_output(vertex);
    is_legal_[node] = !graph.is_pure_output(vertex);
  }
  for (int copy = first_copy_; copy < node_count_; ++copy) is_output_[static_cast<std::size_t>(copy)] = true;
  for (const auto& [source, destination, edge] : graph.edges()) {
    const bool is_scalar = is_scalar_edge(edge, destination >= first_copy_);
    is_scalar_ = is_scalar_ && is_scalar;
    is_nearly_scalar_ = is_nearly_scalar_ && (is_scalar || is_copy_edge(edge));
  }
  // Without vertices' sets alone to go by, positions are told apart by their edges.
  if (kinds_ == Moves::vertices_and_edges) is_scalar_ = is_nearly_scalar_ = false;
  if (!is_scalar_)
    cells_.resize(static_cast<std::size_t>(node_count_) * static_cast<std::size_t>(node_count_));
  for (const published::GraphEdge& placed : graph.edges()) {
    set_bit(row_of(successors_, placed.source), placed.destination);
    set_bit(row_of(predecessors_, placed.destination), placed.source);
    if (is_scalar_) continue;
    const std::size_t where = place(placed.source, placed.destination);
    cells_[where] = {placed.edge, edge_hash(where, placed.edge)};
    hash_ ^= cells_[where].hash;
  }
}

void Game::become_scalar() {
  if (is_scalar_ || !is_nearly_scalar_) return;
  for (int source = 0; source < node_count_; ++source) {
    const bool is_gone = source >= input_count_ && !is_output(source) && !is_legal(vertex_of(source));
    if (is_gone) continue;
    bool is_scalar = true;
    for_each(successors(source), [&](int k) {
      is_scalar = is_scalar && is_scalar_edge(cells_[place(source, k)].edge, k >= first_copy_);
    });
    if (!is_scalar) return;
  }
  is_scalar_ = true;
  floor_ = steps_.size();
}

std::vector<int> Game::legal_vertices() const {
  std::vector<int> vertices;
  for (int node = input_count_; node < node_count_; ++node)
    if (is_legal_[static_cast<std::size_t>(node)]) vertices.push_back(vertex_of(node));
  return vertices;
}

bool Game::is_legal(int vertex) const {
  return vertex >= 1 && node_of(vertex) < node_count_ && is_legal_[static_cast<std::size_t>(node_of(vertex))];
}

Edge Game::edge(int source, int destination) const {
  // An eliminated vertex keeps its own rows, but is in no other's.
  if (!has_bit(successors(source).data(), destination) || !has_bit(predecessors(destination).data(), source))
    return {};
  return is_scalar_ ? Edge{EdgeType::dense, {1, 1, 1, 1}} : cells_[place(source, destination)].edge;
}

std::int64_t Game::cost(int vertex) const {
  const int j = node_of(vertex);
  if (is_scalar_) return std::int64_t{count(predecessors(j))} * count(successors(j));
  std::int64_t total = 0;
  for_each(successors(j), [&](int k) {
    const Edge& post = cells_[place(j, k)].edge;
    for_each(predecessors(j), [&](int i) {
      const Edge& pre = cells_[place(i, j)].edge;
      total = saturated_sum(total, multiplications(algebra_->product_rule(pre.type, post.type), pre, post));
    });
  });
  return total;
}

std::int64_t Game::apply(int vertex) {
  const int j = node_of(vertex);
  steps_.push_back({j, changes_.size(), fill_ins_.size(), 0, total_, hash_});
  std::int64_t cost = 0;
  if (is_scalar_) {
    cost = std::int64_t{count(predecessors(j))} * count(successors(j));
    merge_rows(j);
  } else {
    cost = multiply_edges(j);
  }
  detach(j);
  is_legal_[static_cast<std::size_t>(j)] = 0;
  hash_ ^= word_of(~static_cast<std::uint64_t>(j));
  steps_.back().cost = cost;
  total_ = saturated_sum(total_, cost);
  return cost;
}

std::int64_t Game::apply_edge(int source, int destination, bool is_in_front) {
  require(kinds_ == Moves::vertices_and_edges, "edges are eliminated in games with edges");
  steps_.push_back({-1, changes_.size(), fill_ins_.size(), 0, total_, hash_});
  const std::size_t where = place(source, destination);
  if (edge(source, destination).type == EdgeType::none) return 0;
  const Cell removed = cells_[where];
  std::int64_t cost = 0;
  if (is_in_front)
    for_each(successors(destination), [&](int k) {
      const Edge post = cells_[place(destination, k)].edge;
      cost = saturated_sum(cost, multiply(source, k, removed.edge, post));
    });
  else
    for_each(predecessors(source), [&](int i) {
      const Edge pre = cells_[place(i, source)].edge;
      cost = saturated_sum(cost, multiply(i, destination, pre, removed.edge));
    });
  changes_.push_back({where, removed});
  cells_[where] = {};
  hash_ ^= removed.hash;
  disconnect(source, destination);
  steps_.back().cost = cost;
  total_ = saturated_sum(total_, cost);
  work_ += 32;
  return cost;
}

/// The rows and cells of an eliminated vertex are never touched again, so that they are
/// still those of its last moment when the move is taken back.
void Game::undo() {
  require(steps_.size() > floor_, "no move of the game can be taken back");
  const Step step = steps_.back();
  steps_.pop_back();
  const int j = step.node;
  if (j >= 0) attach(j);
  if (is_scalar_) unmerge_rows(j, step.words);
  while (changes_.size() > step.changes) {
    const Change& change = changes_.back();
    const bool was_removed = cells_[change.place].edge.type == EdgeType::none;
    cells_[change.place] = change.old;
    const int source = static_cast<int>(change.place / static_cast<std::size_t>(node_count_));
    const int destination = static_cast<int>(change.place % static_cast<std::size_t>(node_count_));
    if (change.old.edge.type == EdgeType::none) disconnect(source, destination);
    else if (was_removed) connect(source, destination);
    changes_.pop_back();
  }
  if (j >= 0) is_legal_[static_cast<std::size_t>(j)] = 1;
  total_ = step.total;
  hash_ = step.hash;
}

std::vector<int> Game::moves() const {
  std::vector<int> vertices;
  for (const Step& step : steps_) vertices.push_back(vertex_of(step.node));
  return vertices;
}

void Game::detach(int node) {
  for_each(predecessors(node), [&](int i) { clear_bit(row_of(successors_, i), node); });
  for_each(successors(node), [&](int k) { clear_bit(row_of(predecessors_, k), node); });
}

void Game::attach(int node) {
  for_each(predecessors(node), [&](int i) { set_bit(row_of(successors_, i), node); });
  for_each(successors(node), [&](int k) { set_bit(row_of(predecessors_, k), node); });
}

/// Fill-in on bits: the successors of j become those of each predecessor, and the other
/// way round. The bits that are new are logged, row by row.
void Game::merge_rows(int node) {
  const std::uint64_t* next = row_of(successors_, node);
  const std::uint64_t* before = row_of(predecessors_, node);
  std::size_t rows = 2;
  const auto merge = [&](std::uint64_t* into, const std::uint64_t* from) {
    ++rows;
    for (std::size_t w = 0; w < words_; ++w) {
      const std::uint64_t added = from[w] & ~into[w];
      fill_ins_.push_back(added);
      into[w] |= added;
    }
  };
  for_each(predecessors(node), [&](int i) { merge(row_of(successors_, i), next); });
  for_each(successors(node), [&](int k) { merge(row_of(predecessors_, k), before); });
  work_ += rows * (2 + words_);
}

void Game::unmerge_rows(int node, std::size_t words) {
  const std::uint64_t* added = fill_ins_.data() + words;
  const auto unmerge = [&](std::uint64_t* from) {
    for (std::size_t w = 0; w < words_; ++w) from[w] &= ~*added++;
  };
  for_each(predecessors(node), [&](int i) { unmerge(row_of(successors_, i)); });
  for_each(successors(node), [&](int k) { unmerge(row_of(predecessors_, k)); });
  fill_ins_.resize(words);
}

std::int64_t Game::multiply_edges(int j) {
  std::int64_t total = 0;
  for_each(successors(j), [&](int k) {
    const Cell post = cells_[place(j, k)];
    hash_ ^= post.hash;
    for_each(predecessors(j), [&](int i) {
      total = saturated_sum(total, multiply(i, k, cells_[place(i, j)].edge, post.edge));
    });
  });
  for_each(predecessors(j), [&](int i) { hash_ ^= cells_[place(i, j)].hash; });
  work_ += 32;
  return total;
}

/// Adds the product of two edges to i -> k; returns its cost.
std::int64_t Game::multiply(int i, int k, const Edge& pre, const Edge& post) {
  const published::ProductRule& rule = algebra_->product_rule(pre.type, post.type);
  absorb(i, k, {rule.type, {post.extents[0], post.extents[1], pre.extents[2], pre.extents[3]}});
  work_ += 8;
  return multiplications(rule, pre, post);
}

void Game::connect(int source, int destination) {
  set_bit(row_of(successors_, source), destination);
  set_bit(row_of(predecessors_, destination), source);
}

void Game::disconnect(int source, int destination) {
  clear_bit(row_of(successors_, source), destination);
  clear_bit(row_of(predecessors_, destination), source);
}

/// As in published::State: the extents of what is added replace the old ones.
void Game::absorb(int source, int destination, const Edge& added) {
  const std::size_t where = place(source, destination);
  Cell& cell = cells_[where];
  const Edge now{algebra_->sum_type(cell.edge.type, added.type), added.extents};
  if (now == cell.edge) return;
  changes_.push_back({where, cell});
  if (cell.edge.type == EdgeType::none) connect(source, destination);
  else hash_ ^= cell.hash;
  cell = {now, edge_hash(where, now)};
  hash_ ^= cell.hash;
}

}  // namespace loipe
