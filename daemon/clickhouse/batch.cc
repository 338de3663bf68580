// SPDX-License-Identifier: Apache-2.0
#include "daemon/clickhouse/batch.h"

#include <compare>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/clickhouse/frame_numbers.h"
#include "daemon/clickhouse/row_binary.h"
#include "daemon/clickhouse/stack_number.h"
#include "daemon/output/cpu_time.h"
#include "daemon/output/resource_owner.h"
#include "daemon/output/stack_state.h"
#include "ksym/base/bounded_name.h"
#include "ksym/base/keyed_hash.h"
#include "ksym/base/printable.h"

namespace profd::clickhouse {
namespace {

constexpr uint64_t kSecondsPerHour = 3600;
constexpr uint64_t kSecondsPerDay = 86'400;

// Printable, and of a bounded length.
std::string StoredText(std::string_view text) {
  const std::string printable = ksym::Printable(text);
  std::string room;
  return std::string(ksym::BoundName(printable, room));
}

// A frame as a stack's number and its row have it.
struct CodedFrame {
  std::string identity;
  std::string name;  // these two in RowBinary
  std::string module;
  uint8_t kind = 0;
};

CodedFrame CodeFrame(uint8_t kind, std::string_view name,
                     std::string_view module) {
  CodedFrame coded = {.identity = {}, .name = {}, .module = {}, .kind = kind};
  AppendIdentity({.kind = kind, .name = name, .module = module},
                 coded.identity);
  AppendText(name, coded.name);
  AppendText(module, coded.module);
  return coded;
}

// The stacks of a profile: their numbers, and a row of each different one.
class StackRows {
 public:
  StackRows(const Profile& profile, uint16_t day)
      : profile_(profile), day_(day) {
    frames_.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) frames_.push_back(Code(frame));
    for (const std::string_view mark : kStackMarks) {
      marks_.push_back(CodeFrame(kMarkNumber, mark, {}));
    }
  }

  // Adds the sample's stack if it is new and there is room.
  uint64_t NumberOf(const ProfileSample& sample) {
    const auto [known, is_new] = numbers_.try_emplace(
        {sample.user_state, sample.user, sample.kernel_state, sample.kernel});
    if (is_new) {
      List(sample);
      known->second = AddListed();
    }
    return known->second;
  }
  // The stack that stands for all that are not kept.
  uint64_t NotKept() {
    const CodedFrame frame = CodeFrame(kMarkNumber, kNotKept, {});
    listed_ = {&frame};
    not_kept_ = NumberOfStack(frame.identity);
    return Add(*not_kept_);
  }
  bool IsNotKept(uint64_t number) const { return number == not_kept_; }

  std::vector<Batch::Stack> Take() && { return std::move(rows_); }

 private:
  CodedFrame Code(const Frame& frame) const {
    // The file of native code goes with the line; that of a runtime's code
    // says which function it is.
    const bool is_of_source = !frame.kind->has_debug_data && frame.file != 0;
    const std::string module = ksym::Printable(
        profile_.String(is_of_source ? frame.file : frame.object));
    std::string room;
    return CodeFrame(NumberOfKind(frame.kind),
                     StoredText(profile_.String(frame.name)),
                     ksym::BoundPath(module, room));
  }

  // As folded stacks have them.
  void List(const ProfileSample& sample) {
    listed_.clear();
    const auto add = [&](StackState state, CallStackId stack, StackOf of) {
      if (const auto mark = MarkOf(state, of)) {
        listed_.push_back(&marks_[*mark]);
      }
      if (IsMissed(state)) return;
      for (const FrameId frame : profile_.Stack(stack) | std::views::reverse) {
        listed_.push_back(&frames_[frame]);
      }
    };
    add(sample.user_state, sample.user, StackOf::kUser);
    add(sample.kernel_state, sample.kernel, StackOf::kKernel);
  }

  uint64_t AddListed() {
    std::string bytes;
    for (const CodedFrame* frame : listed_) bytes += frame->identity;
    // A row has about as many bytes as the number is made of.
    if (bytes_ + bytes.size() > kMaxStackBytes) return NotKept();
    return Add(NumberOfStack(bytes));
  }

  uint64_t Add(uint64_t number) {
    const auto [place, is_new] = places_.try_emplace(number, rows_.size());
    if (!is_new) return number;
    std::string row;
    AppendLittleEndian(day_, row);
    AppendLittleEndian(number, row);
    for (std::string CodedFrame::* text :
         {&CodedFrame::name, &CodedFrame::module}) {
      AppendUleb128(listed_.size(), row);
      for (const CodedFrame* frame : listed_) row += frame->*text;
    }
    AppendUleb128(listed_.size(), row);
    for (const CodedFrame* frame : listed_)
      AppendLittleEndian(frame->kind, row);
    bytes_ += row.size();
    rows_.push_back({.number = number, .row = std::move(row)});
    return number;
  }

  using Parts = std::tuple<StackState, CallStackId, StackState, CallStackId>;

  const Profile& profile_;
  const uint16_t day_;
  std::vector<CodedFrame> frames_;  // by FrameId
  std::vector<CodedFrame> marks_;   // as kStackMarks
  std::vector<const CodedFrame*> listed_;
  std::map<Parts, uint64_t> numbers_;
  // The place in rows_, by number.
  std::unordered_map<uint64_t, size_t, ksym::NumberHash> places_;
  std::vector<Batch::Stack> rows_;
  std::optional<uint64_t> not_kept_;  // its number, once a stack needs it
  size_t bytes_ = 0;
};

// The columns of a sample's row that say whose it is, as they are stored.
struct OwnerTexts {
  std::string service;
  std::string unit;
  std::string pod_namespace;
  std::string pod;
  std::string container;
  std::string container_id;
  std::string version;

  auto operator<=>(const OwnerTexts&) const = default;
};

constexpr std::string_view kVersionLabel = "service.version";

OwnerTexts TextsOf(const ResourceOwner& owner) {
  const auto label = [&](std::string_view key) {
    return StoredText(FindLabel(owner.labels, key));
  };
  OwnerTexts texts = {.service = StoredText(ServiceName(owner)),
                      .unit = StoredText(owner.unit),
                      .pod_namespace = label(kNamespaceLabel),
                      .pod = label(kPodLabel),
                      .container = label(kPodContainerLabel),
                      .container_id = StoredText(owner.container_id),
                      .version = label(kVersionLabel)};
  if (texts.container.empty()) texts.container = label(kContainerLabel);
  return texts;
}

class BatchMaker {
 public:
  BatchMaker(const Profile& profile, const SampleLabels& labels,
             std::string_view run)
      : profile_(profile),
        labels_(labels),
        run_(run),
        host_(StoredText(profile.metadata.hostname)),
        second_(profile.metadata.start_unix_ns / kNsPerSecond),
        stacks_(profile, static_cast<uint16_t>(second_ / kSecondsPerDay)) {}

  Batch Make() {
    for (const ProfileSample& sample : profile_.samples) AddSample(sample);
    Batch batch;
    batch.day = static_cast<uint16_t>(second_ / kSecondsPerDay);
    batch.samples = SampleRows();
    batch.interval = IntervalRow();
    batch.stacks = std::move(stacks_).Take();
    batch.not_kept = not_kept_;
    return batch;
  }

 private:
  // All that makes two rows one but for the interval's own.
  struct RowKey {
    const OwnerTexts* owner = nullptr;  // of owners_: equal ones are one
    StringId command = 0;
    SampleKindId kind = 0;
    bool parked = false;
    uint64_t stack = 0;

    auto operator<=>(const RowKey&) const = default;
  };
  struct Row {
    std::string texts;  // all columns but the sums
    uint64_t count = 0;
    uint64_t value = 0;
  };
  static constexpr size_t kSumBytes = 2 * sizeof(uint64_t);

  const OwnerTexts* OwnerTextsOf(const ProfileSample& sample) {
    const auto [known, is_new] =
        owner_of_.try_emplace({sample.cgroup, sample.labels});
    if (is_new) {
      const auto texts = TextsOf(OwnerOf(profile_, sample, labels_));
      known->second = &*owners_.insert(texts).first;
    }
    return known->second;
  }

  StringId CommandOf(StringId comm) {
    const auto [known, is_new] = command_of_.try_emplace(comm);
    if (is_new) {
      known->second = commands_.Intern(StoredText(profile_.String(comm)));
    }
    return known->second;
  }

  void AddSample(const ProfileSample& sample) {
    RowKey key = {.owner = OwnerTextsOf(sample),
                  .command = 0,
                  .kind = sample.kind,
                  .parked = sample.parked,
                  .stack = stacks_.NumberOf(sample)};
    if (labels_.comm) key.command = CommandOf(sample.comm);
    // Sums stay whole where there is no room for one more row.
    if (row_bytes_ > kMaxSampleBytes && !rows_.contains(key)) {
      key = {.owner = &*owners_.emplace().first,
             .command = 0,
             .kind = sample.kind,
             .parked = sample.parked,
             .stack = stacks_.NotKept()};
    }
    const auto [place, is_new] = rows_.try_emplace(key);
    Row& row = place->second;
    if (is_new) {
      row.texts = TextsOfRow(key);
      row_bytes_ += row.texts.size() + kSumBytes;
    }
    row.count += sample.count;
    row.value += sample.value;
    if (stacks_.IsNotKept(key.stack)) not_kept_ += sample.count;
  }

  std::string TextsOfRow(const RowKey& key) const {
    std::string out;
    const OwnerTexts& owner = *key.owner;
    const SampleKind& kind = profile_.metadata.kinds[key.kind];
    AppendLittleEndian(static_cast<uint32_t>(second_), out);
    AppendLittleEndian(
        static_cast<uint32_t>(second_ - second_ % kSecondsPerHour), out);
    AppendText(owner.service, out);
    AppendText(host_, out);
    AppendText(run_, out);
    AppendText(StoredText(kind.name), out);
    AppendText(commands_.Get(key.command), out);
    for (const std::string* text :
         {&owner.unit, &owner.pod_namespace, &owner.pod, &owner.container,
          &owner.container_id, &owner.version}) {
      AppendText(*text, out);
    }
    AppendLittleEndian(static_cast<uint8_t>(key.parked ? 1 : 0), out);
    AppendLittleEndian(key.stack, out);
    return out;
  }

  std::string SampleRows() const {
    std::string rows;
    rows.reserve(row_bytes_);
    for (const auto& [key, row] : rows_) {
      const SampleKind& kind = profile_.metadata.kinds[key.kind];
      rows += row.texts;
      AppendLittleEndian(row.count, rows);
      AppendLittleEndian(ValueOf(kind, row.count, row.value), rows);
    }
    return rows;
  }

  std::string IntervalRow() const {
    const CaptureMetadata& metadata = profile_.metadata;
    std::string row;
    AppendLittleEndian(static_cast<uint32_t>(second_), row);
    AppendText(host_, row);
    AppendText(run_, row);
    AppendLittleEndian(metadata.duration_ns, row);
    AppendLittleEndian(static_cast<uint32_t>(CountCpus(metadata)), row);
    AppendText(StoredText(metadata.kernel_release), row);
    AppendText(StoredText(metadata.architecture), row);
    AppendText(StoredText(metadata.version), row);
    for (std::string SampleKind::* text :
         {&SampleKind::name, &SampleKind::unit}) {
      AppendUleb128(metadata.kinds.size(), row);
      for (const SampleKind& kind : metadata.kinds) {
        AppendText(StoredText(kind.*text), row);
      }
    }
    AppendUleb128(metadata.kinds.size(), row);
    for (const SampleKind& kind : metadata.kinds) {
      AppendLittleEndian(kind.frequency_hz, row);
    }
    AppendLittleEndian(profile_.accounting.taken, row);
    AppendLittleEndian(profile_.accounting.lost(), row);
    AppendLittleEndian(static_cast<uint32_t>(rows_.size()), row);
    return row;
  }

  const Profile& profile_;
  const SampleLabels& labels_;
  const std::string_view run_;
  const std::string host_;
  const uint64_t second_;
  StackRows stacks_;
  StringTable commands_;
  std::map<StringId, StringId> command_of_;
  std::set<OwnerTexts> owners_;
  std::map<std::pair<StringId, LabelSetId>, const OwnerTexts*> owner_of_;
  std::map<RowKey, Row> rows_;
  size_t row_bytes_ = 0;
  uint64_t not_kept_ = 0;  // samples
};

}  // namespace

Batch MakeBatch(const Profile& profile, const SampleLabels& labels,
                std::string_view run) {
  return BatchMaker(profile, labels, run).Make();
}

}  // namespace profd::clickhouse
