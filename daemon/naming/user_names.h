// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/naming/frame_cache.h"
#include "ksym/base/address.h"
#include "ksym/process/process_image.h"
#include "ksym/symbolizer.h"

namespace profd {

// The address that is looked up for a frame. The first frame is where the CPU
// was, and so is one that an interrupt stopped. The others are return
// addresses: the call is before them, perhaps as the last instruction of its
// function.
inline ksym::Address LookupAddress(uint64_t sampled, FrameCache::Place place) {
  const bool is_exact = place == FrameCache::Place::kLeaf || sampled == 0;
  return {is_exact ? sampled : sampled - 1};
}

// Names user addresses. Not thread-safe.
class UserNames {
 public:
  virtual ~UserNames() = default;
  // The views in the answer live as long as this and the image do.
  virtual ksym::UserSymbol Find(const ksym::ProcessImage& image,
                                ksym::Address address) = 0;
};

// The symbolizer itself, which reads files as it is asked.
class SymbolizerNames final : public UserNames {
 public:
  explicit SymbolizerNames(ksym::Symbolizer& symbolizer)
      : symbolizer_(symbolizer) {}
  ksym::UserSymbol Find(const ksym::ProcessImage& image,
                        ksym::Address address) override {
    return symbolizer_.Resolve(image, address);
  }

 private:
  ksym::Symbolizer& symbolizer_;
};

}  // namespace profd
