// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/naming_thread.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <utility>

#include "daemon/base/freed_memory.h"
#include "daemon/base/open_files.h"
#include "daemon/base/own_priority.h"
#include "daemon/base/table_memory.h"
#include "daemon/naming/kernel_debug.h"
#include "daemon/naming/source_lines.h"
#include "daemon/service/log.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

// Two minutes of parts; by then what is behind them is lost anyway.
constexpr size_t kMaxPartsWaiting = 120;
constexpr size_t kMaxBytesWaiting = size_t{32} << 20;
constexpr size_t kMaxImages = 4096;
constexpr size_t kMaxImageMappings = size_t{1} << 17;
// Files and names that were ever seen are remembered until there is a new
// symbolizer.
constexpr uint64_t kMaxFilesKnown = 50'000;
constexpr size_t kMaxNameBytes = size_t{64} << 20;

ksym::SymbolizerOptions MakeSymbolizerOptions(
    const NamingThread::Settings& settings) {
  ksym::SymbolizerOptions made;
  made.demangle = settings.demangle ? ksym::SymbolizerOptions::Demangle::kOn
                                    : ksym::SymbolizerOptions::Demangle::kOff;
  made.files = ksym::SymbolizerOptions::Files::kOfProcess;
  made.opener = settings.opener;
  made.max_open_files = MaxMappedFiles(LimitOf::kSoft);
  made.cache_bytes = settings.cache_bytes;
  made.max_name_bytes = kMaxNameBytes;
  made.table_room = TableMemory::OfProcess();
  return made;
}

// How often a wait for names looks for images to be opened, and for the end.
constexpr std::chrono::milliseconds kLookPeriod(20);
// A symbolizer that takes longer for one part reads a file that hangs. It is
// given up and there is a new one, but not again and again: each leaves a
// thread and its memory behind.
constexpr std::chrono::seconds kMaxPatience(20);
constexpr unsigned kMaxGivenUp = 4;
constexpr PriorityAllowance kNamingAllowance = {
    .at_once = std::chrono::milliseconds(500),
    .per_second = std::chrono::milliseconds(100)};

int64_t SteadyNs() { return Clock::now().time_since_epoch().count(); }

}  // namespace

NamingThread::NamingThread(Settings settings, ServiceCounters& counters,
                           Sinks sinks, KernelReading kernel)
    : counters_(counters),
      sinks_(std::move(sinks)),
      settings_(std::move(settings)),
      kernel_(std::move(kernel)) {
  // Before the thread, which hands kernel_ on as it begins.
  kernel_.give_up_first = give_up_first_reading_.get_token();
  kernel_.give_up_later = give_up_later_readings_.get_token();
  thread_ = std::thread([this] { Run(); });
}

NamingThread::~NamingThread() {
  Finish(Clock::time_point::min());
  thread_.join();
}

void NamingThread::Pin(const ksym::ProcessImage& image) {
  {
    const std::lock_guard lock(mutex_);
    const size_t mappings = image.mappings.size();
    // An image is as large as its mappings are many, so their sum is bounded,
    // too.
    if (images_.size() < kMaxImages &&
        image_mappings_ + mappings <= kMaxImageMappings) {
      image_mappings_ += mappings;
      images_.push_back(image);
      changed_.notify_all();
      return;
    }
  }
  ++counters_.processes_not_pinned;
}

void NamingThread::Add(RawProfile part, Edge edge) {
  const Accounting& accounting = part.accounting;
  // Counted here and not when it is named, so that what is dropped below is
  // among the samples taken.
  counters_.samples_taken += accounting.taken;
  counters_.samples_lost += accounting.lost();
  for (size_t i = 0; i < kLossCauses; ++i) {
    counters_.lost_by_cause[i] += accounting.lost_by_cause[i];
  }
  const uint64_t emitted = accounting.emitted;
  const size_t bytes = BytesOf(part);
  {
    const std::lock_guard lock(mutex_);
    // One part is taken however large it is: refused, it would come no smaller.
    if (parts_.empty() || (parts_.size() < kMaxPartsWaiting &&
                           part_bytes_ + bytes <= kMaxBytesWaiting)) {
      part_bytes_ += bytes;
      parts_.push_back({std::move(part), edge, Clock::now(), bytes});
      changed_.notify_all();
      return;
    }
    // The profile ends all the same.
    if (edge == Edge::kEnd) parts_.back().edge = edge;
  }
  counters_.samples_dropped_unnamed += emitted;
  LogSome(LogLevel::kError, "naming-behind",
          fmt::format("{} samples were dropped: naming is too slow", emitted));
}

void NamingThread::Configure(Settings settings) {
  const std::lock_guard lock(mutex_);
  new_settings_ = std::move(settings);
  changed_.notify_all();
}

bool NamingThread::Finish(Clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  give_up_later_readings_.request_stop();
  const auto now = Clock::now();
  const auto first_reading_ends =
      deadline > now ? now + (deadline - now) / 3 : now;
  const auto is_done = [this] { return done_; };
  if (changed_.wait_until(lock, first_reading_ends, is_done)) return true;
  give_up_first_reading_.request_stop();
  // A caller that waits for the end without a deadline gets all names.
  if (deadline > now) {
    const auto names_end = now + (deadline - now) / 3 * 2;
    if (changed_.wait_until(lock, names_end, is_done)) return true;
    give_up_symbols_.request_stop();
  }
  return changed_.wait_until(lock, deadline, is_done);
}

std::chrono::nanoseconds NamingThread::BusyFor() const {
  const int64_t since = busy_since_ns_;
  return std::chrono::nanoseconds(since == 0 ? 0 : SteadyNs() - since);
}

// Locked.
bool NamingThread::HasTask() const {
  if (closed_ || !images_.empty() || !parts_.empty()) return true;
  // Held parts belong to a profile that began with the old settings.
  return new_settings_ && held_.empty();
}

std::optional<NamingThread::Task> NamingThread::Next() {
  std::unique_lock lock(mutex_);
  busy_since_ns_ = 0;
  const auto has_task = [this] { return HasTask(); };
  if (held_.empty()) {
    changed_.wait(lock, has_task);
  } else {
    changed_.wait_until(lock, held_until_, has_task);
  }
  busy_since_ns_ = SteadyNs();
  std::optional<Task> task;
  if (!images_.empty()) {
    image_mappings_ -= images_.front().mappings.size();
    task = std::move(images_.front());
    images_.pop_front();
  } else if (!parts_.empty()) {
    part_bytes_ -= parts_.front().bytes;
    task = std::move(parts_.front());
    parts_.pop_front();
  } else if (!held_.empty()) {
    task = HeldIsDue();
  } else if (new_settings_ && !closed_) {  // nothing comes after the end
    task = *new_settings_;
    new_settings_.reset();
  }
  return task;
}

void NamingThread::Run() {
  PriorityShare share(kNamingAllowance);
  Begin(settings_);
  while (auto task = Next()) {
    share.Renew();
    if (const auto* image = std::get_if<ksym::ProcessImage>(&*task)) {
      naming_->symbols().Pin(*image);
    } else if (auto* part = std::get_if<Part>(&*task)) {
      Take(std::move(*part));
    } else if (std::holds_alternative<HeldIsDue>(*task)) {
      NameHeld();
    } else {
      settings_ = std::get<Settings>(*task);
      line_files_.reset();
      line_builder_.reset();  // has the old ones
      // A profile in the making keeps what it has begun with.
      if (merger_) FinishProfile();
      Begin(settings_);
    }
  }
  if (merger_) FinishProfile();
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void NamingThread::Begin(const Settings& settings) {
  ResolveOptions options;
  if (!settings.demangle) {
    options.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  if (settings.wants_lines()) {
    options.kernel_offsets = ResolveOptions::KernelOffsets::kKeep;
  }
  line_files_.reset();
  naming_ = std::make_unique<Naming>(MakeSymbolizerOptions(settings), options);
  naming_->UseKernel(KernelNames::OfRunningKernel(kernel_));
  ++counters_.symbolizers;
  const std::string& warning = naming_->kernel().warning();
  if (!warning.empty()) LogSome(LogLevel::kWarning, "kernel-names", warning);
  BeginLines();
}

void NamingThread::BeginLines() {
  line_counts_ = {};
  if (!settings_.wants_lines()) {
    line_builder_.reset();
    return;
  }
  if (!line_builder_) {
    line_builder_ = std::make_unique<LineBuilder>(
        LineBuilderOptions{.cache_directory = settings_.line_directory,
                           .cache_bytes = settings_.line_bytes});
  }
  LineFilesOptions options;
  options.cache_directory = settings_.line_directory;
  options.cache_bytes = settings_.line_bytes;
  options.deadline = Clock::time_point::max();
  options.builder = line_builder_.get();
  utsname name = {};
  if (::uname(&name) == 0) {
    options.kernel = {.release = name.release,
                      .build_ids = BuildIdsOfRunningKernel(name.release)};
  }
  line_files_ = std::make_unique<LineFiles>(*naming_->symbols().symbolizer(),
                                            std::move(options));
}

// Those that are there by now; the others come with later parts.
void NamingThread::AddLines(Profile& profile) {
  if (!line_files_ || naming_->symbols().is_given_up()) return;
  SourceLineOptions options;
  options.kernel = naming_->kernel().timeline();
  if (settings_.lines) options.lines = SourceLineOptions::Lines::kShow;
  if (settings_.inlines) options.inlines = SourceLineOptions::Inlines::kShow;
  if (!settings_.demangle) {
    options.demangle = ksym::SymbolizerOptions::Demangle::kOff;
  }
  const SourceLineCounts found = AddSourceLines(*line_files_, options, profile);
  counters_.line_frames += found.frames;
  counters_.line_frames_found += found.found;
  const LineFileCounts& now = line_files_->counts();
  const LineFileCounts& before = line_counts_;
  counters_.line_files_made += now.converted - before.converted;
  counters_.line_files_without +=
      now.without_debug_data - before.without_debug_data;
  counters_.line_files_untrusted += now.untrusted - before.untrusted;
  counters_.line_files_failed += now.failed - before.failed;
  if (now.failed != before.failed) {
    for (const std::string& warning : line_files_->Warnings()) {
      LogSome(LogLevel::kWarning, "lines", warning);
    }
  }
  line_counts_ = now;
}

void NamingThread::Take(Part part) {
  held_.Add({.raw = std::make_shared<RawProfile>(std::move(part.raw)),
             .taken = part.taken,
             .ends_profile = part.edge == Edge::kEnd});
  const auto until = naming_->PutOff(held_.first(), held_.taken());
  if (!until) return NameHeld();
  held_.JoinToFirst();
  held_until_ = *until;
}

void NamingThread::NameHeld() {
  while (!held_.empty()) Name(held_.TakeFirst());
}

// The symbolizer's thread opens them between two addresses.
void NamingThread::PassImagesOn() {
  std::deque<ksym::ProcessImage> images;
  {
    const std::lock_guard lock(mutex_);
    images.swap(images_);
    image_mappings_ = 0;
  }
  SymbolThread& symbols = naming_->symbols();
  const uint64_t dropped = symbols.images_dropped();
  for (const ksym::ProcessImage& image : images) symbols.Pin(image);
  counters_.processes_not_pinned += symbols.images_dropped() - dropped;
}

bool NamingThread::MayGiveUp(Clock::time_point begin) const {
  if (give_up_symbols_.stop_requested()) return true;
  return Clock::now() - begin > kMaxPatience && given_up_ < kMaxGivenUp;
}

void NamingThread::AwaitSymbols() {
  SymbolThread& symbols = naming_->symbols();
  symbols.Hurry();
  const auto begin = Clock::now();
  for (;;) {
    PassImagesOn();
    if (symbols.WaitUntil(Clock::now() + kLookPeriod)) return;
    // Without it the wait goes on: given-up threads have a bound, and one that
    // answers late still gives names.
    if (!MayGiveUp(begin)) continue;
    symbols.GiveUp();
    ++given_up_;
    ++counters_.symbolizers_given_up;
    LogSome(LogLevel::kError, "names-hang",
            "some names were not found in time: a file takes too long to read");
    return;
  }
}

void NamingThread::Name(HeldParts::Part part) {
  const auto begin = Clock::now();
  CaptureMetadata metadata = part.raw->metadata;
  metadata.warnings.clear();  // Add() has them
  naming_->Begin(std::move(metadata));
  const uint64_t emitted = part.raw->accounting.emitted;
  const auto lookups = naming_->symbols().Ask(std::move(part.raw));
  AwaitSymbols();
  for (const std::string& warning : naming_->Add(*lookups, part.taken)) {
    LogSome(LogLevel::kWarning, "capture", warning);
  }
  for (const std::string& warning : naming_->TakeWarningsOfNames()) {
    LogSome(LogLevel::kWarning, "names", warning);
  }
  Profile profile = naming_->Finish();
  AddLines(profile);
  const auto named = std::make_shared<const Profile>(std::move(profile));
  if (!merger_) merger_ = std::make_unique<ProfileMerger>();
  merger_->Add(*named);
  sinks_.part(named);
  ShowStatistics();
  counters_.samples_emitted += emitted;
  // Its lines go with it.
  if (naming_->symbols().is_given_up() && !give_up_symbols_.stop_requested()) {
    Begin(settings_);
  }
  if (part.ends_profile) FinishProfile();
  counters_.naming_ns += static_cast<uint64_t>((Clock::now() - begin).count());
}

void NamingThread::FinishProfile() {
  const auto profile =
      std::make_shared<const Profile>(std::move(*merger_).Finish());
  merger_.reset();
  ++counters_.profiles;
  bool is_full = false;
  if (const ksym::Symbolizer* const user = naming_->symbols().symbolizer()) {
    const auto statistics = user->statistics();
    is_full = statistics.files_known > kMaxFilesKnown ||
              statistics.name_bytes > kMaxNameBytes / 4 * 3;
  }
  if (is_full && !give_up_later_readings_.stop_requested()) {
    Log(LogLevel::kInfo, "symbol tables are read anew to free memory");
    Begin(settings_);
  }
  sinks_.profile(profile);
  ReturnUnusedMemory();
}

void NamingThread::ShowStatistics() {
  const KernelTableStatistics kernel = naming_->kernel().statistics();
  if (const ksym::Symbolizer* const symbolizer =
          naming_->symbols().symbolizer()) {
    const auto user = symbolizer->statistics();
    counters_.symbol_cache_bytes = user.cache_bytes;
    counters_.symbols = user.symbols;
    counters_.files_given_up = user.files_given_up;
  }
  counters_.kernel_symbols = kernel.symbols;
  counters_.kernel_symbol_bytes = kernel.bytes;
  counters_.kernel_snapshots = kernel.snapshots;
  counters_.kernel_reading_ns = kernel.reading_ns;
}

}  // namespace profd
