// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ksym/base/byte_cursor.h"

namespace ksym {

// How a unit's numbers are stored.
struct UnitFormat {
  uint16_t version = 0;
  uint8_t address_bytes = 0;
  uint8_t offset_bytes = 0;  // 4, or 8 in the 64-bit format
};

// An attribute's code (DW_AT_*) and how its value is stored (DW_FORM_*).
struct AttributeSpec {
  uint16_t name = 0;
  uint16_t form = 0;
  int64_t implicit_value = 0;  // of DW_FORM_implicit_const
};

// The shape of entries: DWARF 5, section 7.5.3.
struct Abbreviation {
  uint32_t first_attribute = 0;
  uint32_t attribute_count = 0;
  uint16_t tag = 0;  // DW_TAG_*
  bool has_children = false;
  bool has_code = false;  // DW_AT_low_pc or DW_AT_ranges
  // Whether all entries have the same size, and then what it is made of.
  bool is_fixed = true;
  uint32_t fixed_bytes = 0;
  uint32_t address_count = 0;
  uint32_t offset_count = 0;

  uint64_t FixedSize(const UnitFormat& format) const {
    return fixed_bytes + uint64_t{address_count} * format.address_bytes +
           uint64_t{offset_count} * format.offset_bytes;
  }
};

// The abbreviations of one or more units. Immutable.
class AbbreviationTable {
 public:
  // Reads up to the table's end. False when it is malformed.
  bool Parse(ByteCursor& in);

  // Null for a code that is not in the table. O(1) when codes count from 1 on,
  // as compilers write them.
  const Abbreviation* Find(uint64_t code) const;
  std::span<const AttributeSpec> Attributes(const Abbreviation& a) const {
    return std::span(attributes_).subspan(a.first_attribute, a.attribute_count);
  }
  // Whether there can be a function that has code.
  bool has_function_code() const { return has_function_code_; }

 private:
  bool ParseAttributes(ByteCursor& in, Abbreviation& abbreviation);

  std::vector<Abbreviation> entries_;
  std::vector<AttributeSpec> attributes_;
  // Codes and indices of entries that do not count on from those before.
  std::vector<std::pair<uint64_t, uint32_t>> other_codes_;
  size_t dense_count_ = 0;
  bool has_function_code_ = false;
};

// Passes over the values of an entry. False for a form that is not known.
bool SkipEntry(const AbbreviationTable& table, const Abbreviation& abbreviation,
               const UnitFormat& format, ByteCursor& in);

// Passes over a value. False for a form that is not known.
bool SkipForm(uint16_t form, const UnitFormat& format, ByteCursor& in);

}  // namespace ksym
