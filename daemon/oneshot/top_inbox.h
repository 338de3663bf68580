// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "daemon/oneshot/top_worker.h"
#include "ksym/base/result.h"
#include "ksym/base/unique_fd.h"

namespace profd {

// What other threads have for the one that draws. Thread-safe.
class TopInbox {
 public:
  struct News {
    std::shared_ptr<const TopWindow> window;  // the latest
    std::optional<ksym::Result<std::string>> page;
    std::optional<ksym::Error> failure;
  };
  static ksym::Result<std::unique_ptr<TopInbox>> Make();

  // Can be read when there are news.
  int fd() const { return fd_.get(); }
  template <typename Change>
  void Put(const Change& change) {
    {
      const std::lock_guard lock(mutex_);
      change(news_);
    }
    Tell();
  }
  // All since the last call.
  News Take();

 private:
  explicit TopInbox(ksym::UniqueFd fd) : fd_(std::move(fd)) {}
  void Tell();

  ksym::UniqueFd fd_;
  std::mutex mutex_;
  News news_;
};

}  // namespace profd
