// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "daemon/profile/accounting.h"

namespace profd {

// What the service counts over its life. Written by its threads and read by
// any, each number for itself.
struct ServiceCounters {
  using Number = std::atomic<uint64_t>;

  Number samples_taken = 0;
  // taken = emitted + lost in the capture + dropped before they had names.
  Number samples_emitted = 0;
  Number samples_lost = 0;
  std::array<Number, kLossCauses> lost_by_cause = {};  // of samples_lost
  Number samples_dropped_unnamed = 0;
  Number samples_without_cgroup = 0;  // of samples_emitted
  Number processes_not_pinned = 0;    // files could not be opened in time
  Number drains = 0;
  Number drain_ns = 0;   // spent in drains, waiting included
  Number naming_ns = 0;  // spent on names
  // Source lines: frames that were looked up and found, and what became of
  // the programs that have them.
  Number line_frames = 0;
  Number line_frames_found = 0;
  Number line_files_made = 0;
  Number line_files_without = 0;    // no debug data
  Number line_files_untrusted = 0;  // another user's
  Number line_files_failed = 0;
  Number profiles = 0;
  Number profiles_dropped_unwritten = 0;  // the disk was slower than we
  Number files_written = 0;
  Number file_bytes_written = 0;
  Number files_failed = 0;
  Number history_records = 0;
  Number history_samples_dropped = 0;  // that could not be written
  Number history_failed = 0;           // attempts; they are made again
  Number history_files_deleted = 0;    // for their age, or for room
  Number history_files_bad = 0;        // of an earlier run
  Number history_compactions = 0;      // files made of those of an hour
  Number history_compactions_failed = 0;
  Number history_thinnings = 0;  // files that lost their rare stacks
  Number history_thinnings_failed = 0;
  Number history_stacks_folded = 0;      // that these lost
  Number history_compaction_cpu_ns = 0;  // of both
  Number history_query_cpu_ns = 0;       // that answers to clients took
  // Profiles by target: three targets, three profiles.
  Number push_sent = 0;
  Number push_failed = 0;           // attempts; they are tried again
  Number push_rejected = 0;         // by the receiver, for good
  Number push_dropped = 0;          // the spool was full, or the disk failed
  Number push_not_kept = 0;         // samples without their stack or owner
  Number push_left_out = 0;         // samples that others stand for
  Number symbolizers = 0;           // made anew to stay within memory
  Number symbolizers_given_up = 0;  // that hung
  Number files_given_up = 0;        // whose file system does not answer
  Number http_requests = 0;
  Number http_refused = 0;
  Number reloads = 0;
  Number reloads_refused = 0;
  Number guard_changes = 0;
  // Samples of waits that the capture gave, and the time that they stand for.
  Number waiting_runnable = 0;
  Number waiting_runnable_ns = 0;
  Number waiting_blocked = 0;
  Number waiting_blocked_ns = 0;

  // Containers and processes by what is known of their names: the former go up
  // and down.
  Number container_names_found = 0;
  Number container_names_pod_only = 0;
  Number container_names_not_found = 0;
  Number container_names_contradictory = 0;
  Number container_names_not_trusted = 0;
  Number container_names_unreadable = 0;
  Number container_names_too_large = 0;
  Number container_names_not_in_time = 0;
  Number container_names_no_room = 0;
  Number environments_read = 0;
  Number environments_gone = 0;
  Number environments_too_large = 0;
  Number environments_malformed = 0;
  Number environments_unreadable = 0;
  Number environments_not_in_time = 0;
  Number environments_no_room = 0;
  Number environment_attributes_refused = 0;

  // These go up and down.
  Number frequency_hz = 0;
  Number waiting_frequency_hz = 0;  // 0: waits are not sampled
  Number waiting_sleepers = 0;
  Number guard_level = 0;
  Number push_waiting = 0;
  Number push_waiting_bytes = 0;
  Number history_bytes = 0;
  Number history_files = 0;
  Number symbol_cache_bytes = 0;
  Number symbols = 0;
  Number kernel_symbols = 0;
  Number kernel_symbol_bytes = 0;
  Number kernel_snapshots = 0;
  Number kernel_reading_ns = 0;
  Number unwind_table_bytes = 0;
  Number runtime_processes = 0;
  Number runtime_bytes = 0;

  // These only grow, until a capture begins anew.
  Number runtime_functions = 0;
  Number runtime_functions_unread = 0;
  Number runtime_functions_refused = 0;
  Number runtime_runs = 0;
  Number runtime_runs_torn = 0;
  Number runtime_runs_cut = 0;
  Number runtime_runs_not_placed = 0;
  Number runtime_sleepers_read = 0;
  Number runtime_sleepers_went_on = 0;
  Number runtime_sleepers_out_of_time = 0;
  Number runtime_copies_read = 0;
  Number runtime_copies_uncertain = 0;
  Number runtime_copies_too_old = 0;
  Number runtime_copies_out_of_time = 0;
  Number runtime_frames_unnamed = 0;
  Number runtime_inlined_not_described = 0;
  Number runtime_inlined_too_much = 0;
  Number runtime_inlined_corrupt = 0;
  Number waiting_thinned = 0;
  Number waiting_unseen = 0;
  Number waiting_crowded = 0;
  Number waiting_untaken = 0;
  Number waiting_walks = 0;
  Number waiting_walks_skipped = 0;
  Number waiting_walk_ns = 0;
  Number waiting_put_off = 0;
};

}  // namespace profd
