// SPDX-License-Identifier: Apache-2.0
// Approximate attention as a whole: what is chosen, what it costs in accuracy, and that what is told of the
// error is true.
#include "attention/approximate/approximate.h"

#include <gtest/gtest.h>
#include <loipe/error.h>

#include <optional>

#include "almost_linear_case.h"
#include "attention/reference/reference_attention.h"
#include "attention/threads_and_memory.h"
#include "attention_case.h"

namespace loipe::attention::testing {
namespace {

using approximate::HeadReport, approximate::Method, approximate::Settings, approximate::parse_settings;

constexpr double kExact = static_cast<double>(Method::exact);
constexpr double kLinear = static_cast<double>(Method::almost_linear);
constexpr double kClustered = static_cast<double>(Method::clustered);

/// Logits of this spread, and keys in so many tight groups (0: none).
template <class E>
Case<E> drawn(const Shape& shape, bool is_causal, double spread, int groups, std::uint64_t seed) {
  Rng rng(seed);
  Case<E> c;
  c.shape = shape;
  c.is_causal = is_causal;
  fill(c, rng);
  const double size = std::sqrt(spread);
  c.q.fill_normal(rng, size);
  std::vector<double> centres(static_cast<std::size_t>(std::max(groups, 1) * shape.head_size));
  for (double& x : centres) x = size * rng.normal();
  c.k.fill([&](std::int64_t, std::int64_t j, std::int64_t column) {
    if (groups == 0) return size * rng.normal();
    return centres[static_cast<std::size_t>(j % groups * shape.head_size + column)] +
           0.05 * size * rng.normal();
  });
  return c;
}

template <class E>
struct Outcome {
  Array<E> o, lse, statistics, dq, dk, dv;
  std::vector<HeadReport> forward, backward;

  bool operator==(const Outcome& other) const {
    return o == other.o && lse == other.lse && dq == other.dq && dk == other.dk && dv == other.dv;
  }
};

template <class E>
Outcome<E> run(const Case<E>& c, const std::string& text, int threads = 1, bool is_saved = true) {
  Rng rng(7);
  const Shape& s = c.shape;
  Outcome<E> r{{s.heads, s.queries, s.value_size, rng},
               {s.heads, s.queries, 1, rng},
               {s.heads, s.queries, kStatistics, rng},
               {s.heads, s.queries, s.head_size, rng},
               {s.kv_heads, s.keys, s.head_size, rng},
               {s.kv_heads, s.keys, s.value_size, rng},
               std::vector<HeadReport>(static_cast<std::size_t>(s.kv_heads)),
               std::vector<HeadReport>(static_cast<std::size_t>(s.kv_heads))};
  const std::vector<Settings> settings(static_cast<std::size_t>(s.kv_heads), parse_settings(text));
  Threads pool{threads};
  const Parallel parallel = threads == 1 ? Parallel{} : pool.parallel();
  const Problem<E> problem = c.problem();
  Workspace forward(approximate::forward_workspace(problem, settings, threads));
  approximate::forward<E>(problem, settings, {r.o.rows(), r.lse.rows(), r.statistics.rows(), r.forward},
                          parallel, forward.bytes());
  Workspace backward(approximate::vjp_workspace(problem, settings, threads));
  approximate::Saved<E> saved;
  if (is_saved) saved = {r.o.rows(), r.lse.rows(), r.statistics.rows(), r.forward};
  approximate::vjp<E>(problem, settings, saved, {c.g.rows()}, {r.dq.rows(), r.dk.rows(), r.dv.rows(), {}},
                      r.backward, parallel, backward.bytes());
  EXPECT_TRUE(forward.is_whole() && backward.is_whole());
  return r;
}

template <class E>
double error_of_head(const Array<E>& is, const Array<E>& should, std::int64_t first, std::int64_t count) {
  double difference = 0, size = 0;
  for (std::int64_t h = first; h < first + count; ++h)
    for (std::int64_t i = 0; i < is.row_count(); ++i)
      for (std::int64_t column = 0; column < is.columns(); ++column) {
        difference += std::pow(is.at(h, i, column) - should.at(h, i, column), 2);
        size += std::pow(should.at(h, i, column), 2);
      }
  return size == 0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

/// Whether a measured error is told within a factor.
void expect_told(const approximate::Measured& told, double error, double factor, const char* what) {
  EXPECT_LT(told.value, factor * error + 1e-12) << what;
  EXPECT_GT(told.value, error / factor - 1e-12) << what;
  EXPECT_LE(told.low, told.value) << what;
  EXPECT_GE(told.high, told.value) << what;
}

template <class E>
void expect_true_reports(const Case<E>& c, const Outcome<E>& r, double factor) {
  const Outcome<E> exact = run(c, "exact");
  const std::int64_t readers = c.shape.readers();
  for (std::int64_t head = 0; head < c.shape.kv_heads; ++head) {
    const HeadReport& report = r.backward[static_cast<std::size_t>(head)];
    const double o = error_of_head(r.o, exact.o, head * readers, readers),
                 dq = error_of_head(r.dq, exact.dq, head * readers, readers),
                 dk = error_of_head(r.dk, exact.dk, head, 1), dv = error_of_head(r.dv, exact.dv, head, 1);
    expect_told(report.o, o, factor, "o");
    expect_told(report.dq, dq, factor, "dq");
    expect_told(report.dk, dk, factor, "dk");
    expect_told(report.dv, dv, factor, "dv");
    EXPECT_LE(o, report.bound_o);
    EXPECT_LE(dq, report.bound_dq);
    EXPECT_LE(dk, report.bound_dk);
    EXPECT_LE(dv, report.bound_dv);
  }
}

TEST(ApproximateAttention, SmallLogitsGetAPolynomialWithinTheTolerance) {
  const Case<float> c = drawn<float>({4, 2, 2048, 2048, 8, 8}, true, 0.2, 0, 1);
  const Outcome<float> r = run(c, "auto tolerance=0.1");
  for (const HeadReport& report : r.backward) {
    EXPECT_EQ(report.method, kLinear);
    EXPECT_EQ(report.backward_method, kLinear);
    EXPECT_LE(report.dq.value, 0.1);
    EXPECT_EQ(report.guarded_rows, 0);
  }
  expect_true_reports(c, r, 1.6);
}

TEST(ApproximateAttention, TheRigorousBoundIsFiniteWhereLogitsAreSmall) {
  const Case<double> c = drawn<double>({4, 2, 300, 300, 8, 8}, true, 0.05, 0, 10);
  const Outcome<double> r = run(c, "almost-linear degree=4");
  for (const HeadReport& report : r.backward) {
    EXPECT_GT(report.bound_o, 0);
    EXPECT_LT(report.bound_o, 0.1);
    EXPECT_LT(report.bound_dq, 1);
  }
  expect_true_reports(c, r, 3);
}

TEST(ApproximateAttention, LargeLogitsGetClustersWithinTheTolerance) {
  const Case<float> c = drawn<float>({2, 1, 2048, 2048, 16, 16}, false, 4, 40, 2);
  const Outcome<float> r = run(c, "auto tolerance=0.1");
  EXPECT_EQ(r.backward[0].method, kExact);
  EXPECT_EQ(r.backward[0].backward_method, kClustered);
  EXPECT_LE(r.backward[0].dk.value, 0.1);
  EXPECT_TRUE(std::isinf(r.backward[0].bound_dq));
  expect_true_reports(c, r, 1.6);
}

TEST(ApproximateAttention, HeadsWithoutAWayOutAreExact) {
  const Case<double> c = drawn<double>({2, 2, 512, 512, 16, 16}, true, 2, 0, 3);
  const Outcome<double> exact = run(c, "exact");
  for (const char* text : {"auto tolerance=1e-6", "auto tolerance=0.01"}) {
    const Outcome<double> r = run(c, text);
    EXPECT_EQ(r.backward[0].backward_method, kExact) << text;
    EXPECT_EQ(r, exact) << text;
  }
}

TEST(ApproximateAttention, WindowsAndBiasesAreExact) {
  Case<double> c = drawn<double>({2, 1, 100, 100, 4, 4}, true, 0.1, 0, 4);
  c.window = 10;
  const Outcome<double> exact = run(c, "exact");
  for (const char* text : {"auto", "almost-linear degree=2", "clustered clusters=4 exact_keys=8"})
    EXPECT_EQ(run(c, text), exact) << text;
}

TEST(ApproximateAttention, HeadsChooseForThemselves) {
  Case<float> c = drawn<float>({2, 2, 2048, 2048, 8, 8}, false, 0.15, 0, 5);
  Rng rng(6);
  c.q.fill([&](std::int64_t head, auto...) { return (head == 0 ? 0.3 : 4) * rng.normal(); });
  c.k.fill([&](std::int64_t head, auto...) { return (head == 0 ? 0.3 : 2) * rng.normal(); });
  const Outcome<float> r = run(c, "auto tolerance=0.05");
  EXPECT_EQ(r.backward[0].method, kLinear);
  EXPECT_NE(r.backward[1].method, kLinear);
}

TEST(ApproximateAttention, SameBitsForEveryNumberOfThreads) {
  const Case<float> c = drawn<float>({4, 2, 700, 700, 8, 5}, true, 0.3, 0, 8);
  for (const char* text :
       {"auto tolerance=0.2", "almost-linear degree=4 near=20", "clustered clusters=16 exact_keys=40",
        "clustered clusters=16 tolerance=0.3", "clustered clusters=16 exact_keys=40 forward=clustered",
        "almost-linear degree=2 gradient=paper"}) {
    const Outcome<float> one = run(c, text);
    for (const int threads : {2, 5})
      EXPECT_EQ(run(c, text, threads), one) << text << ", " << threads << " threads";
    EXPECT_EQ(run(c, text, 2, false), one) << text << ", forward pass unknown";
  }
}

TEST(ApproximateAttention, TakesEveryShape) {
  Rng rng(9);
  for (const std::int64_t queries : {0, 1, 3, 65})
    for (const std::int64_t keys : {0, 1, 2, 70})
      for (const char* text :
           {"auto tolerance=0.3", "almost-linear degree=2", "clustered", "clustered forward=clustered"}) {
        Case<double> c = drawn<double>({2, 1, queries, keys, 3, 2}, rng.below(2) == 0, 0.2, 0, rng.next());
        const Outcome<double> r = run(c, text, 1);
        EXPECT_EQ(r.o.written(), 2 * queries * 2) << c.text() << text;
        EXPECT_EQ(r.dk.written(), keys * 3) << c.text() << text;
      }
}

TEST(ApproximateSettings, ReadBackAsWritten) {
  for (const char* text : {"exact", "auto", "auto tolerance=0.1",
                           "almost-linear degree=4 coefficients=minimax near=32 gradient=paper",
                           "clustered tolerance=0.05 clusters=64 exact_keys=128 forward=clustered audit=off"})
    EXPECT_EQ(to_text(parse_settings(text)), text);
}

TEST(ApproximateSettings, SayWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected a method"},
      {"exakt", "did you mean 'exact'"},
      {"auto tolerance=0", "expected a positive number"},
      {"auto tolerance=nan", "expected a positive number"},
      {"auto tolerance=x", "expected a number"},
      {"auto degrees=2", "did you mean 'degree'"},
      {"auto degree", "expected key=value"},
      {"almost-linear degree=13", "expected 1 to 12"},
      {"clustered clusters=-1", "expected at least 1"},
      {"clustered forward=maybe", "expected exact or clustered"},
  };
  for (const auto& [text, expected] : cases) {
    try {
      parse_settings(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << text << ": " << error.what();
    }
  }
}

}  // namespace
}  // namespace loipe::attention::testing
