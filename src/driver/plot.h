// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace loipe {

/// One curve of a plot: the value holds from its time on.
struct PlotCurve {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< time above 0, value
};

/// A value to compare with.
struct PlotLine {
  std::string name;
  double value;
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<PlotCurve> curves;
  std::vector<PlotLine> lines;
};

/// A plot of falling costs over time as SVG 1.1: time on a logarithmic axis, curves as steps with a
/// mark where they fall, lines dashed across the whole width with their names at the right. Text
/// from outside is escaped. At least one curve has a point.
std::string to_svg(const Plot& plot);

}  // namespace loipe
