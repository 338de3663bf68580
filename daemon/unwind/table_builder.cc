// SPDX-License-Identifier: Apache-2.0
#include "daemon/unwind/table_builder.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "daemon/base/own_priority.h"
#include "daemon/base/steady_clock.h"
#include "daemon/base/table_memory.h"
#include "ksym/unwind/call_frame_section.h"
#include "ksym/unwind/unwind_cache.h"

namespace profd {
namespace {

// A capture begins with a burst of tables: most programs' take some ms each.
constexpr PriorityAllowance kAllowance = {
    .at_once = std::chrono::milliseconds(500),
    .per_second = std::chrono::milliseconds(100)};
constexpr uint64_t kMaxCacheBytes = 512 << 20;

// About what it takes to make a table: the section, 40 bytes for each of its
// entries, which have some 30, and the rows.
uint64_t BytesToBuild(const ksym::ByteSource& source,
                      const ksym::ElfImage& image) {
  constexpr uint64_t kTimesSection = 4;
  uint64_t bytes = 0;
  for (const char* name : {".eh_frame", ".debug_frame"}) {
    const ksym::ElfSection* section = image.FindSection(name);
    if (section != nullptr) bytes = std::max(bytes, section->size);
  }
  // Without sections it is looked for up to the end of a segment.
  if (bytes == 0 && image.eh_frame_header()) bytes = source.size();
  return std::min<uint64_t>(bytes, ksym::kMaxCallFrameBytes) * kTimesSection;
}

size_t BytesOf(const BuiltTable& table) {
  size_t slots = table.rows ? table.rows->rows.size() : 0;
  for (const UnwindPiece& piece : table.pieces) slots += piece.index.size();
  return slots * sizeof(uint64_t);
}

std::optional<uint32_t> OwnerOf(const ksym::ByteSource& source) {
  const auto owner = source.owner();
  return owner ? std::optional(owner->user) : std::nullopt;
}

// Less: later. Among those that are wanted alike a small one delays nobody.
bool IsLater(const TableBuilder::Job& a, const TableBuilder::Job& b) {
  if (a.wanted != b.wanted) return a.wanted < b.wanted;
  return a.source.size() > b.source.size();
}

}  // namespace

TableBuilder::TableBuilder(Build build, size_t max_bytes)
    : build_(std::move(build)), max_bytes_(max_bytes) {}

// The table that is being built is finished; the jobs behind it are dropped.
TableBuilder::~TableBuilder() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TableBuilder::Add(Job job) {
  {
    const std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.notify_all();
  // A capture that builds no table has no thread.
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
}

void TableBuilder::Want(uint64_t id, uint64_t wanted) {
  const std::scoped_lock lock(mutex_);
  const auto job = std::ranges::find(jobs_, id, &Job::id);
  if (job != jobs_.end()) job->wanted = std::max(job->wanted, wanted);
}

std::vector<TableBuilder::Result> TableBuilder::Take() {
  std::vector<Result> results;
  {
    const std::scoped_lock lock(mutex_);
    if (results_.empty()) return results;
    results.swap(results_);
    result_bytes_ = 0;
  }
  // The thread may be resting for want of room.
  changed_.notify_all();
  return results;
}

void TableBuilder::Wait(SteadyClock::duration time) {
  std::unique_lock lock(mutex_);
  // Without anything to do no result will come.
  changed_.wait_for(lock, time, [this] {
    return !results_.empty() || (jobs_.empty() && !is_building_);
  });
}

SteadyClock::duration TableBuilder::busy() const {
  const std::scoped_lock lock(mutex_);
  return busy_;
}

// Results that nobody has taken hold memory: with too much of it the thread
// rests.
bool TableBuilder::HasWork() const {
  return !jobs_.empty() && result_bytes_ < max_bytes_;
}

TableBuilder::Job TableBuilder::TakeJob() {
  const auto next = std::ranges::max_element(jobs_, IsLater);
  Job job = std::move(*next);
  jobs_.erase(next);
  return job;
}

void TableBuilder::Run() {
  PriorityShare share(kAllowance);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stops_ || HasWork(); });
    if (stops_) return;
    const Job job = TakeJob();
    is_building_ = true;
    // Not locked while it builds: others add jobs meanwhile.
    lock.unlock();
    // A table that somebody waits for is built before what is measured; one
    // that is only expected takes its turn.
    if (job.wanted > 0) {
      share.Renew();
    } else {
      share.Rest();
    }
    const auto begin = SteadyClock::now();
    Result result = {.id = job.id, .table = build_(job.source)};
    const auto took = SteadyClock::now() - begin;
    lock.lock();
    result_bytes_ += BytesOf(result.table);
    results_.push_back(std::move(result));
    is_building_ = false;
    busy_ += took;
    lock.unlock();
    changed_.notify_all();
    lock.lock();
  }
}

TableBuilder::Build BuildTablesWith(const std::string& cache_directory) {
  std::shared_ptr<ksym::UnwindCache> cache;
  if (!cache_directory.empty()) {
    // Without it tables are built; that costs time only.
    auto opened = ksym::UnwindCache::Open(cache_directory, kMaxCacheBytes);
    if (opened) {
      cache = std::make_shared<ksym::UnwindCache>(std::move(*opened));
    }
  }
  return [cache,
          room = TableMemory::OfProcess()](const ksym::ByteSource& source) {
    BuiltTable built;
    const auto image = ksym::ElfImage::Parse(source);
    if (!image) return built;
    const auto held = room(BytesToBuild(source, *image));
    auto table = cache ? cache->LoadOrBuild(source, *image)
                       : ksym::BuildUnwindTable(source, *image);
    built.owner = OwnerOf(source);
    built.runtimes = ksym::FindRuntimes(source, *image);
    if (!table) {
      if (table.error().code() == ksym::ErrorCode::kLimit) {
        built.refusal = table.error().message();
      }
      return built;
    }
    built.rows = std::make_shared<const ksym::UnwindTable>(std::move(*table));
    std::ranges::copy_if(image->segments(), std::back_inserter(built.code),
                         &ksym::ElfSegment::executable);
    built.pieces = CutIntoPieces(built.rows->rows, built.rows->size);
    return built;
  };
}

}  // namespace profd
