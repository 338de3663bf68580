// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/history/column_fields.h"
#include "daemon/history/tables.h"
#include "ksym/base/byte_writer.h"

namespace profd::history {

// Writes one table after the other as columns, which live longer.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::span<std::string> columns) : columns_(columns) {}

  void AddStrings(const StringTable& strings, size_t from) {
    ksym::ByteWriter lengths;
    std::string& texts = columns_[next_ + 1];
    for (size_t id = from; id < strings.size(); ++id) {
      const std::string_view text = strings.Get(static_cast<StringId>(id));
      lengths.WriteUleb128(text.size());
      texts += text;
    }
    columns_[next_] = TextOf(lengths);
    next_ += 2;
  }

  template <typename Element, typename Fields>
  void Add(const std::vector<Element>& table, size_t from,
           const Fields& fields) {
    next_ = ForEachField(fields, next_, [&](const auto& field, size_t column) {
      columns_[column] = NumbersOf(table, from, field);
    });
  }

  // One more column of a table, empty where all of it is 0.
  template <typename Element, typename Value>
  void AddUnlessZero(const std::vector<Element>& table, size_t from,
                     const Field<Element, Value>& field) {
    const bool is_zero = std::ranges::all_of(
        std::span(table).subspan(from),
        [&](const Element& element) { return element.*field.member == 0; });
    columns_[next_] = is_zero ? std::string() : NumbersOf(table, from, field);
    ++next_;
  }

 private:
  template <typename Element, typename Value>
  static std::string NumbersOf(const std::vector<Element>& table, size_t from,
                               const Field<Element, Value>& field) {
    ksym::ByteWriter writer;
    uint64_t before = 0;
    for (size_t place = from; place < table.size(); ++place) {
      const uint64_t value = table[place].*field.member;
      if (field.code == Code::kStep) {
        writer.WriteSleb128(static_cast<int64_t>(value - before));
        before = value;
      } else {
        writer.WriteUleb128(field.code == Code::kDistance ? place - value
                                                          : value);
      }
    }
    return TextOf(writer);
  }

  static std::string TextOf(const ksym::ByteWriter& writer) {
    const auto bytes = writer.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  const std::span<std::string> columns_;
  size_t next_ = 0;
};

}  // namespace profd::history
