// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/dwarf_file.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

namespace ksym {
namespace {

std::unexpected<Error> Corrupt(uint64_t offset, std::string_view what) {
  return Fail(ErrorCode::kCorrupt, ".debug_info at offset " +
                                       std::to_string(offset) + ": " +
                                       std::string(what));
}

}  // namespace

Result<std::unique_ptr<DwarfFile>> DwarfFile::Load(
    const ByteSource& source, const ElfImage& image,
    DebugSections::Options options, Alternate alternate) {
  auto sections = DebugSections::Load(source, image, options);
  if (!sections) return Fail(std::move(sections.error()));
  // make_unique cannot call the private constructor.
  std::unique_ptr<DwarfFile> file(
      new DwarfFile(std::move(*sections), options.kind));
  file->alternate_ = std::move(alternate);
  // First: it says where a unit's parts of other sections are.
  if (options.kind == DebugSections::Kind::kSplit) file->ReadPackageIndex();
  file->IndexUnits();
  return file;
}

void DwarfFile::IndexUnits() {
  ByteCursor in(info());
  while (index_status_ && !in.AtEnd()) index_status_ = IndexUnit(in);
  // A once_flag cannot be moved, so this waits until no unit is added any more.
  scopes_ = std::make_unique<LazyScopes[]>(units_.size());
}

const EntryScopes& DwarfFile::ScopesOf(const DwarfUnit& unit) const {
  LazyScopes& lazy = scopes_[static_cast<size_t>(&unit - units_.data())];
  // Several threads read units of one file, and names in one unit may have
  // scopes in another.
  std::call_once(lazy.once, [&] { lazy.scopes = EntryScopes(info(), unit); });
  return lazy.scopes;
}

// Tables are shared by units, and hostile ones could overlap; what is read is
// bounded by a few times the section.
Result<const AbbreviationTable*> DwarfFile::Abbreviations(uint64_t offset) {
  const auto found = abbreviations_.find(offset);
  if (found != abbreviations_.end()) return found->second.get();
  const auto section = sections_.Get(DebugSection::kAbbrev);
  constexpr uint64_t kMaxTimesRead = 8;
  if (abbreviation_bytes_ > kMaxTimesRead * section.size()) {
    return Fail(ErrorCode::kLimit, ".debug_abbrev: tables overlap");
  }
  ByteCursor in(section);
  in.Seek(offset);
  auto table = std::make_unique<AbbreviationTable>();
  const bool ok = table->Parse(in);
  if (ok) abbreviation_bytes_ += in.offset() - offset;
  if (!ok) {
    return Fail(
        ErrorCode::kCorrupt,
        ".debug_abbrev at offset " + std::to_string(offset) + ": malformed");
  }
  return abbreviations_.emplace(offset, std::move(table)).first->second.get();
}

Status DwarfFile::IndexUnit(ByteCursor& in) {
  DwarfUnit unit;
  unit.offset = in.offset();
  unit.format.offset_bytes = 4;
  uint64_t length = in.Read<uint32_t>();
  // The mark of the 64-bit format (DWARF 5, section 7.4).
  if (length == 0xffffffff) {
    unit.format.offset_bytes = 8;
    length = in.Read<uint64_t>();
  }
  if (!in.ok() || length > in.remaining()) {
    return Corrupt(unit.offset, "a unit is cut off");
  }
  unit.end = in.offset() + length;
  unit.format.version = in.Read<uint16_t>();
  const uint16_t version = unit.format.version;
  if (version < 2 || version > 5) {
    return Fail(ErrorCode::kUnsupported,
                ".debug_info at offset " + std::to_string(unit.offset) +
                    ": DWARF version " + std::to_string(version));
  }
  uint64_t abbreviations = 0;
  unit.type = DW_UT_compile;
  // Version 5 put the unit's type in front and turned the other two fields
  // round (section 7.5.1).
  if (version >= 5) {
    unit.type = in.Read<uint8_t>();
    unit.format.address_bytes = in.Read<uint8_t>();
    abbreviations = in.ReadSized(unit.format.offset_bytes);
    if (unit.type == DW_UT_skeleton || unit.type == DW_UT_split_compile) {
      unit.dwo_id = in.Read<uint64_t>();
    }
  } else {
    abbreviations = in.ReadSized(unit.format.offset_bytes);
    unit.format.address_bytes = in.Read<uint8_t>();
  }
  unit.first_entry = in.offset();
  if (!in.ok() || unit.first_entry > unit.end) {
    return Corrupt(unit.offset, "a unit's header is cut off");
  }
  in.Seek(unit.end);
  // Type units describe types only, whose code is in other units.
  const bool has_entries =
      unit.type != DW_UT_type && unit.type != DW_UT_split_type;
  if (!has_entries) return {};
  if (unit.format.address_bytes != 4 && unit.format.address_bytes != 8) {
    return Corrupt(unit.offset, "addresses have neither 4 nor 8 bytes");
  }
  return AddUnit(unit, abbreviations);
}

Status DwarfFile::AddUnit(DwarfUnit& unit, uint64_t abbreviations) {
  if (is_package_) {
    const auto package = package_.find(unit.offset);
    if (package == package_.end()) return {};
    abbreviations += package->second.abbrev;
  }
  const auto table = Abbreviations(abbreviations);
  if (!table) return Fail(table.error());
  unit.abbreviations = *table;
  const auto read = ReadFirstEntry(unit);
  if (read) units_.push_back(unit);
  return read;
}

namespace {

// The attributes of a unit's entry that matter, in the order that
// SetUnitAttributes takes their values: bases first, which the others need.
constexpr std::array<uint16_t, 14> kUnitAttributes = {
    DW_AT_str_offsets_base, DW_AT_addr_base,       DW_AT_GNU_addr_base,
    DW_AT_rnglists_base,    DW_AT_GNU_ranges_base, DW_AT_stmt_list,
    DW_AT_low_pc,           DW_AT_comp_dir,        DW_AT_dwo_name,
    DW_AT_GNU_dwo_name,     DW_AT_GNU_dwo_id,      DW_AT_high_pc,
    DW_AT_ranges,           DW_AT_language};

}  // namespace

Status DwarfFile::ReadFirstEntry(DwarfUnit& unit) {
  ByteCursor in(info().first(static_cast<size_t>(unit.end)));
  in.Seek(unit.first_entry);
  const Abbreviation* abbreviation = unit.abbreviations->Find(in.ReadUleb128());
  if (abbreviation == nullptr) {
    return Corrupt(unit.offset, "a unit's entry has no abbreviation");
  }
  unit.tag = abbreviation->tag;
  std::vector<FormValue> values(kUnitAttributes.size());
  for (const AttributeSpec& spec :
       unit.abbreviations->Attributes(*abbreviation)) {
    FormValue value;
    if (!ReadForm(spec, unit.format, in, value) || !in.ok()) {
      return Corrupt(unit.offset, "a unit's entry is malformed");
    }
    const auto* known = std::ranges::find(kUnitAttributes, spec.name);
    if (known != kUnitAttributes.end()) {
      values[static_cast<size_t>(known - kUnitAttributes.begin())] = value;
    }
  }
  SetUnitAttributes(unit, values);
  return {};
}

void DwarfFile::SetUnitAttributes(DwarfUnit& unit,
                                  const std::vector<FormValue>& values) {
  const auto package = package_.find(unit.offset);
  const bool is_split = kind_ == DebugSections::Kind::kSplit;
  const Contribution part =
      package == package_.end() ? Contribution() : package->second;
  // Split units do not say where their parts begin: behind a header in DWARF
  // 5, at once before.
  const bool has_headers = unit.format.version >= 5;
  const bool is64 = unit.format.offset_bytes == 8;
  const uint64_t strings_header = has_headers ? (is64 ? 16 : 8) : 0;
  const uint64_t ranges_header = has_headers ? (is64 ? 20 : 12) : 0;
  unit.str_offsets_base =
      is_split ? part.str_offsets + strings_header : values[0].number;
  unit.addr_base = values[1].is_set() ? values[1].number : values[2].number;
  unit.rnglists_base =
      is_split ? part.rnglists + ranges_header : values[3].number;
  unit.ranges_base = values[4].number;
  unit.line_offset = values[5];
  unit.low_pc = AddressOf(unit, values[6]).value_or(0);
  unit.comp_dir = String(unit, values[7]);
  unit.high_pc = values[11];
  unit.ranges = values[12];
  unit.language = static_cast<uint16_t>(values[13].number);
  // A split unit repeats its own name.
  if (!is_split) {
    unit.dwo_name = String(unit, values[8].is_set() ? values[8] : values[9]);
  }
  if (values[10].is_set()) unit.dwo_id = values[10].number;
  if (package != package_.end()) unit.dwo_id = part.dwo_id;
}

void DwarfFile::SetSkeleton(const DwarfFile& file, const DwarfUnit& skeleton) {
  skeleton_file_ = &file;
  for (DwarfUnit& unit : units_) {
    // A split unit has none of these itself: they would have to be relocated,
    // and the linker never sees a .dwo file (DWARF 5, section 3.1.3).
    if (unit.dwo_id != skeleton.dwo_id) continue;
    unit.addr_base = skeleton.addr_base;
    unit.ranges_base = skeleton.ranges_base;
    unit.low_pc = skeleton.low_pc;
    unit.comp_dir = skeleton.comp_dir;
    unit.line_offset = skeleton.line_offset;
  }
}

const DwarfUnit* DwarfFile::FindUnit(uint64_t offset) const {
  const auto next =
      std::ranges::upper_bound(units_, offset, {}, &DwarfUnit::offset);
  if (next == units_.begin()) return nullptr;
  const DwarfUnit& unit = *(next - 1);
  // Type units are not listed, so there are gaps between units.
  return offset < unit.end ? &unit : nullptr;
}

const DwarfUnit* DwarfFile::FindSplitUnit(uint64_t dwo_id) const {
  const auto found =
      std::ranges::find(units_, std::optional(dwo_id), &DwarfUnit::dwo_id);
  return found == units_.end() ? nullptr : &*found;
}

// The index of a package: DWARF 5, section 7.3.5.3, and its predecessor, whose
// version is 2. The rows before the fault of a malformed one count.
void DwarfFile::ReadPackageIndex() {
  ByteCursor in(sections_.Get(DebugSection::kCuIndex));
  is_package_ = !in.AtEnd();
  const auto version = in.Read<uint32_t>() & 0xffffu;
  const auto columns = in.Read<uint32_t>();
  const auto unit_count = in.Read<uint32_t>();
  const auto slots = in.Read<uint32_t>();
  constexpr uint32_t kMaxColumns = 16;
  if (!in.ok() || columns > kMaxColumns || slots > in.remaining() / 12) return;
  ByteCursor ids = in;
  in.Skip(uint64_t{slots} * 8);
  ByteCursor rows = in;
  in.Skip(uint64_t{slots} * 4);
  std::vector<uint32_t> kinds(columns);
  for (uint32_t& kind : kinds) kind = in.Read<uint32_t>();
  const size_t table = in.offset();
  constexpr uint32_t kInfo = 1;
  constexpr uint32_t kAbbrev = 3;
  constexpr uint32_t kStrOffsets = 6;
  const uint32_t rnglists = version >= 5 ? 8 : 0;
  for (uint32_t i = 0; i < slots && in.ok(); ++i) {
    Contribution part = {.dwo_id = ids.Read<uint64_t>()};
    const auto row = rows.Read<uint32_t>();
    if (row == 0 || row > unit_count) continue;
    in.Seek(table + uint64_t{row - 1} * columns * 4);
    uint64_t offset = 0;
    // Each row has one offset for each column, in the order of the header's
    // kinds.
    for (const uint32_t kind : kinds) {
      const auto value = in.Read<uint32_t>();
      if (kind == kInfo) offset = value;
      if (kind == kAbbrev) part.abbrev = value;
      if (kind == kStrOffsets) part.str_offsets = value;
      if (kind == rnglists) part.rnglists = value;
    }
    if (in.ok()) package_.emplace(offset, part);
  }
}

std::string_view DwarfFile::IndexedString(const DwarfUnit& unit,
                                          uint64_t index) const {
  ByteCursor in(sections_.Get(DebugSection::kStrOffsets));
  // An index that is larger could wrap when it is multiplied.
  if (index > in.remaining()) return {};
  in.Skip(unit.str_offsets_base);
  in.Skip(index * unit.format.offset_bytes);
  const uint64_t offset = in.ReadSized(unit.format.offset_bytes);
  return in.ok() ? sections_.Text(DebugSection::kStr, offset)
                 : std::string_view();
}

std::string_view DwarfFile::String(const DwarfUnit& unit,
                                   const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_string:
      return value.text;
    case DW_FORM_strp:
      return sections_.Text(DebugSection::kStr, value.number);
    case DW_FORM_line_strp:
      return sections_.Text(DebugSection::kLineStr, value.number);
    case DW_FORM_strx:
    case DW_FORM_strx1:
    case DW_FORM_strx2:
    case DW_FORM_strx3:
    case DW_FORM_strx4:
    case DW_FORM_GNU_str_index:
      return IndexedString(unit, value.number);
    // Names that dwz moved out are lost without their file; the code is not.
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_strp_alt:
      return alternate_ == nullptr
                 ? std::string_view()
                 : alternate_->sections_.Text(DebugSection::kStr, value.number);
    default:
      return {};
  }
}

std::optional<uint64_t> DwarfFile::IndexedAddress(const DwarfUnit& unit,
                                                  uint64_t index) const {
  const DwarfFile& file = skeleton_file_ == nullptr ? *this : *skeleton_file_;
  ByteCursor in(file.sections_.Get(DebugSection::kAddr));
  if (index > in.remaining()) return std::nullopt;
  in.Skip(unit.addr_base);
  in.Skip(index * unit.format.address_bytes);
  const uint64_t address = in.ReadSized(unit.format.address_bytes);
  return in.ok() ? std::optional(address) : std::nullopt;
}

std::optional<uint64_t> DwarfFile::AddressOf(const DwarfUnit& unit,
                                             const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_addr:
      return value.number;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
      return IndexedAddress(unit, value.number);
    default:
      return std::nullopt;
  }
}

std::optional<DwarfFile::Reference> DwarfFile::Refer(
    const DwarfUnit& unit, const FormValue& value) const {
  switch (value.form) {
    case DW_FORM_ref1:
    case DW_FORM_ref2:
    case DW_FORM_ref4:
    case DW_FORM_ref8:
    case DW_FORM_ref_udata:
      // These count from the unit's header on, DW_FORM_ref_addr from the
      // section's start (section 7.5.5).
      return Reference{this, unit.offset + value.number};
    case DW_FORM_ref_addr:
      return Reference{this, value.number};
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_ref_sup4:
    case DW_FORM_ref_sup8:
      if (alternate_ == nullptr) return std::nullopt;
      return Reference{alternate_.get(), value.number};
    default:
      return std::nullopt;
  }
}

// .debug_ranges: DWARF 4, section 2.17.3. In a split unit it is the
// skeleton's.
bool DwarfFile::ReadOldRanges(const DwarfUnit& unit, uint64_t offset,
                              std::vector<AddressRange>& ranges) const {
  const DwarfFile& file = skeleton_file_ == nullptr ? *this : *skeleton_file_;
  ByteCursor in(file.sections_.Get(DebugSection::kRanges));
  // The skeleton's own ranges do not count from its base.
  if (skeleton_file_ != nullptr) in.Skip(unit.ranges_base);
  in.Skip(offset);
  const size_t size = unit.format.address_bytes;
  const uint64_t select_base =
      size == 4 ? 0xffffffff : std::numeric_limits<uint64_t>::max();
  uint64_t base = unit.low_pc;
  for (size_t n = 0; n < kMaxRanges; ++n) {
    const uint64_t start = in.ReadSized(size);
    const uint64_t end = in.ReadSized(size);
    if (!in.ok()) return false;
    if (start == 0 && end == 0) return true;
    if (start == select_base) {
      base = end;
    } else if (start < end) {
      ranges.push_back({base + start, base + end});
    }
  }
  return false;
}

// .debug_rnglists: DWARF 5, section 2.17.3.
bool DwarfFile::ReadRangeList(const DwarfUnit& unit, uint64_t offset,
                              std::vector<AddressRange>& ranges) const {
  ByteCursor in(sections_.Get(DebugSection::kRnglists));
  in.Seek(offset);
  const size_t size = unit.format.address_bytes;
  uint64_t base = unit.low_pc;
  const auto indexed = [&] {
    const auto address = IndexedAddress(unit, in.ReadUleb128());
    // This fails the cursor, so that the list counts as malformed.
    if (!address) in.Skip(std::numeric_limits<uint64_t>::max());
    return address.value_or(0);
  };
  for (size_t n = 0; n < kMaxRanges; ++n) {
    uint64_t start = 0;
    uint64_t end = 0;
    switch (in.Read<uint8_t>()) {
      case DW_RLE_end_of_list:
        return in.ok();
      case DW_RLE_base_addressx:
        base = indexed();
        break;
      case DW_RLE_base_address:
        base = in.ReadSized(size);
        break;
      case DW_RLE_startx_endx:
        start = indexed();
        end = indexed();
        break;
      case DW_RLE_startx_length:
        start = indexed();
        end = start + in.ReadUleb128();
        break;
      case DW_RLE_offset_pair:
        start = base + in.ReadUleb128();
        end = base + in.ReadUleb128();
        break;
      case DW_RLE_start_end:
        start = in.ReadSized(size);
        end = in.ReadSized(size);
        break;
      case DW_RLE_start_length:
        start = in.ReadSized(size);
        end = start + in.ReadUleb128();
        break;
      default:
        return false;
    }
    if (!in.ok()) return false;
    if (start < end) ranges.push_back({start, end});
  }
  return false;
}

std::optional<uint64_t> DwarfFile::RangeListOffset(
    const DwarfUnit& unit, const FormValue& value) const {
  // Only an index goes by the base, which is where the unit's offsets begin and
  // what they count from (section 7.28).
  if (value.form != DW_FORM_rnglistx) return value.number;
  ByteCursor in(sections_.Get(DebugSection::kRnglists));
  if (value.number > in.remaining()) return std::nullopt;
  in.Skip(unit.rnglists_base);
  in.Skip(value.number * unit.format.offset_bytes);
  const uint64_t offset = in.ReadSized(unit.format.offset_bytes);
  if (!in.ok()) return std::nullopt;
  return unit.rnglists_base + offset;
}

bool DwarfFile::ReadRanges(const DwarfUnit& unit, const FormValue& value,
                           std::vector<AddressRange>& ranges) const {
  if (unit.format.version < 5) return ReadOldRanges(unit, value.number, ranges);
  const auto offset = RangeListOffset(unit, value);
  return offset && ReadRangeList(unit, *offset, ranges);
}

void DwarfFile::ReadUnitCode(const DwarfUnit& unit,
                             std::vector<AddressRange>& ranges) const {
  // A list goes first: a low_pc beside it is the base of its entries and no
  // code (section 3.1.1).
  if (unit.ranges.is_set()) {
    ReadRanges(unit, unit.ranges, ranges);
    return;
  }
  if (!unit.high_pc.is_set()) return;
  const auto high = AddressOf(unit, unit.high_pc);
  // A high_pc that is a constant is a size (section 2.17.2).
  const uint64_t end = high ? *high : unit.low_pc + unit.high_pc.number;
  if (end > unit.low_pc) ranges.push_back({unit.low_pc, end});
}

}  // namespace ksym
