// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ksym {

// The parts of a name of Rust's v0 scheme: tags of one byte,
// numbers, identifiers. After a failure there is nothing more to read, so that
// a parser may look at failed() when it has time.
class RustReader {
 public:
  // Bytes that are read of one name, again and again where back references
  // lead to them; those of identifiers do not count. The name that takes most
  // in Rust's own toolchain takes 9,415.
  static constexpr size_t kMaxSteps = 65536;

  struct Identifier {
    std::string_view bytes;
    bool is_punycode = false;
  };

  // `text` without "_R" and suffix; it must outlive the reader.
  explicit RustReader(std::string_view text) : text_(text) {}

  bool failed() const { return failed_; }
  void Fail() { failed_ = true; }
  bool at_end() const { return at_ == text_.size(); }

  // 0 at the end and after a failure.
  char Peek() const { return failed_ || at_end() ? '\0' : text_[at_]; }
  // The end is a failure here.
  char Next();
  bool Eat(char tag);

  // Goes to where the number that comes next points, which must lie before its
  // tag, and returns the place to go back to by ReturnTo().
  size_t FollowBackReference();
  // Passes over such a number.
  void SkipBackReference() { BackReference(); }
  void ReturnTo(size_t at) { at_ = at; }

  // "_" is 0, "0_" is 1, "Z_" is 62.
  uint64_t Base62();
  // 0 without the tag, else 1 and the number behind it.
  uint64_t OptionalBase62(char tag);
  // Digits up to "_", which is passed; at least one.
  std::string_view HexDigits();
  Identifier TakeIdentifier();

 private:
  size_t BackReference();
  // A length: decimal, without leading zeros.
  size_t Decimal();

  std::string_view text_;
  size_t at_ = 0;
  size_t steps_ = kMaxSteps;
  bool failed_ = false;
};

}  // namespace ksym
