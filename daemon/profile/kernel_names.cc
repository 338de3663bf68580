#include "daemon/profile/kernel_names.h"

#include <utility>

namespace profd {
namespace {

constexpr char kKallsyms[] = "/proc/kallsyms";
constexpr std::chrono::seconds kReadAtMostEvery(1);

}  // namespace

KernelNames KernelNames::OfRunningKernel() {
  KernelNames names;
  const auto begin = Clock::now();
  auto symbols = ksym::OpenKernelSymbols(kKallsyms);
  if (!symbols) {
    names.state_ = symbols.error().code() == ksym::ErrorCode::kPermission
                       ? KernelSymbolsState::kNoPermission
                       : KernelSymbolsState::kUnreadable;
    names.warning_ =
        "kernel frames have no names: " + symbols.error().message();
    return names;
  }
  names.timeline_.emplace(std::move(*symbols));
  names.state_ = KernelSymbolsState::kPresent;
  names.follows_running_kernel_ = true;
  names.last_read_ = Clock::now();
  names.reading_ = names.last_read_ - begin;
  names.snapshots_ = 1;
  return names;
}

ksym::Result<KernelNames> KernelNames::OfFile(const std::string& path) {
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

void KernelNames::BeginInterval(const RawProfile& interval) {
  if (!timeline_) return;
  for (const auto& change : interval.kernel_changes) timeline_->Apply(change);
  changes_ += interval.kernel_changes.size();
  stale_ |= interval.kernel_table_stale;
  ReadAgainIfDue();
}

void KernelNames::ReadAgainIfDue() {
  if (!timeline_ || !follows_running_kernel_ || !stale_ ||
      Clock::now() - last_read_ < kReadAtMostEvery) {
    return;
  }
  const auto begin = Clock::now();
  auto symbols = ksym::OpenKernelSymbols(kKallsyms);
  last_read_ = Clock::now();
  reading_ += last_read_ - begin;
  // It could be read before; the old table serves until it can be again.
  if (!symbols) return;
  stale_ = false;
  ++snapshots_;
  timeline_->Replace(std::move(*symbols));
}

void KernelNames::EndInterval() {
  if (timeline_) timeline_->EndInterval();
}

std::vector<std::byte> KernelNames::Bytes() const {
  if (!timeline_) return {};
  const auto bytes = timeline_->snapshot().bytes();
  return {bytes.begin(), bytes.end()};
}

KernelNames::Statistics KernelNames::statistics() const {
  Statistics statistics = {
      .snapshots = snapshots_,
      .changes = changes_,
      .milliseconds =
          std::chrono::duration<double, std::milli>(reading_).count()};
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
    resolver.SetNoKernelSymbols(kernel.state() ==
                                        KernelSymbolsState::kUnreadable
                                    ? ksym::Unresolved::kMalformed
                                    : ksym::Unresolved::kNoPermission);
  }
}

}  // namespace profd
