// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "daemon/naming/user_names.h"
#include "daemon/profile/raw_profile.h"
#include "ksym/base/address.h"
#include "ksym/symbolizer.h"

namespace profd {

// Which file a mapping is of.
using MappedFileKey = std::tuple<uint32_t, uint32_t, uint64_t>;

// All that an interval asks of the symbolizer: each user address of each
// process once. One thread names them, another one takes what there is at any
// time: what was not named by then has the reason kNotInTime. Keeps the
// interval alive, as an answer has views of its images.
class UserLookups final : public UserNames {
 public:
  // Cost: the frames of its distinct stacks, sorted.
  explicit UserLookups(std::shared_ptr<const RawProfile> part);

  const RawProfile& part() const { return *part_; }
  size_t size() const { return addresses_.size(); }
  // The files that the addresses are in, sorted.
  std::vector<MappedFileKey> Files() const;

  // For the thread that has the symbolizer: names the next address. False: all
  // have been named.
  bool NameNext(ksym::Symbolizer& symbolizer);
  // The file that the next address is in; all zero: none, or none is left.
  MappedFileKey NextFile() const;
  bool is_done() const {
    return named_.load(std::memory_order_acquire) == addresses_.size();
  }

  // For one other thread.
  ksym::UserSymbol Find(const ksym::ProcessImage& image,
                        ksym::Address address) override;

 private:
  // Those of one process, sorted.
  struct Space {
    const ksym::ProcessImage* image = nullptr;
    size_t begin = 0;
    size_t end = 0;
  };
  const Space* SpaceOf(size_t index) const;
  static MappedFileKey FileOf(const Space& space, ksym::Address address);

  std::shared_ptr<const RawProfile> part_;
  std::vector<Space> spaces_;  // in the order of their images' places
  std::vector<ksym::Address> addresses_;
  std::vector<ksym::UserSymbol> symbols_;  // those before named_ are there
  std::atomic<size_t> named_ = 0;
};

}  // namespace profd
