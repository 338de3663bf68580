// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/rust_v0.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "ksym/demangle/demangle.h"
#include "ksym/demangle/punycode.h"
#include "ksym/demangle/rust_constants.h"
#include "ksym/demangle/rust_reader.h"

namespace ksym {
namespace {

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsNameByte(char c) {
  return IsLower(c) || IsUpper(c) || (c >= '0' && c <= '9') || c == '_';
}

// Types of one letter; empty where there is none.
std::string_view BasicType(char tag) {
  constexpr std::array<std::string_view, 26> kTypes = {
      "i8",    "bool", "char", "f64", "str",  "f32",  "",    "u8", "isize",
      "usize", "",     "i32",  "u32", "i128", "u128", "_",   "",   "",
      "i16",   "u16",  "()",   "...", "",     "i64",  "u64", "!"};
  return IsLower(tag) ? kTypes[static_cast<size_t>(tag - 'a')] : "";
}

// Types that one letter stands for.
bool IsSigned(char type) { return std::string_view("aslxni").contains(type); }
bool HasConstants(char type) {
  return IsSigned(type) || std::string_view("htmyojbc").contains(type);
}

// How generic arguments are written: "f::<i32>" of a value, "S<i32>" of a type.
enum class Generics { kOfValue, kOfType };

// Recursive descent. Bytes that are passed over (`skipping_`) cost no more than
// their number, because back references are not followed then; else what is
// written and RustReader bound the time, kMaxRustDepth the stack.
class RustV0 {
 public:
  explicit RustV0(std::string_view text) : reader_(text) {
    out_.reserve(2 * text.size());
  }

  // Empty where the text is not valid.
  std::string Demangle();

 private:
  // One more of what is within each other, as long as it lives.
  class Level {
   public:
    explicit Level(RustV0& name) : name_(name) {
      if (++name_.depth_ > kMaxRustDepth) name_.reader_.Fail();
    }
    ~Level() { --name_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    RustV0& name_;
  };

  void Path(Generics generics);
  void NestedPath(Generics generics);
  void ImplOwner(Generics generics);
  void SelfType(bool has_trait);
  void GenericArguments();
  void GenericArgument();

  void Type();
  void Pointer(std::string_view sign, std::string_view qualifier);
  void Tuple();
  void Function();
  void Abi();
  void TraitObject();
  void TraitBound();
  // True where the trait's "<" is still open, for associated types.
  bool OpenTrait();

  void Constant();

  void Binder();
  void PrintLifetime(uint64_t index);
  void PrintIdentifier(const RustReader::Identifier& name);
  void PrintNumber(uint64_t value);
  void Print(std::string_view text);

  // Items up to "E"; returns how many.
  template <typename Item>
  size_t List(std::string_view separator, Item item) {
    size_t count = 0;
    while (!reader_.failed() && !reader_.Eat('E')) {
      if (count++ > 0) Print(separator);
      item();
    }
    return count;
  }

  // Reads again what a number behind "B" points to.
  template <typename Item>
  void Again(Item item) {
    if (skipping_) {
      reader_.SkipBackReference();
      return;
    }
    const size_t back = reader_.FollowBackReference();
    if (reader_.failed()) return;
    item();
    reader_.ReturnTo(back);
  }

  RustReader reader_;
  std::string out_;
  size_t depth_ = 0;
  // Those that enclosing binders, "for<'a, 'b>", have introduced.
  uint64_t bound_lifetimes_ = 0;
  bool skipping_ = false;
};

std::string RustV0::Demangle() {
  Path(Generics::kOfValue);
  if (!reader_.failed() && !reader_.at_end()) {
    skipping_ = true;
    Path(Generics::kOfType);  // the crate that has instantiated it
  }
  return reader_.failed() || !reader_.at_end() ? std::string()
                                               : std::move(out_);
}

void RustV0::Path(Generics generics) {
  const Level level(*this);
  const char tag = reader_.Next();
  switch (tag) {
    case 'C':
      reader_.OptionalBase62('s');
      PrintIdentifier(reader_.TakeIdentifier());
      break;
    case 'N':
      NestedPath(generics);
      break;
    case 'M':
    case 'X':
      ImplOwner(generics);
      SelfType(tag == 'X');
      break;
    case 'Y':
      SelfType(true);
      break;
    case 'I':
      Path(generics);
      if (generics == Generics::kOfValue) Print("::");
      GenericArguments();
      Print(">");
      break;
    case 'B':
      Again([&] { Path(generics); });
      break;
    default:
      reader_.Fail();
  }
}

void RustV0::NestedPath(Generics generics) {
  const char space = reader_.Next();
  if (!IsLower(space) && !IsUpper(space)) reader_.Fail();
  if (reader_.failed()) return;
  Path(generics);
  const uint64_t disambiguator = reader_.OptionalBase62('s');
  const RustReader::Identifier name = reader_.TakeIdentifier();
  // Lower-case namespaces are the compiler's own affair.
  if (IsLower(space)) {
    if (!name.bytes.empty()) Print("::");
    PrintIdentifier(name);
    return;
  }
  Print("::{");
  Print(space == 'C'   ? "closure"
        : space == 'S' ? "shim"
                       : std::string_view(&space, 1));
  if (!name.bytes.empty()) Print(":");
  PrintIdentifier(name);
  Print("#");
  PrintNumber(disambiguator);
  Print("}");
}

// Where an implementation is; its type says enough.
void RustV0::ImplOwner(Generics generics) {
  const bool was_skipping = std::exchange(skipping_, true);
  reader_.OptionalBase62('s');
  Path(generics);
  skipping_ = was_skipping;
}

void RustV0::SelfType(bool has_trait) {
  Print("<");
  Type();
  if (has_trait) {
    Print(" as ");
    Path(Generics::kOfType);
  }
  Print(">");
}

// Without ">".
void RustV0::GenericArguments() {
  Print("<");
  List(", ", [this] { GenericArgument(); });
}

void RustV0::GenericArgument() {
  if (reader_.Eat('L')) {
    PrintLifetime(reader_.Base62());
  } else if (reader_.Eat('K')) {
    Constant();
  } else {
    Type();
  }
}

void RustV0::Type() {
  const Level level(*this);
  if (const std::string_view basic = BasicType(reader_.Peek());
      !basic.empty()) {
    reader_.Next();
    Print(basic);
    return;
  }
  switch (reader_.Peek()) {
    case 'R':
      return Pointer("&", "");
    case 'Q':
      return Pointer("&", "mut ");
    case 'P':
      return Pointer("*", "const ");
    case 'O':
      return Pointer("*", "mut ");
    case 'A':
    case 'S': {
      const bool has_length = reader_.Next() == 'A';
      Print("[");
      Type();
      if (has_length) {
        Print("; ");
        Constant();
      }
      return Print("]");
    }
    case 'T':
      return Tuple();
    case 'F':
      return Function();
    case 'D':
      return TraitObject();
    case 'B':
      reader_.Next();
      return Again([this] { Type(); });
    default:
      return Path(Generics::kOfType);
  }
}

void RustV0::Pointer(std::string_view sign, std::string_view qualifier) {
  reader_.Next();
  Print(sign);
  if (sign == "&" && reader_.Eat('L')) {
    const uint64_t lifetime = reader_.Base62();
    if (lifetime > 0) {
      PrintLifetime(lifetime);
      Print(" ");
    }
  }
  Print(qualifier);
  Type();
}

void RustV0::Tuple() {
  reader_.Next();
  Print("(");
  if (List(", ", [this] { Type(); }) == 1) Print(",");
  Print(")");
}

void RustV0::Function() {
  reader_.Next();
  const uint64_t outer_lifetimes = bound_lifetimes_;
  Binder();
  if (reader_.Eat('U')) Print("unsafe ");
  if (reader_.Eat('K')) Abi();
  Print("fn(");
  List(", ", [this] { Type(); });
  Print(")");
  if (!reader_.Eat('u')) {
    Print(" -> ");
    Type();
  }
  bound_lifetimes_ = outer_lifetimes;
}

void RustV0::Abi() {
  Print("extern \"");
  if (reader_.Eat('C')) {
    Print("C");
  } else {
    const RustReader::Identifier name = reader_.TakeIdentifier();
    if (name.is_punycode || name.bytes.empty()) reader_.Fail();
    std::string abi(name.bytes);
    std::ranges::replace(abi, '_', '-');
    Print(abi);
  }
  Print("\" ");
}

void RustV0::TraitObject() {
  reader_.Next();
  Print("dyn ");
  const uint64_t outer_lifetimes = bound_lifetimes_;
  Binder();
  List(" + ", [this] { TraitBound(); });
  bound_lifetimes_ = outer_lifetimes;
  if (!reader_.Eat('L')) return reader_.Fail();
  const uint64_t lifetime = reader_.Base62();
  if (lifetime > 0) {
    Print(" + ");
    PrintLifetime(lifetime);
  }
}

void RustV0::TraitBound() {
  bool is_open = OpenTrait();
  while (reader_.Eat('p')) {
    Print(is_open ? ", " : "<");
    is_open = true;
    PrintIdentifier(reader_.TakeIdentifier());
    Print(" = ");
    Type();
  }
  if (is_open) Print(">");
}

bool RustV0::OpenTrait() {
  const Level level(*this);
  bool is_open = false;
  if (reader_.Eat('B')) {
    Again([&] { is_open = OpenTrait(); });
  } else if (reader_.Eat('I')) {
    Path(Generics::kOfType);
    GenericArguments();
    is_open = true;
  } else {
    Path(Generics::kOfType);
  }
  return is_open;
}

void RustV0::Constant() {
  const Level level(*this);
  const char tag = reader_.Next();
  if (tag == 'p') return Print("_");
  if (tag == 'B') return Again([this] { Constant(); });
  if (!HasConstants(tag)) return reader_.Fail();
  if (IsSigned(tag) && reader_.Eat('n')) Print("-");
  const std::string_view digits = reader_.HexDigits();
  if (reader_.failed()) return;
  const std::optional<std::string> text = RustConstant(tag, digits);
  if (!text) return reader_.Fail();
  Print(*text);
}

// Not counted where nothing is written: the number may be anything, and a back
// reference leads out of the binder that a lifetime needs.
void RustV0::Binder() {
  const uint64_t count = reader_.OptionalBase62('G');
  if (skipping_ || count == 0) return;
  Print("for<");
  for (uint64_t i = 0; i < count && !reader_.failed(); ++i) {
    if (i > 0) Print(", ");
    ++bound_lifetimes_;
    PrintLifetime(1);
  }
  Print("> ");
}

// The innermost one that is bound has index 1.
void RustV0::PrintLifetime(uint64_t index) {
  if (skipping_) return;
  if (index > bound_lifetimes_) return reader_.Fail();
  if (index == 0) return Print("'_");
  const uint64_t at = bound_lifetimes_ - index;
  Print("'");
  if (at < 26) {
    const char letter = static_cast<char>('a' + at);
    return Print(std::string_view(&letter, 1));
  }
  Print("_");
  PrintNumber(at);
}

void RustV0::PrintIdentifier(const RustReader::Identifier& name) {
  if (!name.is_punycode) return Print(name.bytes);
  if (skipping_ || reader_.failed()) return;
  const std::optional<std::string> text = DecodePunycode(name.bytes);
  if (!text) return reader_.Fail();
  Print(*text);
}

void RustV0::PrintNumber(uint64_t value) { Print(std::to_string(value)); }

void RustV0::Print(std::string_view text) {
  if (skipping_ || reader_.failed()) return;
  if (text.size() > kMaxDemangledBytes - out_.size()) return reader_.Fail();
  out_ += text;
}

}  // namespace

std::string DemangleRustV0(std::string_view mangled) {
  constexpr std::string_view kPrefix = "_R";
  if (!mangled.starts_with(kPrefix)) return {};
  std::string_view text = mangled.substr(kPrefix.size());
  text = text.substr(0, text.find('.'));
  if (!std::ranges::all_of(text, IsNameByte)) return {};
  return RustV0(text).Demangle();
}

}  // namespace ksym
