// SPDX-License-Identifier: Apache-2.0
#include "driver/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/check.h"

namespace loipe {

namespace {

constexpr double kWidth = 900, kHeight = 480, kLeft = 110, kRight = 210, kTop = 46, kBottom = 56;
constexpr std::array kColors = {"#1b6ca8", "#c1442e", "#2f8f4e", "#8551a8", "#b8860b", "#4a4a4a"};

std::string number(double value, int digits = 6) {
  std::array<char, 40> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*g", digits, value);
  return buffer.data();
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : text) {
    if (letter == '&') result += "&amp;";
    else if (letter == '<') result += "&lt;";
    else if (letter == '>') result += "&gt;";
    else if (static_cast<unsigned char>(letter) >= ' ') result += letter;
  }
  return result;
}

std::string text_at(double x, double y, const std::string& text, const std::string& style) {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" " + style + ">" + escaped(text) + "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<line x1=\"" + number(x1) + "\" y1=\"" + number(y1) + "\" x2=\"" + number(x2) + "\" y2=\"" +
         number(y2) + "\" " + style + "/>\n";
}

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

/// Steps of 1, 2 or 5 times a power of ten, about six of them.
double tick_step(const Range& range) {
  const double rough = (range.high - range.low) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

class Drawing {
 public:
  explicit Drawing(const Plot& plot) : plot_(plot) {
    for (const PlotCurve& curve : plot.curves)
      for (const auto& [time, value] : curve.points) {
        times_.include(std::max(time, 1e-3));
        values_.include(value);
      }
    require(times_.low <= times_.high, "a plot without points");
    for (const PlotLine& line : plot.lines) values_.include(line.value);
    times_.high = std::max(times_.high, 2 * times_.low);
    const double margin = std::max(0.05 * (values_.high - values_.low), 1e-9 + 0.01 * std::abs(values_.low));
    values_.low -= margin;
    values_.high += margin;
  }

  std::string svg() const {
    std::string text = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(kWidth) +
                       "\" height=\"" + number(kHeight) +
                       "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
                       "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    text += text_at(kLeft, 26, plot_.title, "font-size=\"16\" fill=\"#222\"");
    text += axes();
    for (std::size_t k = 0; k < plot_.lines.size(); ++k) text += reference(plot_.lines[k]);
    text += line_names();
    for (std::size_t k = 0; k < plot_.curves.size(); ++k) text += curve(k);
    return text + "</svg>\n";
  }

 private:
  double x(double time) const {
    const double share =
        std::log(std::max(time, times_.low) / times_.low) / std::log(times_.high / times_.low);
    return kLeft + share * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    const double share = (value - values_.low) / (values_.high - values_.low);
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }

  std::string axes() const {
    const double bottom = kHeight - kBottom, right = kWidth - kRight;
    const std::string grid = "stroke=\"#dddddd\"", ink = "fill=\"#444444\"";
    std::string text;
    const double step = tick_step(values_);
    for (double value = std::ceil(values_.low / step) * step; value <= values_.high; value += step) {
      text += line(kLeft, y(value), right, y(value), grid);
      text += text_at(kLeft - 8, y(value) + 4, number(value), ink + " text-anchor=\"end\"");
    }
    for (double power = std::floor(std::log10(times_.low)); power <= std::log10(times_.high); ++power)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double time = factor * std::pow(10, power);
        if (time < times_.low || time > times_.high) continue;
        text += line(x(time), kTop, x(time), bottom, grid);
        text += text_at(x(time), bottom + 18, number(time, 3), ink + " text-anchor=\"middle\"");
      }
    text += line(kLeft, bottom, right, bottom, "stroke=\"#444444\"");
    text += line(kLeft, kTop, kLeft, bottom, "stroke=\"#444444\"");
    text += text_at((kLeft + right) / 2, kHeight - 14, plot_.x_label, ink + " text-anchor=\"middle\"");
    const std::string turned = "transform=\"rotate(-90 20 " + number((kTop + bottom) / 2) + ")\"";
    return text + text_at(20, (kTop + bottom) / 2, plot_.y_label, ink + " text-anchor=\"middle\" " + turned);
  }

  std::string reference(const PlotLine& at) const {
    return line(kLeft, y(at.value), kWidth - kRight, y(at.value),
                "stroke=\"#777777\" stroke-dasharray=\"6 4\"");
  }

  /// From above to below, pushed apart where they would overlap.
  std::string line_names() const {
    std::vector<const PlotLine*> sorted;
    for (const PlotLine& at : plot_.lines) sorted.push_back(&at);
    std::ranges::sort(sorted, std::greater<>(), [](const PlotLine* at) { return std::pair(at->value, at); });
    std::string text;
    double last = 0;
    for (const PlotLine* at : sorted) {
      last = std::max(y(at->value) + 4, last + 14);
      text += text_at(kWidth - kRight + 8, last, at->name, "fill=\"#666666\"");
    }
    return text;
  }

  /// Level until the next point, then down.
  std::string curve(std::size_t index) const {
    const PlotCurve& curve = plot_.curves[index];
    if (curve.points.empty()) return "";
    const std::string color = kColors[index % kColors.size()];
    std::string path, marks;
    for (std::size_t k = 0; k < curve.points.size(); ++k) {
      const auto [time, value] = curve.points[k];
      const std::string place = number(x(time)) + " ";
      if (k > 0)
        path += " L" + place + number(y(curve.points[k - 1].second)) + " L" + place + number(y(value));
      else path += "M" + place + number(y(value));
      marks += "<circle cx=\"" + number(x(time)) + "\" cy=\"" + number(y(value)) + "\" r=\"3\" fill=\"" +
               color + "\"/>\n";
    }
    const double legend = kTop + 14 * static_cast<double>(index) + 12;
    return "<path d=\"" + path + "\" fill=\"none\" stroke=\"" + color + "\" stroke-width=\"2\"/>\n" + marks +
           text_at(kWidth - kRight - 8, legend, curve.name, "fill=\"" + color + "\" text-anchor=\"end\"");
  }

  const Plot& plot_;
  Range times_, values_;
};

}  // namespace

std::string to_svg(const Plot& plot) { return Drawing(plot).svg(); }

}  // namespace loipe
