// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/capture/btf_reader.h"
#include "ksym/base/result.h"

namespace profd {

// The running kernel's types, of which BPF programs that are attached to one
// are loaded with its number. libbpf would read all of them into memory for
// that.
class KernelBtf {
 public:
  // Reads or maps /sys/kernel/btf/vmlinux. kNotFound: there is none.
  static ksym::Result<KernelBtf> Open();
  KernelBtf(KernelBtf&&) noexcept;
  KernelBtf& operator=(KernelBtf&&) noexcept;
  ~KernelBtf();

  struct Name {
    uint32_t kind = 0;  // BTF_KIND_FUNC and others; 0: a name of anything
    std::string_view name;
  };
  // The number of each; 0: there is none. A name of anything has its place
  // among the names instead, which is not 0. One pass over all names: 5 ms.
  ksym::Result<std::vector<uint32_t>> Find(std::span<const Name> names) const;
  // The kinds of the parameters of what is called through that typedef.
  ksym::Result<std::vector<uint32_t>> ParameterKinds(uint32_t id) const;
  // The bytes of a section before a variable of it; kNotFound: it has none of
  // that number.
  ksym::Result<uint32_t> OffsetInSection(uint32_t section,
                                         uint32_t variable) const;
  // The bytes of a struct before a member, which may be one of nameless structs
  // in it. `name`: its place among the names. kNotFound: there is none.
  ksym::Result<uint32_t> MemberOffset(uint32_t struct_id, uint32_t name) const;

 private:
  struct Bytes;
  KernelBtf(std::unique_ptr<Bytes> bytes, BtfReader reader);

  std::unique_ptr<Bytes> bytes_;
  BtfReader reader_;
};

// The number of the function of that name, in 5 ms. kNotFound: the kernel has
// none, or no types.
ksym::Result<uint32_t> KernelBtfFunction(std::string_view name);

}  // namespace profd
