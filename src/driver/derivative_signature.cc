// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "driver/derivative.h"

namespace loipe {

namespace {

TensorType of_shapes(DType dtype, std::initializer_list<const Shape*> parts) {
  TensorType type{dtype, {}};
  for (const Shape* part : parts) type.shape.insert(type.shape.end(), part->begin(), part->end());
  return type;
}

/// Writes the names and types of one derivative.
class SignatureWriter {
 public:
  SignatureWriter(const DerivativeRequest& request, const Program& primal,
                  std::span<const TensorType> arguments, std::span<const TensorType> outputs)
      : request_(request), primal_(primal), arguments_(arguments), outputs_(outputs) {
    if (request.directions) directions_.push_back(*request.directions);
  }

  DerivativeSignature write() && {
    write_inputs();
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      if (request_.returns_values || std::ranges::find(request_.of, i) == request_.of.end())
        result("out." + std::to_string(i), outputs_[i]);
    signature_.value_count = signature_.results.size();
    if (is_second_order(request_.kind) && request_.returns_jacobian) write_jacobian();
    signature_.jacobian_count = signature_.results.size() - signature_.value_count;
    write_derivative();
    return std::move(signature_);
  }

 private:
  void write_inputs() {
    for (std::size_t i = 0; i < arguments_.size(); ++i) input(name(i), arguments_[i]);
    if (request_.kind == DerivativeKind::vjp)
      for (std::size_t i : request_.of)
        input("cotangent." + std::to_string(i), of_shapes(outputs_[i].dtype, {&directions_, &out(i)}));
    else if (has_directions(request_.kind))
      for (std::size_t a : request_.wrt)
        input("tangent." + name(a), of_shapes(arguments_[a].dtype, {&directions_, &in(a)}));
  }

  void write_jacobian() {
    for (std::size_t i : request_.of)
      for (std::size_t a : request_.wrt)
        result(block("jac", i, a), of_shapes(outputs_[i].dtype, {&out(i), &in(a)}));
  }

  void write_derivative() {
    switch (request_.kind) {
      case DerivativeKind::jacobian: return write_jacobian();
      case DerivativeKind::jvp:
        for (std::size_t i : request_.of)
          result("jvp." + std::to_string(i), of_shapes(outputs_[i].dtype, {&directions_, &out(i)}));
        return;
      case DerivativeKind::vjp:
        for (std::size_t a : request_.wrt)
          result("vjp." + name(a), of_shapes(arguments_[a].dtype, {&directions_, &in(a)}));
        return;
      case DerivativeKind::gradient:
        for (std::size_t a : request_.wrt) result("grad." + name(a), {outputs_[request_.of[0]].dtype, in(a)});
        return;
      case DerivativeKind::hessian:
        for (std::size_t i : request_.of)
          for (std::size_t a : request_.wrt)
            for (std::size_t b : request_.wrt)
              result(block("hess", i, a) + "." + name(b),
                     of_shapes(outputs_[i].dtype, {&out(i), &in(a), &in(b)}));
        return;
      case DerivativeKind::hvp:
        for (std::size_t i : request_.of)
          for (std::size_t a : request_.wrt)
            result(block("hvp", i, a), of_shapes(outputs_[i].dtype, {&directions_, &out(i), &in(a)}));
        return;
    }
  }

  const std::string& name(std::size_t argument) const { return primal_.argument_name(argument); }
  const Shape& out(std::size_t i) const { return outputs_[i].shape; }
  const Shape& in(std::size_t a) const { return arguments_[a].shape; }
  std::string block(const std::string& what, std::size_t i, std::size_t a) const {
    return what + "." + std::to_string(i) + "." + name(a);
  }
  void input(std::string name, TensorType type) {
    signature_.inputs.push_back({std::move(name), std::move(type)});
  }
  void result(std::string name, TensorType type) {
    signature_.results.push_back({std::move(name), std::move(type)});
  }

  const DerivativeRequest& request_;
  const Program& primal_;
  std::span<const TensorType> arguments_, outputs_;
  Shape directions_;
  DerivativeSignature signature_;
};

}  // namespace

DerivativeSignature signature_of(const DerivativeRequest& request, const Program& primal,
                                 std::span<const TensorType> arguments, std::span<const TensorType> outputs) {
  return SignatureWriter(request, primal, arguments, outputs).write();
}

}  // namespace loipe
