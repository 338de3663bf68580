// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/segment_merger.h"

#include <limits>
#include <span>
#include <utility>

#include "daemon/history/limits.h"
#include "daemon/history/table_check.h"
#include "daemon/history/table_order.h"

namespace profd::history {
namespace {

// A place in an index of what was interned, which is at most three quarters
// full and doubles; a vector doubles as well.
constexpr size_t kIndexBytes = 16;
constexpr size_t kStringBytes = 40;
constexpr size_t kNameIndexBytes = 40;

size_t BytesOf(const Sizes& sizes, size_t text_bytes) {
  return text_bytes + sizes.strings * (kStringBytes + kIndexBytes) +
         sizes.functions * (sizeof(Function) + kIndexBytes) +
         sizes.nodes * (sizeof(Node) + kIndexBytes) +
         sizes.series * (sizeof(Series) + kIndexBytes) +
         sizes.kinds * sizeof(Kind) + sizes.settings * sizeof(Setting) +
         sizes.parts * sizeof(Part) + sizes.counters * sizeof(Counter) +
         sizes.rows * sizeof(Row) +
         sizes.cgroup_names * (sizeof(CgroupName) + kNameIndexBytes);
}

bool IsWithinLimits(const Sizes& sizes, size_t text_bytes) {
  return sizes.strings <= kMaxStrings && text_bytes <= kMaxTextBytes &&
         sizes.functions <= kMaxFunctions && sizes.nodes <= kMaxNodes &&
         sizes.kinds <= kMaxSettings && sizes.settings <= kMaxSettings &&
         sizes.parts <= kMaxParts &&
         sizes.counters <= kMaxParts * kMaxCountersOfPart &&
         sizes.series <= kMaxSeries && sizes.rows <= kMaxRows &&
         sizes.cgroup_names <= kMaxCgroupNames;
}

}  // namespace

bool FitTogether(const SegmentOutline& there, const SegmentOutline& more) {
  Sizes sizes = there.most;
  sizes.strings += more.most.strings;
  sizes.functions += more.most.functions;
  sizes.nodes += more.most.nodes;
  sizes.kinds += more.most.kinds;
  sizes.settings += more.most.settings;
  sizes.parts += more.most.parts;
  sizes.counters += more.most.counters;
  sizes.series += more.most.series;
  sizes.rows += more.most.rows;
  sizes.cgroup_names += more.most.cgroup_names;
  const size_t text_bytes = there.text_bytes + more.text_bytes;
  return IsWithinLimits(sizes, text_bytes) &&
         BytesOf(sizes, text_bytes) <= kMaxMergeBytes;
}

// Gives the elements of one file their places among those of all.
class SegmentMerger::File {
 public:
  File(const Tables& file, TableBuilder& builder)
      : file_(file), builder_(builder) {}

  void Add() {
    AddStrings();
    AddSettings();
    AddStacks();
    AddSeries();
    AddCgroupNames();
    AddThinnings();
    AddPartsAndRows();
  }

 private:
  void AddStrings() {
    strings_.reserve(file_.strings.size());
    for (StringId id = 0; id < file_.strings.size(); ++id) {
      strings_.push_back(builder_.InternText(file_.strings.Get(id)));
    }
  }

  void AddSettings() {
    kinds_.resize(file_.kinds.size());
    for (const Setting& setting : file_.settings) {
      std::vector<Kind> kinds;
      for (uint32_t i = 0; i < setting.kinds; ++i) {
        Kind kind = file_.kinds[setting.first_kind + i];
        for (uint32_t* text : {&kind.name, &kind.unit, &kind.event}) {
          *text = strings_[*text];
        }
        kinds.push_back(kind);
      }
      Setting moved = setting;
      for (uint32_t* text :
           {&moved.version, &moved.hostname, &moved.kernel_release,
            &moved.architecture, &moved.cpus, &moved.stack_store, &moved.unwind,
            &moved.warnings, &moved.boot, &moved.run}) {
        *text = strings_[*text];
      }
      settings_.push_back(builder_.InternSetting(moved, kinds));
      const uint32_t first =
          builder_.tables().settings[settings_.back()].first_kind;
      for (uint32_t i = 0; i < setting.kinds; ++i) {
        kinds_[setting.first_kind + i] = first + i;
      }
    }
  }

  void AddStacks() {
    functions_.reserve(file_.functions.size());
    for (Function function : file_.functions) {
      for (uint32_t* text :
           {&function.name, &function.object, &function.build_id,
            &function.function, &function.file, &function.kind,
            &function.reason}) {
        *text = strings_[*text];
      }
      functions_.push_back(builder_.InternFunction(function));
    }
    nodes_.reserve(file_.nodes.size());
    nodes_.push_back(0);
    for (const Node& node : std::span(file_.nodes).subspan(1)) {
      nodes_.push_back(
          builder_.InternNode({.parent = nodes_[node.parent],
                               .function = functions_[node.function]}));
    }
  }

  void AddSeries() {
    series_.reserve(file_.series.size());
    for (Series series : file_.series) {
      series.comm = strings_[series.comm];
      series.cgroup = strings_[series.cgroup];
      series.kind = kinds_[series.kind];
      series_.push_back(builder_.InternSeries(series));
    }
  }

  // Later files have later names.
  void AddCgroupNames() {
    for (const CgroupName& name : file_.cgroup_names) {
      builder_.NameCgroup({.cgroup = strings_[name.cgroup],
                           .pod_namespace = strings_[name.pod_namespace],
                           .pod = strings_[name.pod],
                           .container = strings_[name.container]});
    }
  }

  // What has a part that was thinned out is not thinned out once more.
  void AddThinnings() {
    std::vector<Thinning>& all = builder_.tables().thinnings;
    for (const Thinning& more : file_.thinnings) {
      if (all.empty()) all.emplace_back();
      if (__builtin_add_overflow(all[0].stacks, more.stacks, &all[0].stacks)) {
        all[0].stacks = std::numeric_limits<uint32_t>::max();
      }
    }
  }

  void AddPartsAndRows() {
    Tables& all = builder_.tables();
    const auto first_part = static_cast<uint32_t>(all.parts.size());
    const auto first_counter = static_cast<uint32_t>(all.counters.size());
    for (Part part : file_.parts) {
      part.setting = settings_[part.setting];
      part.first_counter += first_counter;
      all.parts.push_back(part);
    }
    for (Counter counter : file_.counters) {
      counter.name = strings_[counter.name];
      all.counters.push_back(counter);
    }
    for (Row row : file_.rows) {
      row.series = series_[row.series];
      row.user = nodes_[row.user];
      row.kernel = nodes_[row.kernel];
      row.part = static_cast<uint16_t>(row.part + first_part);
      row.slice = 0;
      all.rows.push_back(row);
    }
    all.count_sum += file_.count_sum;
    all.value_sum += file_.value_sum;
  }

  const Tables& file_;
  TableBuilder& builder_;
  // By their places in the file.
  std::vector<uint32_t> strings_;
  std::vector<uint32_t> kinds_;
  std::vector<uint32_t> settings_;
  std::vector<uint32_t> functions_;
  std::vector<uint32_t> nodes_;
  std::vector<uint32_t> series_;
};

bool SegmentMerger::Add(const Tables& file) {
  const Tables& all = builder_.tables();
  const uint64_t steps = stack_steps_ + StackSteps(file);
  uint64_t sum = 0;
  if (steps > kMaxStackSteps ||
      __builtin_add_overflow(all.count_sum, file.count_sum, &sum) ||
      __builtin_add_overflow(all.value_sum, file.value_sum, &sum)) {
    return false;
  }
  stack_steps_ = steps;
  File(file, builder_).Add();
  return true;
}

SegmentOutline SegmentMerger::Outline() const {
  const Tables& tables = builder_.tables();
  return {
      .sequences = {}, .most = tables.sizes(), .text_bytes = tables.text_bytes};
}

Tables SegmentMerger::Finish() && {
  Tables tables = std::move(builder_).Finish();
  // What finds elements by what they are is not needed, nor right, any more.
  builder_ = TableBuilder();
  OrderTables(tables);
  // Rows that had different slices.
  UniteRows(tables.rows);
  return tables;
}

}  // namespace profd::history
