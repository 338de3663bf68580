// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/top_capture.h"

#include <algorithm>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/base/own_priority.h"
#include "daemon/base/signals_blocked.h"
#include "daemon/capture/capture_loop.h"
#include "daemon/oneshot/unwind_options.h"

namespace profd {
namespace {

using ksym::Fail;
using ksym::Status;
using std::chrono::milliseconds;

constexpr PriorityAllowance kTopAllowance = {.at_once = milliseconds(500),
                                             .per_second = milliseconds(100)};
// No longer sleep than that, so that the thread ends soon.
constexpr milliseconds kTopLongestSleep(20);
// Stacks of threads that wait, of a CPU in a tenth of a second: 400 in a second
// are one percent of it, at the most.
constexpr uint32_t kTopWaitStacksAtOnce = 40;
// A part whose names take longer waits for a file that hangs. There is a new
// symbolizer then, but not again and again: each leaves a thread behind.
constexpr std::chrono::seconds kTopNamesPatience(5);
constexpr unsigned kTopMaxGivenUp = 4;
// Files and names that were ever seen are remembered until there is a new
// symbolizer.
constexpr uint64_t kTopMaxFilesKnown = 50'000;
constexpr uint64_t kTopMaxNameBytes = uint64_t{48} << 20;

CapturePace MakePace(milliseconds part) {
  return {.poll = milliseconds(50),
          .poll_building = milliseconds(10),
          .poll_filling = milliseconds(10),
          .poll_naming = milliseconds(10),
          .drain = part,
          .drain_gap = part / 2,
          .tables_budget = milliseconds(20),
          .tables_patience = milliseconds(200)};
}

}  // namespace

TopCapture::TopCapture(ProfileOptions& options, milliseconds part, Sinks sinks)
    : options_(options), part_(part), sinks_(std::move(sinks)) {}

ksym::Result<std::unique_ptr<TopCapture>> TopCapture::Start(
    ProfileOptions& options, milliseconds part, Sinks sinks) {
  std::unique_ptr<TopCapture> made(
      new TopCapture(options, part, std::move(sinks)));
  auto begun = made->Begin();
  if (!begun) return Fail(std::move(begun.error()));
  const SignalsBlocked blocked;
  made->thread_ = std::thread([capture = made.get()] { capture->Run(); });
  return made;
}

TopCapture::~TopCapture() {
  stops_ = true;
  if (thread_.joinable()) thread_.join();
}

Status TopCapture::Begin() {
  BpfConfig& bpf = options_.capture.bpf;
  bpf.per_thread = true;
  bpf.waits = WaitConfig{.frequency_hz = options_.capture.rate.frequency_hz,
                         .walks = WaitWalks::kIntervals,
                         .stacks_at_once = kTopWaitStacksAtOnce};
  options_.capture.cache_directory = CacheDirectory();
  options_.capture.on_process = [this](const ksym::ProcessImage& image) {
    names_->Pin(image);
  };
  auto begun = TryBegin();
  if (begun) return begun;
  const std::string why = begun.error().message();
  bpf.waits.reset();
  // Where something else is wrong this fails, too, and says what.
  begun = TryBegin();
  if (begun) no_waits_ = why;
  return begun;
}

Status TopCapture::TryBegin() {
  MakeNames();
  auto capture = Capture::Start(options_.capture);
  if (!capture) return Fail(std::move(capture.error()));
  capture_ = std::make_unique<Capture>(std::move(*capture));
  metadata_ = capture_->metadata();
  begin_ = Clock::now();
  last_walk_ns_ = begin_.time_since_epoch().count();
  auto enabled = capture_->Enable();
  if (!enabled) return enabled;
  RenewNames();
  return {};
}

void TopCapture::MakeNames() {
  names_ = std::make_unique<PartNames>(options_, progress_);
}

// Begins to read the kernel's names for those that there are.
void TopCapture::RenewNames() {
  BeginPart();
  names_->BeginKernelNames();
}

void TopCapture::BeginPart() {
  CaptureMetadata metadata = metadata_;
  metadata.start_unix_ns = NowNs(CLOCK_REALTIME);
  names_->Begin(metadata);
}

void TopCapture::Run() {
  Status sampled = Sample();
  if (!sampled) sinks_.failure(std::move(sampled.error()));
  has_ended_ = true;
}

Status TopCapture::Sample() {
  PriorityShare share(kTopAllowance);
  CaptureLoop loop(*capture_, MakePace(part_), {.begin = begin_});
  while (!stops_) {
    share.Renew();
    std::this_thread::sleep_for(
        std::min<Clock::duration>(loop.Pause(), kTopLongestSleep));
    if (stops_) break;
    if (loop.Step() == CaptureLoop::Due::kNothing) {
      names_->Advance();
      continue;
    }
    if (no_waits_.empty()) WalkSleepers();
    auto raw = loop.Drain();
    if (!raw) return Fail(std::move(raw.error()));
    names_->Take(std::move(*raw));
    GivePart();
  }
  return {};
}

// Without it the part lacks what sleeps on, and the next one has it.
void TopCapture::WalkSleepers() {
  const auto walked = capture_->WalkSleepers(milliseconds(0));
  if (!walked) names_->Warn(walked.error().message());
  const uint64_t walks = capture_->wait_statistics().walks.walks;
  if (std::exchange(walks_, walks) != walks) {
    last_walk_ns_ = Clock::now().time_since_epoch().count();
  }
}

TopCapture::Clock::duration TopCapture::SinceWalk() const {
  return Clock::now().time_since_epoch() -
         Clock::duration(last_walk_ns_.load());
}

// All that has its names by now; the rest comes with the next part.
void TopCapture::GivePart() {
  const auto waits_since = names_->WaitsSince();
  const bool hangs = waits_since &&
                     Clock::now() - *waits_since > kTopNamesPatience &&
                     names_given_up_ < kTopMaxGivenUp;
  if (hangs) {
    ++names_given_up_;
    names_->Warn(
        "some names were not found in time: a file takes too long to "
        "read");
    // Given up, as the end of these names would wait for the file.
    names_->Finish(Clock::now(), [] { return true; });
  }
  Naming& naming = names_->naming();
  naming.TakeWarningsOfNames();
  // Without their number, which grows: one warning, not one a second.
  if (naming.symbols().images_dropped() > 0) {
    names_->Warn(
        "files of some processes were not opened at once, as too many waited: "
        "they may lack names");
  }
  auto profile = std::make_shared<const Profile>(names_->MakeProfile());
  bool is_full = hangs;
  if (const ksym::Symbolizer* const symbols = naming.symbols().symbolizer()) {
    const auto statistics = symbols->statistics();
    is_full = is_full || (!names_->WaitsSince() &&
                          (statistics.files_known > kTopMaxFilesKnown ||
                           statistics.name_bytes > kTopMaxNameBytes));
  }
  if (is_full) {
    MakeNames();
    RenewNames();
  } else {
    BeginPart();
  }
  // At first the kernel's table is still being read.
  if (profile->metadata.duration_ns != 0) sinks_.part(std::move(profile));
}

bool TopCapture::Stop(Clock::time_point deadline) {
  stops_ = true;
  while (!has_ended_ && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  return has_ended_ && names_given_up_ == 0 && !names_->WaitsSince() &&
         !capture_->IsBuildingTables();
}

}  // namespace profd
