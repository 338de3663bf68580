// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace ksym {
namespace {

// "text" as it is, elements as <tag|field|field>.
std::vector<std::string> Pieces(MarkupParser& parser, std::string_view line) {
  std::vector<std::string> pieces;
  parser.BeginLine(line);
  MarkupNode node;
  while (parser.Next(node)) {
    if (!node.is_element()) {
      pieces.emplace_back(node.text);
      continue;
    }
    std::string piece = "<" + std::string(node.tag);
    for (const auto field : node.fields) piece += "|" + std::string(field);
    pieces.push_back(piece + ">");
  }
  return pieces;
}

std::vector<std::string> Pieces(std::string_view line) {
  MarkupParser parser;
  return Pieces(parser, line);
}

using List = std::vector<std::string>;

TEST(MarkupParserTest, CutsTextAndElements) {
  // Text stays around elements, fields may be empty.
  EXPECT_EQ(Pieces("a {{{bt:0:0x1:pc}}} b{{{reset}}}\n"),
            List({"a ", "<bt|0|0x1|pc>", " b", "<reset>", "\n"}));
  EXPECT_EQ(Pieces("{{{a:}}}{{{a::b:}}}"), List({"<a|>", "<a||b|>"}));
}

TEST(MarkupParserTest, WithoutTagItIsText) {
  // Braces in ordinary text need no escapes.
  for (const char* text : {"{{{}}}", "{{{:a}}}", "{{{a", "}}}", "{{a}}", "{"}) {
    EXPECT_EQ(Pieces(text), List({text}));
  }
  EXPECT_EQ(Pieces("{{{}}}{{{a}}}"), List({"{{{}}}", "<a>"}));
  EXPECT_EQ(Pieces("{{{{a}}}}"), List({"<{a>", "}"}));
}

TEST(MarkupParserTest, ControlSequencesStandAlone) {
  // Only those of the specification; others are part of the text.
  EXPECT_EQ(Pieces("a\033[1mb\033[37m\033[0m"),
            List({"a", "\033[1m", "b", "\033[37m", "\033[0m"}));
  for (const char* text :
       {"\033[2m", "\033[38m", "\033[3m", "\033[", "\033", "\033[00m",
        "\033[1;31m", "\033[31", "\033[39m", "\033[3/m"}) {
    EXPECT_EQ(Pieces(text), List({text}));
  }
  EXPECT_EQ(Pieces("{{{a:\033[1m}}}"), List({"<a|\033[1m>"}));
}

TEST(MarkupParserTest, MultiLineElementsAreWhole) {
  // They end in a later line, and what follows is parsed as usual.
  MarkupParser parser;
  EXPECT_EQ(Pieces(parser, "x {{{hexdict:a: 1\n"), List({"x "}));
  EXPECT_TRUE(parser.in_element());
  EXPECT_EQ(Pieces(parser, "b: 2 {{{pc\n"), List());
  EXPECT_EQ(Pieces(parser, "}}} {{{pc:1}}}\n"),
            List({"<hexdict|a| 1\nb| 2 {{{pc\n>", " ", "<pc|1>", "\n"}));
  EXPECT_FALSE(parser.in_element());
}

TEST(MarkupParserTest, OtherElementsEndOnTheirLine) {
  // A "{{{" whose tag may not span lines is text.
  MarkupParser parser;
  EXPECT_EQ(Pieces(parser, "{{{pc:1\n"), List({"{{{pc:1\n"}));
  EXPECT_EQ(Pieces(parser, "{{{hexdict\n"), List({"{{{hexdict\n"}));
  EXPECT_EQ(Pieces(parser, "}}}\n"), List({"}}}\n"}));
}

TEST(MarkupParserTest, MultiLineElementsAreBounded) {
  // At the bound they are an element, one byte later text.
  for (const size_t bound : {20u, 19u}) {
    MarkupParser parser({"hexdict"}, bound);
    EXPECT_EQ(Pieces(parser, "{{{hexdict:abcd\n"), List());
    const auto pieces = Pieces(parser, "e}}}");
    EXPECT_EQ(pieces, bound == 20 ? List({"<hexdict|abcd\ne>"})
                                  : List({"{{{hexdict:abcd\n", "e}}}"}));
    EXPECT_EQ(parser.oversized_elements(), bound == 20 ? 0u : 1u);
  }
}

}  // namespace
}  // namespace ksym
