#include "daemon/capture/process_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/base/text.h"

namespace profd {
namespace {

// Intervals without a sample after which a process is forgotten.
constexpr uint64_t kKeptIntervals = 60;

// Field 22 of /proc/PID/stat, in clock ticks since boot. The command in field
// 2 may contain anything, so fields are counted from its closing parenthesis.
std::optional<uint64_t> StartTicks(uint32_t pid) {
  const auto stat = ksym::ReadFile(fmt::format("/proc/{}/stat", pid), 1 << 16);
  if (!stat) return std::nullopt;
  const size_t close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(*stat).substr(close + 1);
  for (int field = 2; field < 22; ++field) ksym::TakeField(rest, ' ');
  return ksym::ParseUnsigned(ksym::TakeField(rest, ' '), 10);
}

// Whether /proc/PID still is the process of this start time.
bool IsSameProcess(const ksym::ProcessId& id) {
  static const auto kTicksPerSecond =
      static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto ticks = StartTicks(id.pid);
  return ticks && *ticks == id.start_ns / (1'000'000'000 / kTicksPerSecond);
}

}  // namespace

void ProcessWatch::Read(const ksym::ProcessId& id, Entry& entry) {
  entry.read_in = interval_;
  auto mappings = ksym::ReadMaps(id.pid);
  if (!mappings || !IsSameProcess(id)) return;
  // A read that finds less than before met a process on its way out.
  if (mappings->empty() && entry.readable) return;
  entry.image.mappings = std::move(*mappings);
  entry.readable = !entry.image.mappings.empty();
  if (entry.readable && observer_) observer_(entry.image);
}

void ProcessWatch::See(const ksym::ProcessId& id) {
  if (id.pid == 0) return;  // idle: no address space
  const auto [at, is_new] = processes_.try_emplace(id);
  at->second.seen_in = interval_;
  if (!is_new) return;
  at->second.image.id = id;
  Read(id, at->second);
}

const ksym::ProcessImage* ProcessWatch::ImageFor(
    const ksym::ProcessId& id, std::span<const uint64_t> user_frames) {
  See(id);
  const auto at = processes_.find(id);
  if (at == processes_.end()) return nullptr;
  Entry& entry = at->second;
  const bool incomplete = std::ranges::any_of(user_frames, [&](uint64_t frame) {
    return entry.image.Find(ksym::Address{frame}) == nullptr;
  });
  if (incomplete && entry.read_in < interval_) Read(id, entry);
  return entry.readable ? &entry.image : nullptr;
}

void ProcessWatch::EndInterval() {
  std::erase_if(processes_, [&](const auto& entry) {
    return entry.second.seen_in + kKeptIntervals < interval_;
  });
  ++interval_;
}

}  // namespace profd
