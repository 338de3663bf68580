// SPDX-License-Identifier: Apache-2.0
#include "daemon/naming/source_lines.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ksym/base/bounded_name.h"
#include "ksym/demangle/demangle.h"
#include "ksym/elf/symbol_table.h"
#include "ksym/gsym/gsym_lookup.h"

namespace profd {
namespace {

class LineAdder {
 public:
  LineAdder(LineFiles& files, const SourceLineOptions& options,
            Profile& profile)
      : files_(files), options_(options), profile_(profile) {}

  SourceLineCounts Run() {
    // Frames are added behind these.
    const size_t frame_count = profile_.frames.size();
    std::unordered_map<StringId, std::vector<FrameId>> by_part;
    std::unordered_map<StringId, std::vector<FrameId>> by_build_id;
    for (FrameId id = 0; id < frame_count; ++id) {
      const Frame& frame = profile_.frames[id];
      if (IsOfKernel(frame)) by_part[frame.object].push_back(id);
      if (!frame.kind->is_in_file) continue;
      ++counts_.frames;
      if (frame.build_id != 0) by_build_id[frame.build_id].push_back(id);
    }
    for (const StringId build_id : MostSampledFirst()) {
      const auto& frames = by_build_id[build_id];
      if (frames.empty()) continue;
      // Its keys are addresses in the last file.
      names_.clear();
      const Frame& any = profile_.frames[frames.front()];
      const LineFile* file =
          files_.Find(profile_.String(build_id), profile_.String(any.object));
      if (file == nullptr) continue;
      for (const FrameId id : frames) AddLines(*file, id);
    }
    for (const auto& [module, frames] : by_part) {
      names_.clear();
      if (profile_.String(module) == "[kernel]") {
        AddKernelLines(frames);
      } else {
        AddModuleLines(profile_.String(module), frames);
      }
    }
    if (!chains_.empty()) RebuildStacks();
    return counts_;
  }

 private:
  // The time for reading debug data may end before all files have been read.
  std::vector<StringId> MostSampledFirst() const {
    std::unordered_map<StringId, uint64_t> weights;
    for (const ProfileSample& sample : profile_.samples) {
      for (const FrameId id : profile_.Stack(sample.user)) {
        weights[profile_.frames[id].build_id] += sample.count;
      }
    }
    weights.erase(0);
    std::vector<std::pair<StringId, uint64_t>> order(weights.begin(),
                                                     weights.end());
    std::ranges::sort(order, [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    std::vector<StringId> build_ids;
    build_ids.reserve(order.size());
    for (const auto& [build_id, weight] : order) build_ids.push_back(build_id);
    return build_ids;
  }

  // Those whose place is known; BPF programs and trampolines have no file.
  static bool IsOfKernel(const Frame& frame) {
    return frame.kind->is_kernel && frame.kind->has_debug_data &&
           frame.file_offset != 0;
  }

  void AddKernelLines(const std::vector<FrameId>& frames) {
    const LineFile* file = files_.FindKernel();
    if (file == nullptr) return;
    for (const FrameId id : frames) {
      const uint64_t address =
          file->kernel_text + profile_.frames[id].file_offset;
      const auto found = LookupGsym(file->image.file(), {address}, answer_);
      // Where builds are not known to be the same, another name means another
      // build of the release.
      const bool is_same =
          file->is_same_kernel ||
          (found && *found &&
           NameOf(answer_.frames.back().function) == profile_.frames[id].name);
      if (found && *found && is_same) AddFound(id);
    }
  }

  // `module` is in brackets, and of the profile's strings.
  void AddModuleLines(std::string_view module,
                      const std::vector<FrameId>& frames) {
    module = module.substr(1, module.size() - 2);
    if (options_.kernel == nullptr) return;
    const LineFile* file = files_.FindModule(module);
    if (file == nullptr || !file->module) return;
    for (const FrameId id : frames) {
      const auto address = FindInModule(*file->module, module, id);
      if (!address) continue;
      const auto found = LookupGsym(file->image.file(), *address, answer_);
      if (found && *found) AddFound(id);
    }
  }

  // Where the frame's code is in its module's file. A module that came or went
  // since then has other symbols there.
  std::optional<ksym::ElfAddress> FindInModule(const ModuleSymbols& symbols,
                                               std::string_view module,
                                               FrameId id) {
    const Frame& frame = profile_.frames[id];
    const auto find = [&](ksym::Address address) {
      const auto answer = options_.kernel->Find(address, name_buffer_);
      const bool is_found =
          answer.kind == ksym::KernelTimeline::Answer::Kind::kFound &&
          answer.symbol.module == module && !answer.symbol.in_prefix;
      return is_found ? std::optional(answer.symbol) : std::nullopt;
    };
    const auto symbol = find({frame.file_offset});
    if (!symbol || symbol->offset != frame.symbol_offset) return std::nullopt;
    const std::string name(symbol->name);
    const ksym::Address start = symbol->start;
    if (Printed(name) != profile_.String(frame.name)) return std::nullopt;
    return symbols.Find(name, start, frame.symbol_offset,
                        [&](ksym::Address other, std::string_view other_name) {
                          const auto there = find(other);
                          return there && there->offset == 0 &&
                                 there->name == other_name;
                        });
  }

  void AddLines(const LineFile& file, FrameId id) {
    const auto address =
        ksym::ToElfAddress(file.segments, {profile_.frames[id].file_offset});
    if (!address) return;
    const auto found = LookupGsym(file.image.file(), *address, answer_);
    if (found && *found) AddFound(id);
  }

  // Puts the lines and inlined calls of `answer_` into the frame.
  void AddFound(FrameId id) {
    if (!answer_.frames.front().file.empty()) ++counts_.found;
    const bool with_inlines =
        options_.inlines == SourceLineOptions::Inlines::kShow;
    if (with_inlines && answer_.frames.size() > 1) AddInlined(id);
    SetFunction(with_inlines ? answer_.frames.back() : answer_.frames.front(),
                profile_.frames[id]);
  }

  void AddInlined(FrameId id) {
    std::vector<FrameId>& chain = chains_[id];
    for (size_t i = 0; i + 1 < answer_.frames.size(); ++i) {
      const ksym::GsymFrame& inlined = answer_.frames[i];
      Frame frame = profile_.frames[id];
      frame.name = NameOf(inlined.function);
      frame.symbol_offset = inlined.offset;
      frame.reason = ksym::Unresolved::kNone;
      frame.kind = frame.kind->inlined;
      SetPlace(inlined, frame);
      chain.push_back(static_cast<FrameId>(profile_.frames.size()));
      profile_.frames.push_back(frame);
      ++counts_.inlined;
    }
    chain.push_back(id);
  }

  // The function's own frame keeps the name of its symbol if it has one.
  void SetFunction(const ksym::GsymFrame& place, Frame& frame) {
    SetPlace(place, frame);
    const bool lacks_name = frame.reason == ksym::Unresolved::kNoSymbol ||
                            frame.reason == ksym::Unresolved::kNoSymbols;
    if (!lacks_name || answer_.frames.back().function.empty()) return;
    frame.name = NameOf(answer_.frames.back().function);
    frame.symbol_offset = answer_.frames.back().offset;
    frame.reason = ksym::Unresolved::kNone;
  }

  void SetPlace(const ksym::GsymFrame& place, Frame& frame) {
    if (options_.lines == SourceLineOptions::Lines::kOmit ||
        place.file.empty()) {
      return;
    }
    path_ = place.directory;
    if (!path_.empty() && !path_.ends_with('/')) path_ += '/';
    path_ += place.file;
    std::string room;
    frame.file = profile_.strings.Intern(ksym::BoundPath(path_, room));
    frame.line = place.line;
  }

  // Names are views of the file: equal ones have one address.
  StringId NameOf(std::string_view name) {
    const auto [at, is_new] = names_.try_emplace(name.data(), 0);
    if (!is_new) return at->second;
    const std::string printed = Printed(ksym::WithoutVersion(name));
    std::string room;
    at->second = profile_.strings.Intern(ksym::BoundName(printed, room));
    return at->second;
  }

  std::string Printed(std::string_view name) const {
    return options_.demangle == ksym::SymbolizerOptions::Demangle::kOn
               ? ksym::Demangle(name)
               : std::string(name);
  }

  // Different stacks stay different: each chain ends with its own frame.
  void RebuildStacks() {
    CallStackTable stacks;
    std::vector<CallStackId> new_ids;
    std::vector<FrameId> frames;
    for (CallStackId id = 0; id < profile_.stacks.size(); ++id) {
      frames.clear();
      for (const FrameId frame : profile_.Stack(id)) {
        const auto chain = chains_.find(frame);
        if (chain == chains_.end()) {
          frames.push_back(frame);
        } else {
          frames.insert(frames.end(), chain->second.begin(),
                        chain->second.end());
        }
      }
      new_ids.push_back(stacks.Intern(frames));
    }
    for (ProfileSample& sample : profile_.samples) {
      sample.user = new_ids[sample.user];
      sample.kernel = new_ids[sample.kernel];
    }
    profile_.stacks = std::move(stacks);
  }

  LineFiles& files_;
  SourceLineOptions options_;
  Profile& profile_;
  SourceLineCounts counts_;
  ksym::GsymAnswer answer_;
  ksym::SymbolNameBuffer name_buffer_;
  std::string path_;                                 // room for one
  std::unordered_map<const char*, StringId> names_;  // of one file
  // The frames that stand for one, innermost first.
  std::unordered_map<FrameId, std::vector<FrameId>> chains_;
};

}  // namespace

SourceLineCounts AddSourceLines(LineFiles& files,
                                const SourceLineOptions& options,
                                Profile& profile) {
  return LineAdder(files, options, profile).Run();
}

}  // namespace profd
