// SPDX-License-Identifier: Apache-2.0
#include "daemon/dump/dump_json.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/output/json.h"
#include "daemon/output/safe_name.h"
#include "daemon/profile/profile_terms.h"

namespace profd {
namespace {

class DumpJsonWriter {
 public:
  DumpJsonWriter(const ThreadList& list, const Profile& profile,
                 OutputBuffer& out)
      : list_(list), profile_(profile), out_(out) {}

  void Run() {
    AddHead();
    out_.text() += ",\n\"frames\":[";
    NumberFrames();
    out_.text() += "\n],\n\"threads\":[";
    for (size_t i = 0; i < list_.threads.size(); ++i) {
      out_.text() += i == 0 ? "\n" : ",\n";
      AddThread(list_.threads[i]);
      out_.PassOn();
    }
    out_.text() += "\n],\n\"deadlocks\":[";
    for (const std::vector<size_t>& cycle : list_.deadlocks) {
      out_.text() += &cycle == list_.deadlocks.data() ? "\n[" : ",\n[";
      for (const size_t i : cycle) {
        if (i != cycle.front()) out_.text() += ',';
        Print("{}", list_.threads[i].thread.tid);
      }
      out_.text() += ']';
    }
    out_.text() += "]}\n";
  }

 private:
  template <typename... Arguments>
  void Print(fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(out_.text()), format,
                   std::forward<Arguments>(arguments)...);
  }

  // With its key; the comma is in front.
  void AddText(std::string_view key, std::string_view value) {
    Print(",\"{}\":\"", key);
    AppendJsonText(value, out_.text());
    out_.text() += '"';
  }

  void AddHead() {
    const CaptureMetadata& metadata = profile_.metadata;
    Print("{{\"metadata\":{{\"format\":\"ksym-dump\",\"format_version\":1");
    AddText("version", metadata.version);
    Print(",\"unix_ns\":{}", metadata.start_unix_ns + metadata.duration_ns);
    AddText("hostname", metadata.hostname);
    AddText("kernel_release", metadata.kernel_release);
    AddText("architecture", metadata.architecture);
    out_.text() += ",\"warnings\":[";
    for (const std::string& warning : metadata.warnings) {
      out_.text() += &warning == metadata.warnings.data() ? "\"" : ",\"";
      AppendJsonText(warning, out_.text());
      out_.text() += '"';
    }
    Print("],\"processes\":{},\"running_without_stack\":{},\"lost\":{}}}",
          list_.processes, list_.running_without_stack, list_.lost);
  }

  // Writes those that threads have, in the order of their first ones.
  void NumberFrames() {
    size_t count = 0;
    for (const ListedThread& listed : list_.threads) {
      for (const CallStackId stack : {listed.user, listed.kernel}) {
        for (const FrameId id : profile_.Stack(stack)) {
          if (!numbers_.try_emplace(id, count).second) continue;
          out_.text() += count++ == 0 ? "\n" : ",\n";
          out_.text() += FrameJson(profile_, profile_.frames[id]);
          out_.PassOn();
        }
      }
    }
  }

  // Root first, as in profiles.
  void AddStack(std::string_view key, CallStackId stack) {
    Print(",\"{}\":[", key);
    const auto leaf_first = profile_.Stack(stack);
    for (size_t i = leaf_first.size(); i-- > 0;) {
      Print("{}{}", numbers_[leaf_first[i]], i == 0 ? "" : ",");
    }
    out_.text() += ']';
  }

  void AddThread(const ListedThread& listed) {
    const DumpedThread& thread = listed.thread;
    Print("{{\"pid\":{},\"tid\":{}", thread.pid, thread.tid);
    if (thread.own_tid != 0 && thread.own_tid != thread.tid) {
      Print(",\"own_tid\":{}", thread.own_tid);
    }
    AddText("comm", thread.comm);
    AddText("state", Name(listed.activity));
    if (!listed.reason.empty()) AddText("reason", listed.reason);
    if (thread.waited_ns) Print(",\"waited_ns\":{}", *thread.waited_ns);
    if (listed.lock_address) {
      Print(",\"lock\":{{\"address\":\"{:#x}\"", *listed.lock_address);
      if (listed.holder) {
        Print(",\"holder\":{}", list_.threads[*listed.holder].thread.tid);
      }
      out_.text() += '}';
    }
    if (listed.has_sample) {
      AddText("user_state", Name(listed.user_state));
      if (const auto cause = CauseOf(listed.user_state)) {
        AddText("user_end", Name(*cause));
      }
      AddText("kernel_state", Name(listed.kernel_state));
      AddStack("user", listed.user);
      AddStack("kernel", listed.kernel);
    }
    out_.text() += '}';
  }

  const ThreadList& list_;
  const Profile& profile_;
  OutputBuffer& out_;
  std::map<FrameId, size_t> numbers_;
};

}  // namespace

void WriteDumpJson(const ThreadList& list, const Profile& profile,
                   OutputBuffer& out) {
  DumpJsonWriter(list, profile, out).Run();
}

}  // namespace profd
