// SPDX-License-Identifier: Apache-2.0
#include "ksym/dwarf/dwarf_places.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

namespace ksym {
namespace {

// For all units together; hostile ones can all refer to one long list.
constexpr size_t kMaxUnitRanges = size_t{1} << 22;

// Pieces of code, some in others, by start.
class CodeIndex {
 public:
  explicit CodeIndex(const std::vector<FunctionInfo>& functions)
      : functions_(functions) {
    for (uint32_t i = 0; i < functions.size(); ++i) order_.push_back(i);
    std::ranges::sort(order_, [&](uint32_t a, uint32_t b) {
      const AddressRange& left = functions[a].range;
      const AddressRange& right = functions[b].range;
      if (left.start != right.start) return left.start < right.start;
      // The longer one goes first, so that Find(), which comes from behind,
      // meets the inner one before it.
      return left.end != right.end ? left.end > right.end : a < b;
    });
    uint64_t end = 0;
    for (const uint32_t i : order_) {
      ends_.push_back(end = std::max(end, functions[i].range.end));
    }
  }

  // The one that begins last of those that have the address, or null.
  const FunctionInfo* Find(uint64_t address) const {
    const auto next = std::ranges::upper_bound(
        order_, address, {},
        [this](uint32_t i) { return functions_[i].range.start; });
    auto at = static_cast<size_t>(next - order_.begin());
    // Once the largest end up to here is no further, nothing before reaches the
    // address.
    while (at > 0 && ends_[at - 1] > address) {
      const FunctionInfo& function = functions_[order_[--at]];
      if (function.range.Contains(address)) return &function;
    }
    return nullptr;
  }

  size_t memory_bytes() const {
    return order_.capacity() * sizeof(uint32_t) +
           ends_.capacity() * sizeof(uint64_t);
  }

 private:
  const std::vector<FunctionInfo>& functions_;
  std::vector<uint32_t> order_;
  std::vector<uint64_t> ends_;  // the largest up to here
};

}  // namespace

class DwarfPlaces::Unit {
 public:
  explicit Unit(UnitFunctions unit)
      : unit_(std::move(unit)),
        functions_(unit_.batch.functions),
        other_code_(unit_.other_code) {}

  void Find(uint64_t address, std::vector<DwarfPlace>& places) const {
    const FunctionInfo* code = functions_.Find(address);
    const bool is_function = code != nullptr;
    if (!is_function) code = other_code_.Find(address);
    if (code == nullptr) return;
    DwarfPlace place = PlaceAt(*code, address);
    if (is_function) {
      AddCalls(*code, address, place, places);
    } else if (place.file != nullptr) {
      places.push_back(place);
    }
  }

  std::vector<AddressRange> Code() const {
    std::vector<AddressRange> code;
    for (const auto* list : {&unit_.batch.functions, &unit_.other_code}) {
      for (const FunctionInfo& function : *list) code.push_back(function.range);
    }
    return code;
  }

  size_t memory_bytes() const {
    const FunctionBatch& batch = unit_.batch;
    size_t bytes = functions_.memory_bytes() + other_code_.memory_bytes() +
                   sizeof(FunctionInfo) * (batch.functions.capacity() +
                                           unit_.other_code.capacity()) +
                   sizeof(LineRow) * batch.lines.capacity() +
                   sizeof(InlinedCall) * batch.inlines.capacity() +
                   sizeof(AddressRange) * batch.ranges.capacity();
    for (const SourceFile& file : batch.files) {
      bytes += sizeof(file) + file.directory.capacity() + file.base.capacity();
    }
    return bytes;
  }

 private:
  const SourceFile* FileAt(uint32_t index) const {
    return index == 0 ? nullptr : &unit_.batch.files[index];
  }

  // What the line table says.
  DwarfPlace PlaceAt(const FunctionInfo& code, uint64_t address) const {
    const auto rows =
        std::span(unit_.batch.lines).subspan(code.first_line, code.line_count);
    const auto next =
        std::ranges::upper_bound(rows, address, {}, &LineRow::address);
    if (next == rows.begin() || (next - 1)->file == 0) return {};
    const LineRow& row = *(next - 1);
    return {.function = {},
            .file = FileAt(row.file),
            .line = row.line,
            .column = row.column};
  }

  bool Contains(const InlinedCall& call, uint64_t address) const {
    const auto ranges = std::span(unit_.batch.ranges)
                            .subspan(call.first_range, call.range_count);
    const auto next =
        std::ranges::upper_bound(ranges, address, {}, &AddressRange::start);
    return next != ranges.begin() && (next - 1)->Contains(address);
  }

  // The last call in preorder that has the address, then those around it.
  void AddCalls(const FunctionInfo& function, uint64_t address,
                DwarfPlace place, std::vector<DwarfPlace>& places) const {
    const auto calls =
        std::span(unit_.batch.inlines)
            .subspan(function.first_inline, function.inline_count);
    uint32_t depth = 0;  // of the last one that was added; 0: none
    for (size_t i = calls.size(); i > 0 && depth != 1; --i) {
      const InlinedCall& call = calls[i - 1];
      // Preorder has a call's callers before it, and the nearest one that is
      // less deep is its own; that one has the address because its ranges hold
      // the call's.
      const bool is_next =
          depth == 0 ? Contains(call, address) : call.depth < depth;
      if (!is_next) continue;
      depth = call.depth;
      place.function = call.name;
      places.push_back(place);
      place = {.function = {},
               .file = FileAt(call.call_file),
               .line = call.call_line,
               .column = call.call_column};
    }
    place.function = function.name;
    places.push_back(place);
  }

  UnitFunctions unit_;
  CodeIndex functions_;
  CodeIndex other_code_;
};

DwarfPlaces::DwarfPlaces(DwarfFunctionReader reader)
    : reader_(std::move(reader)),
      units_(reader_.unit_count()),
      losses_(reader_.losses()) {}
DwarfPlaces::DwarfPlaces(DwarfPlaces&&) noexcept = default;
DwarfPlaces& DwarfPlaces::operator=(DwarfPlaces&&) noexcept = default;
DwarfPlaces::~DwarfPlaces() = default;

Result<DwarfPlaces> DwarfPlaces::Open(const ByteSource& source,
                                      const ElfImage& image,
                                      const DwarfFileFinder& finder) {
  auto reader = DwarfFunctionReader::Open(source, image, finder);
  if (!reader) return Fail(std::move(reader.error()));
  DwarfPlaces places(std::move(*reader));
  places.memory_bytes_ = places.reader_.memory_bytes();
  places.IndexUnits();
  places.memory_bytes_ += places.code_.capacity() * sizeof(UnitCode);
  return places;
}

// Where several units say that they have the same code, the one before goes
// on, else the first in the file has it.
void DwarfPlaces::IndexUnits() {
  struct End {
    uint64_t address = 0;
    bool is_start = false;
    uint32_t unit = 0;
  };
  std::vector<End> ends;
  std::vector<AddressRange> ranges;
  for (uint32_t i = 0; i < units_.size() && ends.size() < 2 * kMaxUnitRanges;
       ++i) {
    ranges.clear();
    reader_.ReadUnitCode(i, ranges);
    // What the unit does not say its functions and lines do, at the cost of
    // reading all of it.
    if (ranges.empty() && reader_.MayHaveCode(i)) ranges = UnitAt(i).Code();
    for (const AddressRange& range : ranges) {
      ends.push_back({range.start, true, i});
      ends.push_back({range.end, false, i});
    }
  }
  std::ranges::stable_sort(ends, {}, &End::address);
  // A unit may list the same code twice, and then ends twice.
  std::multiset<uint32_t> open;
  uint64_t done = 0;
  for (const End& end : ends) {
    if (end.address > done && !open.empty()) {
      const bool goes_on = !code_.empty() && code_.back().range.end == done &&
                           open.contains(code_.back().unit);
      if (goes_on) {
        code_.back().range.end = end.address;
      } else {
        code_.push_back({{done, end.address}, *open.begin()});
      }
    }
    done = end.address;
    if (end.is_start) {
      open.insert(end.unit);
    } else if (const auto found = open.find(end.unit); found != open.end()) {
      open.erase(found);
    }
  }
  code_.shrink_to_fit();
}

DwarfPlaces::Unit& DwarfPlaces::UnitAt(size_t index) {
  if (units_[index] == nullptr) {
    UnitFunctions unit;
    reader_.ReadUnit(index,
                     {.columns = LineTable::Columns::kRead,
                      .scopes = DwarfReadOptions::Scopes::kSkip},
                     unit);
    losses_.Add(unit.losses);
    units_[index] = std::make_unique<Unit>(std::move(unit));
    memory_bytes_ += units_[index]->memory_bytes();
  }
  return *units_[index];
}

void DwarfPlaces::Find(ElfAddress address, std::vector<DwarfPlace>& places) {
  places.clear();
  const auto next =
      std::ranges::upper_bound(code_, address.value, {},
                               [](const UnitCode& c) { return c.range.start; });
  if (next == code_.begin() || !(next - 1)->range.Contains(address.value)) {
    return;
  }
  UnitAt((next - 1)->unit).Find(address.value, places);
}

}  // namespace ksym
