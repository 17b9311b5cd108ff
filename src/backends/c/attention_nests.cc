// SPDX-License-Identifier: Apache-2.0
// Attention and its derivatives: loops over queries around the helpers, which compute one.
#include "backends/c/block.h"
#include "backends/c/expression.h"
#include "backends/c/nests.h"
#include "base/text.h"
#include "ops/attention/attention_call.h"

namespace loipe::c {

namespace {

using ops::AttentionCall;

std::string number(std::int64_t n) { return std::to_string(n); }

class Printer {
 public:
  explicit Printer(Block& b) : b_(b), dtype_(b.dtype()), call_(AttentionCall::of(types(b), b.attributes())) {
    declare_call();
  }

  void forward() {
    open_queries();
    const std::string y = b_.scratch(DType::f64, call_.value_size + 1);
    const std::string rows = b_.scratch(DType::f64, call_.keys);
    zero(y, call_.value_size + 1);
    b_.line(b_.helper("forward", dtype_) + "(&" + a_ + ", " + query() + ", " + y + ", " + rows + ");");
    store_result(y, {});
  }

  /// jvp with one list of letters, jvp_jvp with two.
  void tangents(const std::string& helper, std::span<const std::string> letters) {
    const std::string y = b_.scratch(DType::f64, call_.value_size + 1);
    const std::string rows = b_.scratch(DType::f64, 3 * call_.keys), p = weights();
    const Affine direction = b_.loop(b_.shape()[0]);
    std::string directions;
    std::size_t first = call_.primal_count + 1;
    for (const std::string& along : letters) {
      directions += "&" + tangents_of(along, first, direction) + ", ";
      first += along.size();
    }
    zero(y, call_.value_size + 1);
    b_.line(b_.helper(helper, dtype_) + "(&" + a_ + ", " + directions + p + ", " + query() + ", " + y + ", " +
            rows + ");");
    store_result(y, direction);
  }

  /// vjp without letters, vjp_jvp with them.
  void gradients(const std::string& helper, const std::string& by, const std::string& along) {
    const std::int64_t size = element_count(b_.shape());
    // Sums over queries are in float64, in the result itself where it is.
    const bool is_wide = dtype_ == DType::f64;
    const std::string sums = is_wide ? b_.pointer(b_.node()) : b_.scratch(DType::f64, size);
    const std::string rows = b_.scratch(DType::f64, 4 * call_.keys);
    const std::size_t depth = b_.depth();
    zero(sums, size);
    const std::string p = weights();
    const Affine direction = b_.loop(b_.shape()[0]);
    const std::string results = gradients_of(by, sums, direction);
    const std::size_t first = call_.primal_count + 1;
    Affine row = query_row(direction);
    Affine place;
    place.add(row, call_.value_size + 1);
    const std::string g = b_.pointer(b_.operand(first), place);
    const std::string moved = along.empty() ? "" : "&" + tangents_of(along, first + 1, direction) + ", ";
    b_.line(b_.helper(helper, dtype_) + "(&" + a_ + ", " + g + ", " + moved + p + ", " + query() + ", &" +
            results + ", " + rows + ");");
    b_.close_to(depth);
    if (is_wide) return;
    const Affine i = b_.loop(size);
    b_.line(b_.element(b_.node(), i) + " = (float)" + sums + "[" + i.text() + "];");
    b_.close_to(depth);
  }

 private:
  static std::vector<const TensorType*> types(const Block& b) {
    std::vector<const TensorType*> types;
    for (Value operand : b.program().operands(b.node())) types.push_back(&b.program().type(operand));
    return types;
  }

  std::string pointer(std::size_t operand) { return b_.pointer(b_.operand(operand)); }

  void declare_call() {
    a_ = b_.variable("a");
    const Shape bias = call_.bias ? call_.bias_shape : Shape{1, 1, 1, 1};
    const std::string fields[] = {number(call_.heads),
                                  number(call_.groups),
                                  number(call_.queries),
                                  number(call_.keys),
                                  number(call_.head_size),
                                  number(call_.value_size),
                                  number(call_.window),
                                  call_.is_causal ? "1" : "0",
                                  literal(call_.scale, DType::f64),
                                  pointer(0),
                                  pointer(1),
                                  pointer(2),
                                  call_.mask ? pointer(*call_.mask) : "0",
                                  number(call_.mask ? b_.shape_of(*call_.mask)[0] : 1),
                                  call_.bias ? pointer(*call_.bias) : "0",
                                  number(bias[0]),
                                  number(bias[1]),
                                  number(bias[2])};
    b_.line("const " + b_.helper("attention", dtype_) + " " + a_ + " = {" + join(fields, ", ") + "};");
  }

  void open_queries() { at_ = b_.loops(Shape{call_.heads, call_.groups, call_.queries}); }
  std::string query() const { return at_[0].text() + ", " + at_[1].text() + ", " + at_[2].text(); }
  /// Of [directions, heads, groups, queries].
  Affine query_row(const Affine& direction) const {
    return position_of(Shape{1, call_.heads, call_.groups, call_.queries},
                       {direction, at_[0], at_[1], at_[2]});
  }

  /// Opens the loops over queries and computes the weights of the row there.
  std::string weights() {
    const std::string p = b_.scratch(DType::f64, call_.keys);
    open_queries();
    b_.line(b_.helper("weights", dtype_) + "(&" + a_ + ", " + query() + ", " + p + ");");
    return p;
  }

  void zero(const std::string& memory, std::int64_t count) {
    const std::size_t depth = b_.depth();
    const Affine i = b_.loop(count);
    b_.line((count == 1 ? "(" + memory + ")[0]" : memory + "[" + i.text() + "]") + " = 0;");
    b_.close_to(depth);
  }

  /// A struct with one pointer for each of q, k, v and the bias.
  std::string pointers(std::string_view type, const std::string (&members)[4]) {
    const std::string name = b_.variable("t");
    b_.line("const " + std::string(type) + " " + name + " = {" + join(members, ", ") + "};");
    return name;
  }
  /// tangents_f64 beside attention_f64, which declares both.
  std::string type(const std::string& stem) {
    std::string name = b_.helper("attention", dtype_);
    return name.replace(name.rfind("attention"), std::string("attention").size(), stem);
  }

  std::string tangents_of(const std::string& along, std::size_t first, const Affine& direction) {
    std::string members[4] = {"0", "0", "0", "0"};
    for (std::size_t k = 0; k < along.size(); ++k) {
      Affine place;
      place.add(direction, element_count(call_.shape_of(along[k])));
      members[std::string_view("qkvb").find(along[k])] = b_.pointer(b_.operand(first + k), place);
    }
    return pointers(type("tangents"), members);
  }

  std::string gradients_of(const std::string& by, const std::string& sums, const Affine& direction) {
    std::string members[4] = {"0", "0", "0", "0"};
    Affine place;
    place.add(direction, call_.elements(by));
    for (const char letter : by) {
      members[std::string_view("qkvb").find(letter)] = sums + " + " + place.text();
      place.add(element_count(call_.shape_of(letter)));
    }
    return pointers(type("gradients"), members);
  }

  void store_result(const std::string& y, const Affine& direction) {
    Affine place;
    place.add(query_row(direction), call_.value_size + 1);
    const Affine c = b_.loop(call_.value_size + 1);
    place.add(c);
    b_.line(b_.element(b_.node(), place) + " = (" + type_of(dtype_) + ")" + y + "[" + c.text() + "];");
    b_.close_to(2);
  }

  Block& b_;
  DType dtype_;
  AttentionCall call_;
  std::string a_;
  Indices at_;
};

void print_attention(Block& b) { Printer(b).forward(); }
void print_jvp(Block& b) {
  const std::string along[] = {b.attributes().text("along")};
  Printer(b).tangents("jvp", along);
}
void print_jvp_jvp(Block& b) {
  const std::string along[] = {b.attributes().text("along"), b.attributes().text("along2")};
  Printer(b).tangents("jvp_jvp", along);
}
void print_vjp(Block& b) { Printer(b).gradients("vjp", b.attributes().text("by"), ""); }
void print_vjp_jvp(Block& b) {
  Printer(b).gradients("vjp_jvp", b.attributes().text("by"), b.attributes().text("along"));
}

std::string note(const CostContext& call) {
  const AttentionCall a = AttentionCall::of(call.operands, call.attributes);
  return number(a.pairs()) + " pairs of queries and keys, " +
         (a.approximations.empty() ? "" : "all exact, ") + "row by row: memory linear in both";
}

}  // namespace

std::span<const Nest> attention_nests() {
  static constexpr Nest kNests[] = {
      {"attention", Reads::in_memory, print_attention, note},
      {"attention_jvp", Reads::in_memory, print_jvp, note},
      {"attention_jvp_jvp", Reads::in_memory, print_jvp_jvp, note},
      {"attention_vjp", Reads::in_memory, print_vjp, note},
      {"attention_vjp_jvp", Reads::in_memory, print_vjp_jvp, note},
  };
  return kNests;
}

}  // namespace loipe::c
