// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "ksym/base/byte_cursor.h"
#include "ksym/base/function_batch.h"
#include "ksym/base/result.h"
#include "ksym/dwarf/abbreviations.h"
#include "ksym/dwarf/debug_sections.h"
#include "ksym/dwarf/dwarf_unit.h"
#include "ksym/dwarf/entry_scopes.h"

namespace ksym {

// The DWARF of one file: its sections, units and abbreviations. Immutable after
// Load and SetSkeleton but for ScopesOf(); any number of threads may read.
// Entries are read with ByteCursor over info(), so nothing here costs per
// entry.
class DwarfFile {
 public:
  // Where DW_FORM_GNU_ref_alt and the like refer to: the file that dwz moved
  // what several files share to. Or null.
  using Alternate = std::unique_ptr<DwarfFile>;

  // Indexes all units: their headers, first entries and abbreviations, which
  // costs a page per unit. A unit that is malformed ends the index, because
  // what is behind it cannot be found; see index_status(). kCorrupt, kLimit:
  // no section can be used.
  static Result<std::unique_ptr<DwarfFile>> Load(const ByteSource& source,
                                                 const ElfImage& image,
                                                 DebugSections::Options options,
                                                 Alternate alternate = nullptr);

  // Where addresses and the ranges of DWARF 4 are: of a split file, those of
  // the file that it was split from. Both are borrowed.
  void SetSkeleton(const DwarfFile& file, const DwarfUnit& unit);

  const std::vector<DwarfUnit>& units() const { return units_; }
  const Status& index_status() const { return index_status_; }
  const DebugSections& sections() const { return sections_; }
  std::span<const std::byte> info() const {
    return sections_.Get(DebugSection::kInfo);
  }
  // The unit that holds the offset, or null. O(log units).
  const DwarfUnit* FindUnit(uint64_t offset) const;
  const DwarfUnit* FindSplitUnit(uint64_t dwo_id) const;
  // The scopes of one of units(). Kept; the first call costs a pass over the
  // unit's entries.
  const EntryScopes& ScopesOf(const DwarfUnit& unit) const;

  // What values mean. Nothing, or an empty text, when they refer to nothing.
  std::string_view String(const DwarfUnit& unit, const FormValue& value) const;
  std::optional<uint64_t> AddressOf(const DwarfUnit& unit,
                                    const FormValue& value) const;
  // Appends the ranges that DW_AT_ranges stands for, without empty ones. False
  // when the list is malformed or longer than kMaxRanges.
  static constexpr size_t kMaxRanges = size_t{1} << 20;
  bool ReadRanges(const DwarfUnit& unit, const FormValue& value,
                  std::vector<AddressRange>& ranges) const;
  // Appends the code that the unit itself says it has; it need not say.
  void ReadUnitCode(const DwarfUnit& unit,
                    std::vector<AddressRange>& ranges) const;

  // An entry, possibly of another unit or file.
  struct Reference {
    const DwarfFile* file = nullptr;
    uint64_t offset = 0;
  };
  std::optional<Reference> Refer(const DwarfUnit& unit,
                                 const FormValue& value) const;

 private:
  // A part of a package that belongs to one unit.
  struct Contribution {
    uint64_t dwo_id = 0;
    uint64_t abbrev = 0;
    uint64_t str_offsets = 0;
    uint64_t rnglists = 0;
  };

  explicit DwarfFile(DebugSections sections, DebugSections::Kind kind)
      : sections_(std::move(sections)), kind_(kind) {}

  void IndexUnits();
  Status IndexUnit(ByteCursor& in);
  Status AddUnit(DwarfUnit& unit, uint64_t abbreviations);
  Status ReadFirstEntry(DwarfUnit& unit);
  void SetUnitAttributes(DwarfUnit& unit, const std::vector<FormValue>& values);
  Result<const AbbreviationTable*> Abbreviations(uint64_t offset);
  void ReadPackageIndex();
  std::optional<uint64_t> IndexedAddress(const DwarfUnit& unit,
                                         uint64_t index) const;
  std::string_view IndexedString(const DwarfUnit& unit, uint64_t index) const;
  bool ReadOldRanges(const DwarfUnit& unit, uint64_t offset,
                     std::vector<AddressRange>& ranges) const;
  bool ReadRangeList(const DwarfUnit& unit, uint64_t offset,
                     std::vector<AddressRange>& ranges) const;
  std::optional<uint64_t> RangeListOffset(const DwarfUnit& unit,
                                          const FormValue& value) const;

  DebugSections sections_;
  DebugSections::Kind kind_;
  std::vector<DwarfUnit> units_;
  Status index_status_;
  std::map<uint64_t, std::unique_ptr<AbbreviationTable>> abbreviations_;
  uint64_t abbreviation_bytes_ = 0;  // read so far
  // A package's contributions, by the unit's offset. What belongs to a unit
  // that its index lacks is not known, so there is none such in units_.
  std::map<uint64_t, Contribution> package_;
  bool is_package_ = false;
  struct LazyScopes {
    std::once_flag once;
    EntryScopes scopes;
  };
  std::unique_ptr<LazyScopes[]> scopes_;  // by index of the unit
  std::unique_ptr<DwarfFile> alternate_;
  const DwarfFile* skeleton_file_ = nullptr;
};

}  // namespace ksym
