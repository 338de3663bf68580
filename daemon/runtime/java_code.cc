// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/java_code.h"

#include <ranges>
#include <utility>

#include "ksym/runtime/hotspot/line_table.h"

namespace profd {
namespace {

// Bytes of what a stub is called.
constexpr size_t kMaxStubName = 64;
constexpr size_t kEntryOverhead = 128;  // of the containers, about

ksym::Address AddressOf(const RuntimeCode& code) {
  return {code.code & ((uint64_t{1} << kJavaTagShift) - 1)};
}
uint16_t TagOf(const RuntimeCode& code) {
  return static_cast<uint16_t>(code.code >> kJavaTagShift);
}

JavaInlining CauseOf(const ksym::Error& error) {
  switch (error.code()) {
    case ksym::ErrorCode::kNotFound:
    case ksym::ErrorCode::kUnsupported:
      return JavaInlining::kNotDescribed;
    case ksym::ErrorCode::kLimit:
      return JavaInlining::kTooMuch;
    default:
      return JavaInlining::kCorrupt;
  }
}

}  // namespace

const JavaCode::Method* JavaCode::MethodAt(const ksym::Memory& memory,
                                           ksym::Address address) {
  const auto identity =
      ksym::ReadHotspotMethodIdentity(memory, layout_, address);
  if (!identity) return nullptr;
  const auto known = methods_.find(address.value);
  if (known != methods_.end() && known->second.identity == *identity) {
    return &known->second;
  }
  auto method = ksym::ReadHotspotMethod(memory, layout_, *identity);
  // It may have become another one meanwhile.
  if (!method ||
      ksym::ReadHotspotMethodIdentity(memory, layout_, address) != identity) {
    return nullptr;
  }
  bytes_ += kEntryOverhead + method->name.size() + method->file.size() +
            method->lines.size();
  auto& place = methods_[address.value];
  place = {.identity = *identity, .method = *std::move(method)};
  return &place;
}

bool JavaCode::AddScope(const ksym::Memory& memory,
                        const ksym::HotspotScope& scope, ScopeUse use,
                        JavaFrames& all) {
  const Method* method = MethodAt(memory, scope.method);
  if (method == nullptr ||
      (scope.bytecode && *scope.bytecode >= method->identity.bytecodes)) {
    return false;
  }
  RuntimeFrame frame = {.name = method->method.name,
                        .file = method->method.file};
  if (scope.bytecode) {
    frame.line = ksym::HotspotLineAt(method->method.lines, layout_.numbers,
                                     *scope.bytecode)
                     .value_or(0);
  }
  frame.line_is_near = use.is_near && frame.line != 0;
  all.frames.push_back({.kind = use.kind, .frame = std::move(frame)});
  return true;
}

const JavaCode::Compiled* JavaCode::CompiledAt(const ksym::Memory& memory,
                                               const RuntimeCode& code) {
  const auto known = compiled_.find(code.code);
  if (known != compiled_.end()) return &known->second;
  auto compiled = ksym::HotspotCompiledCode::Read(memory, layout_,
                                                  AddressOf(code), TagOf(code));
  if (!compiled && compiled.error().code() == ksym::ErrorCode::kNotFound) {
    return nullptr;
  }
  bytes_ += kEntryOverhead + (compiled ? compiled->bytes() : 0);
  return &compiled_.emplace(code.code, std::move(compiled)).first->second;
}

JavaFrames JavaCode::CompiledFrames(const ksym::Memory& memory,
                                    const RuntimeCode& code) {
  const auto method =
      ksym::ReadHotspotMethodOf(memory, layout_, AddressOf(code), TagOf(code));
  if (!method) return {};
  JavaFrames all;
  const Compiled* compiled = CompiledAt(memory, code);
  if (compiled == nullptr) return {};
  auto scopes =
      *compiled
          ? (*compiled)->ScopesAt(code.index)
          : ksym::Result<ksym::HotspotScopes>(ksym::Fail(compiled->error()));
  if (!scopes) {
    all.inlining = CauseOf(scopes.error());
  } else {
    // The JVM describes calls, and little else.
    const bool is_near = code.native == 0 || !scopes->is_exact;
    for (const auto& scope : scopes->scopes) {
      const bool is_last = &scope == &scopes->scopes.back();
      if (AddScope(memory, scope,
                   {.kind = is_last ? kJavaCompiled : kJavaInlined,
                    .is_near = is_near},
                   all)) {
        continue;
      }
      all.inlining = JavaInlining::kCorrupt;
      break;
    }
  }
  if (all.inlining != JavaInlining::kKnown) {
    all.frames.clear();
    (void)AddScope(memory, {.method = *method, .bytecode = {}},
                   {.kind = kJavaCompiled}, all);
    // Nothing can be inlined into what calls a native method.
    const Method* itself = MethodAt(memory, *method);
    if (itself != nullptr && itself->identity.bytecodes == 0) {
      all.inlining = JavaInlining::kKnown;
    }
  }
  // Methods are not freed before the code that they are in.
  if (ksym::ReadHotspotMethodOf(memory, layout_, AddressOf(code),
                                TagOf(code)) != method) {
    return {};
  }
  return all;
}

JavaFrames JavaCode::InterpretedFrames(const ksym::Memory& memory,
                                       const RuntimeCode& code) {
  JavaFrames all;
  const ksym::Address address = AddressOf(code);
  const Method* method = MethodAt(memory, address);
  constexpr int kTagSkips = 3;
  if (method == nullptr || static_cast<uint16_t>(method->identity.code >>
                                                 kTagSkips) != TagOf(code)) {
    return all;
  }
  ksym::HotspotScope scope = {.method = address, .bytecode = {}};
  // Native methods have no bytecodes.
  if (code.index < method->identity.bytecodes) scope.bytecode = code.index;
  (void)AddScope(memory, scope, {.kind = kJavaInterpreted}, all);
  return all;
}

JavaFrames JavaCode::StubFrames(const ksym::Memory& memory,
                                const RuntimeCode& code) const {
  auto name =
      ksym::ReadHotspotBlobName(memory, layout_, {code.code}, kMaxStubName);
  if (!name) return {};
  // Where a virtual thread's frames were, or are, moved to the heap: those that
  // are there now are not on the stack.
  if (name->starts_with("StubRoutines (continuation")) {
    name = "[vthread frames in heap]";
  }
  return {.frames = {{.kind = kJavaStub,
                      .frame = {.name = *std::move(name), .file = {}}}}};
}

JavaFrames JavaCode::FramesOf(const ksym::Memory& memory,
                              const RuntimeCode& code) {
  if (code.kind == kJavaCompiled) return CompiledFrames(memory, code);
  if (code.kind == kJavaInterpreted) return InterpretedFrames(memory, code);
  return StubFrames(memory, code);
}

}  // namespace profd
