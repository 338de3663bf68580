// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/function_batch.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/result.h"

namespace ksym {

// What could not be taken over from a symbol file, by cause.
struct BreakpadLosses {
  uint64_t malformed_lines = 0;
  uint64_t misplaced_lines = 0;  // of a function, before there is one
  uint64_t inlined_calls = 0;    // within none of the level above
  uint64_t publics = 0;          // within a function, or at another's address
  std::string first;             // the first malformed one, with its number
};

struct BreakpadReadOptions {
  enum class Lines : uint8_t { kRead, kSkip };
  enum class Inlines : uint8_t { kRead, kSkip };
  Lines lines = Lines::kRead;
  Inlines inlines = Inlines::kRead;
};

// The text of a Breakpad symbol file (docs/symbol_files.md of Breakpad):
//   MODULE Linux x86_64 4C4C44C2F1D3E64CA1B22D3F4E5A6B7C0 server
//   INFO CODE_ID C2444C4CD3F14CE6A1B22D3F4E5A6B7C00112233
//   FILE 0 /src/server.cc
//   INLINE_ORIGIN 0 Scale(int)
//   FUNC 1230 40 0 Outer(int)
//   INLINE 0 42 0 0 1236 8
//   1230 6 41 0
//   PUBLIC 2000 0 plain_c
// STACK and other INFO lines are passed over. Lines that are malformed are
// left out and counted, so that a file that was cut off gives what it has.
class BreakpadFile {
 public:
  static bool IsBreakpad(std::string_view text) {
    return text.starts_with("MODULE ");
  }

  // Indexes files and the names of inlined functions. Borrows the text.
  // kUnsupported: it does not begin with MODULE; kCorrupt: that line is
  // malformed. Cost: one pass.
  static Result<BreakpadFile> Parse(std::string_view text);

  // The build-id's bytes: those of INFO CODE_ID, else the first 16, which are
  // what a MODULE line of an ELF file has. Empty: it has neither.
  const std::string& build_id() const { return build_id_; }

  // Goes over all functions in the order of the file, some thousands at a time,
  // then over public symbols where no function is; each of those reaches to the
  // next one or the next function, the last one for a byte. Views are of the
  // text. Cost: one pass, and the functions' starts in memory.
  void ForEachBatch(const BreakpadReadOptions& options,
                    const std::function<void(const FunctionBatch&)>& add);
  // Losses of the last ForEachBatch and of Parse.
  const BreakpadLosses& losses() const { return losses_; }

 private:
  friend class BreakpadReader;

  explicit BreakpadFile(std::string_view text) : text_(text) {}
  Status ParseModule(std::string_view line);
  void Index();
  bool IndexLine(std::string_view line);
  uint32_t FileIndex(uint64_t number) const;
  void Malformed(std::string_view line, uint64_t number);

  std::string_view text_;
  std::string build_id_;
  std::vector<SourceFile> files_ = std::vector<SourceFile>(1);
  std::unordered_map<uint64_t, uint32_t, NumberHash> file_numbers_;
  std::unordered_map<uint64_t, std::string_view, NumberHash> origins_;
  BreakpadLosses index_losses_;
  BreakpadLosses losses_;
};

}  // namespace ksym
