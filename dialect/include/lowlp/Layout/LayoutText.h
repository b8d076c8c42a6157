//===- LayoutText.h - Layouts as text ---------------------------*- C++ -*-===//
//
// Layouts are written as the Tilus paper writes them:
//
//   layout  ::= factor { '.' (factor | change) }
//   factor  ::= name '(' ints ')'
//             | 'reduce' '(' layout ',' 'dims' '=' '[' ints ']'
//                        [ ',' 'keep_dims' '=' bool ] ')'
//   name    ::= 'local' | 'spatial' | 'column_local' | 'column_spatial'
//             | 'repeat' | 'column_repeat'     (other names for local ones)
//   change  ::= ('reshape' | 'permute' | 'squeeze' | 'unsqueeze'
//                | 'broadcast') '(' ints ')'
//             | 'reduce' '(' 'dims' '=' '[' ints ']' [...] ')'
//
// A dot followed by a factor composes; a change applies to all that stands to
// the left of it. White space is free.
//
//===----------------------------------------------------------------------===//

#ifndef LOWLP_LAYOUT_LAYOUTTEXT_H
#define LOWLP_LAYOUT_LAYOUTTEXT_H

#include "lowlp/Layout/Layout.h"

#include <string>
#include <string_view>

namespace lowlp {

/// The layout as text: the product with the fewest factors, row-major ones
/// preferred; or, where the layout is no product, a product followed by a
/// `.reshape(...)`. Ensures: `parseLayout(str(l))` is `l`, and equal layouts
/// have equal text.
std::string str(const Layout &layout);

/// Reads a layout. Fails with what was found, what was expected and the
/// position when the text does not follow the grammar, and with the message of
/// the operation when one of them fails.
Result<Layout> parseLayout(std::string_view text);

/// A table of the tile with `thread:local` in each cell, all owners of it being
/// listed (Tilus, figure 4). Fails unless the rank is 1 or 2.
Result<std::string> drawText(const Layout &layout);

} // namespace lowlp

#endif // LOWLP_LAYOUT_LAYOUTTEXT_H
