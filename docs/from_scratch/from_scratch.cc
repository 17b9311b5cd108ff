// SPDX-License-Identifier: Apache-2.0
// A Jacobian compiler in one file, with nothing but the standard library. README.md beside
// it tells the story; the numbers of the parts are its sections.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

// ---- 1. Tensors, and one operation that does nearly everything ----------------------------

using Shape = std::vector<int>;
using Labels = std::string;           // one letter per axis
using Extents = std::map<char, int>;  // of each label

struct Tensor {
  Shape shape;
  std::vector<double> data;  // row-major
};

//   result[labels] = sum over all labels of  factor * operand[labels] * operand[labels] * ...
//
// "ij,jk->ik" is the matrix product. A label twice in the result ties two axes: "i->ii" is a
// diagonal matrix. A label that no operand has repeats the value: "->ii" is an identity.
struct Einsum {
  std::vector<Labels> operands;
  Labels result;
  Extents extents;
  double factor = 1;
};

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

Shape shape_of(const Labels& labels, const Extents& extents) {
  Shape shape;
  for (char label : labels) shape.push_back(extents.at(label));
  return shape;
}

int size_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>());
}

int combinations(const Extents& extents) {
  int count = 1;
  for (auto [label, extent] : extents) count *= extent;
  return count;
}

Tensor evaluate(const Einsum& e, const std::vector<const Tensor*>& operands) {
  const Shape shape = shape_of(e.result, e.extents);
  Tensor result{shape, std::vector<double>(size_of(shape), 0.0)};
  Extents index;  // a value of each label
  for (auto [label, extent] : e.extents) index[label] = 0;
  const auto place = [&](const Labels& labels) {
    int position = 0;
    for (char label : labels) position = position * e.extents.at(label) + index.at(label);
    return position;
  };
  for (int step = combinations(e.extents); step > 0; --step) {
    double product = e.factor;
    for (size_t k = 0; k < operands.size(); ++k) product *= operands[k]->data[place(e.operands[k])];
    result.data[place(e.result)] += product;
    for (auto& [label, value] : index) {  // the next combination
      if (++value < e.extents.at(label)) break;
      value = 0;
    }
  }
  return result;
}

// ---- 2. Programs --------------------------------------------------------------------------

struct Program;

// A function of one number. Its derivative is nodes of a program, given x and y = f(x).
struct Function {
  double (*value)(double);
  int (*derivative)(Program&, int x, int y);
};

struct Node {
  enum Kind { input, map, einsum, add } kind;
  Shape shape;
  std::vector<int> operands = {};  // earlier nodes
  const Function* function = nullptr;
  Einsum spec = {};
};

struct Program {
  std::vector<Node> nodes;

  int push(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<int>(nodes.size()) - 1;
  }
  const Shape& shape(int node) const { return nodes[node].shape; }

  int input(Shape shape) { return push({Node::input, std::move(shape)}); }
  int map(const Function& f, int x) { return push({Node::map, shape(x), {x}, &f}); }
  int add(int x, int y) { return push({Node::add, shape(x), {x, y}}); }
  int einsum(Einsum spec, std::vector<int> operands) {
    const Labels used = std::accumulate(spec.operands.begin(), spec.operands.end(), spec.result);
    std::erase_if(spec.extents, [&](const auto& e) { return !has(used, e.first); });
    const Shape shape = shape_of(spec.result, spec.extents);
    return push({Node::einsum, shape, std::move(operands), nullptr, std::move(spec)});
  }
};

std::vector<Tensor> evaluate(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> values;
  size_t next_input = 0;
  for (const Node& node : program.nodes) {
    std::vector<const Tensor*> x;
    for (int operand : node.operands) x.push_back(&values[operand]);
    Tensor y{node.shape, {}};
    if (node.kind == Node::input) y = inputs[next_input++];
    if (node.kind == Node::einsum) y = evaluate(node.spec, x);
    if (node.kind == Node::map)
      for (double number : x[0]->data) y.data.push_back(node.function->value(number));
    if (node.kind == Node::add)
      for (size_t i = 0; i < x[0]->data.size(); ++i) y.data.push_back(x[0]->data[i] + x[1]->data[i]);
    values.push_back(std::move(y));
  }
  return values;
}

// ---- 3. Tracing: ordinary C++ writes a program ---------------------------------------------

struct Variable {
  Program* program;
  int node;
};

Variable einsum(const std::string& text, const std::vector<Variable>& operands, double factor = 1) {
  Program& program = *operands[0].program;
  Einsum spec{{}, text.substr(text.find('>') + 1), {}, factor};
  std::vector<int> nodes;
  size_t begin = 0;
  for (const Variable& operand : operands) {
    const size_t end = text.find_first_of(",-", begin);
    spec.operands.push_back(text.substr(begin, end - begin));
    for (size_t axis = 0; axis < end - begin; ++axis)
      spec.extents[text[begin + axis]] = program.shape(operand.node)[axis];
    nodes.push_back(operand.node);
    begin = end + 1;
  }
  return {&program, program.einsum(std::move(spec), std::move(nodes))};
}

// A label for each axis.
Einsum labelled(const Shape& shape) {
  Einsum e;
  for (int extent : shape) {
    e.result += static_cast<char>('a' + e.result.size());
    e.extents[e.result.back()] = extent;
  }
  return e;
}

// A factor times x * y * ..., element by element.
int product(Program& program, const std::vector<int>& operands, double factor) {
  Einsum e = labelled(program.shape(operands[0]));
  e.operands.assign(operands.size(), e.result);
  e.factor = factor;
  return program.einsum(e, operands);
}

extern const Function kCos;
const Function kSin{[](double x) { return std::sin(x); },
                    [](Program& p, int x, int) { return p.map(kCos, x); }};
const Function kCos{[](double x) { return std::cos(x); },
                    [](Program& p, int x, int) { return product(p, {p.map(kSin, x)}, -1); }};
const Function kExp{[](double x) { return std::exp(x); }, [](Program&, int, int y) { return y; }};
const Function kInverse{[](double x) { return 1 / x; },
                        [](Program& p, int, int y) { return product(p, {y, y}, -1); }};

Variable sin(Variable x) { return {x.program, x.program->map(kSin, x.node)}; }
Variable cos(Variable x) { return {x.program, x.program->map(kCos, x.node)}; }
Variable exp(Variable x) { return {x.program, x.program->map(kExp, x.node)}; }
Variable inverse(Variable x) { return {x.program, x.program->map(kInverse, x.node)}; }
Variable operator+(Variable x, Variable y) { return {x.program, x.program->add(x.node, y.node)}; }
Variable operator*(Variable x, Variable y) { return {x.program, product(*x.program, {x.node, y.node}, 1)}; }

// ---- 4. Local Jacobians --------------------------------------------------------------------

// One term of d(out)/d(in): an einsum that nobody has executed. It stands for the array of
// shape out + in that "over->out in" would write, zeros included.
//   exp(X)        out ab, in ab, value exp(X) over ab    a diagonal
//   A X, by X     out ab, in cb, value A over ac         A (x) identity
//   sum of x      out -,  in a,  no value, which is 1    a row of ones
struct Term {
  Labels out, in, over;
  Extents extents;  // of the labels, which are a, b, ... as they come in out, then in
  double factor = 1;
  int value = -1;  // a node; -1: none
};
using LocalJacobian = std::vector<Term>;  // the sum of its terms; none: zero

// The term that has the product of these values, summed over all labels that neither out
// nor in has; what that takes is recorded in the program.
Term make_term(Program& program, Labels out, Labels in, const Extents& old, double factor,
               std::vector<std::pair<int, Labels>> values) {
  std::map<char, char> names;
  Extents extents;
  const auto rename = [&](Labels& labels) {
    for (char& label : labels) {
      const char fresh = names.try_emplace(label, static_cast<char>('a' + names.size())).first->second;
      extents[fresh] = old.at(label);
      label = fresh;
    }
  };
  rename(out);
  rename(in);
  for (auto& [node, labels] : values) rename(labels);
  for (auto [label, extent] : old)
    if (!names.contains(label)) factor *= extent;  // a sum of equal numbers
  // A label that one value alone has is summed in that value, before anything is multiplied.
  Einsum joint{{}, "", extents};
  std::vector<int> nodes;
  for (const auto& [node, labels] : values) {
    Labels kept;
    for (auto [label, extent] : extents) {
      if (!has(labels, label)) continue;
      const bool stays = has(out + in, label);
      const auto has_it = [l = label](const auto& value) { return has(value.second, l); };
      if (stays || std::ranges::count_if(values, has_it) > 1) kept += label;
      if (stays && !has(joint.result, label)) joint.result += label;
    }
    nodes.push_back(kept == labels ? node : program.einsum({{labels}, kept, extents}, {node}));
    joint.operands.push_back(kept);
  }
  std::ranges::sort(joint.result);
  Term term{out, in, joint.result, extents, factor};
  std::erase_if(term.extents, [&](const auto& e) { return !has(out + in, e.first); });
  if (nodes.size() == 1) term.value = nodes[0];
  if (nodes.size() > 1) term.value = program.einsum(joint, nodes);
  return term;
}

Term identity(Program& program, const Shape& shape) {
  const Einsum e = labelled(shape);
  return make_term(program, e.result, e.result, e.extents, 1, {});
}

// The derivative of a node by its operand k.
Term linearize(Program& program, int node, size_t k) {
  const Node n = program.nodes[node];
  Term term = identity(program, n.shape);
  if (n.kind == Node::map) {
    term.value = n.function->derivative(program, n.operands[0], node);
    term.over = term.out;
  }
  if (n.kind != Node::einsum) return term;
  std::vector<std::pair<int, Labels>> others;  // it is linear in each operand: the others are its derivative
  for (size_t other = 0; other < n.operands.size(); ++other)
    if (other != k) others.emplace_back(n.operands[other], n.spec.operands[other]);
  return make_term(program, n.spec.result, n.spec.operands[k], n.spec.extents, n.spec.factor, others);
}

// The chain rule: d(out)/d(mid) times d(mid)/d(in). On every axis of mid both have a label,
// and only where the two agree is there a product: they become one label.
Term multiply(Program& program, Term post, Term pre) {
  Extents extents = post.extents;
  for (Labels* labels : {&pre.out, &pre.in, &pre.over})  // renamed apart
    for (char& label : *labels) label = static_cast<char>(std::toupper(label));
  for (auto [label, extent] : pre.extents) extents[static_cast<char>(std::toupper(label))] = extent;
  for (size_t axis = 0; axis < post.in.size(); ++axis) {
    const char a = post.in[axis], b = pre.out[axis];
    if (a == b) continue;
    for (Labels* labels : {&post.out, &post.in, &post.over, &pre.out, &pre.in, &pre.over})
      std::ranges::replace(*labels, b, a);
    extents.erase(b);
  }
  std::vector<std::pair<int, Labels>> values;
  if (post.value >= 0) values.emplace_back(post.value, post.over);
  if (pre.value >= 0) values.emplace_back(pre.value, pre.over);
  return make_term(program, post.out, pre.in, extents, post.factor * pre.factor, values);
}

// Equal patterns add their values; others stay side by side.
void add(Program& program, LocalJacobian& sum, const Term& t) {
  for (Term& s : sum) {
    if (s.out != t.out || s.in != t.in || s.over != t.over) continue;
    if (t.value < 0 && s.value < 0) return void(s.factor += t.factor);
    if (t.value >= 0 && s.value >= 0 && t.factor == s.factor)
      return void(s.value = program.add(s.value, t.value));
  }
  sum.push_back(t);
}

// The whole array, of shape out + in: now the einsums are executed.
int materialize(Program& program, const LocalJacobian& jacobian, Shape out, const Shape& in) {
  out.insert(out.end(), in.begin(), in.end());
  Einsum zeros = labelled(out);
  zeros.factor = 0;
  int sum = program.einsum(zeros, {});
  for (const Term& t : jacobian) {
    Einsum scatter{{}, t.out + t.in, t.extents, t.factor};
    if (t.value >= 0) scatter.operands = {t.over};
    sum = program.add(sum, program.einsum(scatter, std::vector<int>(scatter.operands.size(), t.value)));
  }
  return sum;
}

// ---- 5. The computational graph, and elimination --------------------------------------------

struct Graph {
  std::map<int, std::map<int, LocalJacobian>> by;  // by[k][i] is d(k)/d(i)

  // by[k][i] += by[k][j] * by[j][i] for every predecessor i and successor k; then j goes.
  void eliminate(Program& program, int j) {
    const std::map<int, LocalJacobian> pre = std::move(by[j]);
    by.erase(j);
    for (auto& [k, edges] : by)
      if (const auto post = edges.extract(j))
        for (const auto& [i, terms] : pre)
          for (const Term& p : post.mapped())
            for (const Term& q : terms) add(program, edges[i], multiply(program, p, q));
  }
};

// ---- 6. Orders: which vertex next ------------------------------------------------------------

using Order = std::function<int(const Graph&, const std::set<int>& left)>;

int forward(const Graph&, const std::set<int>& left) { return *left.begin(); }
int reverse(const Graph&, const std::set<int>& left) { return *left.rbegin(); }
int markowitz(const Graph& graph, const std::set<int>& left) {
  return *std::ranges::min_element(left, {}, [&](int j) {  // in-degree times out-degree
    const auto successors = std::ranges::count_if(graph.by, [j](auto& k) { return k.second.contains(j); });
    return successors * std::ssize(graph.by.at(j));
  });
}

// ---- 7. The Jacobian is a program again --------------------------------------------------------

struct Jacobian {
  Program program;
  std::vector<int> blocks;  // d(output o)/d(input i): all i for the first o, then for the next
};

Jacobian accumulate(const Program& primal, const std::vector<int>& outputs, const Order& next) {
  Jacobian result{primal, {}};
  Graph graph;
  std::vector<int> inputs;
  std::set<int> left;
  for (int node = 0; node < static_cast<int>(primal.nodes.size()); ++node) {
    const Node& n = primal.nodes[node];
    if (n.kind == Node::input) inputs.push_back(node);
    else left.insert(node);
    for (size_t k = 0; k < n.operands.size(); ++k)
      add(result.program, graph.by[node][n.operands[k]], linearize(result.program, node, k));
  }
  // Output o gets a vertex of its own, -1 - o, behind an identity: then it does not matter
  // whether others use it, too.
  for (int o = 0; o < static_cast<int>(outputs.size()); ++o)
    graph.by[-1 - o][outputs[o]] = {identity(result.program, primal.shape(outputs[o]))};
  while (!left.empty()) {
    const int j = next(graph, left);
    graph.eliminate(result.program, j);
    left.erase(j);
  }
  for (int o = 0; o < static_cast<int>(outputs.size()); ++o)
    for (int i : inputs)
      result.blocks.push_back(
          materialize(result.program, graph.by[-1 - o][i], primal.shape(outputs[o]), primal.shape(i)));
  return result;
}

// ---- 8. What it costs, and whether it is right ---------------------------------------------------

// Of the nodes from `first` on. Sums, copies, diagonals and signs multiply nothing.
long multiplications(const Program& program, size_t first) {
  long count = 0;
  for (size_t i = first; i < program.nodes.size(); ++i)
    if (const Node& n = program.nodes[i]; n.kind == Node::einsum && n.operands.size() > 1)
      count += combinations(n.spec.extents) * (static_cast<long>(n.operands.size()) - 1);
  return count;
}

// The largest difference between the blocks and central differences.
double deviation(const Program& primal, const std::vector<int>& outputs, const Jacobian& jacobian,
                 std::vector<Tensor> inputs) {
  constexpr double kStep = 1e-5;
  const std::vector<Tensor> values = evaluate(jacobian.program, inputs);
  double worst = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t column = 0; column < inputs[i].data.size(); ++column) {
      const auto shifted = [&](double step) {
        std::vector<Tensor> point = inputs;
        point[i].data[column] += step;
        return evaluate(primal, point);
      };
      const std::vector<Tensor> up = shifted(kStep), down = shifted(-kStep);
      for (size_t o = 0; o < outputs.size(); ++o)
        for (size_t row = 0; row < up[outputs[o]].data.size(); ++row) {
          const double slope = (up[outputs[o]].data[row] - down[outputs[o]].data[row]) / (2 * kStep);
          const Tensor& block = values[jacobian.blocks[o * inputs.size() + i]];
          worst = std::max(worst, std::abs(block.data[row * inputs[i].data.size() + column] - slope));
        }
    }
  return worst;
}

// ---- 9. Two functions ------------------------------------------------------------------------------

// The beam of a lighthouse runs along a quay (Griewank and Walther, "Evaluating Derivatives",
// chapter 2): y1 = nu tan(omega t) / (gamma - tan(omega t)), y2 = gamma y1.
std::vector<Variable> lighthouse(const std::vector<Variable>& in) {
  const Variable nu = in[0], gamma = in[1], omega = in[2], t = in[3];
  const Variable angle = omega * t;
  const Variable tangent = sin(angle) * inverse(cos(angle));
  const Variable y = nu * tangent * inverse(gamma + einsum("->", {tangent}, -1));
  return {y, gamma * y};
}

// A head of self-attention: every row of x asks all rows (Q K'), weighs them by the softmax
// of the answers, and gets the mean of what they say (V).
std::vector<Variable> attention(const std::vector<Variable>& in) {
  const auto projected = [&](int weights) { return einsum("id,de->ie", {in[0], in[weights]}); };
  const Variable q = projected(1), k = projected(2), v = projected(3);
  const Variable weight = exp(einsum("ie,je->ij", {q, k}, 0.5));
  return {einsum("ij,je,i->ie", {weight, v, inverse(einsum("ij->i", {weight}))})};
}

bool is_right(const char* name, const std::vector<Shape>& shapes,
              std::vector<Variable> (*function)(const std::vector<Variable>&)) {
  Program program;
  std::vector<Variable> variables;
  std::vector<Tensor> inputs;
  for (const Shape& shape : shapes) {
    variables.push_back({&program, program.input(shape)});
    inputs.push_back({shape, {}});
    for (int i = 0; i < size_of(shape); ++i)
      inputs.back().data.push_back(0.6 + 0.3 * std::sin(1.7 * i + 5.0 * inputs.size()));
  }
  std::vector<int> outputs;
  for (const Variable& v : function(variables)) outputs.push_back(v.node);

  std::printf("%s, %zu nodes\n", name, program.nodes.size());
  double worst = 0;
  const auto report = [&](const char* order, const Program& f, const std::vector<int>& of,
                          const Jacobian& jacobian) {
    const double difference = deviation(f, of, jacobian, inputs);
    std::printf("  %-22s %6ld multiplications, %s differences\n", order,
                multiplications(jacobian.program, f.nodes.size()),
                difference < 1e-6 ? "agrees with" : "DIFFERS FROM");
    worst = std::max(worst, difference);
  };
  report("forward", program, outputs, accumulate(program, outputs, forward));
  report("reverse", program, outputs, accumulate(program, outputs, reverse));
  report("markowitz", program, outputs, accumulate(program, outputs, markowitz));
  // The Jacobian is a program, so it has a Jacobian: second derivatives of the first output.
  const Jacobian first = accumulate(program, {outputs[0]}, reverse);
  report("forward over reverse", first.program, first.blocks,
         accumulate(first.program, first.blocks, forward));
  return worst < 1e-6;
}

int main() {
  const bool first = is_right("lighthouse", {{}, {}, {}, {}}, lighthouse);
  const bool second = is_right("attention", {{5, 3}, {3, 2}, {3, 2}, {3, 4}}, attention);
  return first && second ? 0 : 1;
}
