// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <tuple>
#include <utility>

#include "daemon/profile/profile.h"
#include "daemon/raw/raw_file.h"
#include "daemon/raw/raw_file_layout.h"
#include "ksym/base/append_bytes.h"

namespace profd {
namespace raw_file {
namespace {

using ksym::ProcessId;
using protozero::pbf_builder;
using protozero::pbf_writer;

template <typename T>
void SortUnique(std::vector<T>& values) {
  std::ranges::sort(values);
  const auto [first, last] = std::ranges::unique(values);
  values.erase(first, last);
}

// `values` is sorted and has the value.
template <typename T>
uint64_t IndexOf(const std::vector<T>& values, const T& value) {
  return static_cast<uint64_t>(std::ranges::lower_bound(values, value) -
                               values.begin());
}

// Writes one capture. Every table is sorted or filled in the order of a sorted
// walk, so that the bytes do not depend on the order of the input.
class Writer {
 public:
  Writer(const RawCapture& capture, std::string& out)
      : capture_(capture), profile_(capture.profile), out_(out) {
    for (const RawSample& sample : profile_.samples) {
      samples_.push_back(&sample);
      processes_.push_back(sample.process);
      for (const StackId id : {sample.user_stack, sample.kernel_stack}) {
        if (id >= kFirstStackId) stack_ids_.push_back(id);
      }
    }
    for (const StackId id : profile_.stacks.ids()) stack_ids_.push_back(id);
    for (const auto& [id, image] : profile_.images) processes_.push_back(id);
    for (const auto& [id, waker] : profile_.wakers) {
      processes_.push_back(waker.process);
      for (const StackId stack : {waker.user_stack, waker.kernel_stack}) {
        if (stack >= kFirstStackId) stack_ids_.push_back(stack);
      }
    }
    SortUnique(stack_ids_);
    SortUnique(processes_);
    std::ranges::sort(samples_, {}, [](const RawSample* s) {
      return std::tie(s->process, s->tid, s->comm, s->user_stack,
                      s->kernel_stack, s->kind, s->count, s->value);
    });
    has_kinds_ = !IsOneEventKind(profile_.metadata.kinds);
  }

  // The oldest one that has what was written, so that older programs can read
  // all that they know of. Known after Write().
  uint32_t version() const {
    if (!profile_.wakers.empty()) return kFormatVersion;
    if (has_kinds_) return kNoWakersFormatVersion;
    return has_mixed_stacks_ ? kOneKindFormatVersion : kNativeFormatVersion;
  }

  // False when something is too large for protobuf. The order of the fields is
  // free but for two things: strings are written when everything else has put
  // its own into the table, and a reader takes samples in last, wherever they
  // are, as they name the others by number.
  bool Write() {
    AddMetadata();
    AddAccounting();
    for (const StackId id : stack_ids_) AddStack(id);
    for (const ProcessId& id : processes_) AddProcess(id);
    AddSamples();
    for (const auto& change : profile_.kernel_changes) AddKernelChange(change);
    for (const auto& [id, frame] : profile_.runtime_frames) {
      AddRuntimeFrame(id, frame);
    }
    for (const auto& [id, waker] : profile_.wakers) AddWaker(id, waker);
    for (const MappedObject& module : capture_.modules) AddModule(module);
    for (const KernelPart& part : capture_.kernel_parts) AddKernelPart(part);
    if (!capture_.thread_lives.empty()) AddThreadLives();
    if (capture_.thread_sums.count != 0) AddThreadSums();
    for (StringId id = 0; id < strings_.size(); ++id) {
      Add(CaptureField::kString, strings_.Get(id));
    }
    Add(CaptureField::kKernelSymbols,
        {reinterpret_cast<const char*>(capture_.kernel_symbols.data()),
         capture_.kernel_symbols.size()});
    pbf_builder<CaptureField>(out_).add_uint32(
        CaptureField::kKernelSymbolsState,
        static_cast<uint32_t>(capture_.kernel_symbols_state));
    Add(CaptureField::kVdsoImage, capture_.vdso_image);
    return !too_large_;
  }

 private:
  void Add(CaptureField field, std::string_view bytes) {
    // protozero's lengths have 32 bits.
    if (bytes.size() > std::numeric_limits<uint32_t>::max()) {
      too_large_ = true;
      return;
    }
    pbf_builder<CaptureField>(out_).add_bytes(field, bytes.data(),
                                              bytes.size());
  }

  void AddMetadata() {
    const CaptureMetadata& metadata = profile_.metadata;
    std::string buffer;
    pbf_writer message(buffer);
    // Versions before 4 have their only kind here; the others repeat the first.
    const SampleKind& first = metadata.kinds.front();
    message.add_bytes(kVersionField, metadata.version);
    message.add_bytes(kEventField, first.event);
    for (const auto& field : kMetadataTexts) {
      message.add_bytes(field.number, metadata.*field.member);
    }
    for (const auto& field : kRateNumbers) {
      message.add_uint64(field.number, first.*field.member);
    }
    for (const auto& field : kMetadataNumbers) {
      message.add_uint64(field.number, metadata.*field.member);
    }
    for (const auto& field : kKernelTableNumbers) {
      message.add_uint64(field.number, metadata.kernel_table.*field.member);
    }
    for (const auto& field : kUnwindTableNumbers) {
      message.add_uint64(field.number, metadata.unwind_tables.*field.member);
    }
    message.add_uint32(kMaxStackDepthField, metadata.max_stack_depth);
    for (const std::string& warning : metadata.warnings) {
      message.add_bytes(kWarningField, warning);
    }
    if (has_kinds_) {
      for (const SampleKind& kind : metadata.kinds) {
        message.add_bytes(kSampleKindField, KindMessage(kind));
      }
    }
    Add(CaptureField::kMetadata, buffer);
  }

  static std::string KindMessage(const SampleKind& kind) {
    std::string buffer;
    pbf_builder<SampleKindField> message(buffer);
    message.add_bytes(SampleKindField::kName, kind.name);
    message.add_bytes(SampleKindField::kUnit, kind.unit);
    message.add_bytes(SampleKindField::kEvent, kind.event);
    message.add_uint64(SampleKindField::kFrequencyHz, kind.frequency_hz);
    message.add_uint64(SampleKindField::kCountPeriod, kind.count_period);
    message.add_bool(SampleKindField::kHasValues, kind.has_values);
    return buffer;
  }

  void AddAccounting() {
    const Accounting& accounting = profile_.accounting;
    const auto& lost = accounting.lost_by_cause;
    const auto& damaged = accounting.damaged_by_cause;
    std::string buffer;
    pbf_builder<AccountingField> message(buffer);
    message.add_uint64(AccountingField::kTaken, accounting.taken);
    message.add_uint64(AccountingField::kEmitted, accounting.emitted);
    message.add_packed_uint64(AccountingField::kLost, lost.begin(), lost.end());
    message.add_packed_uint64(AccountingField::kDamaged, damaged.begin(),
                              damaged.end());
    const auto& ends = accounting.user_stack_ends;
    message.add_packed_uint64(AccountingField::kUserStackEnds, ends.begin(),
                              ends.end());
    message.add_uint64(AccountingField::kHelpedByFramePointers,
                       accounting.helped_by_frame_pointers);
    message.add_uint64(AccountingField::kTimeEnabledNs,
                       accounting.time_enabled_ns);
    message.add_uint64(AccountingField::kTimeRunningNs,
                       accounting.time_running_ns);
    const ProcessLoss& processes = accounting.processes;
    message.add_uint64(AccountingField::kHintsDropped, processes.hints_dropped);
    message.add_uint64(AccountingField::kReportsLost, processes.reports_lost);
    message.add_uint64(AccountingField::kHistoriesDropped,
                       processes.histories_dropped);
    Add(CaptureField::kAccounting, buffer);
  }

  void AddStack(StackId id) {
    std::string buffer;
    pbf_builder<StackField> message(buffer);
    message.add_fixed64(StackField::kId, id);
    const auto stack = profile_.stacks.Find(id);
    if (!stack) {
      message.add_uint32(StackField::kMissing, 1);
    } else {
      // A stack without frames is written alike whether it is mixed or not, and
      // asks for no newer version.
      if (!stack->frames.empty()) {
        message.add_bytes(
            stack->mixed ? StackField::kMixedFrames : StackField::kFrame,
            stack->frames.data(), stack->frames.size());
        has_mixed_stacks_ |= stack->mixed;
      }
      message.add_uint32(StackField::kEnd, static_cast<uint32_t>(stack->end));
      if (stack->used_frame_pointers) {
        message.add_uint32(StackField::kUsedFramePointers, 1);
      }
    }
    Add(CaptureField::kStack, buffer);
  }

  void AddProcess(const ProcessId& id) {
    std::string buffer;
    pbf_builder<ProcessField> message(buffer);
    message.add_uint32(ProcessField::kPid, id.pid);
    message.add_uint32(ProcessField::kExecCount, id.exec_count);
    message.add_uint64(ProcessField::kStartNs, id.start_ns);
    const auto it = profile_.images.find(id);
    if (it != profile_.images.end()) {
      message.add_uint32(ProcessField::kHasImage, 1);
      for (const ksym::Mapping& mapping : it->second.mappings) {
        message.add_message(ProcessField::kMapping, MappingMessage(mapping));
      }
    }
    Add(CaptureField::kProcess, buffer);
  }

  std::string MappingMessage(const ksym::Mapping& mapping) {
    std::string buffer;
    pbf_builder<MappingField> message(buffer);
    message.add_uint64(MappingField::kStart, mapping.start.value);
    message.add_uint64(MappingField::kSize, mapping.end - mapping.start);
    message.add_uint64(MappingField::kFileOffset, mapping.file_offset.value);
    message.add_uint32(MappingField::kDeviceMajor, mapping.device_major);
    message.add_uint32(MappingField::kDeviceMinor, mapping.device_minor);
    message.add_uint64(MappingField::kInode, mapping.inode);
    message.add_uint32(MappingField::kPath, strings_.Intern(mapping.path));
    return buffer;
  }

  void AddKernelChange(const ksym::KernelSymbolChange& change) {
    std::string buffer;
    pbf_builder<KernelChangeField> message(buffer);
    if (change.kind == ksym::KernelSymbolChange::Kind::kRemoved) {
      message.add_uint32(KernelChangeField::kRemoved, 1);
    }
    message.add_uint64(KernelChangeField::kStart, change.start.value);
    message.add_uint64(KernelChangeField::kSize, change.size);
    message.add_uint32(KernelChangeField::kName, strings_.Intern(change.name));
    message.add_uint32(KernelChangeField::kModule,
                       strings_.Intern(change.module));
    Add(CaptureField::kKernelChange, buffer);
  }

  void AddRuntimeFrame(RuntimeFrameId id, const RuntimeFrame& frame) {
    std::string buffer;
    pbf_builder<RuntimeFrameField> message(buffer);
    message.add_uint64(RuntimeFrameField::kId, id);
    message.add_uint32(RuntimeFrameField::kName, strings_.Intern(frame.name));
    message.add_uint32(RuntimeFrameField::kFile, strings_.Intern(frame.file));
    message.add_uint32(RuntimeFrameField::kFirstLine, frame.first_line);
    message.add_uint32(RuntimeFrameField::kLine, frame.line);
    if (frame.caller != 0) {
      message.add_uint64(RuntimeFrameField::kCaller, frame.caller);
    }
    if (frame.line_is_near) {
      message.add_bool(RuntimeFrameField::kLineIsNear, true);
    }
    if (frame.is_interpreted) {
      message.add_bool(RuntimeFrameField::kIsInterpreted, true);
    }
    Add(CaptureField::kRuntimeFrame, buffer);
  }

  void AddWaker(WakerId id, const RawWaker& waker) {
    std::string buffer;
    pbf_builder<WakerField> message(buffer);
    message.add_fixed64(WakerField::kId, id);
    message.add_bool(WakerField::kIsInterrupt, waker.is_interrupt);
    message.add_uint64(WakerField::kProcess,
                       IndexOf(processes_, waker.process));
    message.add_uint32(WakerField::kTid, waker.tid);
    message.add_uint32(WakerField::kComm, strings_.Intern(waker.comm.view()));
    message.add_uint64(WakerField::kUserStack,
                       StackReference(waker.user_stack));
    message.add_uint64(WakerField::kKernelStack,
                       StackReference(waker.kernel_stack));
    Add(CaptureField::kWaker, buffer);
  }

  void AddModule(const MappedObject& module) {
    std::string buffer;
    pbf_builder<ModuleField> message(buffer);
    message.add_uint32(ModuleField::kDeviceMajor, module.device_major);
    message.add_uint32(ModuleField::kDeviceMinor, module.device_minor);
    message.add_uint64(ModuleField::kInode, module.inode);
    message.add_uint32(ModuleField::kPath, strings_.Intern(module.path));
    message.add_bytes(ModuleField::kBuildId, module.build_id);
    for (const CodeSegment& segment : module.segments) {
      std::string part;
      pbf_builder<SegmentField> fields(part);
      fields.add_uint64(SegmentField::kFileOffset, segment.file_offset);
      fields.add_uint64(SegmentField::kFileSize, segment.file_size);
      fields.add_uint64(SegmentField::kAddress, segment.address);
      message.add_message(ModuleField::kSegment, part);
    }
    Add(CaptureField::kModule, buffer);
  }

  void AddKernelPart(const KernelPart& part) {
    std::string buffer;
    pbf_builder<KernelPartField> message(buffer);
    message.add_bytes(KernelPartField::kName, part.name);
    message.add_bytes(KernelPartField::kBuildId, part.build_id);
    message.add_uint64(KernelPartField::kStart, part.start);
    message.add_uint64(KernelPartField::kSize, part.size);
    Add(CaptureField::kKernelPart, buffer);
  }

  void AddThreadLives() {
    std::vector<ThreadLife> lives = capture_.thread_lives;
    std::ranges::sort(lives, {}, [](const ThreadLife& life) {
      return std::tie(life.pid, life.tid, life.ns);
    });
    std::array<std::vector<uint64_t>, kThreadLivesColumns> columns;
    for (const ThreadLife& life : lives) {
      columns[0].push_back(life.pid);
      columns[1].push_back(life.tid);
      columns[2].push_back(life.ns);
    }
    std::string buffer;
    pbf_builder<ThreadLivesField> message(buffer);
    auto field = static_cast<uint32_t>(ThreadLivesField::kPid);
    for (const auto& column : columns) {
      message.add_packed_uint64(static_cast<ThreadLivesField>(field++),
                                column.begin(), column.end());
    }
    Add(CaptureField::kThreadLives, buffer);
  }

  void AddThreadSums() {
    const ThreadSums& sums = capture_.thread_sums;
    std::string buffer;
    pbf_builder<ThreadSumsField> message(buffer);
    message.add_uint64(ThreadSumsField::kCount, sums.count);
    message.add_uint64(ThreadSumsField::kRunningNs, sums.sum.running_ns);
    message.add_uint64(ThreadSumsField::kRunnableNs, sums.sum.runnable_ns);
    message.add_uint64(ThreadSumsField::kBlockedNs, sums.sum.blocked_ns);
    std::array<std::vector<uint64_t>, kThreadSumsColumns> columns;
    for (const ThreadSums::Thread& thread : sums.Sorted()) {
      columns[0].push_back(thread.pid);
      columns[1].push_back(thread.tid);
      columns[2].push_back(strings_.Intern(thread.comm));
      columns[3].push_back(thread.times.running_ns);
      columns[4].push_back(thread.times.runnable_ns);
      columns[5].push_back(thread.times.blocked_ns);
    }
    auto field = static_cast<uint32_t>(ThreadSumsField::kFirstColumn);
    for (const auto& column : columns) {
      message.add_packed_uint64(static_cast<ThreadSumsField>(field++),
                                column.begin(), column.end());
    }
    Add(CaptureField::kThreadSums, buffer);
  }

  uint64_t StackReference(StackId id) const {
    return id < kFirstStackId ? id
                              : kFirstStackReference + IndexOf(stack_ids_, id);
  }

  void AddSamples() {
    std::array<std::vector<uint64_t>, kSampleColumns> columns;
    for (const RawSample* sample : samples_) {
      columns[0].push_back(IndexOf(processes_, sample->process));
      columns[1].push_back(sample->tid);
      columns[2].push_back(strings_.Intern(sample->comm.view()));
      columns[3].push_back(StackReference(sample->user_stack));
      columns[4].push_back(StackReference(sample->kernel_stack));
      columns[5].push_back(sample->count);
      columns[6].push_back(sample->kind);
      columns[7].push_back(sample->value);
    }
    std::string buffer;
    pbf_builder<SamplesField> message(buffer);
    uint32_t field = static_cast<uint32_t>(SamplesField::kProcess);
    const size_t written = has_kinds_ ? kSampleColumns : kOneKindSampleColumns;
    for (const auto& column : std::span(columns).first(written)) {
      message.add_packed_uint64(static_cast<SamplesField>(field++),
                                column.begin(), column.end());
    }
    Add(CaptureField::kSamples, buffer);
  }

  const RawCapture& capture_;
  const RawProfile& profile_;
  std::string& out_;
  std::vector<const RawSample*> samples_;
  std::vector<ProcessId> processes_;
  std::vector<StackId> stack_ids_;
  StringTable strings_;
  bool too_large_ = false;
  bool has_mixed_stacks_ = false;
  bool has_kinds_ = false;  // more than an event and a rate tell
};

}  // namespace

std::string Header(std::string_view payload, uint32_t version) {
  const auto crc = static_cast<uint32_t>(crc32_z(
      0, reinterpret_cast<const Bytef*>(payload.data()), payload.size()));
  std::string header(kMagic);
  ksym::AppendLittleEndian(version, header);
  ksym::AppendLittleEndian(crc, header);
  ksym::AppendLittleEndian(uint64_t{payload.size()}, header);
  return header;
}

}  // namespace raw_file

ksym::Status WriteRawCapture(const RawCapture& capture, std::string& out) {
  if (capture.profile.metadata.kinds.size() > kMaxSampleKinds) {
    return ksym::Fail(ksym::ErrorCode::kInvalid,
                      "raw capture: there are too many kinds of samples");
  }
  for (const StackId id : capture.profile.stacks.ids()) {
    if (id < kFirstStackId) {
      return ksym::Fail(ksym::ErrorCode::kInvalid,
                        "raw capture: stack id " + std::to_string(id) +
                            " means a state, it cannot have frames");
    }
  }
  // The payload comes first, though it lies behind the header: that has its
  // size and CRC, and the version that its stacks turn out to need.
  std::string payload;
  raw_file::Writer writer(capture, payload);
  if (!writer.Write()) {
    return ksym::Fail(ksym::ErrorCode::kLimit,
                      "raw capture: a part is larger than 4 GiB; capture for "
                      "a shorter time");
  }
  out = raw_file::Header(payload, writer.version());
  out += payload;
  return {};
}

}  // namespace profd
