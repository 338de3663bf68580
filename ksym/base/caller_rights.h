// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ksym {

// A program that setcap(8) gave capabilities has more rights than who calls it.
// What the caller names is read with the caller's own; where the program has no
// more than those, as for root, none of this does anything.

// For the rest of this process and for its children. Call while there is one
// thread.
void GiveUpFileCapabilities();

// For this thread, for as long as it lives.
class CallerRights {
 public:
  CallerRights();
  ~CallerRights();
  CallerRights(const CallerRights&) = delete;
  CallerRights& operator=(const CallerRights&) = delete;

 private:
  bool lowered_ = false;
};

}  // namespace ksym
