// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/javascript_names.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "ksym/runtime/v8/heap.h"
#include "ksym/runtime/v8/scope_info.h"
#include "ksym/runtime/v8/source_positions.h"

namespace profd {
namespace {

constexpr size_t kCodeOverhead = 256;  // of the containers, about
constexpr size_t kMaxPositions = size_t{256} << 10;
// Scripts of one process that are kept although no code has them.
constexpr size_t kMaxScripts = 1024;

size_t BytesOfScript(const ksym::V8Script& script) {
  return kCodeOverhead + script.name.size() +
         script.line_ends.size() * sizeof(uint32_t);
}

// Modules have URLs for names.
std::string FileOf(const ksym::V8Script& script) {
  constexpr std::string_view kFile = "file://";
  return script.name.starts_with(kFile) ? script.name.substr(kFile.size())
                                        : script.name;
}

template <size_t kWords>
bool Fill(const ksym::V8Heap& heap, ksym::Address address,
          std::array<uint64_t, kWords>& words) {
  return heap.memory().Read(address, std::as_writable_bytes(std::span(words)));
}

// The same as v8_read_begin() of bpf/runtime/v8.bpf.h.
bool FillBegin(const ksym::V8Heap& heap, ksym::Address address,
               std::array<uint64_t, 4>& words) {
  if (Fill(heap, address, words)) return true;
  words = {};
  std::array<uint64_t, 2> first = {};
  if (!Fill(heap, address, first)) return false;
  std::ranges::copy(first, words.begin());
  return true;
}

}  // namespace

void JavaScriptNames::Add(const JavaScriptCode& sampled) {
  const auto known = codes_.find(sampled.id);
  if (known != codes_.end()) {
    Code& code = known->second;
    // Code comes twice where two CPUs send it at once; what could not be read
    // comes again.
    if (!code.places.empty() || code.tries == 0 || code.tries >= kMaxTries) {
      return;
    }
    if (waiting_.size() < kMaxWaiting) waiting_.push_back(sampled.id);
    return;
  }
  if (waiting_.size() >= kMaxWaiting || !MakeRoom()) {
    ++statistics_.codes_refused;
    dropped_.push_back(sampled.id);
    return;
  }
  codes_.emplace(sampled.id, Code{.sampled = sampled,
                                  .tries = 0,
                                  .used = interval_,
                                  .places = {},
                                  .positions = {},
                                  .bytes = kCodeOverhead});
  statistics_.bytes += kCodeOverhead;
  processes_[sampled.process].codes.insert(sampled.id);
  waiting_.push_back(sampled.id);
}

// False: all that there is is in use.
bool JavaScriptNames::MakeRoom() {
  if (codes_.size() < kMaxCodes && statistics_.bytes < kMaxBytes) return true;
  std::vector<uint64_t> unused;
  for (const auto& [id, code] : codes_) {
    if (code.used != interval_) unused.push_back(id);
  }
  for (const uint64_t id : unused) {
    Drop(id);
    ++statistics_.codes_refused;
    // The sampler holds it for known.
    dropped_.push_back(id);
  }
  for (auto& [id, process] : processes_) ForgetScripts(process);
  return codes_.size() < kMaxCodes && statistics_.bytes < kMaxBytes;
}

void JavaScriptNames::Drop(uint64_t id) {
  const auto code = codes_.find(id);
  const auto process = processes_.find(code->second.sampled.process);
  statistics_.bytes -= code->second.bytes;
  process->second.codes.erase(id);
  codes_.erase(code);
}

void JavaScriptNames::ForgetScripts(Process& process) {
  std::erase_if(process.scripts, [&](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    const size_t bytes = BytesOfScript(*entry.second);
    process.script_bytes -= bytes;
    statistics_.bytes -= bytes;
    return true;
  });
}

void JavaScriptNames::Forget(const ksym::ProcessId& id) {
  const auto process = processes_.extract(id);
  if (process.empty()) return;
  for (const uint64_t code : process.mapped().codes) {
    statistics_.bytes -= codes_.at(code).bytes;
    codes_.erase(code);
  }
  statistics_.bytes -= process.mapped().script_bytes;
}

void JavaScriptNames::Read(const MemoryOf& memory_of,
                           const std::function<bool()>& is_over) {
  // Memory is kept as long as one process's code follows its own.
  std::ranges::stable_sort(waiting_, {}, [this](uint64_t id) {
    const auto code = codes_.find(id);
    return code == codes_.end() ? 0 : code->second.sampled.process.pid;
  });

  while (!waiting_.empty() && !is_over()) {
    const auto found = codes_.find(waiting_.front());
    waiting_.pop_front();
    if (found == codes_.end()) continue;
    Code& code = found->second;
    // It was sent twice, and read in between.
    if (!code.places.empty()) continue;
    ReadOne(memory_of, code);
  }
}

// The function is what it was when it was sampled. What is dead is not
// overwritten at once, and piece by piece, so each object on the way to the
// name is compared.
bool JavaScriptNames::IsSame(const ksym::V8Heap& heap,
                             const JavaScriptCode& sampled) {
  if (ksym::ReadV8FunctionIdentity(heap, sampled.shared) != sampled.identity) {
    return false;
  }
  if (!sampled.witness) return true;
  const V8Witness& witness = *sampled.witness;
  const ksym::V8Word name = {sampled.identity.name};
  if (!name.is_pointer()) return true;
  V8Witness now;
  if (!FillBegin(heap, name.object(), now.named) ||
      now.named != witness.named) {
    return false;
  }
  const auto names = ksym::FindV8ScopeNames(heap, name);
  if (!names) return true;  // it is a text
  if (!Fill(heap, *names, now.names) || now.names != witness.names) {
    return false;
  }
  const ksym::V8Word text = {now.names.front()};
  return !text.is_pointer() ||
         (FillBegin(heap, text.object(), now.text) && now.text == witness.text);
}

void JavaScriptNames::ReadOne(const MemoryOf& memory_of, Code& code) {
  const JavaScriptCode& sampled = code.sampled;
  Process& process = processes_[sampled.process];
  ++code.tries;
  bool is_read = false;
  {
    const ksym::V8Heap heap(memory_of(sampled.process.pid, Freshness::kRecent),
                            *sampled.layout);
    is_read = IsSame(heap, sampled) && ReadCode(heap, code, process);
  }
  // The program goes on meanwhile.
  if (is_read) {
    const ksym::V8Heap heap(memory_of(sampled.process.pid, Freshness::kNow),
                            *sampled.layout);
    is_read = IsSame(heap, sampled);
  }
  if (!is_read) {
    code.places.clear();
    code.positions.clear();
    ++statistics_.codes_unread;
    if (code.tries < kMaxTries) dropped_.push_back(code.sampled.id);
    return;
  }
  ++statistics_.codes;
  size_t bytes = code.positions.size();
  for (const Place& place : code.places) {
    bytes += sizeof(Place) + place.name.size();
  }
  code.bytes += bytes;
  statistics_.bytes += bytes;
}

bool JavaScriptNames::ReadCode(const ksym::V8Heap& heap, Code& code,
                               Process& process) {
  const JavaScriptCode& sampled = code.sampled;
  const ksym::V8Layout& layout = heap.layout();
  if (sampled.bytecode) {
    if (!heap.IsA(*sampled.bytecode, layout.bytecode_array)) return false;
    const auto table =
        heap.ReadWord(sampled.bytecode->object() + layout.bytecode_positions);
    // Without a table there are no lines.
    if (table) code.positions = heap.ReadBytes(*table, kMaxPositions);
    return AddPlace(heap, {sampled.shared, {}}, code, process);
  }
  const auto data = heap.ReadWord(sampled.shared.object() + layout.shared_data);
  // Code that leads from JavaScript into WebAssembly is for that one function,
  // which has no other code. Its name is its number in the module.
  if (data && heap.IsA(*data, layout.wasm_exported_function)) {
    // But nothing says of one that was found later that it is the frame's.
    if (sampled.is_late ||
        !AddPlace(heap, {sampled.shared, {}}, code, process)) {
      return false;
    }
    std::string& name = code.places.back().name;
    name = "wasm-function[" + name + "]";
    return true;
  }
  const auto compiled = process.finder.Find(heap, sampled.pc);
  if (!compiled) return false;
  code.is_baseline = compiled->is_baseline;
  if (code.is_baseline) {
    if (sampled.is_late && (!data || data->bits != compiled->object.bits)) {
      return false;
    }
    return AddPlace(heap, {sampled.shared, compiled->baseline_offset}, code,
                    process);
  }
  // Other code may lie where this one was.
  if (compiled->frames.back().shared.object() != sampled.shared.object()) {
    return false;
  }
  return std::ranges::all_of(compiled->frames,
                             [&](const ksym::V8CodeFrame& frame) {
                               return AddPlace(heap, frame, code, process);
                             });
}

bool JavaScriptNames::AddPlace(const ksym::V8Heap& heap,
                               const ksym::V8CodeFrame& frame, Code& code,
                               Process& process) {
  auto function = ksym::ReadV8Function(heap, frame.shared);
  if (!function) return false;
  code.places.push_back({.name = std::move(function->name),
                         .script = ScriptOf(heap, function->script, process),
                         .begin = function->begin,
                         .offset = frame.script_offset});
  return true;
}

JavaScriptNames::Script JavaScriptNames::ScriptOf(const ksym::V8Heap& heap,
                                                  ksym::V8Word word,
                                                  Process& process) {
  const auto id = ksym::ReadV8ScriptId(heap, word);
  const auto source =
      heap.Read64(word.object() + ksym::V8Offsets::kScriptSource);
  if (!id || !source) return nullptr;
  const ScriptKey key = {word.bits, *source, *id};
  const auto known = process.scripts.find(key);
  if (known != process.scripts.end()) return known->second;
  auto script = ksym::ReadV8Script(heap, word);
  if (!script) return nullptr;
  if (process.scripts.size() >= kMaxScripts) ForgetScripts(process);
  const size_t bytes = BytesOfScript(*script);
  process.script_bytes += bytes;
  statistics_.bytes += bytes;
  return process.scripts
      .emplace(key, std::make_shared<const ksym::V8Script>(std::move(*script)))
      .first->second;
}

RuntimeFrameId JavaScriptNames::FrameOf(uint64_t code, uint32_t index) {
  const Key key = {code, index};
  const auto known = ids_.find(key);
  if (known != ids_.end()) return known->second;
  const RuntimeFrameId id = names_->NewId();
  ids_.emplace(key, id);
  frames_.emplace(id, key);
  return id;
}

std::vector<CodeFrames> JavaScriptNames::FramesOf(
    const ksym::ProcessId& /*process*/, std::span<const RuntimeCode> codes) {
  std::vector<CodeFrames> all;
  for (const RuntimeCode& code : codes) {
    all.push_back({.native = code.native,
                   .frames = {{.kind = kJavaScriptCode,
                               .value = FrameOf(code.code, code.index)}}});
  }
  return all;
}

RuntimeFrame JavaScriptNames::FrameAt(const Code& code, const Place& place,
                                      uint32_t index) {
  RuntimeFrame frame = {.name = place.name,
                        .file = {},
                        .is_interpreted = code.sampled.bytecode.has_value()};
  if (!place.script) return frame;
  frame.file = FileOf(*place.script);
  if (place.begin) frame.first_line = place.script->LineOf(*place.begin);
  auto offset = place.offset;
  const ksym::V8Layout& layout = *code.sampled.layout;
  // A frame counts from the object's begin, with its tag.
  const uint32_t skipped = layout.bytecode_first - 1u;
  if (code.sampled.bytecode && index >= skipped) {
    const auto position = ksym::FindV8Position(
        code.positions,
        layout.positions_are_unsigned ? ksym::V8PositionForm::kUnsigned
                                      : ksym::V8PositionForm::kSigned,
        index - skipped);
    if (position) offset = position->script_offset;
  }
  if (offset) frame.line = place.script->LineOf(*offset);
  // Optimized code has the positions of its calls.
  frame.line_is_near =
      index == kNoCall && offset && !code.is_baseline && !frame.is_interpreted;
  return frame;
}

std::optional<RuntimeFrame> JavaScriptNames::Get(RuntimeFrameId id) {
  const Key* key = nullptr;
  for (const auto* frames : {&frames_, &old_frames_}) {
    const auto found = frames->find(id);
    if (found != frames->end()) key = &found->second;
  }
  if (key == nullptr) return std::nullopt;
  const auto found = codes_.find(key->code);
  if (found == codes_.end() || found->second.places.empty()) {
    ++statistics_.frames_unnamed;
    return RuntimeFrame();
  }
  Code& code = found->second;
  code.used = interval_;
  // From the outermost one on: each says what it is inlined into.
  RuntimeFrameId caller = 0;
  for (size_t i = code.places.size(); i-- > 1;) {
    RuntimeFrame frame = FrameAt(code, code.places[i], key->index);
    frame.caller = caller;
    caller = names_->IdOf(frame);
  }
  RuntimeFrame frame = FrameAt(code, code.places.front(), key->index);
  frame.caller = caller;
  return frame;
}

void JavaScriptNames::EndInterval() {
  ++interval_;
  if (frames_.size() <= RuntimeNames::kMaxFrames) return;
  old_frames_ = std::exchange(frames_, {});
  ids_.clear();
}

}  // namespace profd
