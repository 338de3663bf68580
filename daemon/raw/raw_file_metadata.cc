// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <protozero/pbf_message.hpp>
#include <string>
#include <utility>
#include <vector>

#include "daemon/raw/raw_file_decode.h"
#include "daemon/raw/raw_file_layout.h"

namespace profd::raw_file {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_reader;
using protozero::pbf_wire_type;

namespace {

template <size_t kCauses>
void ReadCauses(data_view view, std::array<uint64_t, kCauses>& counts) {
  Column column(view);
  for (size_t i = 0; !column.AtEnd(); ++i) {
    // Causes of a later version: without them less would be lost than was.
    if (i == kCauses) throw Malformed("unknown loss causes");
    counts[i] = column.Next();
  }
}

template <typename Fields, typename Owner, typename Value>
void SetField(const Fields& fields, uint32_t number, Owner& owner,
              const Value& value) {
  for (const auto& field : fields) {
    if (field.number == number) owner.*field.member = value;
  }
}

SampleKind ReadSampleKind(const std::string& bytes) {
  SampleKind kind;
  pbf_message<SampleKindField> message(bytes);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case BytesField(SampleKindField::kName):
        kind.name = message.get_bytes();
        break;
      case BytesField(SampleKindField::kUnit):
        kind.unit = message.get_bytes();
        break;
      case BytesField(SampleKindField::kEvent):
        kind.event = message.get_bytes();
        break;
      case VarintField(SampleKindField::kFrequencyHz):
        kind.frequency_hz = message.get_uint64();
        break;
      case VarintField(SampleKindField::kCountPeriod):
        kind.count_period = message.get_uint64();
        break;
      case VarintField(SampleKindField::kHasValues):
        kind.has_values = message.get_bool();
        break;
      default:
        message.skip();
    }
  }
  return kind;
}

}  // namespace

void ReadMetadata(data_view view, CaptureMetadata& metadata) {
  SampleKind first;
  std::vector<SampleKind> kinds;
  pbf_reader message(view);
  while (message.next()) {
    const uint32_t number = message.tag();  // gone after the value
    if (message.wire_type() == pbf_wire_type::varint) {
      const uint64_t value = message.get_uint64();
      SetField(kMetadataNumbers, number, metadata, value);
      SetField(kRateNumbers, number, first, value);
      SetField(kKernelTableNumbers, number, metadata.kernel_table, value);
      SetField(kUnwindTableNumbers, number, metadata.unwind_tables, value);
      if (number == kMaxStackDepthField) {
        metadata.max_stack_depth = To32Bits(value);
      }
    } else if (message.wire_type() == pbf_wire_type::length_delimited) {
      const std::string text = message.get_bytes();
      SetField(kMetadataTexts, number, metadata, text);
      if (number == kVersionField) metadata.version = text;
      if (number == kEventField) first.event = text;
      if (number == kSampleKindField) kinds.push_back(ReadSampleKind(text));
      if (number == kWarningField) metadata.warnings.push_back(text);
    } else {
      message.skip();
    }
  }
  // Versions before 4 have one kind, told by its event and rate.
  if (kinds.empty()) {
    kinds.push_back(EventKind(std::move(first.event), first.frequency_hz,
                              first.count_period));
  }
  if (kinds.size() > kMaxSampleKinds) throw Malformed("too many sample kinds");
  metadata.kinds = std::move(kinds);
}

void ReadAccounting(data_view view, Accounting& accounting) {
  pbf_message<AccountingField> message(view);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case VarintField(AccountingField::kTaken):
        accounting.taken = message.get_uint64();
        break;
      case VarintField(AccountingField::kEmitted):
        accounting.emitted = message.get_uint64();
        break;
      case BytesField(AccountingField::kLost):
        ReadCauses(message.get_view(), accounting.lost_by_cause);
        break;
      case BytesField(AccountingField::kDamaged):
        ReadCauses(message.get_view(), accounting.damaged_by_cause);
        break;
      case BytesField(AccountingField::kUserStackEnds):
        ReadCauses(message.get_view(), accounting.user_stack_ends);
        break;
      case VarintField(AccountingField::kHelpedByFramePointers):
        accounting.helped_by_frame_pointers = message.get_uint64();
        break;
      case VarintField(AccountingField::kTimeEnabledNs):
        accounting.time_enabled_ns = message.get_uint64();
        break;
      case VarintField(AccountingField::kTimeRunningNs):
        accounting.time_running_ns = message.get_uint64();
        break;
      case VarintField(AccountingField::kHintsDropped):
        accounting.processes.hints_dropped = message.get_uint64();
        break;
      case VarintField(AccountingField::kReportsLost):
        accounting.processes.reports_lost = message.get_uint64();
        break;
      case VarintField(AccountingField::kHistoriesDropped):
        accounting.processes.histories_dropped = message.get_uint64();
        break;
      default:
        message.skip();
    }
  }
}

}  // namespace profd::raw_file
