//===- LayoutTextTest.cpp - Layouts as text -------------------------------===//

#include "lowlp/Layout/LayoutText.h"
#include "lowlp/Layout/LayoutAlgebra.h"

#include <gtest/gtest.h>

using namespace lowlp;

static std::string reprint(const std::string &text) {
  Result<Layout> layout = parseLayout(text);
  return layout ? str(*layout) : layout.error();
}

TEST(LayoutText, PrintsWhatThePapersWrite) {
  // Layouts of Tilus, sections 4 and 6.2 and figure 14, in canonical form.
  for (const char *text : {
           "local(2, 1).spatial(8, 4).local(1, 2)",
           "local(2, 1).column_spatial(4, 8).local(2, 1)",
           "column_local(2, 2).spatial(8, 4).local(1, 2)",
           "spatial(1, 4).local(2, 1).spatial(8, 4).local(1, 2)",
           "spatial(4).local(3).spatial(32)",
           "local(3).spatial(32)",
           "reduce(spatial(1, 1, 4), dims=[2]).column_local(2, 8)"
           ".spatial(8, 4).local(1, 2)",
           "spatial(2, 3).local(3, 2)",
           "spatial(16, 8).local(1, 4)",
           "local(3, 1536)",
       })
    EXPECT_EQ(reprint(text), text);
}

TEST(LayoutText, MergesFactors) {
  EXPECT_EQ(reprint("spatial(1, 4).local(4, 1).local(2, 1)"
                    ".column_spatial(4, 8).local(2, 1)"),
            "local(8, 1).column_spatial(4, 32).local(2, 1)");
  EXPECT_EQ(reprint("local(1).local(2).spatial(1).local(3)"), "local(6)");
}

TEST(LayoutText, PrintsIdentitiesAndReplicas) {
  EXPECT_EQ(str(Layout::local({1})), "local(1)");
  EXPECT_EQ(str(Layout::spatial({1, 1, 1})), "local(1, 1, 1)");
  EXPECT_EQ(reprint("reduce(spatial(2, 3), dims=[1])"),
            "spatial(2).reduce(spatial(1, 3), dims=[1])");
}

TEST(LayoutText, PrintsWhatIsNoProduct) {
  // The row's outer digit is the inner digit of t.
  Layout layout = *reshape(Layout::columnSpatial({2, 3}), {6});
  EXPECT_EQ(str(layout), "column_spatial(2, 3).reshape(6)");
  EXPECT_EQ(reprint("column_spatial(2, 3).reshape(6)"), str(layout));
}

TEST(LayoutText, ParsesChanges) {
  EXPECT_EQ(reprint("local(2, 3).permute(1, 0)"), "column_local(3, 2)");
  EXPECT_EQ(reprint("local(1, 3).squeeze(0).spatial(2)"),
            "local(3).spatial(2)");
  EXPECT_EQ(reprint("local(3).unsqueeze(0)"), "local(1, 3)");
  EXPECT_EQ(reprint("local(3).broadcast(2)"), "local(1, 3)");
  EXPECT_EQ(reprint("local(3, 2).reduce(dims=[0])"), "local(2)");
  EXPECT_EQ(reprint("reduce(local(3, 2), dims=[0], keep_dims=True)"),
            "local(1, 2)");
  EXPECT_EQ(reprint("local(2).reduce(spatial(2, 3).local(1, 2), dims=[1])"),
            "local(2).spatial(2).reduce(spatial(1, 3), dims=[1])");
}

TEST(LayoutText, ParsesOtherNamesAndSpace) {
  EXPECT_EQ(reprint(" spatial( 16,8 ) . repeat(1,4)\n"),
            "spatial(16, 8).local(1, 4)");
  EXPECT_EQ(reprint("column_repeat(2, 3)"), "column_local(2, 3)");
}

TEST(LayoutText, RefusesBadText) {
  auto error = [](const std::string &text) {
    return parseLayout(text).error();
  };
  EXPECT_EQ(error(""), "expected local, spatial, column_local, column_spatial "
                       "or reduce at position 0 of the layout ''; found the "
                       "end of the text");
  EXPECT_EQ(error("local(2"), "expected ',' or ')' at position 7 of the layout "
                              "'local(2'; found the end of the text");
  EXPECT_EQ(error("local(x)"), "expected an integer at position 6 of the "
                               "layout 'local(x)'; found 'x'");
  EXPECT_EQ(error("local(2)spatial(2)"),
            "expected '.' or the end of the layout at position 8 of the "
            "layout 'local(2)spatial(2)'; found 'spatial'");
  EXPECT_EQ(error("reshape(2)"),
            "expected local, spatial, column_local, column_spatial or reduce "
            "at position 0 of the layout 'reshape(2)'; found 'reshape'");
  EXPECT_EQ(error("local(2).swirl(2)"),
            "expected local, spatial, column_local, column_spatial, reduce, "
            "reshape, permute, squeeze, unsqueeze or broadcast at position 9 "
            "of the layout 'local(2).swirl(2)'; found 'swirl'");
  EXPECT_EQ(error("local(0)"), "extents must be at least 1; found (0), in the "
                               "layout 'local(0)'");
  EXPECT_EQ(error("local(12345678901234567890)"),
            "expected an integer at position 6 of the layout "
            "'local(12345678901234567890)'; found '12345678901234567890'");
  EXPECT_EQ(error("reduce(local(2), dim=[0])"),
            "expected 'dims=' at position 17 of the layout "
            "'reduce(local(2), dim=[0])'; found 'dim'");
  EXPECT_EQ(error("reduce(local(2), dims=[0], keep_dims=1)"),
            "expected True or False at position 37 of the layout "
            "'reduce(local(2), dims=[0], keep_dims=1)'; found '1'");
  EXPECT_EQ(error("local(2).broadcast(1, 2)"),
            "expected one rank in broadcast(...) at position 24 of the layout "
            "'local(2).broadcast(1, 2)'; found the end of the text");
}

TEST(LayoutText, RefusesDeepNesting) {
  std::string text;
  for (int k = 0; k < 100000; ++k)
    text += "reduce(";
  EXPECT_NE(parseLayout(text).error().find("at most 64 nested reductions"),
            std::string::npos);
}

TEST(LayoutText, Draws) {
  // Tilus, figure 4.
  EXPECT_EQ(*drawText(Layout::local({2, 3})), "     0    1    2\n"
                                              "0  0:0  0:1  0:2\n"
                                              "1  0:3  0:4  0:5\n");
  EXPECT_EQ(*drawText(*reduce(Layout::spatial({2, 3}), {0})),
            "         0        1        2\n"
            "0  0:0,3:0  1:0,4:0  2:0,5:0\n");
  EXPECT_EQ(drawText(Layout::local({1, 1, 1})).error(),
            "only layouts of rank 1 and 2 can be drawn; found rank 3");
}
