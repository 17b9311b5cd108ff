// SPDX-License-Identifier: Apache-2.0
#include "ir/attributes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace loipe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::shared_ptr<const Tensor> shared(Tensor tensor) {
  return std::make_shared<const Tensor>(std::move(tensor));
}

TEST(Attributes, AreSortedByNameAndUnique) {
  Attributes attributes{{"shape", Integers{2, 3}}, {"axis", std::int64_t{1}}};
  attributes.set("axis", std::int64_t{0});
  EXPECT_EQ(attributes.print(), "axis=0, shape=[2,3]");
  EXPECT_TRUE(attributes.has("axis"));
  EXPECT_FALSE(attributes.has("axes"));
}

TEST(Attributes, GiveTheirValues) {
  const Attributes attributes{{"i", std::int64_t{3}}, {"x", 0.5},
                              {"list", Integers{1}},  {"dtype", DType::f64},
                              {"mode", "nearest"},    {"value", shared(Tensor::scalar(2.0))}};
  EXPECT_EQ(attributes.integer("i"), 3);
  EXPECT_EQ(attributes.number("x"), 0.5);
  EXPECT_EQ(attributes.number("i"), 3.0);
  EXPECT_EQ(attributes.integers("list"), Integers{1});
  EXPECT_EQ(attributes.dtype("dtype"), DType::f64);
  EXPECT_EQ(attributes.text("mode"), "nearest");
  EXPECT_EQ(attributes.tensor("value"), Tensor::scalar(2.0));
}

TEST(Attributes, SayWhatIsMissingOrOfAnotherKind) {
  const Attributes attributes{{"x", 0.5}};
  EXPECT_THAT([&] { attributes.integer("y"); },
              ThrowsMessage<UserError>(HasSubstr("attribute 'y' is missing")));
  EXPECT_THAT([&] { attributes.integer("x"); },
              ThrowsMessage<UserError>(HasSubstr("'x' must be an integer")));
  EXPECT_THAT([&] { attributes.integers("x"); },
              ThrowsMessage<UserError>(HasSubstr("must be a list of integers")));
  EXPECT_THAT([&] { attributes.dtype("x"); }, ThrowsMessage<UserError>(HasSubstr("must be a dtype")));
  EXPECT_THAT([&] { attributes.text("x"); }, ThrowsMessage<UserError>(HasSubstr("must be a text")));
  EXPECT_THAT([&] { attributes.tensor("x"); }, ThrowsMessage<UserError>(HasSubstr("must be a tensor")));
  const Attributes text{{"x", "a"}};
  EXPECT_THAT([&] { text.number("x"); }, ThrowsMessage<UserError>(HasSubstr("must be a number")));
}

TEST(Attributes, PrintEveryKind) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto print = [](AttributeValue value) { return Attributes{{"a", std::move(value)}}.print(); };
  EXPECT_EQ(print(std::int64_t{-3}), "a=-3");
  EXPECT_EQ(print(3.0), "a=3.0");
  EXPECT_EQ(print(-inf), "a=-inf");
  EXPECT_EQ(print(Integers{}), "a=[]");
  EXPECT_EQ(print(DType::boolean), "a=bool");
  EXPECT_EQ(print("two\n\"lines\""), R"(a="two\n\"lines\"")");
  EXPECT_EQ(print(shared(Tensor::of<float>({2}, {0.1f, std::nanf("")}))), "a=f32[2](0.1,nan)");
  EXPECT_EQ(print(shared(Tensor::of<bool>({2}, {true, false}))), "a=bool[2](1,0)");
  EXPECT_EQ(print(shared(Tensor::of<double>({0, 2}, {}))), "a=f64[0,2]()");
  EXPECT_EQ(print(shared(Tensor::scalar(std::int32_t{-7}))), "a=i32[](-7)");
}

TEST(Attributes, AreEqualWhereTheirTextsAre) {
  const double nan = std::nan("");
  const std::vector<Attributes> all{
      {},
      {{"a", std::int64_t{3}}},
      {{"a", 3.0}},
      {{"b", 3.0}},
      {{"a", 0.0}},
      {{"a", -0.0}},
      {{"a", nan}},
      {{"a", -nan}},
      {{"a", Integers{1, 2}}},
      {{"a", Integers{1, 2}}, {"b", std::string("x")}},
      {{"a", std::make_shared<const Tensor>(Tensor::of<double>({2}, {1.0, nan}))}},
      {{"a", std::make_shared<const Tensor>(Tensor::of<double>({2}, {1.0, -nan}))}},
      {{"a", std::make_shared<const Tensor>(Tensor::of<double>({2}, {1.0, 2.0}))}},
      {{"a", std::make_shared<const Tensor>(Tensor::of<float>({2}, {1.0f, 2.0f}))}}};
  for (const Attributes& x : all)
    for (const Attributes& y : all) {
      EXPECT_EQ(x == y, x.print() == y.print()) << x.print() << " and " << y.print();
      if (x == y) {
        EXPECT_EQ(x.hash(), y.hash()) << x.print();
      }
    }
}

}  // namespace
}  // namespace loipe
