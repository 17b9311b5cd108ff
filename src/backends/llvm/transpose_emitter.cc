// SPDX-License-Identifier: Apache-2.0
#include "backends/llvm/transpose_emitter.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <functional>

namespace loipe::jit {

namespace {

using Vectors = std::vector<llvm::Value*>;

class Emitter {
 public:
  Emitter(llvm::Module& module, DType dtype, int lanes, std::int64_t elements, Direction direction)
      : module_(module),
        builder_(module.getContext()),
        lanes_(lanes),
        elements_(elements),
        direction_(direction),
        size_(static_cast<std::int64_t>(size_of(dtype))) {
    llvm::LLVMContext& context = module.getContext();
    scalar_ = dtype == DType::f64 ? llvm::Type::getDoubleTy(context) : llvm::Type::getFloatTy(context);
  }

  void run(const std::string& name) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(module_.getContext());
    llvm::Type* integer = builder_.getInt64Ty();
    function_ = llvm::Function::Create(
        llvm::FunctionType::get(builder_.getVoidTy(), {pointer, pointer, integer, integer}, false),
        llvm::Function::ExternalLinkage, name, module_);
    function_->addParamAttr(0, llvm::Attribute::NoAlias);
    function_->addParamAttr(1, llvm::Attribute::NoAlias);
    builder_.SetInsertPoint(block("entry"));
    loop(function_->getArg(3), [&](llvm::Value* tile) {
      emit_tile(moved(function_->getArg(0), builder_.CreateMul(tile, number(lanes_ * size_))),
                moved(function_->getArg(1), builder_.CreateMul(tile, number(lanes_ * elements_ * size_))));
    });
    builder_.CreateRetVoid();
  }

 private:
  llvm::BasicBlock* block(const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, function_);
  }
  llvm::Value* number(std::int64_t value) { return builder_.getInt64(static_cast<std::uint64_t>(value)); }
  llvm::Value* moved(llvm::Value* address, llvm::Value* bytes) {
    return builder_.CreateGEP(builder_.getInt8Ty(), address, bytes);
  }
  llvm::Type* vector(std::int64_t count) {
    if (count == 1) return scalar_;
    return llvm::FixedVectorType::get(scalar_, static_cast<unsigned>(count));
  }

  /// body(0), ..., body(count - 1); count is at least 1.
  void loop(llvm::Value* count, const std::function<void(llvm::Value*)>& body) {
    llvm::BasicBlock* before = builder_.GetInsertBlock();
    llvm::BasicBlock *inside = block("loop"), *after = block("after");
    builder_.CreateBr(inside);
    builder_.SetInsertPoint(inside);
    llvm::PHINode* index = builder_.CreatePHI(builder_.getInt64Ty(), 2);
    index->addIncoming(number(0), before);
    body(index);
    llvm::Value* next = builder_.CreateAdd(index, number(1));
    index->addIncoming(next, builder_.GetInsertBlock());
    builder_.CreateCondBr(builder_.CreateICmpSLT(next, count), inside, after);
    builder_.SetInsertPoint(after);
  }

  /// A few elements interleave in as many vectors; more go in blocks of `lanes` elements.
  void emit_tile(llvm::Value* rows, llvm::Value* examples) {
    constexpr std::int64_t kInRegisters = 15;
    if (elements_ % 2 != 0 && elements_ <= kInRegisters && lanes_ > 1) return emit_rotated(rows, examples);
    if (elements_ <= std::min<std::int64_t>(4, lanes_ - 1)) return emit_interleaved(rows, examples);
    constexpr std::int64_t kUnrolled = 4;
    const std::int64_t blocks = elements_ / lanes_, rest = elements_ % lanes_;
    const auto emit_at = [&](llvm::Value* index, std::int64_t width) {
      llvm::Value* first = builder_.CreateMul(index, number(lanes_));
      emit_block(moved(rows, builder_.CreateMul(first, function_->getArg(2))),
                 moved(examples, builder_.CreateMul(first, number(size_))), width);
    };
    if (blocks > kUnrolled) loop(number(blocks), [&](llvm::Value* index) { emit_at(index, lanes_); });
    else
      for (std::int64_t index = 0; index < blocks; ++index) emit_at(number(index), lanes_);
    if (rest > 0) emit_at(number(blocks), rest);
  }

  llvm::Value* row(llvm::Value* rows, std::int64_t e) {
    return moved(rows, builder_.CreateMul(function_->getArg(2), number(e)));
  }
  llvm::Align row_alignment() const { return llvm::Align(static_cast<std::uint64_t>(lanes_ * size_)); }
  llvm::Align element_alignment() const { return llvm::Align(static_cast<std::uint64_t>(size_)); }
  llvm::Value* load(llvm::Value* address, std::int64_t count, llvm::Align alignment) {
    return builder_.CreateAlignedLoad(vector(count), address, alignment);
  }

  llvm::Value* shuffle(llvm::Value* a, llvm::Value* b, const std::vector<int>& mask) {
    return builder_.CreateShuffleVector(a, b, mask);
  }

  /// Lane i of the result is lane at(i) of the vectors one after the other.
  llvm::Value* selected(const Vectors& from, const std::function<std::int64_t(std::int64_t)>& at) {
    llvm::Value* result = llvm::PoisonValue::get(vector(lanes_));
    for (std::int64_t k = 0; k < static_cast<std::int64_t>(from.size()); ++k) {
      std::vector<int> mask;
      for (std::int64_t i = 0; i < lanes_; ++i)
        mask.push_back(static_cast<int>(at(i) / lanes_ == k ? lanes_ + at(i) % lanes_ : i));
      result = shuffle(result, from[static_cast<std::size_t>(k)], mask);
    }
    return result;
  }

  void emit_interleaved(llvm::Value* rows, llvm::Value* examples) {
    Vectors from;
    const bool to_rows = direction_ == Direction::examples_to_rows;
    const auto packed = [&](std::int64_t v) { return moved(examples, number(v * lanes_ * size_)); };
    for (std::int64_t v = 0; v < elements_; ++v)
      from.push_back(to_rows ? load(packed(v), lanes_, element_alignment())
                             : load(row(rows, v), lanes_, row_alignment()));
    for (std::int64_t v = 0; v < elements_; ++v) {
      if (to_rows) {
        llvm::Value* value = selected(from, [&](std::int64_t lane) { return lane * elements_ + v; });
        builder_.CreateAlignedStore(value, row(rows, v), row_alignment());
      } else {
        llvm::Value* value = selected(from, [&](std::int64_t i) {
          const std::int64_t place = v * lanes_ + i;
          return place % elements_ * lanes_ + place / elements_;
        });
        builder_.CreateAlignedStore(value, packed(v), element_alignment());
      }
    }
  }

  /// An odd number n of elements, coprime to the L lanes. Lane i of the j-th vector of
  /// examples holds element k = (L*j + i) mod n of example (L*j + i)/n. With m = L*j mod n
  /// as the number of that vector, k = m + i mod n: after one permutation of each row,
  /// lane i only has to move by i vectors, which takes log n blends of all vectors. All
  /// stores are of whole vectors.
  void emit_rotated(llvm::Value* rows, llvm::Value* examples) {
    const std::int64_t n = elements_;
    std::vector<std::int64_t> vector_of(static_cast<std::size_t>(n));
    for (std::int64_t j = 0; j < n; ++j) vector_of[static_cast<std::size_t>(lanes_ * j % n)] = j;
    const auto packed = [&](std::int64_t m) {
      return moved(examples, number(vector_of[static_cast<std::size_t>(m)] * lanes_ * size_));
    };
    const auto example_of = [&](std::int64_t k, std::int64_t i) {
      return (vector_of[static_cast<std::size_t>((k - i % n + n) % n)] * lanes_ + i) / n;
    };
    Vectors v;
    if (direction_ == Direction::rows_to_examples) {
      for (std::int64_t k = 0; k < n; ++k) {
        std::vector<int> lanes;
        for (std::int64_t i = 0; i < lanes_; ++i) lanes.push_back(static_cast<int>(example_of(k, i)));
        v.push_back(builder_.CreateShuffleVector(load(row(rows, k), lanes_, row_alignment()), lanes));
      }
      rotate(v, 1);
      for (std::int64_t m = 0; m < n; ++m)
        builder_.CreateAlignedStore(v[static_cast<std::size_t>(m)], packed(m), element_alignment());
      return;
    }
    for (std::int64_t m = 0; m < n; ++m) v.push_back(load(packed(m), lanes_, element_alignment()));
    rotate(v, -1);
    for (std::int64_t k = 0; k < n; ++k) {
      std::vector<int> lanes(static_cast<std::size_t>(lanes_));
      for (std::int64_t i = 0; i < lanes_; ++i)
        lanes[static_cast<std::size_t>(example_of(k, i))] = static_cast<int>(i);
      builder_.CreateAlignedStore(builder_.CreateShuffleVector(v[static_cast<std::size_t>(k)], lanes),
                                  row(rows, k), row_alignment());
    }
  }

  /// Lane i of vector m becomes that of vector m + sign*i.
  void rotate(Vectors& v, std::int64_t sign) {
    const auto n = static_cast<std::int64_t>(v.size());
    for (std::int64_t step = 1; step < std::min(n, lanes_); step *= 2) {
      std::vector<int> mask;
      for (std::int64_t i = 0; i < lanes_; ++i)
        mask.push_back(static_cast<int>(i % n & step ? lanes_ + i : i));
      const Vectors from = v;
      for (std::int64_t m = 0; m < n; ++m)
        v[static_cast<std::size_t>(m)] =
            shuffle(from[static_cast<std::size_t>(m)],
                    from[static_cast<std::size_t>((m + sign * step + n) % n)], mask);
    }
  }

  /// A square of `lanes` vectors, of which `width` rows matter: halves change places at
  /// distances 1, 2, 4, ... (Eklundh). What is poison folds away.
  void transpose(Vectors& v) {
    for (std::int64_t d = 1; d < lanes_; d *= 2) {
      std::vector<int> low, high;
      for (std::int64_t c = 0; c < lanes_; ++c) {
        low.push_back(static_cast<int>(c & d ? lanes_ + c - d : c));
        high.push_back(static_cast<int>(c & d ? lanes_ + c : c + d));
      }
      for (std::int64_t i = 0; i < lanes_; ++i) {
        if (i & d) continue;
        llvm::Value*& a = v[static_cast<std::size_t>(i)];
        llvm::Value*& b = v[static_cast<std::size_t>(i + d)];
        llvm::Value* first = shuffle(a, b, low);
        b = shuffle(a, b, high);
        a = first;
      }
    }
  }

  /// The first `width` lanes, or as many and poison behind them.
  llvm::Value* resized(llvm::Value* value, std::int64_t width, std::int64_t given) {
    if (width == given) return value;
    if (width == 1) return builder_.CreateExtractElement(value, std::uint64_t{0});
    llvm::Value* none = llvm::PoisonValue::get(vector(lanes_));
    if (given == 1) return builder_.CreateInsertElement(none, value, std::uint64_t{0});
    std::vector<int> mask;
    for (std::int64_t i = 0; i < width; ++i) mask.push_back(i < given ? static_cast<int>(i) : -1);
    return builder_.CreateShuffleVector(value, mask);
  }

  void emit_block(llvm::Value* rows, llvm::Value* examples, std::int64_t width) {
    Vectors v(static_cast<std::size_t>(lanes_), llvm::PoisonValue::get(vector(lanes_)));
    const auto example = [&](std::int64_t l) { return moved(examples, number(l * elements_ * size_)); };
    const bool to_rows = direction_ == Direction::examples_to_rows;
    for (std::int64_t i = 0; i < (to_rows ? lanes_ : width); ++i)
      v[static_cast<std::size_t>(i)] =
          to_rows ? resized(load(example(i), width, element_alignment()), lanes_, width)
                  : load(row(rows, i), lanes_, row_alignment());
    transpose(v);
    for (std::int64_t i = 0; i < (to_rows ? width : lanes_); ++i) {
      llvm::Value* value = v[static_cast<std::size_t>(i)];
      if (to_rows) builder_.CreateAlignedStore(value, row(rows, i), row_alignment());
      else builder_.CreateAlignedStore(resized(value, width, lanes_), example(i), element_alignment());
    }
  }

  llvm::Module& module_;
  llvm::IRBuilder<> builder_;
  std::int64_t lanes_, elements_;
  Direction direction_;
  std::int64_t size_;
  llvm::Type* scalar_ = nullptr;
  llvm::Function* function_ = nullptr;
};

}  // namespace

void emit_transposition(llvm::Module& module, DType dtype, int lanes, std::int64_t elements,
                        Direction direction, const std::string& name) {
  Emitter(module, dtype, lanes, elements, direction).run(name);
}

}  // namespace loipe::jit
