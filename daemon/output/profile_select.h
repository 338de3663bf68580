// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "daemon/profile/profile.h"
#include "ksym/base/result.h"

namespace profd {

// An extended regular expression (regex(7)) over names. Movable.
class NamePattern {
 public:
  // kInvalid: what is wrong with it.
  static ksym::Result<NamePattern> Parse(const std::string& text);
  NamePattern(NamePattern&&) noexcept;
  NamePattern& operator=(NamePattern&&) noexcept;
  ~NamePattern();

  // Somewhere in the name.
  bool Matches(std::string_view name) const;

 private:
  struct Compiled;
  explicit NamePattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

// Keeps the samples that have a frame of such a name, or a command of it. Cost:
// each name once, and every frame of every stack.
void KeepMatching(const NamePattern& pattern, Profile& profile);

// Keeps the samples that are in a function, or in what it called, and of their
// stacks what is above it: the function's caller is the innermost frame then,
// or "[no caller]". The outermost call of a recursion counts. `function` is a
// name, with or without its arguments.
void KeepCallers(std::string_view function, Profile& profile);

}  // namespace profd
