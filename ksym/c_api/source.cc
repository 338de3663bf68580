// SPDX-License-Identifier: Apache-2.0
// ksym_source: names for addresses.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ksym/c_api/call.h"
#include "ksym/ksym.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/symbolize_options.h"

namespace {

using ksym::c_api::Failed;
using ksym::c_api::Guarded;
using ksym::c_api::TakeStruct;

}  // namespace

// What the last answer's texts are views of, each with a 0 behind it.
struct ksym_source {
  std::unique_ptr<ksym::AddressSource> source;
  ksym::AddressAnswer answer;
  std::vector<char> texts;
  std::vector<ksym_frame> frames;
};

namespace {

using Source = ksym::SymbolizeOptions::Source;

constexpr size_t kOldestOptions = sizeof(ksym_options);
constexpr size_t kOldestSymbol = sizeof(ksym_symbol);
constexpr uint32_t kOptionFlags = KSYM_NO_DEMANGLE | KSYM_INLINES;

ksym_status TakeOptions(const ksym_options* given,
                        ksym::SymbolizeOptions& options) {
  if (given == nullptr) return KSYM_OK;
  ksym_options taken = {};
  const ksym_status status =
      TakeStruct(given, kOldestOptions, "ksym_options", taken);
  if (status != KSYM_OK) return status;
  // Refused and not passed over: a later version may give it a meaning.
  if ((taken.flags & ~kOptionFlags) != 0 || taken.reserved != 0) {
    return Failed(KSYM_UNSUPPORTED, "ksym_options: unknown flags");
  }
  if ((taken.flags & KSYM_NO_DEMANGLE) != 0) {
    options.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  options.inlines = (taken.flags & KSYM_INLINES) != 0;
  if (options.source == Source::kKernel && taken.kernel_symbols != nullptr) {
    options.file = taken.kernel_symbols;
  }
  return KSYM_OK;
}

ksym_status Open(ksym::SymbolizeOptions options, const ksym_options* given,
                 ksym_source** source) {
  if (source == nullptr) {
    return Failed(KSYM_INVALID, "there is no place for the new source: null");
  }
  // First, so that a caller can close what a failed call left.
  *source = nullptr;
  const ksym_status status = TakeOptions(given, options);
  if (status != KSYM_OK) return status;
  auto opened = ksym::OpenAddressSource(options, nullptr);
  if (!opened) return Failed(opened.error());
  auto handle = std::make_unique<ksym_source>();
  handle->source = std::move(*opened);
  *source = handle.release();
  return KSYM_OK;
}

ksym_status OpenPath(Source kind, const char* path, const ksym_options* given,
                     ksym_source** source) {
  if (path == nullptr) return Failed(KSYM_INVALID, "the path is null");
  ksym::SymbolizeOptions options;
  options.source = kind;
  options.file = path;
  return Open(std::move(options), given, source);
}

// Copies the texts of an answer to where they have room for a 0 each.
class TextCopier {
 public:
  explicit TextCopier(std::vector<char>& room) : room_(room) { room_.clear(); }

  void Reserve(std::string_view text) { bytes_ += text.size() + 1; }
  const char* Copy(std::string_view text) {
    // No text moves: there is room for all from the first one on.
    room_.reserve(bytes_);
    const size_t at = room_.size();
    room_.insert(room_.end(), text.begin(), text.end());
    room_.push_back('\0');
    return room_.data() + at;
  }

 private:
  std::vector<char>& room_;
  size_t bytes_ = 0;
};

void CopyAnswer(ksym_source& handle, ksym_symbol& symbol) {
  const ksym::AddressAnswer& answer = handle.answer;
  TextCopier texts(handle.texts);
  for (const auto text : {answer.module, answer.build_id, answer.reason}) {
    texts.Reserve(text);
  }
  for (const ksym::AnswerFrame& frame : answer.frames) {
    for (const auto text : {frame.function, frame.directory, frame.file}) {
      texts.Reserve(text);
    }
  }
  symbol.module = texts.Copy(answer.module);
  symbol.build_id = texts.Copy(answer.build_id);
  symbol.reason = texts.Copy(answer.reason);
  handle.frames.clear();
  for (const ksym::AnswerFrame& frame : answer.frames) {
    handle.frames.push_back({.function = texts.Copy(frame.function),
                             .directory = texts.Copy(frame.directory),
                             .file = texts.Copy(frame.file),
                             .line = frame.line});
  }
  symbol.frame_count = handle.frames.size();
}

ksym_status Resolve(ksym_source& handle, uint64_t address, uint32_t flags,
                    ksym_symbol& given) {
  if ((flags & ~KSYM_RETURN_ADDRESS) != 0) {
    return Failed(KSYM_UNSUPPORTED, "ksym_resolve: unknown flags");
  }
  ksym_symbol symbol = {};
  // Only its size is read: the rest may not have been set.
  if (given.size < kOldestSymbol) {
    return Failed(KSYM_INVALID, "ksym_symbol: its size is not set to sizeof");
  }
  handle.frames.clear();
  const bool is_return = (flags & KSYM_RETURN_ADDRESS) != 0 && address != 0;
  // The byte in front is in the call, which may be the last instruction of its
  // function and of its line.
  handle.source->Resolve(address - (is_return ? 1 : 0), handle.answer);
  CopyAnswer(handle, symbol);
  if (handle.answer.symbol_start) {
    symbol.start = *handle.answer.symbol_start;
    symbol.offset = address - symbol.start;
  }
  symbol.size = given.size;
  // A caller that was compiled with an older header has a shorter struct.
  std::memcpy(&given, &symbol, std::min(given.size, sizeof(symbol)));
  return KSYM_OK;
}

}  // namespace

extern "C" {

ksym_status ksym_open_file(const char* path, const ksym_options* options,
                           ksym_source** source) {
  return Guarded(
      [&] { return OpenPath(Source::kFile, path, options, source); });
}

ksym_status ksym_open_gsym(const char* path, const ksym_options* options,
                           ksym_source** source) {
  return Guarded(
      [&] { return OpenPath(Source::kGsym, path, options, source); });
}

ksym_status ksym_open_process(uint32_t pid, const ksym_options* options,
                              ksym_source** source) {
  return Guarded([&] {
    ksym::SymbolizeOptions taken;
    taken.source = Source::kProcess;
    taken.pid = pid;
    return Open(std::move(taken), options, source);
  });
}

ksym_status ksym_open_kernel(const ksym_options* options,
                             ksym_source** source) {
  return Guarded([&] {
    ksym::SymbolizeOptions taken;
    taken.source = Source::kKernel;
    return Open(std::move(taken), options, source);
  });
}

void ksym_close(ksym_source* source) { delete source; }

ksym_status ksym_resolve(ksym_source* source, uint64_t address, uint32_t flags,
                         ksym_symbol* symbol) {
  return Guarded([&] {
    if (source == nullptr || symbol == nullptr) {
      return Failed(KSYM_INVALID, "ksym_resolve: null");
    }
    return Resolve(*source, address, flags, *symbol);
  });
}

const ksym_frame* ksym_frame_at(const ksym_source* source, size_t index) {
  if (source == nullptr || index >= source->frames.size()) return nullptr;
  return &source->frames[index];
}

}  // extern "C"
