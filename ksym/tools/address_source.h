// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/fetch/debuginfod_client.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// A function at an address, and where in its source that is, or for callers of
// inlined code the call; without a file the place is not known.
struct AnswerFrame {
  std::string_view function;
  std::string_view directory;
  std::string_view file;  // its base name
  uint32_t line = 0;
  // All texts are known to be of printable ASCII.
  bool is_plain = false;
};

// What is known of one address. Views are valid until the source is asked
// again, or, where is_kept, until it prepares for others.
struct AddressAnswer {
  // Innermost first: inlined calls, then the function, as the file has their
  // names or demangled. Empty: see reason.
  std::vector<AnswerFrame> frames;
  std::string_view module;    // the file's path, or the kernel's module
  std::string_view build_id;  // lower-case hex; empty: not known
  std::optional<uint64_t> symbol_start;
  std::string_view reason;  // a name of Unresolved; empty when there is a name
  bool is_kept = false;
};

// For sources: empties an answer, and adds a frame that is a name and no more.
void ClearAnswer(AddressAnswer& answer);
void AddName(std::string_view name, AddressAnswer& answer);

// Something whose addresses can be named. Not thread-safe.
class AddressSource {
 public:
  AddressSource() = default;
  AddressSource(const AddressSource&) = delete;
  AddressSource& operator=(const AddressSource&) = delete;
  virtual ~AddressSource() = default;

  // Announces addresses, in any order, of which most are asked for next. What
  // is needed for all of them is found at once, which takes less time than one
  // by one. Fails with one line for the user; what can be resolved still is.
  virtual Status Prepare(std::span<const uint64_t> /*addresses*/) { return {}; }
  // Overwrites `answer`, whose memory is used again.
  virtual void Resolve(uint64_t address, AddressAnswer& answer) = 0;
};

// Opens what the options name. Fails with one line for the user: the file or
// process is not there, is not ours to read, or is no ELF file.
// - A file is opened by its path, and its addresses are those of its headers.
//   For inlined calls its debug data are converted to GSYM in memory: of the
//   units that have the addresses or, when there are many, all.
// - A GSYM file is mapped.
// - Of a process the mappings are read now, and again whenever an address is
//   not mapped. For inlined calls see ModuleLines.
// - The kernel's symbols are those of the file, or of /proc/kallsyms now.
// `client`, which is borrowed, is asked for debug files; null: nobody is.
Result<std::unique_ptr<AddressSource>> OpenAddressSource(
    const SymbolizeOptions& options, DebuginfodClient* client);

}  // namespace ksym
