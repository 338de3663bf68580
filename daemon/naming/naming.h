// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/naming/kernel_names.h"
#include "daemon/naming/resolve.h"
#include "daemon/naming/symbol_thread.h"
#include "daemon/naming/user_lookups.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/symbolizer.h"

namespace profd {

// Makes named profiles of what a capture drains: the symbolizer, in a thread of
// its own, the kernel's symbols and the profile in the making. Symbols stay
// from one profile to the next. Not thread-safe, but not bound to the capture's
// thread.
class Naming {
 public:
  // `observer`: see SymbolThread.
  Naming(ksym::SymbolizerOptions symbols, ResolveOptions options,
         SymbolThread::Observer observer = {})
      : symbols_(std::move(symbols), std::move(observer)), resolver_(options) {}
  Naming(const Naming&) = delete;
  Naming& operator=(const Naming&) = delete;

  // Finds the names of user addresses: asked first, then Add().
  SymbolThread& symbols() { return symbols_; }
  const KernelNames& kernel() const { return kernel_; }
  // Names kernel frames from now on; without it they are "[kernel]".
  void UseKernel(KernelNames kernel);

  // The profile in the making has these, with its warnings.
  const CaptureMetadata& metadata() const { return metadata_; }
  const Accounting& accounting() const { return accounting_; }
  size_t distinct_samples() const { return builder_.distinct_samples(); }

  // Begins a profile, with the time and the host that the metadata says. Its
  // duration counts up from 0.
  void Begin(CaptureMetadata metadata);
  // Adds a warning that the profile has not yet; true if so.
  bool Warn(std::string warning);
  // See KernelNames.
  std::optional<std::chrono::steady_clock::time_point> PutOff(
      const RawProfile& part,
      std::chrono::steady_clock::time_point taken = KernelNames::kNow) {
    return kernel_.PutOff(part, taken);
  }
  void ReadKernelWithoutPause() { kernel_.ReadWithoutPause(); }
  // Adds a drained part for which the symbols were asked: with the names that
  // are there by now. Returns the warnings that are new in this profile. Cost:
  // see Resolver::Add(), without the time that the symbolizer takes.
  std::vector<std::string> Add(
      UserLookups& lookups,
      std::chrono::steady_clock::time_point taken = KernelNames::kNow);
  // The same without its samples and their names: what is not to be named.
  std::vector<std::string> AddUnnamed(const RawProfile& part);
  // Lines that say what the symbolizer could not do since the last call, and
  // the cure; also added to the profile. Nothing while the symbolizer is at
  // work.
  std::vector<std::string> TakeWarningsOfNames();
  // The profile. Begin() comes next.
  Profile Finish();

 private:
  std::vector<std::string> AddMetadata(const RawProfile& part);
  void AddWarningsOf(ksym::Symbolizer& symbolizer,
                     std::vector<std::string>& warnings);

  SymbolThread symbols_;
  Resolver resolver_;
  KernelNames kernel_;
  ProfileBuilder builder_;
  CaptureMetadata metadata_;
  Accounting accounting_;
  uint64_t files_closed_ = 0;  // that were warned of
};

}  // namespace profd
