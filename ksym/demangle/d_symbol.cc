// SPDX-License-Identifier: Apache-2.0
#include "ksym/demangle/d_symbol.h"

#include <libiberty/demangle.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

namespace ksym {
namespace {

// Hundredths of a choice between two: 100 times the binary logarithm of how
// many readings there are.
constexpr std::array<size_t, 12> kChoicesOf = {0,   0,   100, 158, 200, 232,
                                               258, 281, 300, 317, 332, 346};
// Types that double, or triple, by back references grow by at most this.
constexpr size_t kChoicesOfTypeReference = 53;

bool IsDDigit(char c) { return c >= '0' && c <= '9'; }
bool IsDUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDLower(char c) { return c >= 'a' && c <= 'z'; }

// Counts wherever a choice may be, whatever libiberty really reads there.
class DChoices {
 public:
  explicit DChoices(std::string_view name)
      : name_(name), ends_(name.size() + 1) {}

  // In hundredths.
  size_t Count() {
    size_t count = 0;
    for (size_t at = 0; at < name_.size(); ++at) {
      if (IsDDigit(name_[at])) count += OfNumber(at);
      if (name_[at] == 'Q') count += OfReference(at);
      if (name_[at] == 'Z') ends_[at + 1] = true;  // of a template
    }
    for (size_t at = 0; at < name_.size(); ++at) {
      if (ends_[at] && MayBeFunction(at)) count += kChoicesOf[2];
    }
    return count;
  }

 private:
  char At(size_t at) const { return at < name_.size() ? name_[at] : '\0'; }

  // An identifier ends where its length says. A template's symbol may have a
  // length of its own, whose digits and the identifier's are one number.
  size_t OfNumber(size_t at) {
    size_t end = at;
    size_t value = 0;
    for (; IsDDigit(At(end)); ++end) {
      value = std::min(value * 10 + static_cast<size_t>(name_[end] - '0'),
                       name_.size());
    }
    if (value <= name_.size() - end) ends_[end + value] = true;
    if (at == 0 || name_[at - 1] != 'S') return 0;
    const std::string_view rest = name_.substr(end);
    const bool is_symbol = rest.starts_with("__") || rest.starts_with("_D") ||
                           rest.starts_with('Q');
    return kChoicesOf[std::min(end - at + (is_symbol ? 1 : 0),
                               kChoicesOf.size() - 1)];
  }

  // To an identifier, which begins with a digit, or to a type. The distance is
  // in base 26, with a last digit in lower case.
  size_t OfReference(size_t at) {
    size_t end = at + 1;
    size_t distance = 0;
    for (; IsDUpper(At(end)) && distance <= name_.size(); ++end) {
      distance = distance * 26 + static_cast<size_t>(name_[end] - 'A');
    }
    if (!IsDLower(At(end))) return 0;
    distance = distance * 26 + static_cast<size_t>(name_[end] - 'a');
    ends_[end + 1] = true;
    const bool is_type = distance <= at && !IsDDigit(name_[at - distance]);
    return is_type ? kChoicesOfTypeReference : 0;
  }

  // The arguments of a function behind its name, which may be a type instead.
  bool MayBeFunction(size_t at) const {
    if (At(at) == 'M') {
      ++at;
      while (std::string_view("xyONg").contains(At(at))) ++at;
    }
    return std::string_view("FUWVRY").contains(At(at));
  }

  std::string_view name_;
  // Where a name may end.
  std::vector<bool> ends_;
};

}  // namespace

std::string DemangleD(const std::string& mangled) {
  if (mangled.size() > kMaxDBytes ||
      DChoices(mangled).Count() > 100 * kMaxDChoices) {
    return {};
  }
  const std::unique_ptr<char, decltype(&std::free)> text(
      dlang_demangle(mangled.c_str(), DMGL_PARAMS | DMGL_ANSI), &std::free);
  return text == nullptr ? std::string() : std::string(text.get());
}

}  // namespace ksym
