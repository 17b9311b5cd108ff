// SPDX-License-Identifier: Apache-2.0
// A perceptron with two layers, and transformers: A. Vaswani et al., "Attention is
// all you need", arXiv 1706.03762, without the scaling by the head size. Matrices
// of the transformers hold one token per column.
#include "tasks/definitions.h"

namespace loipe::tasks {

namespace {

constexpr std::int64_t kTokens = 4;  // at scale 1; also the model's width
constexpr std::int64_t kOutputs = 2;
constexpr std::int64_t kHidden = 8;

/// (n) as (n, 1).
Traced as_column(const Traced& x) { return broadcast_in_dim(x, {x.shape()[0], 1}, {0}); }

/// The layer norm's gamma and beta are () at scale 1, where the published trace
/// converts them, and (1) above, where they get the rank of what they meet.
Traced norm_parameter(const Traced& parameter) {
  return parameter.rank() == 0 ? convert(parameter, parameter.dtype())
                               : broadcast_to(parameter, {1, parameter.shape()[0]});
}

/// Which axis of x the statistics of its rows are laid along. Down the rows is the
/// layer norm of the textbooks. The published transformers lay the vector of row
/// statistics along the columns, so that column j meets the mean of row j; this is
/// legal because their matrices are square.
enum class Statistics { down_the_rows, along_the_columns };

/// (x - mean) / sqrt(variance + 1e-6) * gamma + beta, with mean and variance of rows.
Traced layer_norm(const Traced& x, const Traced& gamma, const Traced& beta, Statistics statistics) {
  const auto beside_x = [&](const Traced& vector) {
    return statistics == Statistics::down_the_rows ? as_column(vector)
                                                   : broadcast_to(vector, {1, vector.shape()[0]});
  };
  const Traced row_mean = mean(x, {1});
  const Traced deviation = x - beside_x(row_mean);
  const Traced variance = mean(square(deviation), {1});
  const Traced centred = x - beside_x(row_mean);
  const Traced spread = sqrt(variance + 1e-6);
  const Traced normalised = centred / beside_x(spread);
  const Traced scaled = normalised * norm_parameter(gamma);
  return scaled + norm_parameter(beta);
}

/// Of each row. The largest entry, which is subtracted against overflow, cancels
/// and so carries no derivative.
Traced row_softmax(const Traced& x) {
  const Traced largest = stop_gradient(as_column(reduce_max(x, {1})));
  const Traced weights = exp(x - largest);
  return weights / as_column(sum(weights, {1}));
}

/// Of each row: (m, n), (m, n) -> (m).
Traced cross_entropy(const Traced& logits, const Traced& target) {
  return -sum(target * log(row_softmax(logits)), {1});
}

/// x logistic(x), with the logistic function in elementary operations.
Traced elementary_silu(const Traced& x) { return x * (1 / (1 + exp(-x))); }

/// tanh(W x + b) of each example: (m, n), (batch, n), (m) -> (batch, m).
Traced dense_tanh(const Traced& W, const Traced& x, const Traced& b) {
  const Traced product = dot_general(W, x, {{1}, {1}});  // [m, batch]
  return tanh(transpose(product) + b);
}

Traced perceptron_function(const Traced& x, const Traced& y, const Traced& W1, const Traced& b1,
                           const Traced& W2, const Traced& b2, const Traced& gamma, const Traced& beta) {
  const Traced hidden = layer_norm(dense_tanh(W1, x, b1), gamma, beta, Statistics::down_the_rows);
  return cross_entropy(dense_tanh(W2, hidden, b2), y);
}

/// row_softmax(q^T k) v.
Traced attention(const Traced& query, const Traced& key, const Traced& value) {
  const Traced logits = matmul(transpose(query), key);
  return matmul(row_softmax(logits), value);
}

/// x + attention of W_Q source, W_K source and W_V x.
Traced attended(const Traced& x, const Traced& source, const Traced& WQ, const Traced& WK, const Traced& WV) {
  const Traced query = matmul(WQ, source);
  const Traced key = matmul(WK, source);
  const Traced value = matmul(WV, x);
  return x + attention(query, key, value);
}

/// elementary_silu(W norm(x) + b).
Traced feed_forward(const Traced& x, const Traced& W, const Traced& b, const Traced& gamma,
                    const Traced& beta) {
  const Traced product = matmul(W, layer_norm(x, gamma, beta, Statistics::along_the_columns));
  return elementary_silu(product + b);
}

Traced encoder_function(const Traced& x, const Traced& y, const Traced& WQ1, const Traced& WQ2,
                        const Traced& WK1, const Traced& WK2, const Traced& WV1, const Traced& WV2,
                        const Traced& W1, const Traced& W2, const Traced& b1, const Traced& b2,
                        const Traced& gamma0, const Traced& beta0, const Traced& gamma1,
                        const Traced& beta1) {
  const Traced z1 = feed_forward(attended(x, x, WQ1, WK1, WV1), W1, b1, gamma0, beta0);
  const Traced z2 = feed_forward(attended(z1, z1, WQ2, WK2, WV2), W2, b2, gamma1, beta1);
  return cross_entropy(z2, y);
}

/// Half the squared error of a decoder that attends to an encoder's output. The
/// published function takes the decoder's weights in an order that their names do
/// not say: (query, key, value) are (WQ2, WQ3, WK2), then (WK3, WV2, WV3).
Traced encoder_decoder_function(const Traced& x, const Traced& y, const Traced& WQ1, const Traced& WQ2,
                                const Traced& WQ3, const Traced& WK1, const Traced& WK2, const Traced& WK3,
                                const Traced& WV1, const Traced& WV2, const Traced& WV3, const Traced& W1,
                                const Traced& W2, const Traced& b1, const Traced& b2, const Traced& gamma0,
                                const Traced& beta0, const Traced& gamma1, const Traced& beta1,
                                const Traced& gamma2, const Traced& beta2) {
  const Traced encoded = feed_forward(attended(x, x, WQ1, WK1, WV1), W1, b1, gamma0, beta0);
  const Traced own = attended(x, x, WQ2, WQ3, WK2);
  const Traced c = layer_norm(own, gamma1, beta1, Statistics::along_the_columns);
  const Traced crossed = attended(c, encoded, WK3, WV2, WV3);
  const Traced error = feed_forward(crossed, W2, b2, gamma2, beta2) - y;
  return 0.5 * square(error);
}

/// Builds argument lists of one dtype.
class ArgumentList {
 public:
  explicit ArgumentList(const TaskOptions& options) : options_(options) {}

  ArgumentList& add(std::initializer_list<const char*> names, const Shape& shape) {
    for (const char* name : names) arguments_.push_back({name, {options_.dtype, shape}});
    return *this;
  }
  /// gamma and beta.
  ArgumentList& add_norm(std::initializer_list<const char*> names) {
    return add(names, options_.scale == 1 ? Shape{} : Shape{1});
  }
  std::vector<Argument> take() { return std::move(arguments_); }

 private:
  const TaskOptions& options_;
  std::vector<Argument> arguments_;
};

std::vector<Argument> perceptron_arguments(const TaskOptions& options) {
  const std::int64_t n = kTokens * options.scale, hidden = kHidden * options.scale;
  return ArgumentList(options)
      .add({"x", "y"}, {options.batch, n})
      .add({"W1"}, {hidden, n})
      .add({"b1"}, {hidden})
      .add({"W2"}, {n, hidden})
      .add({"b2"}, {n})
      .add_norm({"gamma", "beta"})
      .take();
}

std::vector<Argument> encoder_arguments(const TaskOptions& options) {
  const std::int64_t n = kTokens * options.scale, m = kOutputs * options.scale;
  return ArgumentList(options)
      .add({"x"}, {n, n})
      .add({"y"}, {m, n})
      .add({"WQ1", "WQ2", "WK1", "WK2", "WV1", "WV2", "W1"}, {n, n})
      .add({"W2"}, {m, n})
      .add({"b1"}, {n})
      .add({"b2"}, {m, 1})
      .add_norm({"gamma0", "beta0", "gamma1", "beta1"})
      .take();
}

std::vector<Argument> encoder_decoder_arguments(const TaskOptions& options) {
  const std::int64_t n = kTokens * options.scale, m = kOutputs * options.scale;
  return ArgumentList(options)
      .add({"x"}, {n, n})
      .add({"y"}, {m, n})
      .add({"WQ1", "WQ2", "WQ3", "WK1", "WK2", "WK3", "WV1", "WV2", "WV3", "W1"}, {n, n})
      .add({"W2"}, {m, n})
      .add({"b1"}, {n})
      .add({"b2"}, {m, 1})
      .add_norm({"gamma0", "beta0", "gamma1", "beta1", "gamma2", "beta2"})
      .take();
}

}  // namespace

Task perceptron() {
  return {
      .name = "Perceptron",
      .summary = "cross entropy of a perceptron with two layers and a layer norm",
      .has_scale = true,
      .has_batch_axis = true,
      .batched_arguments = {"x", "y"},
      .arguments = perceptron_arguments,
      .function = detail::pack_function<8>(perceptron_function),
  };
}

Task encoder() {
  return {
      .name = "Encoder",
      .summary = "cross entropy of a transformer of two encoder blocks",
      .has_scale = true,
      .arguments = encoder_arguments,
      .function = detail::pack_function<16>(encoder_function),
  };
}

Task encoder_decoder() {
  return {
      .name = "EncoderDecoder",
      .summary = "squared error of a transformer of an encoder and a decoder block",
      .has_scale = true,
      .arguments = encoder_decoder_arguments,
      .function = detail::pack_function<21>(encoder_decoder_function),
  };
}

}  // namespace loipe::tasks
