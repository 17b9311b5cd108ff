// SPDX-License-Identifier: Apache-2.0
#include "orders/published/markowitz.h"

#include <algorithm>
#include <set>

#include "orders/order.h"
#include "orders/published/orders.h"
#include "orders/published_graph.h"

namespace loipe {

namespace {

/// Minimal in-degree * out-degree (Griewank and Reese 1991), ties to the lowest
/// number: for programs that the published rule does not cover.
class UnweightedMarkowitz {
 public:
  explicit UnweightedMarkowitz(const Program& program) : eliminable_(eliminable_vertices(program)) {
    predecessors_.resize(program.size());
    successors_.resize(program.size());
    const std::vector<int> numbers = program.vertex_numbers();
    node_of_.resize(program.size() + 1);
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      if (numbers[i] > 0) node_of_[static_cast<std::size_t>(numbers[i])] = i;
      for (Value operand : program.operands(Value{i})) {
        predecessors_[i].insert(operand.index);
        successors_[operand.index].insert(i);
      }
    }
  }

  std::vector<int> run() {
    std::set<std::pair<std::size_t, int>> queue;  // (degree, number)
    std::vector<std::size_t> degree(node_of_.size(), 0);
    std::vector<int> number_of(predecessors_.size(), 0);
    for (int v : eliminable_) {
      number_of[node(v)] = v;
      queue.insert({degree[static_cast<std::size_t>(v)] = markowitz_degree(v), v});
    }
    std::vector<int> order;
    while (!queue.empty()) {
      const int v = queue.begin()->second;
      queue.erase(queue.begin());
      order.push_back(v);
      for (std::uint32_t touched : eliminate(node(v))) {
        const int u = number_of[touched];
        if (u == 0 || queue.erase({degree[static_cast<std::size_t>(u)], u}) == 0) continue;
        queue.insert({degree[static_cast<std::size_t>(u)] = markowitz_degree(u), u});
      }
    }
    return order;
  }

 private:
  std::uint32_t node(int v) const { return node_of_[static_cast<std::size_t>(v)]; }
  std::size_t markowitz_degree(int v) const {
    return predecessors_[node(v)].size() * successors_[node(v)].size();
  }

  /// Returns the neighbours, whose degrees changed.
  std::vector<std::uint32_t> eliminate(std::uint32_t j) {
    std::vector<std::uint32_t> touched(predecessors_[j].begin(), predecessors_[j].end());
    touched.insert(touched.end(), successors_[j].begin(), successors_[j].end());
    for (std::uint32_t i : predecessors_[j]) {
      successors_[i].erase(j);
      successors_[i].insert(successors_[j].begin(), successors_[j].end());
    }
    for (std::uint32_t k : successors_[j]) {
      predecessors_[k].erase(j);
      predecessors_[k].insert(predecessors_[j].begin(), predecessors_[j].end());
    }
    predecessors_[j].clear();
    successors_[j].clear();
    return touched;
  }

  std::vector<int> eliminable_;
  std::vector<std::set<std::uint32_t>> predecessors_, successors_;
  std::vector<std::uint32_t> node_of_;
};

}  // namespace

EliminationOrder markowitz_order(const Program& program) {
  try {
    return {"markowitz",
            published::markowitz_order(published::build_graph(published::published_spec(program)))};
  } catch (const Unsupported&) {
    return {"markowitz", UnweightedMarkowitz(program).run()};
  }
}

}  // namespace loipe
