// SPDX-License-Identifier: Apache-2.0
#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <protozero/pbf_message.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "daemon/raw/raw_file.h"
#include "daemon/raw/raw_file_decode.h"
#include "daemon/raw/raw_file_layout.h"
#include "ksym/base/byte_reader.h"
#include "ksym/base/keyed_hash.h"

namespace profd {
namespace raw_file {
namespace {

using protozero::data_view;
using protozero::pbf_message;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

struct PathsTooLong {};

// Paths are shared in the file and copied in memory: the one place where a
// small file could ask for much.
constexpr size_t kMaxPathBytes = size_t{256} << 20;

// Counts in a packed field: each varint has one byte whose highest bit is not
// set.
size_t CountNumbers(data_view view) {
  return static_cast<size_t>(
      std::count_if(view.data(), view.data() + view.size(), [](char byte) {
        return (static_cast<unsigned char>(byte) & 0x80u) == 0;
      }));
}

class Reader {
 public:
  // The stacks keep the file's bytes, so that frames need not be copied.
  explicit Reader(std::string file) {
    capture_.profile.stacks = RawStackTable(std::move(file));
    payload_ = capture_.profile.stacks.bytes().substr(kHeaderBytes);
  }

  // References go back and forth, so the tables are read before their users.
  // Throws what protozero throws.
  void Read() {
    ForEachField(
        [this](pbf_message<CaptureField>& field) { return Tables(field); });
    ForEachField([this](pbf_message<CaptureField>& field) {
      switch (field.tag_and_type()) {
        case BytesField(CaptureField::kProcess):
          AddProcess(field.get_view());
          return true;
        case BytesField(CaptureField::kKernelChange):
          capture_.profile.kernel_changes.push_back(
              ReadKernelChange(field.get_view(),
                               [this](uint64_t index) { return Path(index); }));
          return true;
        case BytesField(CaptureField::kRuntimeFrame):
          capture_.profile.runtime_frames.insert(
              ReadRuntimeFrame(field.get_view(),
                               [this](uint64_t index) { return Path(index); }));
          return true;
        case BytesField(CaptureField::kModule):
          capture_.modules.push_back(
              ReadModule(field.get_view(),
                         [this](uint64_t index) { return Path(index); }));
          return true;
        case BytesField(CaptureField::kKernelPart):
          capture_.kernel_parts.push_back(ReadKernelPart(field.get_view()));
          return true;
        case BytesField(CaptureField::kThreadLives):
          capture_.thread_lives = ReadThreadLives(field.get_view());
          return true;
        case BytesField(CaptureField::kThreadSums):
          capture_.thread_sums = ReadThreadSums(
              field.get_view(),
              [this](uint64_t index) { return std::string(CommText(index)); });
          return true;
        default:
          return false;
      }
    });
    ForEachField([this](pbf_message<CaptureField>& field) {
      switch (field.tag_and_type()) {
        case BytesField(CaptureField::kSamples):
          AddSamples(field.get_view());
          return true;
        case BytesField(CaptureField::kWaker):
          AddWaker(field.get_view());
          return true;
        default:
          return false;
      }
    });
  }

  RawCapture& capture() { return capture_; }
  // In the file, of the top-level field that is being read.
  size_t offset() const { return kHeaderBytes + offset_; }

 private:
  template <typename Function>
  void ForEachField(const Function& function) {
    pbf_message<CaptureField> message(
        data_view(payload_.data(), payload_.size()));
    for (;;) {
      offset_ = payload_.size() - message.length();
      if (!message.next()) return;
      if (!function(message)) message.skip();
    }
  }

  bool Tables(pbf_message<CaptureField>& field) {
    switch (field.tag_and_type()) {
      case BytesField(CaptureField::kMetadata):
        ReadMetadata(field.get_view(), capture_.profile.metadata);
        return true;
      case BytesField(CaptureField::kAccounting):
        ReadAccounting(field.get_view(), capture_.profile.accounting);
        return true;
      case BytesField(CaptureField::kString):
        strings_.emplace_back(field.get_view());
        return true;
      case BytesField(CaptureField::kStack):
        AddStack(field.get_view());
        return true;
      case BytesField(CaptureField::kKernelSymbols): {
        const data_view view = field.get_view();
        const auto* bytes = reinterpret_cast<const std::byte*>(view.data());
        capture_.kernel_symbols.assign(bytes, bytes + view.size());
        return true;
      }
      case VarintField(CaptureField::kKernelSymbolsState):
        ReadKernelSymbolsState(field.get_uint64());
        return true;
      case BytesField(CaptureField::kVdsoImage):
        capture_.vdso_image = field.get_bytes();
        return true;
      default:
        return false;
    }
  }

  void ReadKernelSymbolsState(uint64_t value) {
    if (value > static_cast<uint64_t>(KernelSymbolsState::kNotInTime)) {
      throw Malformed("unknown state of the kernel symbols");
    }
    capture_.kernel_symbols_state = static_cast<KernelSymbolsState>(value);
  }

  void AddStack(data_view view) {
    const StackOfFile read = ReadStack(view);
    const StackId least =
        stack_ids_.empty() ? kFirstStackId : stack_ids_.back() + 1;
    // Ascending, so that none is there twice.
    if (read.id < least || (!stack_ids_.empty() && least == 0)) {
      throw Malformed("stack ids do not ascend");
    }
    stack_ids_.push_back(read.id);
    if (!read.missing) capture_.profile.stacks.Add(read.id, read.stack);
  }

  void AddProcess(data_view view) {
    ProcessOfFile read =
        ReadProcess(view, [this](uint64_t index) -> const ksym::SharedPath& {
          return MappedPath(index);
        });
    const ksym::ProcessId id = read.image.id;
    if (!processes_.empty() && id <= processes_.back()) {
      throw Malformed("processes do not ascend");
    }
    processes_.push_back(id);
    if (!read.has_image) return;
    capture_.profile.images.emplace(id, std::move(read.image));
  }

  std::string_view String(uint64_t index) const {
    if (index >= strings_.size()) throw Malformed("no such string");
    return {strings_[index].data(), strings_[index].size()};
  }

  std::string Path(uint64_t index) {
    const std::string_view path = String(index);
    if (path.size() > kMaxPathBytes - path_bytes_) throw PathsTooLong{};
    path_bytes_ += path.size();
    return std::string(path);
  }

  // Mappings share theirs.
  const ksym::SharedPath& MappedPath(uint64_t index) {
    const auto [at, is_new] = mapped_paths_.try_emplace(index);
    if (is_new) at->second = Path(index);
    return at->second;
  }

  void AddSamples(data_view view) {
    std::array<Column, kSampleColumns> columns;
    std::vector<RawSample>& samples = capture_.profile.samples;
    pbf_message<SamplesField> message(view);
    while (message.next()) {
      const auto index = static_cast<size_t>(message.tag()) - 1;
      if (message.wire_type() == pbf_wire_type::length_delimited &&
          index < columns.size()) {
        const data_view numbers = message.get_view();
        columns[index] = Column(numbers);
        // Room for as many as there are bytes for: no number in the file is
        // believed.
        if (index == 0) samples.reserve(samples.size() + CountNumbers(numbers));
      } else {
        message.skip();
      }
    }
    // A file of an older version lacks the last ones.
    std::vector<const Column*> present;
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i < kOneKindSampleColumns || !columns[i].AtEnd()) {
        present.push_back(&columns[i]);
      }
    }
    const auto ended = [](const Column* column) { return column->AtEnd(); };
    while (std::ranges::none_of(present, ended)) AddSample(columns);
    if (!std::ranges::all_of(present, ended)) {
      throw Malformed("the samples' columns differ in length");
    }
  }

  void AddWaker(data_view view) {
    WakerId id = 0;
    RawWaker waker;
    pbf_message<WakerField> message(view);
    while (message.next()) {
      switch (message.tag_and_type()) {
        case tag_and_type(WakerField::kId, pbf_wire_type::fixed64):
          id = message.get_fixed64();
          break;
        case VarintField(WakerField::kIsInterrupt):
          waker.is_interrupt = message.get_uint64() != 0;
          break;
        case VarintField(WakerField::kProcess):
          waker.process = ToProcess(message.get_uint64());
          break;
        case VarintField(WakerField::kTid):
          waker.tid = To32Bits(message.get_uint64());
          break;
        case VarintField(WakerField::kComm):
          waker.comm = ToComm(message.get_uint64());
          break;
        case VarintField(WakerField::kUserStack):
          waker.user_stack = ToStackId(message.get_uint64());
          break;
        case VarintField(WakerField::kKernelStack):
          waker.kernel_stack = ToStackId(message.get_uint64());
          break;
        default:
          message.skip();
      }
    }
    capture_.profile.wakers.emplace(id, waker);
  }

  const ksym::ProcessId& ToProcess(uint64_t index) const {
    if (index >= processes_.size()) throw Malformed("no such process");
    return processes_[index];
  }

  std::string_view CommText(uint64_t index) const {
    const std::string_view comm = String(index);
    if (comm.size() > Comm::kMaxBytes) throw Malformed("a comm is too long");
    return comm;
  }

  Comm ToComm(uint64_t index) const {
    const std::string_view text = CommText(index);
    if (text.contains('\0')) throw Malformed("a comm has a NUL");
    return Comm(text);
  }

  void AddSample(std::array<Column, kSampleColumns>& columns) {
    RawSample sample;
    sample.process = ToProcess(columns[0].Next());
    sample.tid = To32Bits(columns[1].Next());
    sample.comm = ToComm(columns[2].Next());
    sample.user_stack = ToStackId(columns[3].Next());
    sample.kernel_stack = ToStackId(columns[4].Next());
    sample.count = columns[5].Next();
    if (!columns[6].AtEnd()) sample.kind = ToKind(columns[6].Next());
    if (!columns[7].AtEnd()) sample.value = columns[7].Next();
    capture_.profile.samples.push_back(sample);
  }

  // The metadata is read before.
  SampleKindId ToKind(uint64_t value) const {
    if (value >= capture_.profile.metadata.kinds.size()) {
      throw Malformed("no such kind of samples");
    }
    return static_cast<SampleKindId>(value);
  }

  StackId ToStackId(uint64_t reference) const {
    if (reference < kFirstStackReference) return reference;
    const uint64_t index = reference - kFirstStackReference;
    if (index >= stack_ids_.size()) throw Malformed("no such stack");
    return stack_ids_[index];
  }

  std::string_view payload_;
  size_t offset_ = 0;  // in the payload
  RawCapture capture_;
  std::vector<data_view> strings_;
  std::vector<StackId> stack_ids_;
  std::vector<ksym::ProcessId> processes_;
  std::unordered_map<uint64_t, ksym::SharedPath, ksym::NumberHash>
      mapped_paths_;
  size_t path_bytes_ = 0;
};

ksym::Error Corrupt(std::string message) {
  return {ksym::ErrorCode::kCorrupt, "raw capture: " + std::move(message)};
}

// The checks that need no decoding.
ksym::Status CheckHeader(std::string_view file) {
  if (!file.starts_with(kMagic.substr(0, file.size()))) {
    return ksym::Fail(Corrupt("wrong magic at offset 0, not such a file"));
  }
  if (file.size() < kHeaderBytes) {
    return ksym::Fail(Corrupt("ends at offset " + std::to_string(file.size()) +
                              ", inside the header"));
  }
  ksym::ByteReader reader(std::as_bytes(std::span(file)));
  reader.Seek(kMagic.size());
  const auto version = reader.Read<uint32_t>();
  const auto crc = reader.Read<uint32_t>();
  const auto size = reader.Read<uint64_t>();
  if (version < kOldestFormatVersion || version > kFormatVersion) {
    return ksym::Fail(ksym::ErrorCode::kUnsupported,
                      "raw capture: version " + std::to_string(version) +
                          ", this program reads up to " +
                          std::to_string(kFormatVersion));
  }
  const std::string_view payload = file.substr(kHeaderBytes);
  if (payload.size() < size) {
    return ksym::Fail(Corrupt("ends at offset " + std::to_string(file.size()) +
                              ", " + std::to_string(size - payload.size()) +
                              " bytes are missing"));
  }
  if (payload.size() > size) {
    return ksym::Fail(Corrupt("should end at offset " +
                              std::to_string(kHeaderBytes + size) +
                              ", more bytes follow"));
  }
  const auto actual_crc = crc32_z(
      0, reinterpret_cast<const Bytef*>(payload.data()), payload.size());
  if (actual_crc != crc) {
    return ksym::Fail(Corrupt("the checksum of the bytes from offset " +
                              std::to_string(kHeaderBytes) + " is wrong"));
  }
  return {};
}

}  // namespace
}  // namespace raw_file

ksym::Result<RawCapture> ReadRawCapture(std::string file) {
  const ksym::Status is_whole = raw_file::CheckHeader(file);
  if (!is_whole) return ksym::Fail(is_whole.error());
  raw_file::Reader reader(std::move(file));
  try {
    reader.Read();
  } catch (const protozero::exception& e) {
    return ksym::Fail(raw_file::Corrupt("malformed in the field at offset " +
                                        std::to_string(reader.offset()) + ": " +
                                        e.what()));
  } catch (const raw_file::PathsTooLong&) {
    return ksym::Fail(ksym::ErrorCode::kLimit,
                      "raw capture: more than 256 MiB of paths");
  }
  CaptureMetadata& metadata = reader.capture().profile.metadata;
  if (metadata.unwind.empty()) metadata.unwind = "fp";  // version 1
  return std::move(reader.capture());
}

}  // namespace profd
