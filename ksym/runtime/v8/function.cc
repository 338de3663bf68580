// SPDX-License-Identifier: Apache-2.0
#include "ksym/runtime/v8/function.h"

#include <utility>

#include "ksym/runtime/v8/scope_info.h"
#include "ksym/runtime/v8/script.h"
#include "ksym/runtime/v8/text.h"

namespace ksym {
namespace {

constexpr std::string_view kAnonymous = "(anonymous)";

// The text of a name; empty: it has none, or it is no String, as a number or
// `undefined` is none.
std::optional<std::string> FunctionNameOf(const V8Heap& heap, V8Word word) {
  constexpr uint16_t kFirstNotString = 0x80;
  if (word.is_smi()) return "";
  const auto type = heap.TypeOf(word);
  if (!type) return std::nullopt;
  if (*type >= kFirstNotString) return "";
  return ReadV8Text(heap, word);
}

}  // namespace

std::optional<V8FunctionIdentity> ReadV8FunctionIdentity(const V8Heap& heap,
                                                         V8Word shared) {
  const V8Layout& layout = heap.layout();
  if (!heap.IsA(shared, layout.shared_function_info)) return std::nullopt;
  const Address at = shared.object();
  const auto name = heap.Read64(at + layout.shared_name);
  const auto script = heap.Read64(at + layout.shared_script);
  const auto literal = heap.Read32(at + layout.shared_literal_id);
  if (!name || !script || !literal) return std::nullopt;
  const auto id = ReadV8ScriptId(heap, {*script});
  if (!id) return std::nullopt;
  return V8FunctionIdentity{*name, *script, *literal,
                            static_cast<uint32_t>(*id)};
}

std::optional<V8Function> ReadV8Function(const V8Heap& heap, V8Word shared) {
  const auto identity = ReadV8FunctionIdentity(heap, shared);
  if (!identity) return std::nullopt;
  V8Function function = {.name = {}, .script = {identity->script}, .begin = {}};
  // A function that was compiled has a ScopeInfo, one that was not its name.
  const V8Word name = {identity->name};
  if (name.is_pointer() && heap.IsA(name, heap.layout().scope_info)) {
    const auto scope = ReadV8ScopeInfo(heap, name);
    if (!scope) return std::nullopt;
    function.begin = scope->begin;
    auto text = FunctionNameOf(heap, scope->function_name);
    if (text && text->empty())
      text = FunctionNameOf(heap, scope->inferred_name);
    if (!text) return std::nullopt;
    function.name = std::move(*text);
  } else {
    auto text = FunctionNameOf(heap, name);
    if (!text) return std::nullopt;
    function.name = std::move(*text);
  }
  if (function.name.empty()) function.name = kAnonymous;
  return function;
}

}  // namespace ksym
