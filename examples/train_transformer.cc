// SPDX-License-Identifier: Apache-2.0
// Trains a small causal transformer to predict the next character of a text, with gradients
// by Loipe and Adam written out: once with exact attention, and once with attention in almost linear time, a
// polynomial of degree 2 in place of exp, whose gradients are those of its own loss. Draws both losses:
//
//   example_train_transformer [TEXT [STEPS [LOSS.svg]]]
#include <loipe/loipe.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using loipe::Argument, loipe::DType, loipe::Tensor, loipe::Traced;

constexpr std::int64_t kContext = 64, kWidth = 32, kCharacters = 256;

loipe::TransformerModel model(const loipe::AttentionApproximation& approximation) {
  loipe::TransformerModel result{.layers = 2, .heads = 4, .width = kWidth, .hidden = 64, .causal = true};
  result.approximation = {{approximation}};
  return result;
}

/// Characters and their successors [context], then what is learned: vectors of characters and
/// of positions, the transformer's weights, and the weights of the output.
std::vector<Argument> arguments() {
  std::vector<Argument> list{{"text", {DType::i64, {kContext}}},
                             {"next", {DType::i64, {kContext}}},
                             {"characters", {DType::f32, {kCharacters, kWidth}}},
                             {"positions", {DType::f32, {kContext, kWidth}}}};
  for (Argument& weight : loipe::transformer_weights(model({}), DType::f32))
    list.push_back(std::move(weight));
  list.push_back({"output", {DType::f32, {kWidth, kCharacters}}});
  return list;
}

/// The mean of -log p(next character), p by what stands before it.
std::vector<Traced> loss(const loipe::TransformerModel& transformer, std::span<const Traced> a) {
  const Traced x = loipe::take(a[2], a[0]) + a[3];
  const Traced y = loipe::transformer(transformer, x, a.subspan(4, a.size() - 5));
  return {loipe::cross_entropy(loipe::matmul(y, a.back()), a[1])};
}

/// Matrices normal with variance 1/rows, scales of normalisations 1, other vectors 0.
Tensor initial(const Argument& argument, std::mt19937& random) {
  Tensor tensor(argument.type);
  const bool is_matrix = argument.type.rank() == 2, is_scale = argument.name.ends_with("gamma");
  const bool is_table = argument.name == "characters" || argument.name == "positions";
  const double size = is_table ? 0.3 : 1 / std::sqrt(static_cast<double>(argument.type.shape[0]));
  std::normal_distribution<double> normal(0, size);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    tensor.set(i, is_matrix ? normal(random) : is_scale ? 1 : 0);
  return tensor;
}

/// D. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization" (2015).
class Adam {
 public:
  explicit Adam(std::span<const Tensor> weights) {
    for (const Tensor& weight : weights)
      mean_.emplace_back(weight.element_count()), square_.emplace_back(weight.element_count());
  }
  void step(std::span<Tensor> weights, std::span<const Tensor> gradients) {
    constexpr float kRate = 3e-3F, kMean = 0.9F, kSquare = 0.99F, kTiny = 1e-8F;
    ++steps_;
    const float mean_part = 1 - std::pow(kMean, steps_), square_part = 1 - std::pow(kSquare, steps_);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const auto w = weights[k].elements<float>();
      const auto g = gradients[k].elements<float>();
      for (std::size_t i = 0; i < w.size(); ++i) {
        mean_[k][i] += (1 - kMean) * (g[i] - mean_[k][i]);
        square_[k][i] += (1 - kSquare) * (g[i] * g[i] - square_[k][i]);
        w[i] -= kRate * (mean_[k][i] / mean_part) / (std::sqrt(square_[k][i] / square_part) + kTiny);
      }
    }
  }

 private:
  float steps_ = 0;
  std::vector<std::vector<float>> mean_, square_;
};

struct Curve {
  const char* name;
  const char* color;
  std::vector<double> losses;
};

/// The losses from the first (left) to the last step.
void draw(const std::string& path, const std::vector<Curve>& curves) {
  double top = 0;
  for (const Curve& curve : curves)
    top = std::max(top, *std::max_element(curve.losses.begin(), curve.losses.end()));
  std::ofstream svg(path);
  if (!svg) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  svg << "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 360' font-family='sans-serif' "
         "font-size='12'>\n<rect width='640' height='360' fill='white'/>\n"
         "<path d='M50 20V320H620' fill='none' stroke='black'/>\n<text x='8' y='24'>"
      << top << "</text><text x='30' y='324'>0</text><text x='500' y='345'>" << curves[0].losses.size()
      << " steps</text>\n<text x='60' y='16'>loss per character</text>\n";
  int row = 40;
  for (const Curve& curve : curves) {
    svg << "<text x='440' y='" << row << "' fill='" << curve.color << "'>" << curve.name
        << "</text>\n<polyline fill='none' stroke='" << curve.color << "' points='";
    for (std::size_t i = 0; i < curve.losses.size(); ++i)
      svg << 50 + 570 * static_cast<double>(i) / static_cast<double>(curve.losses.size()) << ','
          << 320 - 300 * curve.losses[i] / top << ' ';
    svg << "'/>\n";
    row += 18;
  }
  svg << "</svg>\n";
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// A text with a rule, for those who have none at hand.
std::string counting_text() {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += std::to_string(i % 100) + (i % 10 == 9 ? ".\n" : ", ");
  return text;
}

double mean_of(std::span<const double> numbers) {
  double sum = 0;
  for (double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

/// The loss of each step; both runs see the same characters and begin with the same weights.
std::vector<double> train(const std::string& text, int steps,
                          const loipe::AttentionApproximation& approximation) {
  const std::vector<Argument> list = arguments();
  loipe::DerivativeOptions options;
  for (std::size_t i = 2; i < list.size(); ++i) options.wrt.emplace_back(list[i].name);
  const loipe::Derivative gradient = loipe::derivative_of_function(
      loipe::DerivativeKind::gradient,
      [&](std::span<const Traced> a) { return loss(model(approximation), a); }, list, options);

  std::mt19937 random(1);
  std::vector<Tensor> at;
  for (const Argument& argument : list) at.push_back(initial(argument, random));
  const std::span<Tensor> weights = std::span(at).subspan(2);
  Adam adam(weights);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const std::size_t first = random() % (text.size() - kContext - 1);
    for (std::int64_t i = 0; i < kContext; ++i) {
      const std::size_t place = first + static_cast<std::size_t>(i);
      at[0].set(i, static_cast<unsigned char>(text[place]));
      at[1].set(i, static_cast<unsigned char>(text[place + 1]));
    }
    const loipe::DerivativeResult result = gradient(at);
    losses.push_back(result.outputs[0].at(0));
    adam.step(weights, result.derivatives);
    if ((step + 1) % 50 == 0) std::printf("  step %d: loss %.3f\n", step + 1, losses.back());
  }
  return losses;
}

const char* how_it_fell(const std::vector<double>& losses) {
  const std::size_t tenth = (losses.size() + 9) / 10;
  const double begin = mean_of(std::span(losses).first(tenth)), end = mean_of(std::span(losses).last(tenth));
  return end < begin / 2 ? "by more than half" : end < begin ? "by less than half" : "not at all";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string text = argc > 1 ? read(argv[1]) : counting_text();
  const int steps = argc > 2 ? std::atoi(argv[2]) : 150;
  if (text.size() < kContext + 2 || steps < 1) {
    std::fprintf(stderr, "%s: expected a text of more than %d characters, and a number of steps\n",
                 argc > 1 ? argv[1] : "the text", static_cast<int>(kContext + 1));
    return 2;
  }
  const loipe::AttentionApproximation polynomial{
      .method = loipe::AttentionMethod::almost_linear, .degree = 2, .is_audited = false};
  std::vector<Curve> curves{{"exact attention", "#1f77b4", {}}, {"almost linear attention", "#d62728", {}}};
  for (Curve& curve : curves) {
    std::printf("with %s\n", curve.name);
    curve.losses = train(text, steps, &curve == curves.data() ? loipe::AttentionApproximation{} : polynomial);
  }
  for (const Curve& curve : curves)
    std::printf("%s: the loss fell %s\n", curve.name, how_it_fell(curve.losses));
  if (argc > 3) draw(argv[3], curves);
}
