// SPDX-License-Identifier: Apache-2.0
// What names of pods cost on a node with 500 containers, a process of each of
// which is sampled every second, and of which 1,000 a minute end and others
// come: `cpu_percent` of one CPU, in both threads. An iteration is a second of
// the service.

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <string>
#include <thread>

#include "daemon/service/process_labels.h"

namespace profd {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kContainers = 500;
constexpr int kProcessesOfContainer = 1;

double CpuSeconds(clockid_t clock) {
  timespec now = {};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) / 1e9;
}

// A node's directories, and what runs there.
class Node {
 public:
  Node() {
    std::string path = std::filesystem::temp_directory_path() / "node.XXXXXX";
    path_ = ::mkdtemp(path.data());
    std::filesystem::create_directories(path_ + "/pods");
    std::filesystem::create_directories(path_ + "/containers");
    for (int i = 0; i < kContainers; ++i) Begin();
  }
  ~Node() { std::filesystem::remove_all(path_); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const std::string& path() const { return path_; }
  std::string CgroupOf(uint64_t number) const {
    return fmt::format(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}"
        ".slice/cri-containerd-{:064x}.scope",
        Uid(number, '_'), number);
  }
  uint64_t newest() const { return running_.back(); }

  void Replace() {
    const uint64_t oldest = running_.front();
    running_.pop_front();
    std::filesystem::remove_all(path_ + "/pods/" + Directory(oldest));
    std::filesystem::remove(path_ + "/containers/" + Link(oldest));
    Begin();
  }

  RawProfile Sample() const {
    RawProfile profile;
    for (const uint64_t number : running_) {
      for (int i = 0; i < kProcessesOfContainer; ++i) {
        const ksym::ProcessId process = {
            .pid = static_cast<uint32_t>(number * kProcessesOfContainer + i),
            .start_ns = 1};
        profile.samples.push_back({.process = process, .comm = {}, .count = 1});
        profile.cgroups.emplace(process, CgroupOf(number));
      }
    }
    return profile;
  }

 private:
  static std::string Uid(uint64_t number, char mark) {
    return fmt::format("01234567{0}89ab{0}cdef{0}0123{0}{1:012x}", mark,
                       number);
  }
  static std::string Directory(uint64_t number) {
    return fmt::format("shop_web-{}_{}", number, Uid(number, '-'));
  }
  static std::string Link(uint64_t number) {
    return fmt::format("web-{0}_shop_nginx-{0:064x}.log", number);
  }

  void Begin() {
    const uint64_t number = ++last_;
    running_.push_back(number);
    std::filesystem::create_directories(path_ + "/pods/" + Directory(number) +
                                        "/nginx");
    std::filesystem::create_symlink(
        "/var/log/pods/" + Directory(number) + "/nginx/0.log",
        path_ + "/containers/" + Link(number));
  }

  std::string path_;
  std::deque<uint64_t> running_;
  uint64_t last_ = 0;
};

// A second of the service, with so many changes in it. CPU time of the labels
// in this thread is added; what else this thread does is the node's.
double Second(Node& node, ProcessLabels& labels, int changes,
              size_t& labelled) {
  double own = 0;
  const auto measured = [&](const auto& work) {
    const double before = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    work();
    own += CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - before;
  };
  const auto begin = Clock::now();
  for (int i = 0; i < changes; ++i) {
    node.Replace();
    const ksym::ProcessId process = {
        .pid = static_cast<uint32_t>(node.newest() * kProcessesOfContainer),
        .start_ns = 1};
    const std::string cgroup = node.CgroupOf(node.newest());
    measured([&] { labels.NoteSample(process, cgroup); });
    std::this_thread::sleep_until(begin +
                                  std::chrono::seconds(1) * (i + 1) / changes);
  }
  std::this_thread::sleep_until(begin + std::chrono::seconds(1));
  RawProfile profile = node.Sample();
  measured([&] { labels.Label(profile); });
  labelled = profile.labels.size();
  return own;
}

void BM_Labels(benchmark::State& state) {
  Node node;
  ProcessLabels labels(
      {.directories = {.logs = node.path(), .docker = {}, .podman = {}},
       .environment = {}});
  size_t labelled = 0;
  while (labelled < size_t{kContainers} * kProcessesOfContainer) {
    Second(node, labels, 0, labelled);
  }
  const int changes = static_cast<int>(state.range(0));
  const auto begin = Clock::now();
  const double all_before = CpuSeconds(CLOCK_PROCESS_CPUTIME_ID);
  const double this_before = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  double own = 0;
  for (auto _ : state) own += Second(node, labels, changes, labelled);
  const double others = (CpuSeconds(CLOCK_PROCESS_CPUTIME_ID) - all_before) -
                        (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - this_before);
  const std::chrono::duration<double> wall = Clock::now() - begin;
  state.counters["cpu_percent"] = 100 * (own + others) / wall.count();
  state.counters["cpu_percent_sampling_thread"] = 100 * own / wall.count();
  state.counters["processes_labelled"] = static_cast<double>(labelled);
}
// Changes in a second: none, and 1,000 a minute.
BENCHMARK(BM_Labels)->Arg(0)->Arg(17)->UseRealTime()->Unit(
    benchmark::kMillisecond);

}  // namespace
}  // namespace profd

BENCHMARK_MAIN();
