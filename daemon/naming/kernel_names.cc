// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/kernel_names.h"

#include <algorithm>
#include <span>
#include <utility>

#include "ksym/base/caller_rights.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

constexpr char kKallsyms[] = "/proc/kallsyms";
// A reading takes some 40 ms of CPU time; modules may come and go all the time.
constexpr std::chrono::seconds kReadAtMostEvery(1);
constexpr size_t kMaxModulesBytes = size_t{1} << 20;

// Empty where the kernel has none.
std::vector<ksym::KernelModule> ReadModules() {
  const auto text = ksym::ReadFile("/proc/modules", kMaxModulesBytes);
  if (!text) return {};
  return ksym::ParseModules(*text);
}

// A stream that fails as soon as it is given up.
class GivenUpStream final : public ksym::ByteStream {
 public:
  GivenUpStream(std::unique_ptr<ksym::ByteStream> source,
                std::stop_token give_up)
      : source_(std::move(source)), give_up_(std::move(give_up)) {}

  ksym::Result<size_t> Read(std::span<char> out) override {
    if (give_up_.stop_requested()) {
      return ksym::Fail(ksym::ErrorCode::kIo,
                        "reading was given up, as the program ends");
    }
    return source_->Read(out);
  }

 private:
  const std::unique_ptr<ksym::ByteStream> source_;
  const std::stop_token give_up_;
};

ksym::Result<ksym::KernelSymbolSource> ReadKallsyms(
    const KernelReading& reading, const std::stop_token& give_up) {
  return ksym::OpenKernelSymbols(kKallsyms, {.make_stream = [&](int fd) {
                                   return std::make_unique<GivenUpStream>(
                                       reading.make_stream(fd), give_up);
                                 }});
}

KernelSymbolsState StateOf(const ksym::Error& error, bool given_up) {
  if (error.code() == ksym::ErrorCode::kPermission) {
    return KernelSymbolsState::kNoPermission;
  }
  return given_up ? KernelSymbolsState::kNotInTime
                  : KernelSymbolsState::kUnreadable;
}

ksym::Unresolved ReasonOf(KernelSymbolsState state) {
  switch (state) {
    case KernelSymbolsState::kUnreadable:
      return ksym::Unresolved::kMalformed;
    case KernelSymbolsState::kNotInTime:
      return ksym::Unresolved::kNotInTime;
    case KernelSymbolsState::kPresent:
    case KernelSymbolsState::kNotWanted:
    case KernelSymbolsState::kNoPermission:
      break;
  }
  return ksym::Unresolved::kNoPermission;
}

}  // namespace

KernelNames KernelNames::OfRunningKernel(KernelReading reading) {
  KernelNames names;
  names.reading_ = std::move(reading);
  const auto begin = Clock::now();
  std::vector<ksym::KernelModule> modules = ReadModules();
  auto symbols = ReadKallsyms(names.reading_, names.reading_.give_up_first);
  if (!symbols) {
    names.state_ =
        StateOf(symbols.error(), names.reading_.give_up_first.stop_requested());
    names.warning_ =
        "kernel frames have no names: " + symbols.error().message();
    return names;
  }
  names.modules_ = ksym::ModuleList(
      ksym::ModulesOfTable(std::move(modules), ReadModules(), *symbols));
  names.timeline_.emplace(std::move(*symbols));
  names.state_ = KernelSymbolsState::kPresent;
  names.follows_running_kernel_ = true;
  names.reading_begun_ = begin;
  names.last_read_ = Clock::now();
  names.reading_time_ = names.last_read_ - begin;
  names.snapshots_ = 1;
  return names;
}

ksym::Result<KernelNames> KernelNames::OfFile(const std::string& path) {
  const ksym::CallerRights caller;
  auto symbols = ksym::OpenKernelSymbols(path);
  if (!symbols) return ksym::Fail(std::move(symbols.error()));
  KernelNames names;
  names.timeline_.emplace(std::move(*symbols));
  names.state_ = KernelSymbolsState::kPresent;
  names.snapshots_ = 1;
  return names;
}

KernelNames KernelNames::OfCapture(const RawCapture& capture) {
  KernelNames names;
  names.state_ = capture.kernel_symbols_state;
  if (capture.kernel_symbols.empty()) return names;
  auto symbols = ksym::KernelSymbolSource::FromBytes(capture.kernel_symbols);
  if (!symbols) {
    names.state_ = KernelSymbolsState::kUnreadable;
    names.warning_ = "the capture's kernel symbols cannot be used: " +
                     symbols.error().message();
    return names;
  }
  names.timeline_.emplace(std::move(*symbols));
  names.snapshots_ = 1;
  names.BeginInterval(capture.profile);
  return names;
}

std::optional<std::chrono::steady_clock::time_point> KernelNames::PutOff(
    const RawProfile& interval, Clock::time_point taken) {
  // A table that was read after the interval was drained has its symbols.
  const bool is_stale =
      stale_ || (interval.kernel_table_stale && taken >= reading_begun_);
  if (!timeline_ || !follows_running_kernel_ || !is_stale ||
      reading_.give_up_later.stop_requested()) {
    return {};
  }
  const auto next_reading = last_read_ + kReadAtMostEvery;
  // From then on nothing is won by waiting: BeginInterval() reads the table.
  if (Clock::now() >= next_reading) return {};
  // Another one's symbols are no names for one that is gone again by then.
  for (const auto& memory : modules_.Newcomers(ReadModules())) {
    if (std::ranges::find(newcomers_, memory) == newcomers_.end()) {
      newcomers_.push_back(memory);
    }
  }
  return next_reading;
}

void KernelNames::BeginInterval(const RawProfile& interval,
                                Clock::time_point taken) {
  if (!timeline_) return;
  for (const auto& change : interval.kernel_changes) timeline_->Apply(change);
  changes_ += interval.kernel_changes.size();
  stale_ |= interval.kernel_table_stale && taken >= reading_begun_;
  ReadAgainIfDue();
}

void KernelNames::ReadAgainIfDue() {
  if (!timeline_ || !follows_running_kernel_ || !stale_) return;
  if (Clock::now() - last_read_ < kReadAtMostEvery ||
      reading_.give_up_later.stop_requested()) {
    // The old table serves on, and stays stale. Addresses where a module came
    // or went since it was read are in doubt until then.
    timeline_->DoubtModules(modules_.EndInterval(ReadModules()));
    return;
  }
  const auto begin = Clock::now();
  // Before the table: what comes in between is in doubt sooner than needed.
  std::vector<ksym::KernelModule> modules = ReadModules();
  auto symbols = ReadKallsyms(reading_, reading_.give_up_later);
  last_read_ = Clock::now();
  reading_time_ += last_read_ - begin;
  // It could be read before; the old table serves until it can be again.
  if (!symbols) {
    timeline_->DoubtModules(modules_.EndInterval(modules));
    return;
  }
  modules_ = ksym::ModuleList(
      ksym::ModulesOfTable(std::move(modules), ReadModules(), *symbols));
  stale_ = false;
  reading_begun_ = begin;
  ++snapshots_;
  // Addresses that were in doubt stay so for this interval: a module that came
  // and went between the two readings is in neither table.
  newcomers_.insert(newcomers_.end(), timeline_->doubtful().begin(),
                    timeline_->doubtful().end());
  timeline_->DoubtModules(std::exchange(newcomers_, {}));
  timeline_->Replace(std::move(*symbols));
}

void KernelNames::EndInterval(Clock::time_point taken) {
  if (!timeline_) return;
  // Parts that were held back are named by a table that is newer than they are.
  if (taken < reading_begun_) {
    timeline_->EndEarlierInterval();
  } else {
    timeline_->EndInterval();
  }
}

std::vector<std::byte> KernelNames::Bytes() const {
  if (!timeline_) return {};
  const auto bytes = timeline_->snapshot().bytes();
  return {bytes.begin(), bytes.end()};
}

KernelTableStatistics KernelNames::statistics() const {
  KernelTableStatistics statistics = {
      .snapshots = snapshots_,
      .changes = changes_,
      .reading_ns = static_cast<uint64_t>(
          std::chrono::nanoseconds(reading_time_).count())};
  if (timeline_) {
    statistics.symbols = timeline_->snapshot().symbol_count();
    statistics.bytes = timeline_->snapshot().bytes().size();
  }
  return statistics;
}

void UseKernelNames(const KernelNames& kernel, Resolver& resolver) {
  if (kernel.timeline() != nullptr) {
    resolver.SetKernelSymbols(*kernel.timeline());
  } else {
    resolver.SetNoKernelSymbols(ReasonOf(kernel.state()));
  }
}

}  // namespace profd
