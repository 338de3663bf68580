// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/profile/mapped_object.h"
#include "daemon/profile/raw_frame_text.h"
#include "ksym/markup/markup_writer.h"

namespace profd {
namespace {

// What a log could take for markup becomes '_'.
std::string PlainText(std::string_view text) {
  std::string plain;
  ksym::AppendMarkupField(text, plain);
  std::ranges::replace(plain, '{', '_');
  return plain;
}

// The context of one process: what its samples are in.
class Context {
 public:
  Context(const RawCapture& capture, const ModuleIndex& index)
      : capture_(capture), index_(index) {}

  void AddUser(const ksym::ProcessImage* image, uint64_t address) {
    if (image == nullptr) return;
    const ksym::Mapping* mapping = image->Find({address});
    if (mapping == nullptr) return;
    const auto [place, is_new] = mmaps_.try_emplace(mapping->start.value);
    if (!is_new) return;
    ksym::MarkupMmap& mmap = place->second;
    mmap.address = mapping->start;
    mmap.size = mapping->end - mapping->start;
    mmap.mode = "rx";
    const MappedObject* module = index_.Find(*mapping);
    const auto at = module == nullptr ? std::nullopt
                                      : module->AddressOf(mapping->file_offset);
    if (!at) return;
    mmap.module_address = *at;
    mmap.module = ModuleOf(module, module->path, module->build_id);
  }

  void AddKernel(uint64_t address) {
    for (const KernelPart& part : capture_.kernel_parts) {
      if (address - part.start >= part.size) continue;
      const auto [place, is_new] = mmaps_.try_emplace(part.start);
      if (!is_new) return;
      ksym::MarkupMmap& mmap = place->second;
      mmap.address = {part.start};
      mmap.size = part.size;
      mmap.mode = "rx";
      // Where it is linked to is not known: its addresses are the run-time
      // ones, a module's count from its start.
      const bool is_image = part.name == "[kernel]";
      mmap.module_address = {is_image ? part.start : 0};
      mmap.module = ModuleOf(&part, part.name, part.build_id);
      return;
    }
  }

  void Write(std::string& out) const {
    const ksym::MarkupModule* last = nullptr;
    std::vector<const ksym::MarkupMmap*> mmaps;
    for (const auto& [start, mmap] : mmaps_) {
      if (mmap.module != nullptr) mmaps.push_back(&mmap);
    }
    // A module's element stands once, in front of all of its mmaps.
    std::ranges::stable_sort(mmaps, {}, [](const ksym::MarkupMmap* mmap) {
      return mmap->module->id;
    });
    for (const ksym::MarkupMmap* mmap : mmaps) {
      if (mmap->module != last) {
        ksym::AppendMarkupModule(*mmap->module, out);
        out += '\n';
      }
      last = mmap->module;
      ksym::AppendMarkupMmap(*mmap, out);
      out += '\n';
    }
  }

 private:
  const ksym::MarkupModule* ModuleOf(const void* key, std::string_view name,
                                     const std::string& build_id) {
    const auto [place, is_new] = by_key_.try_emplace(key);
    if (is_new) {
      modules_.push_back({modules_.size(), PlainText(name), build_id});
      place->second = &modules_.back();
    }
    return place->second;
  }

  const RawCapture& capture_;
  const ModuleIndex& index_;
  std::deque<ksym::MarkupModule> modules_;
  std::map<const void*, const ksym::MarkupModule*> by_key_;
  std::map<uint64_t, ksym::MarkupMmap> mmaps_;  // without a module: not known
};

class Writer {
 public:
  Writer(const RawCapture& capture, SampleKindId kind, OutputOptions::By by,
         OutputBuffer& out)
      : capture_(capture),
        kind_id_(kind),
        by_(by),
        index_(capture.modules),
        out_(out) {}

  void Run() {
    const CaptureMetadata& metadata = capture_.profile.metadata;
    std::vector<const RawSample*> samples;
    samples.reserve(capture_.profile.samples.size());
    for (const RawSample& sample : capture_.profile.samples) {
      // What lasted no time is no sample of it.
      const bool is_shown = sample.kind == kind_id_ && Amount(sample) != 0;
      if (is_shown) samples.push_back(&sample);
    }
    fmt::format_to(std::back_inserter(out_.text()),
                   "ksym-profile {}: {} {} of {}, {} lost\n",
                   PlainText(metadata.version), AmountOf(samples), unit_,
                   PlainText(kind_.event), capture_.profile.accounting.lost());
    std::ranges::sort(samples, {},
                      [this](const RawSample* s) { return BlockOf(*s); });
    for (auto next = samples.begin(); next != samples.end();) {
      const ksym::ProcessId& process = (*next)->process;
      const auto end = std::find_if(next, samples.end(), [&](const auto* s) {
        return s->process != process;
      });
      WriteProcess({next, end});
      next = end;
    }
  }

 private:
  using Samples = std::span<const RawSample* const>;

  // Those that are equal in this are one block of the log.
  std::tuple<const ksym::ProcessId&, std::string_view, uint32_t, StackId,
             StackId>
  BlockOf(const RawSample& sample) const {
    const bool by_thread = by_ == OutputOptions::By::kTid;
    return {sample.process, sample.comm.view(), by_thread ? sample.tid : 0,
            sample.user_stack, sample.kernel_stack};
  }

  uint64_t Amount(const RawSample& sample) const {
    return kind_.has_values ? sample.value : sample.count;
  }
  uint64_t AmountOf(Samples samples) const {
    uint64_t sum = 0;
    for (const RawSample* sample : samples) sum += Amount(*sample);
    return sum;
  }

  template <typename Function>
  void ForEachRawFrame(StackId id, const Function& function) const {
    if (id < kFirstStackId) return;
    if (const auto stack = capture_.profile.stacks.Find(id)) {
      ForEachFrame(*stack, function);
    }
  }

  // For native code; `function(address, is_first)`.
  template <typename Function>
  void ForEachAddress(StackId id, const Function& function) const {
    bool is_first = true;
    ForEachRawFrame(id, [&](const RawFrame& frame) {
      if (frame.is_address()) function(frame.value, is_first);
      is_first = false;
    });
  }

  void WriteProcess(Samples samples) {
    const ksym::ProcessId& process = samples.front()->process;
    const auto image = capture_.profile.images.find(process);
    const ksym::ProcessImage* space =
        image == capture_.profile.images.end() ? nullptr : &image->second;
    Context context(capture_, index_);
    for (const RawSample* sample : samples) {
      // A return address may be the first byte behind its function's mapping.
      ForEachAddress(sample->user_stack, [&](uint64_t address, bool is_first) {
        context.AddUser(space, address - (is_first ? 0 : 1));
      });
      ForEachAddress(sample->kernel_stack,
                     [&](uint64_t address, bool is_first) {
                       context.AddKernel(address - (is_first ? 0 : 1));
                     });
    }
    fmt::format_to(std::back_inserter(out_.text()),
                   "{{{{{{reset}}}}}}\nprocess {}: {} {}\n", process.pid,
                   AmountOf(samples), unit_);
    context.Write(out_.text());
    for (auto next = samples.begin(); next != samples.end();) {
      const auto end = std::find_if(next, samples.end(), [&](const auto* s) {
        return BlockOf(*s) != BlockOf(**next);
      });
      WriteBlock({next, end});
      next = end;
    }
  }

  void WriteBlock(Samples equal) {
    const RawSample& sample = *equal.front();
    std::string& out = out_.text();
    fmt::format_to(std::back_inserter(out), "{} {} in {}", AmountOf(equal),
                   unit_, PlainText(sample.comm.view()));
    if (by_ == OutputOptions::By::kTid && sample.tid != 0) {
      fmt::format_to(std::back_inserter(out), ", thread {}", sample.tid);
    }
    out += '\n';
    uint64_t number = 0;
    for (const StackId id : {sample.kernel_stack, sample.user_stack}) {
      auto code = ksym::MarkupCode::kPrecise;
      ForEachRawFrame(id, [&](const RawFrame& frame) {
        // Markup has addresses only.
        if (frame.is_address()) {
          ksym::AppendMarkupFrame(number++, {frame.value}, code, out);
        } else {
          out += RawFrameText(frame, capture_.profile, style_);
        }
        out += '\n';
        code = ksym::MarkupCode::kReturnAddress;
      });
      WriteState(id);
    }
    out_.PassOn();
  }

  // What is missing of a stack.
  void WriteState(StackId id) {
    std::string& out = out_.text();
    if (id == kFaultedStack) out += "[no stack: the walk failed]\n";
    if (id == kCollidedStack) out += "[no stack: its place was taken]\n";
    if (id < kFirstStackId) return;
    const auto stack = capture_.profile.stacks.Find(id);
    if (!stack) {
      out += "[no stack: lost]\n";
    } else if (IsBroken(stack->end) || stack->end == StackEnd::kDepthLimit) {
      ((out += "[truncated: ") += Name(stack->end)) += "]\n";
    }
  }

  const RawCapture& capture_;
  const SampleKindId kind_id_;
  const OutputOptions::By by_;
  const SampleKind& kind_ = capture_.profile.metadata.kinds[kind_id_];
  const std::string unit_ = PlainText(UnitName(kind_));
  const RawFrameStyle style_ = {.with_threads = by_ == OutputOptions::By::kTid,
                                .plain = &PlainText};
  const ModuleIndex index_;
  OutputBuffer& out_;
};

}  // namespace

void WriteMarkup(const RawCapture& capture, SampleKindId kind,
                 OutputOptions::By by, OutputBuffer& out) {
  Writer(capture, kind, by, out).Run();
}

}  // namespace profd
