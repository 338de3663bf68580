// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/profile/profile.h"

namespace profd::history {

// What one file of a history holds: samples of many parts, each part a second
// or so, and what they name, each once. An element names others by their places
// in the tables. docs/formats.md gives the file's layout.

// A function, not an address: where in it the code was is not kept.
struct Function {
  uint32_t name = 0;      // a string, as the next five
  uint32_t object = 0;    // Frame::object
  uint32_t build_id = 0;  // lower-case hexadecimal
  uint32_t function = 0;  // Frame::function
  uint32_t file = 0;      // Frame::file of a language runtime's frames; else 0
  uint32_t kind = 0;      // FrameKind::name
  uint32_t reason = 0;    // ksym::UnresolvedName()
  uint32_t first_line = 0;
  uint32_t flags = 0;  // kInFile, kInlined

  static constexpr uint32_t kInFile = 1;
  static constexpr uint32_t kInlined = 2;

  friend bool operator==(const Function&, const Function&) = default;
};

// A call stack: its innermost function, and the stack of the callers. Node 0 is
// the empty stack and in no file.
struct Node {
  uint32_t parent = 0;  // less than the node's own place
  uint32_t function = 0;

  friend bool operator==(const Node&, const Node&) = default;
};

// SampleKind.
struct Kind {
  uint32_t name = 0;  // a string, as the next two
  uint32_t unit = 0;
  uint32_t event = 0;
  uint64_t frequency_hz = 0;
  uint64_t count_period = 0;
  uint32_t has_values = 0;  // 0 or 1

  friend bool operator==(const Kind&, const Kind&) = default;
};

// How and where a part was sampled. A new rate or a new run of the service
// makes a new one.
struct Setting {
  uint32_t version = 0;  // a string, as the next nine
  uint32_t hostname = 0;
  uint32_t kernel_release = 0;
  uint32_t architecture = 0;
  uint32_t cpus = 0;
  uint32_t stack_store = 0;
  uint32_t unwind = 0;
  uint32_t warnings = 0;  // lines
  uint32_t boot = 0;      // the kernel's boot id
  uint32_t run = 0;       // one text for each run of the service
  uint32_t max_stack_depth = 0;
  // Its kinds are places in the list of kinds: from here up to those of the
  // next setting.
  uint32_t first_kind = 0;
  uint32_t kinds = 0;

  friend bool operator==(const Setting&, const Setting&) = default;
};

// About a second of sampling. Those of a file are in the order in which they
// were sampled, whatever the clock did.
struct Part {
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  uint32_t setting = 0;
  // Its counters: from here up to those of the next part.
  uint32_t first_counter = 0;
  uint32_t counters = 0;
};

// A number of Accounting that is not 0.
struct Counter {
  uint32_t name = 0;  // a string: see FindCounter()
  uint64_t value = 0;

  friend bool operator==(const Counter&, const Counter&) = default;
};

// The threads that samples are of.
struct Series {
  uint32_t comm = 0;    // a string
  uint32_t cgroup = 0;  // a string
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t kind = 0;  // place among the kinds
  uint32_t user_state = 0;
  uint32_t kernel_state = 0;
  uint32_t parked = 0;  // 0 or 1

  friend bool operator==(const Series&, const Series&) = default;
};

struct Row {
  uint32_t series = 0;
  uint32_t user = 0;  // nodes
  uint32_t kernel = 0;
  uint16_t part = 0;
  // Which TimeSlice of the part, from 1 on; the first one may have begun before
  // the part. 0: it is not known, as of samples that are older than an hour.
  uint16_t slice = 0;
  uint64_t count = 0;
  uint64_t value = 0;

  friend bool operator==(const Row&, const Row&) = default;
};

// Row::slice of a sample in a part that began then.
uint16_t RowSliceOf(uint64_t start_unix_ns, TimeSlice slice);
// When that slice of the part began; the part's start without one.
uint64_t BeginOf(const Part& part, const Row& row);

// How people call the pod and the container that a cgroup is of. There may be
// several of a cgroup, of which the last one counts.
struct CgroupName {
  uint32_t cgroup = 0;         // a string, as the next three
  uint32_t pod_namespace = 0;  // empty of a container that is of no pod
  uint32_t pod = 0;            // the same
  uint32_t container = 0;      // empty: only the pod is known

  friend bool operator==(const CgroupName&, const CgroupName&) = default;
};

// That the file was thinned out (daemon/history/thinning.h). It has one or
// none.
struct Thinning {
  uint32_t stacks = 0;  // that were folded into their callers

  friend bool operator==(const Thinning&, const Thinning&) = default;
};

// How much there is of each.
struct Sizes {
  size_t strings = 1;
  size_t functions = 0;
  size_t nodes = 1;
  size_t kinds = 0;
  size_t settings = 0;
  size_t parts = 0;
  size_t counters = 0;
  size_t series = 0;
  size_t rows = 0;
  size_t cgroup_names = 0;
  size_t thinnings = 0;

  friend bool operator==(const Sizes&, const Sizes&) = default;
};

// Value. String 0 is the empty one, node 0 the empty stack.
struct Tables {
  StringTable strings;
  std::vector<Function> functions;
  std::vector<Node> nodes = {Node{}};
  std::vector<Kind> kinds;
  std::vector<Setting> settings;
  std::vector<Part> parts;
  std::vector<Counter> counters;
  std::vector<Series> series;
  std::vector<Row> rows;
  std::vector<CgroupName> cgroup_names;
  std::vector<Thinning> thinnings;
  size_t text_bytes = 0;  // of all strings
  // Sums of the rows that AppendColumns() appended.
  uint64_t count_sum = 0;
  uint64_t value_sum = 0;

  Sizes sizes() const;
  // Leaves nothing but room: most of the memory.
  void Clear();
  // About what it takes.
  size_t memory_bytes() const;
};

// By what a file sorts its rows: equal neighbours cost nearly nothing.
bool RowOrder(const Row& a, const Row& b);
// Sorts rows, and makes one of those that differ in count and value alone.
void UniteRows(std::vector<Row>& rows);

}  // namespace profd::history
