// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "orders/published/graph.h"

/// Reads the published graphs and orders for the tests of this folder; the
/// format is described beside the files.
namespace loipe::published::test {

using Json = nlohmann::json;

inline Json read_json(const std::string& file) {
  const std::string path = std::string(LOIPE_SOURCE_DIR) + "/tests/data/published/" + file;
  std::ifstream stream(path);
  if (!stream) throw std::runtime_error("cannot read " + path);
  return Json::parse(stream);
}

inline const Json& all_graphs() {
  static const Json graphs = read_json("graphs.json");
  return graphs;
}

inline const Json& all_orders() {
  static const Json orders = read_json("orders.json");
  return orders;
}

inline std::vector<std::string> task_names(const Json& tasks) {
  std::vector<std::string> names;
  for (const auto& item : tasks.items()) names.push_back(item.key());
  return names;
}

inline Operand operand_of(const Json& json) {
  if (json.is_number()) return Literal{json.get<double>()};
  const auto text = json.get<std::string>();
  const int number = std::stoi(text.substr(1));
  if (text[0] == 'x') return InputRef{number - 1};
  return VertexRef{number};
}

inline Params params_of(const Json& json) {
  Params params;
  if (json.contains("contract")) {
    params.contract_lhs = json["contract"][0].get<std::vector<int>>();
    params.contract_rhs = json["contract"][1].get<std::vector<int>>();
    params.batch_lhs = json["batch"][0].get<std::vector<int>>();
    params.batch_rhs = json["batch"][1].get<std::vector<int>>();
  }
  if (json.contains("axes")) params.axes = json["axes"].get<std::vector<int>>();
  return params;
}

inline GraphSpec spec_of(const std::string& task) {
  const Json& json = all_graphs().at(task);
  GraphSpec spec;
  spec.input_shapes = json["inputs"].get<std::vector<Shape>>();
  spec.outputs = json["outputs"].get<std::vector<int>>();
  for (const Json& record : json["vertices"]) {
    VertexSpec vertex;
    vertex.primitive = record[0].get<std::string>();
    for (const Json& operand : record[1]) vertex.operands.push_back(operand_of(operand));
    vertex.shape = record[2].get<Shape>();
    if (record.size() > 3) vertex.params = params_of(record[3]);
    spec.vertices.push_back(vertex);
  }
  return spec;
}

/// The graph that the published counts of this task belong to. The naming
/// defect was there for all; only BlackScholes has more than one unused vertex.
inline Graph graph_of(const std::string& task) { return build_graph(spec_of(task), {true}); }

/// An order or another list of vertices.
inline std::vector<int> vertices_of(const Json& json) { return json.get<std::vector<int>>(); }

inline std::int64_t count_of(const Json& json) { return json.get<std::int64_t>(); }

}  // namespace loipe::published::test
