// SPDX-License-Identifier: Apache-2.0
// Graphs small enough to eliminate by hand.
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

std::vector<Traced> simple_function(const Traced& x, const Traced& y) {
  const Traced z = x * y;
  const Traced w = sin(z);
  const Traced sum = w + z;
  return {sum, log(w)};
}

/// Where the beam of a turning lighthouse meets a quay y2 = gamma y1.
/// A. Griewank, A. Walther, "Evaluating Derivatives" (2008), example 2.2. The first
/// output is also used.
std::vector<Traced> lighthouse_function(const Traced& nu, const Traced& gamma, const Traced& omega,
                                        const Traced& t) {
  const Traced numerator = nu * tan(omega * t);
  const Traced denominator = gamma - tan(omega * t);
  const Traced y1 = numerator / denominator;
  return {y1, gamma * y1};
}

std::vector<Traced> hole_function(const Traced& x, const Traced& y, const Traced& z, const Traced& w) {
  const Traced a = y * z;
  const Traced b = a + x;
  const Traced c = a + w;
  const Traced d = cos(b);
  const Traced e = exp(c);
  const Traced difference = d - e;
  const Traced quotient = d / e;
  const Traced product = d * e;
  return {difference, quotient, product};
}

}  // namespace

Task simple() {
  return {
      .name = "Simple",
      .summary = "sin(xy) + xy and log(sin(xy)), where forward order is the more expensive",
      .arguments = [](const TaskOptions& o) { return scalars(o, {"x", "y"}); },
      .function = detail::pack_function<2>(simple_function),
      .inputs = {.point = {1.1, .7}},
  };
}

Task lighthouse() {
  return {
      .name = "Lighthouse",
      .summary = "where the beam of a turning lighthouse meets the quay",
      .arguments = [](const TaskOptions& o) { return scalars(o, {"nu", "gamma", "omega", "t"}); },
      .function = detail::pack_function<4>(lighthouse_function),
      .inputs = {.point = {1.2, 1.5, .6, .8}},
  };
}

Task hole() {
  return {
      .name = "Hole",
      .summary = "three combinations of cos(yz + x) and exp(yz + w)",
      .arguments = [](const TaskOptions& o) { return scalars(o, {"x", "y", "z", "w"}); },
      .function = detail::pack_function<4>(hole_function),
      .inputs = {.point = {.5, .8, .6, .3}},
  };
}

}  // namespace loipe::tasks
