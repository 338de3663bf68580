// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/part_names.h"

#include <algorithm>
#include <utility>

#include "daemon/base/own_priority.h"
#include "daemon/naming/kernel_names.h"
#include "daemon/oneshot/report_steps.h"
#include "daemon/profile/raw_profile_merge.h"
#include "ksym/process/vdso.h"

namespace profd {
namespace {

using std::chrono::milliseconds;

// Parts that wait for the kernel's table, which takes 50 ms, but seconds where
// the machine is very slow: 20 s of them.
constexpr size_t kMaxWithoutKernelNames = 100;
// Bytes of parts that wait for the symbolizer. Beyond it the first one is added
// with the names that it has: one hanging file must not fill the memory.
constexpr size_t kMaxAskedBytes = size_t{32} << 20;
// How often a wait looks for signals.
constexpr milliseconds kLookPeriod(10);
constexpr PriorityAllowance kKernelNamesAllowance = {
    .at_once = milliseconds(200), .per_second = milliseconds(20)};

SymbolThread::Observer ObserverOf(const ProfileOptions& options,
                                  const std::shared_ptr<ModuleTable>& modules) {
  if (options.raw_path.empty() && !options.markup) return {};
  return [modules, opener = options.capture.opener](
             const ksym::ProcessImage& image) { modules->Add(image, *opener); };
}

}  // namespace

PartNames::PartNames(const ProfileOptions& options, Progress& progress)
    : options_(options),
      progress_(progress),
      naming_(MakeSymbolizerOptions(
                  options, ksym::SymbolizerOptions::Files::kOfProcess, {}),
              MakeResolveOptions(options), ObserverOf(options, modules_)) {}

bool PartNames::keeps_raw() const {
  return !options_.raw_path.empty() || options_.markup;
}

void PartNames::Warn(const std::string& warning) {
  if (naming_.Warn(warning)) progress_.Say("warning: " + warning);
}

ksym::Status PartNames::LoadGivenKernelNames() {
  if (options_.kernel_symbols_path.empty() ||
      !options_.capture.bpf.kernel_stacks) {
    return {};
  }
  auto names = KernelNames::OfFile(options_.kernel_symbols_path);
  if (!names) return ksym::Fail(std::move(names.error()));
  naming_.UseKernel(std::move(*names));
  return {};
}

void PartNames::Begin(const CaptureMetadata& metadata) {
  naming_.Begin(metadata);
}

void PartNames::BeginKernelNames() {
  if (!options_.capture.bpf.kernel_stacks) return;
  // A log needs no names.
  if (options_.markup && options_.raw_path.empty()) return;
  if (!options_.kernel_symbols_path.empty()) {
    const std::string& warning = naming_.kernel().warning();
    if (!warning.empty()) Warn(warning);
    return;
  }
  KernelReading reading;
  reading.give_up_first = give_up_kernel_names_.get_token();
  kernel_names_ =
      std::async(std::launch::async, [reading = std::move(reading)] {
        const PriorityShare share(kKernelNamesAllowance);
        return KernelNames::OfRunningKernel(reading);
      });
}

bool PartNames::HasKernelNames() const {
  return !kernel_names_.valid() ||
         kernel_names_.wait_for(milliseconds(0)) == std::future_status::ready;
}

void PartNames::AwaitKernelNames() {
  if (!kernel_names_.valid()) return;
  naming_.UseKernel(kernel_names_.get());
  const std::string& warning = naming_.kernel().warning();
  if (!warning.empty()) Warn(warning);
}

void PartNames::Pin(const ksym::ProcessImage& image) {
  naming_.symbols().Pin(image);
}

void PartNames::Take(RawProfile&& part) {
  held_.Add({.raw = std::make_shared<RawProfile>(std::move(part)),
             .taken = Clock::now()});
  Advance();
}

void PartNames::Advance() {
  if (!HasKernelNames() && held_.size() > kMaxWithoutKernelNames) {
    give_up_kernel_names_.request_stop();
    AwaitKernelNames();
  }
  if (HasKernelNames()) {
    AwaitKernelNames();
    while (!held_.empty() && !IsPutOff()) Ask();
  }
  while (!asked_.empty() &&
         (asked_.front().lookups->is_done() || asked_bytes_ > kMaxAskedBytes)) {
    AddFirst();
  }
}

std::optional<PartNames::Clock::time_point> PartNames::WaitsSince() const {
  if (!asked_.empty()) return asked_.front().taken;
  if (!held_.empty()) return held_.taken();
  return std::nullopt;
}

// Whether what was drained waits as one until the kernel's table is read.
bool PartNames::IsPutOff() {
  if (!naming_.PutOff(held_.first(), held_.taken())) return false;
  held_.JoinToFirst();
  return true;
}

void PartNames::Ask() {
  HeldParts::Part part = held_.TakeFirst();
  if (options_.markup) {
    // A log has no names; of its processes' files the build-ids are wanted.
    for (const auto& [id, image] : part.raw->images) Pin(image);
    AddUnnamed(*part.raw);
    return;
  }
  auto lookups = naming_.symbols().Ask(part.raw);
  const size_t bytes = BytesOf(*part.raw);
  asked_bytes_ += bytes;
  asked_.push_back({.raw = std::move(part.raw),
                    .taken = part.taken,
                    .lookups = std::move(lookups),
                    .bytes = bytes});
}

void PartNames::AddFirst() {
  Asked part = std::move(asked_.front());
  asked_.pop_front();
  asked_bytes_ -= part.bytes;
  Say(naming_.Add(*part.lookups, part.taken));
  if (options_.raw_path.empty()) return;
  // The symbolizer may still be at one that is late.
  Merge(raw_capture_.profile,
        part.lookups->is_done() ? std::move(*part.raw) : RawProfile(*part.raw));
}

void PartNames::AddUnnamed(RawProfile& part) {
  Say(naming_.AddUnnamed(part));
  Merge(raw_capture_.profile, std::move(part));
}

void PartNames::Say(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    progress_.Say("warning: " + warning);
  }
}

bool PartNames::Finish(Clock::time_point deadline,
                       const std::function<bool()>& is_stopped) {
  while (!HasKernelNames()) {
    if (Clock::now() >= deadline || is_stopped()) {
      give_up_kernel_names_.request_stop();
      break;
    }
    kernel_names_.wait_for(kLookPeriod);
  }
  AwaitKernelNames();
  while (!held_.empty()) {
    // Nothing comes any more that one reading could serve as well.
    if (IsPutOff()) naming_.ReadKernelWithoutPause();
    Ask();
  }
  const bool is_whole = AwaitSymbols(deadline, is_stopped);
  while (!asked_.empty()) AddFirst();
  Say(naming_.TakeWarningsOfNames());
  const uint64_t dropped = naming_.symbols().images_dropped();
  if (dropped > 0) {
    Warn(std::to_string(dropped) +
         " times the files of a process were not opened at once, as too many "
         "waited: it may lack names");
  }
  return is_whole;
}

bool PartNames::AwaitSymbols(Clock::time_point deadline,
                             const std::function<bool()>& is_stopped) {
  SymbolThread& symbols = naming_.symbols();
  symbols.Hurry();
  for (;;) {
    const auto now = Clock::now();
    if (symbols.WaitUntil(std::min(now + kLookPeriod, deadline))) return true;
    if (now >= deadline || is_stopped()) break;
    ShowProgress();
  }
  symbols.GiveUp();
  return false;
}

void PartNames::ShowProgress() {
  const SymbolThread::Progress now = naming_.symbols().progress();
  progress_.UpdateNaming(now.files, now.of_files);
}

RawCapture& PartNames::CompleteRawCapture() {
  raw_capture_.profile.metadata = naming_.metadata();
  raw_capture_.kernel_symbols_state = naming_.kernel().state();
  raw_capture_.kernel_symbols = naming_.kernel().Bytes();
  raw_capture_.vdso_image = ksym::OwnVdsoImage();
  // Else its thread may still be in them.
  if (!naming_.symbols().is_given_up()) {
    raw_capture_.modules = modules_->Modules();
  }
  if (options_.capture.bpf.kernel_stacks) {
    raw_capture_.kernel_parts = ReadKernelParts();
  }
  return raw_capture_;
}

}  // namespace profd
