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
  kJavaScript,
  kJava,
};
inline constexpr size_t kFlameKinds = 10;

// Everything that depends on what kind of code a frame is. Readers and writers
// ask the row of a frame and compare no kinds, so that one more row is all that
// they need of a new kind.
struct FrameKind {
  // In JSON. Kinds that other keys of a frame tell apart there share one.
  std::string_view name;
  // The kernel's, on the kernel's side of a stack.
  bool is_kernel = false;
  // Code of a file: Frame::object is the file's path and Frame::file_offset the
  // place in it. Else the module is a word in brackets, or empty.
  bool is_in_file = false;
  // The body of a function within the next frame towards the root that is not
  // inlined. Such frames have the address and the offset in the file of that
  // one, and pprof has them as lines of its location.
  bool is_inlined = false;
  // Whether debug data can tell its lines and inlined calls.
  bool has_debug_data = false;
  // Its names are of symbols, and Frame::symbol_offset is the place in one.
  bool has_offsets = true;
  // The end of its name in folded stacks with annotations.
  std::string_view folded_suffix = {};
  FlameKind colour = FlameKind::kUser;
  // The name that no other kind's frames may have in folded stacks, where it
  // says that other frames are behind it; empty: none.
  std::string_view divider = {};
  // The text that perf script has in place of the module; empty: the module.
  std::string_view perf_module = {};
  // The text that perf script has behind a module in brackets.
  std::string_view perf_suffix = {};
  // The name that perf script and pprof have for the module "[kernel]"; empty:
  // the same.
  std::string_view image = {};
  // OpenTelemetry's "profile.frame.type"; empty: it has no word for it.
  std::string_view otel_type = {};
  // No code, but the reason of a wait, which dumps show elsewhere.
  bool is_wait_reason = false;
  // The kind of a function that is inlined into such code; null: none is.
  const FrameKind* inlined = nullptr;
  // The kind that it is taken for in a profile that tells of no file which
  // functions are in it; null: itself.
  const FrameKind* without_files = nullptr;
};

inline constexpr FrameKind kInlinedFrame = {.name = "user",
                                            .is_in_file = true,
                                            .is_inlined = true,
                                            .has_debug_data = true,
                                            .folded_suffix = "_[i]",
                                            .colour = FlameKind::kInlined,
                                            .perf_module = "inlined",
                                            .otel_type = "native",
                                            .inlined = &kInlinedFrame};
// Native code of programs and libraries.
inline constexpr FrameKind kUserFrame = {.name = "user",
                                         .is_in_file = true,
                                         .has_debug_data = true,
                                         .colour = FlameKind::kUser,
                                         .otel_type = "native",
                                         .inlined = &kInlinedFrame};
// Native code that a runtime made, from a perf map: a name without a file.
inline constexpr FrameKind kJitFrame = {.name = "user",
                                        .colour = FlameKind::kGenerated,
                                        .inlined = &kInlinedFrame,
                                        .without_files = &kUserFrame};

inline constexpr FrameKind kInlinedKernelFrame = {
    .name = "kernel",
    .is_kernel = true,
    .is_inlined = true,
    .has_debug_data = true,
    .folded_suffix = "_[k]_[i]",
    .colour = FlameKind::kInlined,
    .perf_module = "inlined",
    .image = "[kernel.kallsyms]",
    .otel_type = "kernel",
    .inlined = &kInlinedKernelFrame};
// Native code of the kernel and of its modules. Readers of perf script's text
// take for the kernel's what begins with a bracket, or what ends in ".ko";
// "[ext4].ko" is both.
inline constexpr FrameKind kKernelFrame = {.name = "kernel",
                                           .is_kernel = true,
                                           .has_debug_data = true,
                                           .folded_suffix = "_[k]",
                                           .colour = FlameKind::kKernel,
                                           .perf_suffix = ".ko",
                                           .image = "[kernel.kallsyms]",
                                           .otel_type = "kernel",
                                           .inlined = &kInlinedKernelFrame};
// Trampolines that the kernel made: no file has them.
inline constexpr FrameKind kTrampolineFrame = {.name = "kernel",
                                               .is_kernel = true,
                                               .folded_suffix = "_[k]",
                                               .colour = FlameKind::kKernel,
                                               .perf_suffix = ".ko",
                                               .otel_type = "kernel",
                                               .inlined = &kInlinedKernelFrame};
// BPF programs, and what leads into them.
inline constexpr FrameKind kBpfFrame = {.name = "kernel",
                                        .is_kernel = true,
                                        .folded_suffix = "_[k]",
                                        .colour = FlameKind::kBpf,
                                        .perf_suffix = ".ko",
                                        .otel_type = "kernel",
                                        .inlined = &kInlinedKernelFrame};

// Functions of Python, as the interpreter knows them.
inline constexpr FrameKind kPythonFrame = {.name = "python",
                                           .has_offsets = false,
                                           .folded_suffix = "_[p]",
                                           .colour = FlameKind::kPython,
                                           .otel_type = "cpython"};

// Functions of JavaScript, as the engine knows them: within compiled code of
// others, compiled, and as its interpreter works through them. One colour: a
// function that runs faster and faster is one box of a picture.
inline constexpr FrameKind kJavaScriptInlinedFrame = {
    .name = "javascript",
    .is_inlined = true,
    .has_offsets = false,
    .folded_suffix = "_[js]_[i]",
    .colour = FlameKind::kJavaScript,
    .otel_type = "v8js",
    .inlined = &kJavaScriptInlinedFrame};
inline constexpr FrameKind kJavaScriptFrame = {
    .name = "javascript",
    .has_offsets = false,
    .folded_suffix = "_[js]",
    .colour = FlameKind::kJavaScript,
    .otel_type = "v8js",
    .inlined = &kJavaScriptInlinedFrame};
inline constexpr FrameKind kJavaScriptInterpretedFrame = {
    .name = "javascript-interpreted",
    .has_offsets = false,
    .folded_suffix = "_[js]",
    .colour = FlameKind::kJavaScript,
    .otel_type = "v8js"};
// Methods of Java: inlined, compiled, and as the JVM's interpreter works
// through them.
inline constexpr FrameKind kJavaInlinedFrame = {.name = "java",
                                                .is_inlined = true,
                                                .has_offsets = false,
                                                .folded_suffix = "_[j]_[i]",
                                                .colour = FlameKind::kJava,
                                                .otel_type = "jvm",
                                                .inlined = &kJavaInlinedFrame};
inline constexpr FrameKind kJavaFrame = {.name = "java",
                                         .has_offsets = false,
                                         .folded_suffix = "_[j]",
                                         .colour = FlameKind::kJava,
                                         .otel_type = "jvm",
                                         .inlined = &kJavaInlinedFrame};
inline constexpr FrameKind kJavaInterpretedFrame = {.name = "java-interpreted",
                                                    .has_offsets = false,
                                                    .folded_suffix = "_[0]",
                                                    .colour = FlameKind::kJava,
                                                    .otel_type = "jvm"};

// Why a thread waited: no code, but a frame where its own stack ends and the
// kernel's begins, on the kernel's side.
inline constexpr FrameKind kWaitFrame = {.name = "wait",
                                         .is_kernel = true,
                                         .has_offsets = false,
                                         .colour = FlameKind::kKernel,
                                         .is_wait_reason = true};

// Where the frames of a waiting thread end and those of who woke it begin: a
// divider, then its command, or what else it was. Behind them are its own.
inline constexpr FrameKind kWakerFrame = {.name = "waker",
                                          .is_kernel = true,
                                          .has_offsets = false,
                                          .colour = FlameKind::kProcess,
                                          .divider = "--"};

// Where several have one name or one suffix, the plain one comes first.
inline constexpr std::array kFrameKinds = {&kUserFrame,
                                           &kKernelFrame,
                                           &kPythonFrame,
                                           &kJavaScriptFrame,
                                           &kWaitFrame,
                                           &kWakerFrame,
                                           &kJitFrame,
                                           &kInlinedFrame,
                                           &kInlinedKernelFrame,
                                           &kTrampolineFrame,
                                           &kBpfFrame,
                                           &kJavaFrame,
                                           &kJavaInlinedFrame,
                                           &kJavaInterpretedFrame,
                                           &kJavaScriptInterpretedFrame,
                                           &kJavaScriptInlinedFrame};

// The kind of the kernel's code in that module, a word in brackets.
constexpr const FrameKind* KernelKindOf(std::string_view module) {
  if (module == "[bpf]") return &kBpfFrame;
  return module.starts_with("[__builtin__") ? &kTrampolineFrame : &kKernelFrame;
}

// The kind of that name, which is not inlined; null: there is none. The module
// tells those of the kernel's code apart.
constexpr const FrameKind* FindFrameKind(std::string_view name,
                                         std::string_view module) {
  for (const FrameKind* kind : kFrameKinds) {
    if (kind->name != name) continue;
    return kind == &kKernelFrame ? KernelKindOf(module) : kind;
  }
  return nullptr;
}

// The kind whose divider the name in a folded stack is; null: it is none.
constexpr const FrameKind* FindDivider(std::string_view name) {
  for (const FrameKind* kind : kFrameKinds) {
    if (!name.empty() && kind->divider == name) return kind;
  }
  return nullptr;
}

// The plain kind with the longest suffix that the name in a folded stack ends
// in; null: it ends in none.
constexpr const FrameKind* FindFoldedSuffix(std::string_view name) {
  const FrameKind* found = nullptr;
  for (const FrameKind* kind : kFrameKinds) {
    const size_t size = kind->folded_suffix.size();
    if (size == 0 || !name.ends_with(kind->folded_suffix)) continue;
    if (found == nullptr || size > found->folded_suffix.size()) found = kind;
  }
  return found;
}

// The kind that a frame is taken for where no file is told.
constexpr const FrameKind* WithoutFiles(const FrameKind* kind) {
  return kind->without_files == nullptr ? kind : kind->without_files;
}

}  // namespace profd
