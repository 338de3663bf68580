// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/output/stack_state.h"
#include "daemon/profile/profile_terms.h"
#include "ksym/base/printable.h"

namespace profd {
namespace {

using ksym::Unresolved;

constexpr size_t kMaxCauses = 3;
// A share of all samples; what is less is no cause to do anything.
constexpr double kSmallestShare = 0.01;

std::string_view BaseName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

Runtime RuntimeOfFile(std::string_view path) {
  const std::string_view name = BaseName(path);
  const auto begins = [name](std::string_view text) {
    return name.starts_with(text);
  };
  if (name == "node" || begins("nodejs") || begins("libnode.so")) {
    return Runtime::kNode;
  }
  if (begins("libjvm.so")) return Runtime::kJava;
  if (begins("libcoreclr.so")) return Runtime::kDotnet;
  if (begins("python") || begins("libpython")) return Runtime::kPython;
  if (begins("ruby") || begins("libruby")) return Runtime::kRuby;
  return Runtime::kUnknown;
}

// Which runtime a process with such a frame has.
Runtime RuntimeOfFrame(const Profile& profile, const Frame& frame) {
  if (frame.kind->otel_type == "jvm") return Runtime::kKnownJava;
  return RuntimeOfFile(profile.String(frame.object));
}

// Both say that the file's symbols do not cover the code; the cure is one.
Unresolved Kind(Unresolved reason) {
  return reason == Unresolved::kNoSymbol ? Unresolved::kNoSymbols : reason;
}

bool IsOfCommand(Unresolved reason) {
  return reason == Unresolved::kAnonymous || reason == Unresolved::kNoProcess ||
         reason == Unresolved::kUnmapped || reason == Unresolved::kMapRefused;
}

// Samples by which causes are compared. Nearly each stack goes through some
// caller of the C library that has no name, and nobody misses it.
uint64_t WeightOf(const Obstacle& cause) {
  return cause.reason == Unresolved::kNoSymbols ? cause.innermost
                                                : cause.samples;
}

class Finder {
 public:
  explicit Finder(const Profile& profile) : profile_(profile) {
    runtimes_.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) {
      runtimes_.push_back(RuntimeOfFrame(profile, frame));
    }
  }

  Obstacles Run() {
    // A process's runtime is in some of its stacks only.
    for (const ProfileSample& sample : profile_.samples) {
      for (const FrameId frame : profile_.Stack(sample.user)) {
        if (runtimes_[frame] == Runtime::kUnknown) continue;
        Runtime& runtime = runtime_of_pid_[sample.pid];
        if (runtime != Runtime::kKnownJava) runtime = runtimes_[frame];
      }
    }
    for (const ProfileSample& sample : profile_.samples) Add(sample);
    for (auto& [key, cause] : causes_) {
      if (static_cast<double>(WeightOf(cause)) >=
          kSmallestShare * static_cast<double>(found_.samples)) {
        found_.causes.push_back(std::move(cause));
      }
    }
    std::ranges::stable_sort(found_.causes, std::ranges::greater(), WeightOf);
    return std::move(found_);
  }

 private:
  // The reason or state, and the subject.
  using Key = std::tuple<Unresolved, StackState, std::string_view>;

  void Add(const ProfileSample& sample) {
    found_.samples += sample.count;
    counted_.clear();
    bool is_innermost = true;
    bool innermost_lacks_name = false;
    bool caller_lacks_name = false;
    for (const CallStackId stack : {sample.kernel, sample.user}) {
      for (const FrameId id : profile_.Stack(stack)) {
        const Frame& frame = profile_.frames[id];
        const bool is_first = std::exchange(is_innermost, false);
        if (frame.reason == Unresolved::kNone) continue;
        (is_first ? innermost_lacks_name : caller_lacks_name) = true;
        Obstacle& cause = CauseOf(sample, frame);
        if (is_first) cause.innermost += sample.count;
        CountOnce(cause, sample);
      }
    }
    if (innermost_lacks_name) {
      found_.innermost += sample.count;
    } else if (caller_lacks_name) {
      found_.callers += sample.count;
    }
    AddStates(sample);
  }

  void AddStates(const ProfileSample& sample) {
    bool is_incomplete = false;
    for (const auto& [state, stack] :
         {std::pair(sample.user_state, sample.user),
          std::pair(sample.kernel_state, sample.kernel)}) {
      if (!IsMissed(state) && !LacksRoot(state)) continue;
      is_incomplete = true;
      CountOnce(CauseOf(sample, state, profile_.Stack(stack)), sample);
    }
    if (is_incomplete) found_.incomplete += sample.count;
  }

  Obstacle& CauseOf(const ProfileSample& sample, const Frame& frame) {
    const bool is_of_command = IsOfCommand(frame.reason);
    const StringId subject = is_of_command ? sample.comm : frame.object;
    Obstacle& cause = CauseNamed(
        {Kind(frame.reason), StackState::kWhole, profile_.String(subject)});
    cause.pid = sample.pid;
    cause.build_id = profile_.String(frame.build_id);
    if (is_of_command) cause.runtime = RuntimeOf(sample);
    return cause;
  }

  // The walk of a stack stopped in its last frame.
  Obstacle& CauseOf(const ProfileSample& sample, StackState state,
                    std::span<const FrameId> stack) {
    const StringId file =
        stack.empty() ? 0 : profile_.frames[stack.back()].object;
    Obstacle& cause = CauseNamed(
        {Unresolved::kNone, state, profile_.String(file ? file : sample.comm)});
    cause.pid = sample.pid;
    cause.runtime = RuntimeOf(sample);
    return cause;
  }

  Obstacle& CauseNamed(const Key& key) {
    Obstacle& cause = causes_[key];
    if (cause.samples == 0) {
      cause.reason = std::get<Unresolved>(key);
      cause.state = std::get<StackState>(key);
      ksym::AppendPrintable(std::get<std::string_view>(key), cause.subject);
      if (cause.subject.empty()) cause.subject = "[unknown]";
    }
    return cause;
  }

  void CountOnce(Obstacle& cause, const ProfileSample& sample) {
    if (std::ranges::find(counted_, &cause) != counted_.end()) return;
    counted_.push_back(&cause);
    cause.samples += sample.count;
  }

  Runtime RuntimeOf(const ProfileSample& sample) const {
    const auto found = runtime_of_pid_.find(sample.pid);
    return found == runtime_of_pid_.end() ? Runtime::kUnknown : found->second;
  }

  const Profile& profile_;
  Obstacles found_;
  std::vector<Runtime> runtimes_;  // by frame
  std::map<uint32_t, Runtime> runtime_of_pid_;
  std::map<Key, Obstacle> causes_;
  std::vector<const Obstacle*> counted_;  // of one sample
};

std::string_view CureOfGeneratedCode(Runtime runtime) {
  switch (runtime) {
    case Runtime::kNode:
      return "start node with --perf-basic-prof";
    case Runtime::kJava:
      return "give --runtimes java, or where a warning says why its JVM is not "
             "known start java with -XX:+PreserveFramePointer, and run jcmd {} "
             "Compiler.perfmap before the capture ends";
    case Runtime::kKnownJava:
      return "sample longer: its JVM was not known yet";
    case Runtime::kPython:
      return "start python with -X perf (3.12 or later)";
    case Runtime::kDotnet:
      return "start it with DOTNET_PerfMapEnabled=1";
    case Runtime::kRuby:
      return "start ruby with --yjit-perf";
    case Runtime::kUnknown:
      return "let the program write /tmp/perf-{}.map";
  }
  return "";
}

std::string CureOfGenerated(const Obstacle& cause) {
  std::string cure(CureOfGeneratedCode(cause.runtime));
  const size_t place = cure.find("{}");
  if (place != std::string::npos) {
    cure.replace(place, 2, cause.pid != 0 ? std::to_string(cause.pid) : "PID");
  }
  return cure;
}

std::string CureOfStripped(const Obstacle& cause,
                           const PackageFinder& package_of) {
  if (cause.subject.starts_with('[')) return "none";
  const std::string package =
      package_of ? package_of(cause.subject, cause.build_id) : std::string();
  return package.empty()
             ? "install its -dbgsym or -dbg package, or give --debuginfod"
             : fmt::format("install {}, or give --debuginfod", package);
}

// What is wrong, and after a colon what helps against it.
std::string TextOfName(const Obstacle& cause, const PackageFinder& package_of) {
  const std::string& subject = cause.subject;
  switch (cause.reason) {
    case Unresolved::kAnonymous:
      return fmt::format("{}: code made at run time, without a perf map: {}",
                         subject, CureOfGenerated(cause));
    case Unresolved::kNoSymbols:
      return fmt::format("{} has no symbols for it: {}", subject,
                         CureOfStripped(cause, package_of));
    case Unresolved::kNoPermission:
      return fmt::format("{} may not be read: run as root", subject);
    case Unresolved::kMapRefused:
      return fmt::format("{}: its perf map is not trusted: see the warning",
                         subject);
    case Unresolved::kNoProcess:
      return fmt::format("{} ended before it could be read: a lower rate helps",
                         subject);
    case Unresolved::kNotInTime:
      return fmt::format("{} was not read in time: sample again", subject);
    case Unresolved::kGone:
    case Unresolved::kFileChanged:
      return fmt::format("{} was deleted or replaced: start the program again",
                         subject);
    default:
      return fmt::format("{}: {}: see ksym-profile(8), DEBUGGING", subject,
                         UnresolvedName(cause.reason));
  }
}

std::string CureOfWalk(const Obstacle& cause) {
  switch (cause.state) {
    case StackState::kTruncated:
      return "raise --max-stack-depth";
    case StackState::kCollided:
      return "raise --stack-storage-size or use --stack-map=exact";
    case StackState::kNoTable:
    case StackState::kNoMapping:
    case StackState::kUnsupported:
      if (cause.runtime == Runtime::kJava) {
        return "give --runtimes java, or where a warning says why its JVM is "
               "not known start java with -XX:+PreserveFramePointer";
      }
      if (cause.runtime == Runtime::kKnownJava) {
        return "sample longer: its JVM was not known yet";
      }
      if (cause.runtime != Runtime::kUnknown) {
        return "none: what was called from code made at run time";
      }
      return "compile it with -fasynchronous-unwind-tables or "
             "-fno-omit-frame-pointer";
    case StackState::kBadRead:
    case StackState::kBeyondCopy:
      return "sample longer: young processes have such stacks";
    default:
      return "see ksym-profile(8), DEBUGGING";
  }
}

std::string TextOfStack(const Obstacle& cause) {
  const auto end = profd::CauseOf(cause.state);
  return fmt::format("stacks end in {} ({}): {}", cause.subject,
                     end ? Name(*end) : Name(cause.state), CureOfWalk(cause));
}

double Percent(uint64_t part, uint64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Obstacles FindObstacles(const Profile& profile) {
  return Finder(profile).Run();
}

std::vector<std::string> ObstacleLines(const Obstacles& obstacles,
                                       const PackageFinder& package_of) {
  const uint64_t all = obstacles.samples;
  if (obstacles.innermost + obstacles.callers + obstacles.incomplete == 0) {
    return {};
  }
  std::vector<std::string> lines = {fmt::format(
      "without a name: {:.1f} % of samples, and callers in {:.1f} %; "
      "incomplete stacks: {:.1f} %",
      Percent(obstacles.innermost, all), Percent(obstacles.callers, all),
      Percent(obstacles.incomplete, all))};
  for (const Obstacle& cause : obstacles.causes) {
    if (lines.size() > kMaxCauses) break;
    lines.push_back(fmt::format("  {:.1f} % {}", Percent(WeightOf(cause), all),
                                cause.reason == Unresolved::kNone
                                    ? TextOfStack(cause)
                                    : TextOfName(cause, package_of)));
  }
  return lines;
}

}  // namespace profd
