// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/history/column_fields.h"
#include "daemon/history/columns.h"
#include "daemon/history/limits.h"
#include "daemon/history/number_reader.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/byte_cursor.h"
#include "ksym/base/count_leb128.h"
#include "ksym/base/result.h"

namespace profd::history {

// Reads the new elements of one table after the other behind those that are
// there; remembers the first failure. Borrows the columns.
class ColumnReader {
 public:
  ColumnReader(std::span<const std::string_view> columns, Content content)
      : columns_(columns), content_(content) {}

  // The table has at most `most` elements afterwards.
  template <typename Element, typename Fields>
  void Read(std::vector<Element>& table, size_t most, const Fields& fields) {
    if (!status_) return;
    const size_t there = table.size();
    const size_t more =
        HasColumn(content_, next_) ? ksym::CountLeb128(columns_[next_]) : 0;
    if (more > most - there) return SetTooLarge();
    table.resize(there + more);
    next_ = ForEachField(fields, next_, [&](const auto& field, size_t column) {
      if (!status_ || !HasColumn(content_, column)) return;
      ReadField(field, columns_[column], there, table);
    });
  }

  // One more column of a table that was read behind `there` elements, or
  // nothing where all of it is 0.
  template <typename Element, typename Value>
  void ReadUnlessZero(std::vector<Element>& table, size_t there,
                      const Field<Element, Value>& field) {
    const size_t column = next_++;
    if (!status_ || !HasColumn(content_, column)) return;
    if (columns_[column].empty()) return;
    ReadField(field, columns_[column], there, table);
  }

  std::vector<std::string_view> ReadStrings(size_t there, size_t text_bytes) {
    std::vector<std::string_view> strings;
    ksym::ByteCursor lengths(std::as_bytes(std::span(columns_[0])));
    std::string_view texts = columns_[1];
    next_ = 2;
    if (texts.size() > kMaxTextBytes - text_bytes) SetTooLarge();
    while (status_ && !lengths.AtEnd()) {
      const uint64_t size = lengths.ReadUleb128();
      if (!lengths.ok() || size > texts.size()) {
        SetCorrupt("a text ends early");
      } else if (size > ksym::kMaxShownBytes) {
        SetCorrupt("a text is too long");
      } else if (there + strings.size() >= kMaxStrings) {
        SetTooLarge();
      } else {
        strings.push_back(texts.substr(0, size));
        texts.remove_prefix(size);
      }
    }
    if (status_ && !texts.empty()) SetCorrupt("bytes belong to no text");
    return strings;
  }

  void Check(bool is_right, const char* what) {
    if (status_ && !is_right) SetCorrupt(what);
  }
  const ksym::Status& status() const { return status_; }

 private:
  template <typename Element, typename Value>
  void ReadField(const Field<Element, Value>& field, std::string_view bytes,
                 size_t there, std::vector<Element>& table) {
    if (ksym::CountLeb128(bytes) != table.size() - there) {
      return SetCorrupt("columns differ in length");
    }
    switch (field.code) {
      case Code::kPlain:
        return ReadNumbers<Code::kPlain>(field.member, bytes, there, table);
      case Code::kStep:
        return ReadNumbers<Code::kStep>(field.member, bytes, there, table);
      case Code::kDistance:
        return ReadNumbers<Code::kDistance>(field.member, bytes, there, table);
    }
  }

  // As many as there are elements behind `there` others.
  template <Code kCode, typename Element, typename Value>
  void ReadNumbers(Value Element::* member, std::string_view bytes,
                   size_t there, std::vector<Element>& table) {
    NumberReader numbers(bytes);
    uint64_t value = 0;
    bool is_too_large = false;
    size_t at = there;
    const auto put = [&](uint64_t number) {
      value = number;
      is_too_large |= value > std::numeric_limits<Value>::max();
      table[at++].*member = static_cast<Value>(value);
    };
    while (at < table.size()) {
      if (numbers.ReadAlike<kCode>(value, at, table.size() - at, put) == 0) {
        put(numbers.Read<kCode>(value, at));
      }
    }
    // Bytes behind the last number are of one that has no end.
    if (!numbers.IsDone()) return SetCorrupt("a number ends early");
    if (is_too_large) SetCorrupt("a number is too large");
  }

  void SetCorrupt(const char* what) {
    status_ = ksym::Fail(ksym::ErrorCode::kCorrupt, what);
  }
  void SetTooLarge() {
    status_ = ksym::Fail(ksym::ErrorCode::kLimit, "holds more than a file may");
  }

  const std::span<const std::string_view> columns_;
  const Content content_;
  size_t next_ = 0;
  ksym::Status status_;
};

// The new elements of a table of lists: so many behind `there` others.
struct Listed {
  size_t there = 0;
  size_t added = 0;
};

// Sets first and checks that the lists of all `elements` are the listed ones.
template <typename Element>
bool PlaceLists(std::span<Element> elements, uint32_t Element::* first,
                uint32_t Element::* count, Listed listed) {
  const size_t end = listed.there + listed.added;
  uint64_t next = listed.there;
  for (Element& element : elements) {
    element.*first = static_cast<uint32_t>(next);
    next += element.*count;
    if (next > end) return false;
  }
  return next == end;
}

template <typename Element, typename... Members>
bool AllBelow(std::span<Element> elements, size_t end, Members... members) {
  // All are looked at: a loop that may end early is slower, and hardly ever
  // does.
  bool are_below = true;
  for (const auto& element : elements) {
    are_below &= ((element.*members < end) & ...);
  }
  return are_below;
}

}  // namespace profd::history
