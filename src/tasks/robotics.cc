// SPDX-License-Identifier: Apache-2.0
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

// Lengths of the arm's links.
constexpr double kA1 = 175, kA2 = 890, kA3 = 50, kD1 = 575, kD4 = 1035, kD6 = 185;

/// cos(a + b).
Traced cos_of_sum(const Traced& a, const Traced& b) {
  const Traced cos_a = cos(a);
  const Traced cos_b = cos(b);
  const Traced cosines = cos_a * cos_b;
  const Traced sin_a = sin(a);
  const Traced sin_b = sin(b);
  return cosines - sin_a * sin_b;
}

/// sin(a + b).
Traced sin_of_sum(const Traced& a, const Traced& b) {
  const Traced cos_a = cos(a);
  const Traced sin_b = sin(b);
  const Traced first = cos_a * sin_b;
  const Traced sin_a = sin(a);
  const Traced cos_b = cos(b);
  return first + sin_a * cos_b;
}

/// Sines and cosines of the joint angles; 23 is the sum of joints 2 and 3.
struct Joints {
  Traced c1, c2, c4, c5, c6, c23, s1, s2, s4, s5, s6, s23;

  static Joints of(const Traced& t1, const Traced& t2, const Traced& t3, const Traced& t4, const Traced& t5,
                   const Traced& t6) {
    // The elements of a braced list are evaluated from left to right.
    return {cos(t1), cos(t2), cos(t4), cos(t5), cos(t6), cos_of_sum(t2, t3),
            sin(t1), sin(t2), sin(t4), sin(t5), sin(t6), sin_of_sum(t2, t3)};
  }

  Traced approach_x() const {
    Traced swing = c1 * c23 * c4;
    swing += s1 * s4;
    const Traced swung = s5 * swing;
    return swung + c1 * s23 * c5;
  }
  /// The position has the other sign of c1 s4 than the orientation, as published.
  enum class Sign { plus, minus };
  Traced approach_y(Sign sign) const {
    const Traced first = s1 * c23 * c4;
    const Traced second = c1 * s4;
    const Traced swing = sign == Sign::plus ? first + second : first - second;
    const Traced swung = s5 * swing;
    return swung + s1 * s23 * c5;
  }
  Traced approach_z() const {
    const Traced first = s23 * c4 * s5;
    return first - c23 * c5;
  }
  Traced tilt() const {
    const Traced first = c23 * s5;
    return first + s23 * c4 * c5;
  }
  /// Horizontal distance of the wrist from the base.
  Traced reach() const {
    Traced length = kA1 + kA2 * c2;
    length += kA3 * c23;
    length += kD4 * s23;
    return length;
  }
};

std::vector<Traced> robot_arm_function(const Traced& t1, const Traced& t2, const Traced& t3, const Traced& t4,
                                       const Traced& t5, const Traced& t6) {
  const Joints j = Joints::of(t1, t2, t3, t4, t5, t6);
  const Traced ax = j.approach_x();
  const Traced ay = j.approach_y(Joints::Sign::minus);
  const Traced az = j.approach_z();
  Traced nz = j.c6 * j.tilt();
  nz -= j.s23 * j.s4 * j.s6;
  const Traced minus_s6 = -j.s6;
  Traced oz = minus_s6 * j.tilt();
  oz -= j.s23 * j.s4 * j.c6;

  // Euler angles of the hand.
  const Traced z = atan2(ay, ax);
  const Traced y = atan2(sqrt(1 - square(az)), az);
  const Traced zz = atan2(oz, -nz);

  const Traced x_hand = kD6 * j.approach_x();
  const Traced x_wrist = j.c1 * j.reach();
  const Traced px = x_hand + x_wrist;
  const Traced y_hand = kD6 * j.approach_y(Joints::Sign::plus);
  const Traced y_wrist = j.s1 * j.reach();
  const Traced py = y_hand + y_wrist;
  Traced height = kA2 * j.s2 + kD1;
  height += kA3 * j.s23;
  height -= kD4 * j.c23;
  const Traced pz = height + kD6 * j.approach_z();
  return {px, py, pz, z, y, zz};
}

}  // namespace

Task robot_arm_6dof() {
  return {
      .name = "RobotArm_6DOF",
      .summary = "forward kinematics of a robot arm with six joints: position and Euler angles",
      .arguments = [](const TaskOptions& o) { return scalars(o, {"t1", "t2", "t3", "t4", "t5", "t6"}); },
      .function = detail::pack_function<6>(robot_arm_function),
      .inputs = {.point = {.02, .02, .02, .02, .02, .02}},
  };
}

}  // namespace loipe::tasks
