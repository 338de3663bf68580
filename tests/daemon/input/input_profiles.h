// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "daemon/input/profile_input.h"
#include "daemon/output/format.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {

inline constexpr OutputOptions kAnnotated = {.annotations = true};

inline Profile Read(std::string_view bytes) {
  auto profile = ReadProfile(bytes);
  if (profile) return std::move(*profile);
  ADD_FAILURE() << profile.error().message();
  return {};
}

inline std::string ErrorOf(std::string_view bytes) {
  const auto profile = ReadProfile(bytes);
  return profile ? "" : profile.error().message();
}

inline std::string Folded(const Profile& profile) {
  return Render(profile, OutputFormat::kFolded, kAnnotated);
}

// A profile with inlined calls, lines, a module of the kernel and a JIT frame.
inline Profile Sampled() {
  TestProfile p;
  const auto work = p.Placed("work", "/src/work.cc", 12);
  const auto inlined = p.Inlined("Inner<int (*)(char)>", "/src/inner.h", 3);
  const auto main = p.User("main");
  p.Add({.user = {inlined, work, main},
         .kernel = {p.Kernel("ext4_write", "[ext4]"), p.Kernel("vfs_write")},
         .count = 5});
  p.Add({.comm = "two words", .pid = 9, .user = {work, main}, .count = 2});
  p.Add({.user = {p.User("[libz.so.1]", "/usr/lib/libz.so.1",
                         ksym::Unresolved::kNoSymbols),
                  main},
         .count = 1});
  Accounting accounting;
  accounting.taken = 10;
  accounting.emitted = 8;
  accounting.lost_by_cause[static_cast<size_t>(LossCause::kRingFull)] = 2;
  p.builder().Add(accounting);
  return std::move(p).Finish();
}

}  // namespace profd
