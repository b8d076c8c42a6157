//===- Chunks.cpp - a part of a view in chunks of neighbours --------------===//
#include "Chunks.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace lowlp;

SmallVector<Value> lowlp::splitChunk(OpBuilder &builder, Location loc,
                                     Value chunk, ArrayRef<int64_t> chunks) {
  SmallVector<Value> coordinates(chunks.size());
  for (int64_t d = static_cast<int64_t>(chunks.size()) - 1; d >= 0; --d) {
    Value extent = arith::ConstantIndexOp::create(builder, loc, chunks[d]);
    coordinates[d] =
        d == 0
            ? chunk
            : arith::RemUIOp::create(builder, loc, chunk, extent).getResult();
    chunk = arith::DivUIOp::create(builder, loc, chunk, extent);
  }
  return coordinates;
}

SmallVector<Value> lowlp::addChunk(OpBuilder &builder, Location loc,
                                   ValueRange offsets,
                                   ArrayRef<Value> coordinates, int64_t width) {
  SmallVector<Value> index(offsets);
  size_t first = index.size() - coordinates.size();
  for (auto [d, coordinate] : llvm::enumerate(coordinates)) {
    Value part = coordinate;
    if (d + 1 == coordinates.size())
      part = arith::MulIOp::create(
          builder, loc, part,
          arith::ConstantIndexOp::create(builder, loc, width));
    Value &whole = index[first + d];
    whole = arith::AddIOp::create(builder, loc, whole, part);
  }
  return index;
}

void lowlp::enterFirstThread(OpBuilder &builder, Location loc, int64_t first) {
  for (Operation *op = builder.getInsertionBlock()->getParentOp(); op;
       op = op->getParentOp())
    if (isa<FirstThreadOp, ProducerWarpOp>(op) ||
        op->hasAttr(kOneThreadAttrName))
      return;
  Value thread = gpu::ThreadIdOp::create(builder, loc, gpu::Dimension::x);
  Value number = arith::ConstantIndexOp::create(builder, loc, first);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        thread, number);
  auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElse=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
}
