// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/rust_reader.h"

#include <limits>

namespace ksym {
namespace {

bool IsLengthDigit(char c) { return c >= '0' && c <= '9'; }

bool IsLowerHexDigit(char c) {
  return IsLengthDigit(c) || (c >= 'a' && c <= 'f');
}

// 62 where it is no digit.
uint64_t Base62Digit(char c) {
  if (IsLengthDigit(c)) return static_cast<uint64_t>(c - '0');
  if (c >= 'a' && c <= 'z') return static_cast<uint64_t>(c - 'a') + 10;
  if (c >= 'A' && c <= 'Z') return static_cast<uint64_t>(c - 'A') + 36;
  return 62;
}

}  // namespace

char RustReader::Next() {
  const char c = Peek();
  if (c == '\0' || steps_ == 0) {
    Fail();
    return '\0';
  }
  --steps_;
  ++at_;
  return c;
}

bool RustReader::Eat(char tag) {
  if (Peek() != tag) return false;
  return Next() == tag;
}

size_t RustReader::BackReference() {
  const size_t tag_at = at_ - 1;
  const uint64_t target = Base62();
  if (target >= tag_at) Fail();
  return failed_ ? 0 : target;
}

size_t RustReader::FollowBackReference() {
  const size_t target = BackReference();
  const size_t back = at_;
  if (!failed_) at_ = target;
  return back;
}

uint64_t RustReader::Base62() {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max() / 62 - 2;
  if (Eat('_')) return 0;
  uint64_t value = 0;
  while (!Eat('_')) {
    const uint64_t digit = Base62Digit(Next());
    if (digit == 62 || value > kMax) Fail();
    if (failed_) return 0;
    value = value * 62 + digit;
  }
  return value + 1;
}

uint64_t RustReader::OptionalBase62(char tag) {
  return Eat(tag) ? Base62() + 1 : 0;
}

std::string_view RustReader::HexDigits() {
  const size_t begin = at_;
  while (IsLowerHexDigit(Peek()) && !failed_) Next();
  const std::string_view digits = text_.substr(begin, at_ - begin);
  if (digits.empty() || !Eat('_')) Fail();
  return digits;
}

size_t RustReader::Decimal() {
  if (!IsLengthDigit(Peek())) Fail();
  if (failed_ || Eat('0')) return 0;
  size_t value = 0;
  while (IsLengthDigit(Peek()) && !failed_) {
    value = value * 10 + static_cast<size_t>(Next() - '0');
    if (value > text_.size()) Fail();
  }
  return value;
}

RustReader::Identifier RustReader::TakeIdentifier() {
  Identifier name;
  name.is_punycode = Eat('u');
  const size_t size = Decimal();
  // Stands between the length and bytes that begin with a digit or "_".
  Eat('_');
  if (failed_ || size > text_.size() - at_) {
    Fail();
    return {};
  }
  name.bytes = text_.substr(at_, size);
  at_ += size;
  return name;
}

}  // namespace ksym
