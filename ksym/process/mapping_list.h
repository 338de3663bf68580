// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/process/process_image.h"

namespace ksym {

// The mappings of an address space, sorted and without overlap. Several lists
// share a sum of what all of them have, a copy among them. Not thread-safe.
class MappingList {
 public:
  // `all` is the sum.
  explicit MappingList(std::shared_ptr<size_t> all) : all_(std::move(all)) {}
  MappingList(const MappingList& other)
      : all_(other.all_), mappings_(other.mappings_) {
    *all_ += mappings_.size();
  }
  MappingList& operator=(const MappingList&) = delete;
  ~MappingList() { *all_ -= mappings_.size(); }

  const std::vector<Mapping>& get() const { return mappings_; }
  // Those that have a byte in common with [start, end). Valid until the next
  // change. O(log mappings).
  std::span<const Mapping> Overlapping(Address start, Address end) const;

  // As InsertMapping(). If there are more than `max` then, those from the new
  // one on go until there are as many; false says so. O(mappings).
  bool Insert(Mapping mapping, size_t max);
  // For one that there is no room for: says with kTooLargePath that there is
  // something, in one mapping for all such that nothing else is between. What
  // it covers must have that path, too. O(mappings).
  void InsertTooLarge(Mapping mapping);
  // Sorted and without overlap.
  void Assign(std::vector<Mapping> mappings);

 private:
  std::shared_ptr<size_t> all_;
  std::vector<Mapping> mappings_;
};

// Puts the mapping into the sorted list; what it covers of others goes. In the
// middle of another one this makes three of two.
void InsertMapping(std::vector<Mapping>& mappings, Mapping mapping);

}  // namespace ksym
