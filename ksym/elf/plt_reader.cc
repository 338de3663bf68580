// SPDX-License-Identifier: Apache-2.0
#include "ksym/elf/plt_reader.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/elf/x86_64/plt_stub.h"

namespace ksym {
namespace {

constexpr size_t kMaxPltBytes = size_t{4} << 20;
constexpr size_t kBlockBytes = size_t{64} << 10;

// A stub and the word of the global offset table that it jumps through.
struct Stub {
  uint64_t slot = 0;
  uint64_t start = 0;
  uint64_t size = 0;
};

void CollectStubs(const ByteSource& source, const ElfImage& image,
                  std::vector<Stub>& stubs) {
  for (const std::string_view name : {".plt", ".plt.sec", ".plt.got"}) {
    const ElfSection* section = image.FindSection(name);
    if (section == nullptr || (section->flags & SHF_EXECINSTR) == 0) continue;
    const auto code = ReadSection(source, *section, kMaxPltBytes);
    if (!code) continue;
    const uint64_t size = PltStubSize(*section, name, *code);
    for (uint64_t at = 0; at + size <= code->size(); at += size) {
      const uint64_t address = section->address.value + at;
      const auto slot =
          ParsePltStub(std::span(*code).subspan(at, size), address);
      if (slot) stubs.push_back({*slot, address, size});
    }
  }
  std::sort(stubs.begin(), stubs.end(),
            [](const Stub& a, const Stub& b) { return a.slot < b.slot; });
}

// The name of a .dynsym symbol as an offset in .dynstr.
std::optional<uint32_t> NameOfDynamic(const ByteSource& source,
                                      const ElfSection& dynsym,
                                      uint64_t index) {
  if (index == 0 || index >= dynsym.size / sizeof(Elf64_Sym)) {
    return std::nullopt;
  }
  std::array<std::byte, sizeof(uint32_t)> bytes = {};
  const auto offset = CheckedAdd(dynsym.file_offset, index * sizeof(Elf64_Sym));
  if (!offset || !source.ReadAt(*offset, bytes)) return std::nullopt;
  return ByteReader(bytes).Read<uint32_t>();
}

// Names the stubs while the relocations go by.
class StubNamer {
 public:
  StubNamer(const ByteSource& source, const ElfSection& dynsym,
            std::vector<Stub> stubs)
      : source_(source), dynsym_(dynsym), stubs_(std::move(stubs)) {}

  // A stub has one relocation; a hostile file's could repeat without end.
  bool done() const { return named_ >= stubs_.size(); }

  void AddRelocations(std::span<const std::byte> block,
                      std::vector<SymbolCandidate>& out) {
    ByteReader in(block);
    while (in.remaining() >= sizeof(Elf64_Rela) && !done()) {
      const auto slot = in.Read<uint64_t>();
      const auto info = in.Read<uint64_t>();
      in.Read<uint64_t>();  // r_addend
      if (IsPltRelocation(ELF64_R_TYPE(info))) {
        AddStubs(slot, ELF64_R_SYM(info), out);
      }
    }
  }

 private:
  void AddStubs(uint64_t slot, uint64_t symbol,
                std::vector<SymbolCandidate>& out) {
    auto stub = std::lower_bound(
        stubs_.begin(), stubs_.end(), slot,
        [](const Stub& s, uint64_t value) { return s.slot < value; });
    if (stub == stubs_.end() || stub->slot != slot) return;
    const auto name = NameOfDynamic(source_, dynsym_, symbol);
    for (; name && stub != stubs_.end() && stub->slot == slot; ++stub) {
      SymbolCandidate candidate;
      candidate.start = {stub->start};
      candidate.end = {stub->start + stub->size};
      candidate.name = *name;
      candidate.table = NameTable::kPlt;
      // Before mold's local symbol of the stub, "name$plt", so that stripping
      // does not change a name.
      candidate.binding = SymbolBinding::kGlobal;
      out.push_back(candidate);
      ++named_;
    }
  }

  const ByteSource& source_;
  const ElfSection& dynsym_;
  std::vector<Stub> stubs_;  // sorted by slot
  size_t named_ = 0;
};

}  // namespace

Status AddPltStubs(const ByteSource& source, const ElfImage& image,
                   std::vector<SymbolCandidate>& symbols) {
  if (!HasPltStubs(image)) return {};
  const ElfSection* dynsym = image.FindSection(".dynsym");
  std::vector<Stub> stubs;
  if (dynsym != nullptr) CollectStubs(source, image, stubs);
  if (stubs.empty()) return {};
  // The stubs are known before the relocations are read. These may be a
  // million; only those that fill a stub's slot matter, and none is kept.
  StubNamer namer(source, *dynsym, std::move(stubs));
  std::vector<std::byte> block(kBlockBytes / sizeof(Elf64_Rela) *
                               sizeof(Elf64_Rela));
  // The first is short and has the slots of .plt and .plt.sec. The second is
  // read only as long as a stub has no name, as one of .plt.got.
  for (const std::string_view name : {".rela.plt", ".rela.dyn"}) {
    const ElfSection* section = image.FindSection(name);
    if (section == nullptr || section->type != SHT_RELA) continue;
    for (uint64_t at = 0; at < section->size && !namer.done();
         at += block.size()) {
      const auto bytes = std::span(block).first(static_cast<size_t>(
          std::min<uint64_t>(section->size - at, block.size())));
      const auto offset = CheckedAdd(section->file_offset, at);
      if (!offset) return Fail(ErrorCode::kCorrupt, "relocations wrap around");
      const auto read = source.ReadAt(*offset, bytes);
      if (!read) return read;
      namer.AddRelocations(bytes, symbols);
    }
  }
  return {};
}

}  // namespace ksym
