#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ksym/base/result.h"
#include "ksym/elf/debuginfod_client.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// What is known of one address.
struct AddressAnswer {
  std::string function;  // as the file has it or demangled; empty: see reason
  std::string module;    // the file's path, or the kernel's module
  std::optional<uint64_t> symbol_start;
  std::string_view reason;  // a name of Unresolved; empty when there is a name
};

// Something whose addresses can be named. Not thread-safe.
class AddressSource {
 public:
  AddressSource() = default;
  AddressSource(const AddressSource&) = delete;
  AddressSource& operator=(const AddressSource&) = delete;
  virtual ~AddressSource() = default;

  virtual AddressAnswer Resolve(uint64_t address) = 0;
};

// Opens what the options name. Fails with one line for the user: the file or
// process is not there, is not ours to read, or is no ELF file.
// - A file is opened by its path, and its addresses are those of its headers.
// - Of a process the mappings are read now, and again whenever an address is
//   not mapped.
// - The kernel's symbols are those of /proc/kallsyms now.
// `client`, which is borrowed, is asked for debug files; null: nobody is.
Result<std::unique_ptr<AddressSource>> OpenAddressSource(
    const SymbolizeOptions& options, DebuginfodClient* client);

}  // namespace ksym
