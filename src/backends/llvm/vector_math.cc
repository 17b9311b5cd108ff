// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/vector_math.h"

#include <limits>
#include <vector>

namespace loipe::jit {

struct VectorMath::Limits {
  double high, low;          ///< beyond, exp is inf or 0
  double shift;              ///< 1.5 * 2^mantissa: adding it rounds to integers
  double ln2_high, ln2_low;  ///< of the reduction of exp
  unsigned mantissa;
  std::int64_t bias;
  int degree;
  // Of the logarithm.
  std::vector<double> series;
  double subnormal_scale;
  std::int64_t scale_power;
  double smallest, largest;
  std::int64_t root_half;
  double log_ln2_high, log_ln2_low;
};

namespace {

constexpr double kInverseFactorials[] = {
    1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

llvm::Type* vector_of(llvm::Type* scalar, int lanes) {
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes));
}

}  // namespace

VectorMath::VectorMath(llvm::IRBuilder<>& builder, DType dtype, int lanes)
    : b_(builder),
      limits_([dtype]() -> const Limits& {
        static const Limits kF32{
            .high = 89,
            .low = -105,
            .shift = 12582912,
            .ln2_high = 0.693359375,
            .ln2_low = -2.12194440e-4,
            .mantissa = 23,
            .bias = 127,
            .degree = 7,
            .series = {0.66666662693, 0.40000972152, 0.28498786688, 0.24279078841},
            .subnormal_scale = 33554432,
            .scale_power = 25,
            .smallest = std::numeric_limits<float>::min(),
            .largest = std::numeric_limits<float>::max(),
            .root_half = 0x3f3504f3,
            .log_ln2_high = 6.9313812256e-01,
            .log_ln2_low = 9.0580006145e-06,
        };
        static const Limits kF64{
            .high = 710,
            .low = -746,
            .shift = 6755399441055744.0,
            .ln2_high = 6.93147180369123816490e-01,
            .ln2_low = 1.90821492927058770002e-10,
            .mantissa = 52,
            .bias = 1023,
            .degree = 13,
            .series = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                       2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                       1.479819860511658591e-01},
            .subnormal_scale = 18014398509481984.0,
            .scale_power = 54,
            .smallest = std::numeric_limits<double>::min(),
            .largest = std::numeric_limits<double>::max(),
            .root_half = 0x3fe6a09e667f3bcd,
            .log_ln2_high = 6.93147180369123816490e-01,
            .log_ln2_low = 1.90821492927058770002e-10,
        };
        return dtype == DType::f32 ? kF32 : kF64;
      }()),
      number_(vector_of(dtype == DType::f32 ? builder.getFloatTy() : builder.getDoubleTy(), lanes)),
      integer_(vector_of(dtype == DType::f32 ? builder.getInt32Ty() : builder.getInt64Ty(), lanes)) {}

llvm::Value* VectorMath::number(double value) { return llvm::ConstantFP::get(number_, value); }
llvm::Value* VectorMath::integer(std::int64_t value) { return llvm::ConstantInt::getSigned(integer_, value); }

/// With one rounding where the instruction set has it.
llvm::Value* VectorMath::fma(llvm::Value* a, llvm::Value* b, llvm::Value* c) {
  return b_.CreateIntrinsic(number_, llvm::Intrinsic::fmuladd, {a, b, c});
}

VectorMath::ReducedExp VectorMath::reduced_exp(llvm::Value* x) {
  // NaN fails both comparisons and stays.
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, number(limits_.high)), number(limits_.high), x);
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, number(limits_.low)), number(limits_.low), x);
  llvm::Value* shifted = fma(x, number(1.4426950408889634), number(limits_.shift));
  llvm::Value* power = b_.CreateSub(bits(shifted), bits(number(limits_.shift)));
  llvm::Value* n = b_.CreateFSub(shifted, number(limits_.shift));
  llvm::Value* r = fma(n, number(-limits_.ln2_low), fma(n, number(-limits_.ln2_high), x));
  llvm::Value* p = number(kInverseFactorials[limits_.degree]);
  for (int k = limits_.degree - 1; k >= 2; --k) p = fma(p, r, number(kInverseFactorials[k]));
  return {fma(b_.CreateFMul(r, r), p, r), power};
}

llvm::Value* VectorMath::power_of_two(llvm::Value* n) {
  return from_bits(b_.CreateShl(b_.CreateAdd(n, integer(limits_.bias)), integer(limits_.mantissa)));
}

llvm::Value* VectorMath::exp(llvm::Value* x) {
  const auto [tail, power] = reduced_exp(x);
  llvm::Value* half = b_.CreateAShr(power, integer(1));
  llvm::Value* result = b_.CreateFMul(b_.CreateFAdd(number(1), tail), power_of_two(half));
  return b_.CreateFMul(result, power_of_two(b_.CreateSub(power, half)));
}

llvm::Value* VectorMath::expm1(llvm::Value* x) {
  llvm::Value* low = number(-0.7 * (limits_.mantissa + 3));
  const auto [tail, power] = reduced_exp(b_.CreateSelect(b_.CreateFCmpOLT(x, low), low, x));
  llvm::Value* half = power_of_two(b_.CreateSub(power, integer(1)));
  llvm::Value* result = b_.CreateFMul(number(2), fma(half, tail, b_.CreateFSub(half, number(0.5))));
  result = b_.CreateSelect(b_.CreateICmpEQ(power, integer(0)), tail, result);
  return b_.CreateSelect(b_.CreateFCmpOEQ(x, number(0)), x, result);
}

llvm::Value* VectorMath::tanh(llvm::Value* x) {
  llvm::Value* is_negative = b_.CreateFCmpOLT(x, number(0));
  llvm::Value* magnitude = b_.CreateSelect(is_negative, b_.CreateFNeg(x), x);
  magnitude = b_.CreateSelect(b_.CreateFCmpOGT(magnitude, number(20)), number(20), magnitude);
  llvm::Value* m = expm1(b_.CreateFAdd(magnitude, magnitude));
  llvm::Value* result = b_.CreateFDiv(m, b_.CreateFAdd(m, number(2)));
  return b_.CreateSelect(is_negative, b_.CreateFNeg(result), result);
}

/// log(2^exponent (1 + f)).
llvm::Value* VectorMath::log_of_fraction(llvm::Value* f, llvm::Value* exponent) {
  llvm::Value* s = b_.CreateFDiv(f, b_.CreateFAdd(number(2), f));
  llvm::Value* z = b_.CreateFMul(s, s);
  llvm::Value* half_square = b_.CreateFMul(b_.CreateFMul(number(0.5), f), f);
  llvm::Value* sum = number(limits_.series.back());
  for (std::size_t k = limits_.series.size() - 1; k-- > 0;) sum = fma(sum, z, number(limits_.series[k]));
  llvm::Value* rest = fma(s, fma(z, sum, half_square), b_.CreateFMul(exponent, number(limits_.log_ln2_low)));
  return fma(exponent, number(limits_.log_ln2_high), b_.CreateFSub(f, b_.CreateFSub(half_square, rest)));
}

llvm::Value* VectorMath::log(llvm::Value* x) {
  llvm::Value* is_subnormal = b_.CreateFCmpOLT(x, number(limits_.smallest));
  llvm::Value* scaled = b_.CreateSelect(is_subnormal, b_.CreateFMul(x, number(limits_.subnormal_scale)), x);
  llvm::Value* distance = b_.CreateSub(bits(scaled), integer(limits_.root_half));
  llvm::Value* n = b_.CreateSub(b_.CreateAShr(distance, integer(limits_.mantissa)),
                                b_.CreateSelect(is_subnormal, integer(limits_.scale_power), integer(0)));
  llvm::Value* fraction = b_.CreateAnd(distance, integer((std::int64_t{1} << limits_.mantissa) - 1));
  llvm::Value* f = b_.CreateFSub(from_bits(b_.CreateAdd(fraction, integer(limits_.root_half))), number(1));
  llvm::Value* result = log_of_fraction(f, b_.CreateSIToFP(n, number_));
  const double infinity = std::numeric_limits<double>::infinity();
  result = b_.CreateSelect(b_.CreateFCmpOGT(x, number(limits_.largest)), x, result);
  result = b_.CreateSelect(b_.CreateFCmpOEQ(x, number(0)), number(-infinity), result);
  return b_.CreateSelect(b_.CreateFCmpOGE(x, number(0)), result,
                         number(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace loipe::jit
