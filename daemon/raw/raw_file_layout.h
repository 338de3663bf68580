// SPDX-License-Identifier: Apache-2.0
#pragma once

// The numbers of the raw capture format, shared by its writer and its reader.
// docs/formats.md gives the same as .proto text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/profile/raw_profile.h"

namespace profd::raw_file {

// Ends in a newline, so that a transfer in text mode shows.
inline constexpr std::string_view kMagic = "KSYMRAW\n";
inline constexpr uint32_t kFormatVersion = 5;
// Written where no waker is known.
inline constexpr uint32_t kNoWakersFormatVersion = 4;
// Written where samples are of one kind, as EventKind() makes it.
inline constexpr uint32_t kOneKindFormatVersion = 3;
// Written where, besides, all frames are native code.
inline constexpr uint32_t kNativeFormatVersion = 2;
// Still read; its stacks say no more of their end than kTruncated.
inline constexpr uint32_t kOldestFormatVersion = 1;
// Magic, u32 version, u32 CRC-32 of the payload, u64 size of the payload.
inline constexpr size_t kHeaderBytes = 24;

// In a sample: the states as they are, then indices into the stack table.
inline constexpr uint64_t kFirstStackReference = kFirstStackId;

enum class CaptureField : uint32_t {
  kMetadata = 1,
  kAccounting = 2,
  kString = 3,
  kStack = 4,
  kProcess = 5,
  kSamples = 6,
  kKernelSymbols = 7,
  kKernelSymbolsState = 8,
  kVdsoImage = 9,
  kKernelChange = 10,
  kModule = 11,
  kKernelPart = 12,
  kRuntimeFrame = 13,  // since version 3
  kThreadLives = 14,   // of captures of waits
  kWaker = 15,         // since version 5
  kThreadSums = 16,    // of captures of waits
};
// A field's number and the member that it holds.
template <typename Owner, typename Value>
struct MemberField {
  uint32_t number;
  Value Owner::* member;
};
// How the first kind of samples was taken, and all there is of it before
// version 4.
inline constexpr uint32_t kEventField = 2;
inline constexpr MemberField<SampleKind, uint64_t> kRateNumbers[] = {
    {3, &SampleKind::frequency_hz},
    {4, &SampleKind::count_period},
};
inline constexpr uint32_t kVersionField = 1;
inline constexpr MemberField<CaptureMetadata, std::string> kMetadataTexts[] = {
    {7, &CaptureMetadata::hostname},     {8, &CaptureMetadata::kernel_release},
    {9, &CaptureMetadata::architecture}, {10, &CaptureMetadata::cpus},
    {11, &CaptureMetadata::stack_store}, {14, &CaptureMetadata::unwind},
    {27, &CaptureMetadata::command},
};
inline constexpr MemberField<CaptureMetadata, uint64_t> kMetadataNumbers[] = {
    {5, &CaptureMetadata::start_unix_ns},
    {6, &CaptureMetadata::duration_ns},
};
inline constexpr MemberField<KernelTableStatistics, uint64_t>
    kKernelTableNumbers[] = {
        {15, &KernelTableStatistics::snapshots},
        {16, &KernelTableStatistics::changes},
        {17, &KernelTableStatistics::symbols},
        {18, &KernelTableStatistics::bytes},
        {19, &KernelTableStatistics::reading_ns},
};
inline constexpr MemberField<UnwindTableStatistics, uint64_t>
    kUnwindTableNumbers[] = {
        {20, &UnwindTableStatistics::processes},
        {21, &UnwindTableStatistics::files},
        {22, &UnwindTableStatistics::bytes},
        {23, &UnwindTableStatistics::building_ns},
        {24, &UnwindTableStatistics::median_delay_ns},
        {25, &UnwindTableStatistics::longest_delay_ns},
        {26, &UnwindTableStatistics::stacks_copied},
};
inline constexpr uint32_t kMaxStackDepthField = 12;
inline constexpr uint32_t kWarningField = 13;
inline constexpr uint32_t kSampleKindField = 28;  // since version 4: of each
enum class SampleKindField : uint32_t {
  kName = 1,
  kUnit = 2,
  kEvent = 3,
  kFrequencyHz = 4,
  kCountPeriod = 5,
  kHasValues = 6,
};
enum class AccountingField : uint32_t {
  kTaken = 1,
  kEmitted = 2,
  kLost = 3,
  kDamaged = 4,
  kTimeEnabledNs = 5,
  kTimeRunningNs = 6,
  kUserStackEnds = 7,
  kHelpedByFramePointers = 8,
  kHintsDropped = 9,
  kReportsLost = 10,
  kHistoriesDropped = 11,
};
enum class StackField : uint32_t {
  kId = 1,
  kFrame = 2,
  kTruncated = 3,  // version 1
  kMissing = 4,
  kEnd = 5,
  kUsedFramePointers = 6,
  kMixedFrames = 7,  // since version 3, in place of kFrame
};
enum class ProcessField : uint32_t {
  kPid = 1,
  kExecCount = 2,
  kStartNs = 3,
  kHasImage = 4,
  kMapping = 5,
};
enum class MappingField : uint32_t {
  kStart = 1,
  kSize = 2,
  kFileOffset = 3,
  kDeviceMajor = 4,
  kDeviceMinor = 5,
  kInode = 6,
  kPath = 7,
};
enum class ModuleField : uint32_t {
  kDeviceMajor = 1,
  kDeviceMinor = 2,
  kInode = 3,
  kPath = 4,
  kBuildId = 5,
  kSegment = 6,
};
enum class SegmentField : uint32_t {
  kFileOffset = 1,
  kFileSize = 2,
  kAddress = 3,
};
enum class RuntimeFrameField : uint32_t {
  kId = 1,
  kName = 2,
  kFile = 3,
  kFirstLine = 4,
  kLine = 5,
  kCaller = 6,
  kLineIsNear = 7,
  kIsInterpreted = 8,
};
enum class WakerField : uint32_t {
  kId = 1,
  kIsInterrupt = 2,
  kProcess = 3,
  kTid = 4,
  kComm = 5,
  kUserStack = 6,
  kKernelStack = 7,
};
enum class KernelPartField : uint32_t {
  kName = 1,
  kBuildId = 2,
  kStart = 3,
  kSize = 4,
};
enum class KernelChangeField : uint32_t {
  kRemoved = 1,
  kStart = 2,
  kSize = 3,
  kName = 4,
  kModule = 5,
};
// Columns: the nth number of each belongs to the nth sample.
enum class SamplesField : uint32_t {
  kProcess = 1,
  kTid = 2,
  kComm = 3,
  kUserStack = 4,
  kKernelStack = 5,
  kCount = 6,
  // Since version 4.
  kKind = 7,
  kValue = 8,
};
inline constexpr size_t kSampleColumns = 8;
inline constexpr size_t kOneKindSampleColumns = 6;

// Columns as well.
enum class ThreadLivesField : uint32_t { kPid = 1, kTid = 2, kNs = 3 };
inline constexpr size_t kThreadLivesColumns = 3;

// All threads together, then columns of those that are listed.
enum class ThreadSumsField : uint32_t {
  kCount = 1,
  kRunningNs = 2,
  kRunnableNs = 3,
  kBlockedNs = 4,
  kFirstColumn = 5,  // pid, tid, comm, running, runnable, blocked
};
inline constexpr size_t kThreadSumsColumns = 6;

// The header for this payload.
std::string Header(std::string_view payload, uint32_t version = kFormatVersion);

}  // namespace profd::raw_file
