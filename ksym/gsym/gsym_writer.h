// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ksym/base/byte_writer.h"
#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/gsym/gsym_decode.h"
#include "ksym/gsym/gsym_format.h"
#include "ksym/gsym/gsym_line_encoder.h"
#include "ksym/gsym/gsym_strings.h"

namespace ksym {

struct GsymWriterOptions {
  GsymVersion version = GsymVersion::k1;
  std::endian byte_order = std::endian::little;
  // 1, 2, 4 or 8; 0: the least that the addresses need.
  uint8_t address_bytes = 0;
  enum class Merge : uint8_t {
    kDrop,  // of functions with the same code the first with lines is kept
    kKeep,  // the others go with it, as merged functions
  };
  Merge merge = Merge::kDrop;
};

// Makes a GSYM file. Functions are encoded as they are added, so memory is
// that of the file and its strings. The same functions in the same order give
// the same bytes. Not thread-safe.
class GsymWriter {
 public:
  explicit GsymWriter(const GsymWriterOptions& options = {});

  // Counts what was left out, because GSYM has no room for it.
  struct Losses {
    uint64_t empty_functions = 0;  // no code, or 4 GiB of it
    uint64_t rows = 0;             // outside of their function, or not rising
    uint64_t inlined_calls = 0;    // without code in their function
    uint64_t duplicates = 0;       // functions with the same code, see Merge
  };

  // Takes all functions of a batch. Those of the batch's files that are
  // referred to are added to the file's. `call_sites`, if there are any, are
  // those of the batch's first function.
  void Add(const FunctionBatch& batch,
           std::span<const GsymCallSite> call_sites = {});

  const Losses& losses() const { return losses_; }
  size_t function_count() const { return functions_.size(); }

  // The file's bytes. kInvalid: a uuid that is too long, or address_bytes that
  // are too few; kLimit: more than version 1 can hold.
  Result<std::vector<std::byte>> Finish(std::string_view uuid) &&;
  // The same, and what was left out in all.
  Result<std::vector<std::byte>> Finish(std::string_view uuid,
                                        Losses& losses) &&;

 private:
  // A function that is encoded but for its padding.
  struct Encoded {
    uint64_t start = 0;
    uint32_t size = 0;
    uint32_t bytes = 0;
    uint64_t offset = 0;  // in encoded_
    uint64_t name = 0;
    bool has_detail = false;  // lines or inlined calls
  };

  uint32_t RowFile(const FunctionBatch& batch, uint32_t index);
  uint32_t FileIndex(const FunctionBatch& batch, uint32_t index);
  void AddFunction(const FunctionBatch& batch, const FunctionInfo& function,
                   std::span<const GsymCallSite> call_sites);
  void AddLines(const FunctionBatch& batch, const FunctionInfo& function);
  void AddInlines(const FunctionBatch& batch, const FunctionInfo& function);
  void AddCallSites(std::span<const GsymCallSite> call_sites);
  void WriteNode(const FunctionBatch& batch, const InlinedCall& call,
                 uint64_t base, bool has_children);
  void WriteString(std::string_view text) {
    encoded_.WriteSized(strings_.Add(text), string_bytes_);
  }

  void SortAndMerge();
  size_t CountSame(size_t first) const;
  void AppendMerged(size_t first, size_t count);
  Result<uint8_t> AddressBytes() const;
  void WriteAddresses(uint8_t address_bytes, ByteWriter& out) const;
  void WriteFiles(ByteWriter& out) const;
  std::vector<uint64_t> PlaceFunctions(uint64_t from) const;
  void WriteFunctions(ByteWriter& out) const;
  Result<std::vector<std::byte>> Finish1(std::string_view uuid,
                                         uint8_t address_bytes);
  Result<std::vector<std::byte>> Finish2(std::string_view uuid,
                                         uint8_t address_bytes);

  GsymWriterOptions options_;
  size_t string_bytes_;
  GsymStrings strings_;
  std::vector<std::pair<uint64_t, uint64_t>> files_;
  uint32_t unknown_file_ = 0;  // 0: not needed so far
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> file_ids_;
  std::vector<Encoded> functions_;
  ByteWriter encoded_;
  Losses losses_;
  GsymLineEncoder line_encoder_;
  std::vector<uint32_t> batch_files_;  // of the batch being added; 0: not yet
  std::vector<LineRow> rows_;          // scratch
  std::vector<uint64_t> bases_;        // scratch
};

}  // namespace ksym
