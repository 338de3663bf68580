// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_printer.h"

#include <array>
#include <charconv>

namespace ksym {
namespace {

constexpr char kGreen = '2';
constexpr char kBlue = '4';
constexpr char kCyan = '6';

std::string_view Format(uint64_t value, int base, std::array<char, 24>& room) {
  char* const end = room.data() + room.size();
  const char* stop = std::to_chars(room.data(), end, value, base).ptr;
  return {room.data(), static_cast<size_t>(stop - room.data())};
}

}  // namespace

void MarkupPrinter::Value(std::string_view text) {
  if (color_ == MarkupColor::kOff) {
    out_ += text;
    return;
  }
  SetForeground(kGreen);
  out_ += text;
  Highlight();
}

void MarkupPrinter::Number(uint64_t value) {
  std::array<char, 24> room = {};
  Value(Format(value, 10, room));
}

void MarkupPrinter::Hex(uint64_t value) {
  std::array<char, 24> room = {};
  std::string text = "0x";
  text += Format(value, 16, room);
  Value(text);
}

void MarkupPrinter::SetForeground(char digit) {
  out_ += bold_ ? "\033[0;1;3" : "\033[0;3";
  out_ += digit;
  out_ += 'm';
}

void MarkupPrinter::Highlight() {
  if (color_ == MarkupColor::kOff) return;
  SetForeground(foreground_ == kBlue ? kCyan : kBlue);
}

void MarkupPrinter::Restore() {
  if (color_ == MarkupColor::kOff) return;
  if (foreground_ != 0) {
    SetForeground(foreground_);
    return;
  }
  out_ += "\033[0m";
  if (bold_) out_ += "\033[1m";
}

bool MarkupPrinter::TryControlSequence(std::string_view text) {
  if (!text.starts_with("\033[") || !text.ends_with('m')) return false;
  if (text == "\033[0m") {
    ResetState();
    return true;
  }
  if (text == "\033[1m") {
    bold_ = true;
    if (color_ == MarkupColor::kOn) out_ += text;
    return true;
  }
  const bool is_color =
      text.size() == 5 && text[2] == '3' && text[3] >= '0' && text[3] <= '7';
  if (!is_color) return false;
  foreground_ = text[3];
  // Not bold, even in bold text, until the next element ends.
  if (color_ == MarkupColor::kOn) (out_ += "\033[0;3") += text.substr(3);
  return true;
}

void MarkupPrinter::ResetState() {
  if (in_default_state()) return;
  foreground_ = 0;
  bold_ = false;
  if (color_ == MarkupColor::kOn) out_ += "\033[0m";
}

void MarkupPrinter::RawElement(const MarkupNode& element) {
  Highlight();
  Text("[[[");
  Value(element.tag);
  for (const std::string_view field : element.fields) {
    Text(":");
    Value(field);
  }
  Text("]]]");
  Restore();
}

}  // namespace ksym
