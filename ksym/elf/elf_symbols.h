// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/base/table_room.h"
#include "ksym/elf/byte_source.h"
#include "ksym/elf/debug_file.h"
#include "ksym/elf/elf_image.h"
#include "ksym/elf/symbol_table.h"

namespace ksym {

// Everything needed to name the code of one ELF file: its segments, its
// symbols, and the source that the names are read from when asked for. Owns
// the source, so the file stays open as long as this lives.
//   auto symbols = ElfSymbols::Load(ByteSource::OfFile(std::move(fd), size));
//   if (auto match = symbols->Find(offset)) name = symbols->ReadName(*match);
// Not thread-safe.
class ElfSymbols {
 public:
  // Longer names are cut here; templates reach some thousands.
  static constexpr size_t kMaxNameBytes = size_t{64} << 10;

  // Reads the headers and symbol tables. A file that has only dynamic symbols
  // gets those of its debug file, if `finder` finds it, or else of its
  // .gnu_debugdata section, or else of its .gopclntab section, or else of the
  // debug file that `finder` fetches; what is wrong with those is no error.
  // kUnsupported: not an ELF file of ours; kCorrupt: it contradicts itself;
  // kLimit: too many symbols. A file without symbols is no error:
  // symbol_count() is 0. While it reads it has some 60 bytes for each symbol,
  // for which it asks `room`.
  static Result<ElfSymbols> Load(ByteSource source,
                                 const DebugFileFinder& finder = {},
                                 const TableRoom& room = {});

  // Where the byte belongs, or nothing when no symbol covers it. O(log n).
  std::optional<SymbolTable::Match> Find(FileOffset offset) const;
  // The same for an address as the file's own headers count.
  std::optional<SymbolTable::Match> FindAddress(ElfAddress address) const {
    return table_.Find(address);
  }
  // The preferred alias's name, not demangled; "f@plt" for a stub. Cost: one
  // pread per alias. Fails when the file has shrunk.
  Result<std::string> ReadName(const SymbolTable::Match& match) const;

  // Lower-case hex; empty when the file has none.
  const std::string& build_id() const { return build_id_; }
  const std::vector<ElfSegment>& segments() const { return segments_; }
  // What it was read from.
  const ByteSource& source() const { return source_; }
  // The source's descriptor, -1 when it is in memory.
  int fd() const { return source_.fd(); }
  // Whether a second descriptor is held, of the debug file.
  bool holds_debug_file() const { return beside_.fd() >= 0; }
  // Gives the descriptor back; no name can be read any more.
  UniqueFd TakeFd() && { return std::move(source_).TakeFd(); }
  // Whether there are more than the dynamic symbols.
  bool has_full_table() const { return has_full_table_; }
  size_t symbol_count() const { return table_.size(); }
  size_t memory_bytes() const;

 private:
  // The part of a source that a string table is.
  struct Strings {
    enum class Place : uint8_t { kFile, kBeside };
    Place place = Place::kFile;
    uint64_t file_offset = 0;
    uint64_t size = 0;
  };

  explicit ElfSymbols(ByteSource source) : source_(std::move(source)) {}
  Status ReadTables(const ElfImage& image, const DebugFileFinder& finder,
                    const TableRoom& room);
  Status ReadOwnSymbols(const ElfImage& image,
                        std::vector<SymbolCandidate>& candidates);
  // Takes over `debug` and the symbols in it; false: there are none.
  bool AddDebugSymbols(ByteSource debug,
                       std::vector<SymbolCandidate>& candidates);
  bool AddGoFunctions(const ElfImage& image,
                      std::vector<SymbolCandidate>& candidates);
  Result<std::string> ReadString(const SymbolTable::Name& name) const;

  ByteSource source_;
  // Names that are not in the file as they are: the debug file, or a string
  // table that had to be unpacked.
  ByteSource beside_ = ByteSource::OfMemory({});
  std::vector<ElfSegment> segments_;
  std::string build_id_;
  std::array<Strings, 4> strings_;  // by NameTable
  SymbolTable table_;
  bool has_full_table_ = false;
};

}  // namespace ksym
