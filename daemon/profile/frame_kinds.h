// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace profd {

// By what colour pictures show a frame. The page's script
// (daemon/web/colours.js) knows them by number.
enum class FlameKind : uint8_t {
  kProcess,  // the command name, where every stack begins
  kUser,
  kKernel,
  // User code without a file that has a name, from a perf map; in a profile
  // that has files.
  kGenerated,
  kBpf,
  kUnknown,  // without a name, or a mark for what is missing
  kInlined,  // a function within the code of the next one towards the root
  kPython,
};
inline constexpr size_t kFlameKinds = 8;

// Everything that depends on what kind of code a frame is. Readers and writers
// ask the row of a frame and compare no kinds, so that one more row is all that
// they need of a new kind.
struct FrameKind {
  std::string_view name;  // in JSON
  // The kernel's, on the kernel's side of a stack.
  bool is_kernel = false;
  // Code of a file: Frame::module is the file's path and Frame::file_offset the
  // place in it. Else the module is a word in brackets, or empty.
  bool is_in_file = false;
  // What ends its name in folded stacks with annotations.
  std::string_view folded_suffix = {};
  FlameKind colour = FlameKind::kUser;
  // The same of a frame that has a name but no module, where others have one.
  FlameKind colour_without_module = FlameKind::kUser;
};

// Native code of programs and libraries.
inline constexpr FrameKind kUserFrame = {
    .name = "user",
    .is_in_file = true,
    .colour = FlameKind::kUser,
    .colour_without_module = FlameKind::kGenerated};
// Native code of the kernel, of its modules and of BPF programs.
inline constexpr FrameKind kKernelFrame = {
    .name = "kernel",
    .is_kernel = true,
    .folded_suffix = "_[k]",
    .colour = FlameKind::kKernel,
    .colour_without_module = FlameKind::kKernel};

// Functions of Python, as the interpreter knows them.
inline constexpr FrameKind kPythonFrame = {
    .name = "python",
    .folded_suffix = "_[p]",
    .colour = FlameKind::kPython,
    .colour_without_module = FlameKind::kPython};

// Why a thread waited: no code, but a frame where its own stack ends and the
// kernel's begins, on the kernel's side.
inline constexpr FrameKind kWaitFrame = {
    .name = "wait",
    .is_kernel = true,
    .colour = FlameKind::kKernel,
    .colour_without_module = FlameKind::kKernel};

inline constexpr std::array kFrameKinds = {&kUserFrame, &kKernelFrame,
                                           &kPythonFrame, &kWaitFrame};

// The kind of that name, user code if there is none.
constexpr const FrameKind* FrameKindNamed(std::string_view name) {
  for (const FrameKind* kind : kFrameKinds) {
    if (kind->name == name) return kind;
  }
  return &kUserFrame;
}

}  // namespace profd
