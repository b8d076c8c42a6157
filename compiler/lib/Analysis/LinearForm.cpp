//===- LinearForm.cpp - how far apart two numbers are ---------------------===//
#include "lowlp/Analysis/LinearForm.h"

#include "lowlp/IR/Lowlp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace lowlp;

static std::optional<uint64_t> getConstant(Value value) {
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)))
    return std::nullopt;
  return static_cast<uint64_t>(number.getSExtValue());
}

LinearForm LinearForm::of(Value index, int depth) {
  LinearForm form;
  Operation *op = depth > 0 ? index.getDefiningOp() : nullptr;
  std::optional<uint64_t> factor;
  if (op && op->getNumOperands() == 2)
    factor = getConstant(op->getOperand(1));
  if (std::optional<uint64_t> constant = getConstant(index)) {
    form.constant = *constant;
  } else if (isa_and_nonnull<arith::AddIOp, arith::SubIOp>(op)) {
    form = of(op->getOperand(0), depth - 1);
    form.add(of(op->getOperand(1), depth - 1), isa<arith::AddIOp>(op) ? 1 : -1);
  } else if (auto promise = dyn_cast_if_present<AssumeDivisibleOp>(op)) {
    form = of(promise.getValue(), depth - 1);
  } else if (factor && isa<arith::MulIOp>(op)) {
    form.add(of(op->getOperand(0), depth - 1), *factor);
  } else if (factor && isa<arith::DivSIOp, arith::DivUIOp>(op)) {
    form.divide(index, of(op->getOperand(0), depth - 1), *factor);
  } else {
    form.terms[index] = 1;
  }
  return form;
}

void LinearForm::add(const LinearForm &other, uint64_t factor) {
  constant += factor * other.constant;
  for (auto [value, times] : other.terms)
    terms[value] += factor * times;
}

/// Of 32 bits as they are, without a sign, or what a loop counts from 0 on up
/// to such a number.
static bool isUnsigned32(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    if (!loop || argument != loop.getInductionVar())
      return false;
    std::optional<uint64_t> begin = getConstant(loop.getLowerBound());
    std::optional<uint64_t> end = getConstant(loop.getUpperBound());
    return begin && end && std::max(*begin, *end) < uint64_t(1) << 32;
  }
  auto cast = value.getDefiningOp<arith::IndexCastUIOp>();
  return cast && cast.getIn().getType().isInteger(32);
}

bool LinearForm::isSmall() const {
  // A few times 2^56 in all.
  constexpr uint64_t most = uint64_t(1) << 24;
  return terms.size() <= 16 && constant <= most &&
         llvm::all_of(terms, [](const auto &term) {
           return term.second <= most &&
                  (term.second == 0 || isUnsigned32(term.first));
         });
}

void LinearForm::divide(Value quotient, const LinearForm &index,
                        uint64_t divisor) {
  auto isMultiple = [&](uint64_t number) { return number % divisor == 0; };
  bool isExact = divisor != 0 && static_cast<int64_t>(divisor) > 0 &&
                 index.isSmall() && isMultiple(index.constant) &&
                 llvm::all_of(index.terms, [&](const auto &term) {
                   return isMultiple(term.second);
                 });
  if (!isExact) {
    terms[quotient] = 1;
    return;
  }
  constant = index.constant / divisor;
  for (auto [value, times] : index.terms)
    terms[value] = times / divisor;
}

std::optional<int64_t> LinearForm::minus(const LinearForm &other) const {
  LinearForm difference = *this;
  difference.add(other, -1);
  bool isConstant = llvm::all_of(
      difference.terms, [](const auto &term) { return term.second == 0; });
  if (!isConstant)
    return std::nullopt;
  return static_cast<int64_t>(difference.constant);
}
