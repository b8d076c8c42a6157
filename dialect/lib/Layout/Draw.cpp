//===- Draw.cpp - A layout as a table -------------------------------------===//

#include "lowlp/Layout/LayoutText.h"

#include <algorithm>

using namespace lowlp;

/// The owners of an element as "0:1,4:1".
static std::string ownersText(const Layout &layout,
                              const std::vector<int64_t> &index) {
  Result<std::vector<Owner>> owners = layout.threadsHolding(index);
  std::string text;
  for (const Owner &owner : *owners)
    text += (text.empty() ? "" : ",") + std::to_string(owner.thread) + ":" +
            std::to_string(owner.local);
  return text;
}

Result<std::string> lowlp::drawText(const Layout &layout) {
  if (layout.rank() > 2)
    return Error{"only layouts of rank 1 and 2 can be drawn; found rank " +
                 std::to_string(layout.rank())};
  bool isRow = layout.rank() == 1;
  int64_t numRows = isRow ? 1 : layout.shape()[0];
  int64_t numColumns = layout.shape().back();

  // Row 0 and column 0 of the table hold the numbers of columns and rows.
  std::vector<std::vector<std::string>> table(1, {""});
  for (int64_t column = 0; column < numColumns; ++column)
    table[0].push_back(std::to_string(column));
  for (int64_t row = 0; row < numRows; ++row) {
    table.push_back({std::to_string(row)});
    for (int64_t column = 0; column < numColumns; ++column)
      table.back().push_back(ownersText(
          layout, isRow ? std::vector{column} : std::vector{row, column}));
  }

  std::vector<size_t> widths(numColumns + 1, 0);
  for (const std::vector<std::string> &cells : table)
    for (size_t k = 0; k < cells.size(); ++k)
      widths[k] = std::max(widths[k], cells[k].size());
  std::string text;
  for (const std::vector<std::string> &cells : table) {
    for (size_t k = 0; k < cells.size(); ++k)
      text += (k ? "  " : "") + std::string(widths[k] - cells[k].size(), ' ') +
              cells[k];
    text += "\n";
  }
  return text;
}
