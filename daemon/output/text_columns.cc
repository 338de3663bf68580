// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/text_columns.h"

#include <algorithm>

namespace profd {
namespace {

constexpr std::string_view kCut = "..";

bool IsContinuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

size_t ColumnsOf(char lead) {
  if (IsContinuation(lead)) return 0;
  // Wide characters begin at U+1100, whose first byte this is. Some narrow ones
  // count as wide, which makes no line too long.
  return static_cast<unsigned char>(lead) < 0xe1 ? 1 : 2;
}

// The text's end of at most so many columns, of whole characters.
std::string_view EndOf(std::string_view text, size_t columns) {
  size_t begin = text.size();
  size_t used = 0;
  for (size_t i = text.size(); i-- > 0;) {
    used += ColumnsOf(text[i]);
    if (used > columns) break;
    if (!IsContinuation(text[i])) begin = i;
  }
  return text.substr(begin);
}

// Whether the bracket at `i` is part of a name and holds no arguments:
// "operator<", "operator()", "operator->", "(anonymous namespace)".
bool IsOfName(std::string_view name, size_t i) {
  const std::string_view before = name.substr(0, i);
  if (before.ends_with("operator")) return true;
  if (name[i] == '(') {
    return name.substr(i).starts_with("(anonymous namespace)");
  }
  for (const std::string_view end :
       {"operator<", "operator>", "operator-", "operator<="}) {
    if (before.ends_with(end)) return true;
  }
  return false;
}

}  // namespace

size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  for (const char c : text) columns += ColumnsOf(c);
  return columns;
}

std::string WithoutArguments(std::string_view name) {
  std::string out;
  size_t depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool opens = c == '<' || c == '(';
    const bool closes = c == '>' || c == ')';
    if (depth == 0 && (opens || closes) && IsOfName(name, i)) {
      const size_t end = c == '(' ? name.find(')', i) : i;
      out += name.substr(i, end - i + 1);
      if (end == std::string_view::npos) return std::string(name);
      i = end;
      continue;
    }
    if (closes && depth == 0) return std::string(name);
    if (closes) --depth;
    if (depth == 0) out += c;
    if (opens) ++depth;
  }
  return depth == 0 ? out : std::string(name);
}

std::string FitName(std::string_view name, size_t columns) {
  if (ColumnsOf(name) <= columns) return std::string(name);
  std::string shorter = WithoutArguments(name);
  if (ColumnsOf(shorter) <= columns) return shorter;
  const std::string_view mark = kCut.substr(0, std::min(columns, kCut.size()));
  return std::string(mark) + std::string(EndOf(shorter, columns - mark.size()));
}

std::string CutLine(std::string_view line, size_t columns) {
  if (ColumnsOf(line) <= columns) return std::string(line);
  size_t used = 0;
  size_t end = 0;
  for (; end < line.size(); ++end) {
    used += ColumnsOf(line[end]);
    if (used + kCut.size() > columns) break;
  }
  return std::string(line.substr(0, end)) +
         std::string(kCut.substr(0, std::min(columns, kCut.size())));
}

void AppendPadded(std::string_view text, size_t columns, std::string& out) {
  const size_t used = ColumnsOf(text);
  out += text;
  out.append(columns - std::min(columns, used), ' ');
}

}  // namespace profd
