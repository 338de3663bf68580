// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ksym/base/address.h"
#include "ksym/base/result.h"
#include "ksym/runtime/hotspot/library.h"
#include "ksym/runtime/hotspot/numbers.h"
#include "ksym/runtime/memory.h"

namespace ksym {

// How the data of one build of the JVM lie. Offsets are in bytes.
struct HotspotLayout {
  // Static variables, less the load bias.
  // CodeCache::_heaps: GrowableArray<CodeHeap*>*; in JDK 8 _heap: CodeHeap*.
  uint64_t heaps = 0;
  bool has_one_heap = false;
  uint64_t interpreter = 0;  // AbstractInterpreter::_code: set by the start

  uint16_t array_length = 0;  // GrowableArray: int
  uint16_t array_data = 0;
  // VirtualSpace, of which a CodeHeap has two.
  uint16_t space_low = 0;
  uint16_t space_begin = 0;  // what is reserved
  uint16_t space_end = 0;
  uint16_t heap_memory = 0;
  uint16_t heap_segments = 0;
  uint16_t heap_segment_shift = 0;  // int
  uint16_t block_bytes = 0;         // sizeof(HeapBlock), in front of a CodeBlob
  uint16_t block_used = 0;          // bool: whether it is in use

  // CodeBlob; below kBlobBytes. From JDK 23 on code_begin and code_end are
  // offsets from the blob (int), before that addresses.
  uint16_t blob_name = 0;
  uint16_t blob_size = 0;
  uint16_t blob_frame_size = 0;      // int, in words
  uint16_t blob_frame_complete = 0;  // int; int16_t from JDK 23 on
  uint16_t blob_code_begin = 0;
  uint16_t blob_code_end = 0;
  bool code_is_offset = false;           // and in JDK 8
  bool frame_complete_is_short = false;  // int16_t
  // nmethod; below kBlobBytes.
  uint16_t nmethod_method = 0;
  uint16_t nmethod_compile_id = 0;  // int
  // Where deoptimized frames return to, also those of calls by method handles:
  // an address, or an offset from the nmethod (int); and where in a frame is
  // what they would have returned to (int). 0: not known.
  uint16_t nmethod_deopt = 0;
  uint16_t nmethod_deopt_mh = 0;
  uint16_t nmethod_original_pc = 0;
  bool deopt_is_offset = false;

  // Below the frame pointer of an interpreter's frame: the bytecode's address.
  uint16_t interpreter_bcp = 64;

  uint16_t method_const_method = 0;  // Method
  uint16_t const_method_bytes = 0;   // sizeof(ConstMethod): bytecodes follow
  uint16_t const_method_constants = 0;
  uint16_t const_method_name = 0;       // u2: an index into the constants
  uint16_t const_method_code_size = 0;  // u2, in bytes
  uint16_t constants_bytes = 0;         // sizeof(ConstantPool): entries follow
  uint16_t constants_length = 0;        // int
  uint16_t constants_holder = 0;        // Klass*
  uint16_t klass_name = 0;              // Symbol*
  uint16_t symbol_length = 0;           // u2
  uint16_t symbol_body = 0;

  // Lines: the flags of a ConstMethod, of which the lowest bit says that it has
  // a table of lines behind its bytecodes, and its size in words (int). 0: not
  // known. The source file's name is an index into the constants (u2), which
  // the constants have, or up to JDK 11 the class; 0: it does not.
  uint16_t const_method_flags = 0;
  uint16_t const_method_size = 0;
  uint16_t constants_source_file = 0;
  uint16_t klass_source_file = 0;

  // Where an nmethod describes its code for debuggers, with PcDescs, scopes and
  // the methods that these name. kNone: the tables do not say where.
  enum class Scopes : uint8_t {
    kNone,
    kInBlob,         // JDK 8: at offsets from the nmethod
    kByAddress,      // JDK 11 to 22: the same, but the scopes have an address
    kMethodsInBlob,  // JDK 23 and 24: at offsets from other memory, but for the
                     // methods, which are at one from the blob's data
    kOutOfBlob,      // JDK 25: the same, the methods in a third place
  };
  Scopes scopes = Scopes::kNone;
  uint16_t nmethod_pcs = 0;      // int: where PcDescs begin
  uint16_t nmethod_pcs_end = 0;  // int; of kInBlob and kByAddress
  uint16_t nmethod_scopes = 0;   // int; kByAddress: an address
  // int; kMethodsInBlob: u2; kOutOfBlob: not used
  uint16_t nmethod_methods = 0;
  uint16_t nmethod_immutable = 0;       // an address; of the other two
  uint16_t nmethod_immutable_size = 0;  // int; the same
  uint16_t blob_mutable = 0;            // kOutOfBlob: an address
  uint16_t blob_mutable_size = 0;       // kOutOfBlob: int
  uint16_t blob_relocation_size =
      0;  // kOutOfBlob: int, in front of the methods
  // How scopes and tables of lines spell numbers.
  HotspotNumbers numbers = HotspotNumbers::kAnyByte;

  static constexpr uint16_t kBlobBytes = 352;
  static constexpr uint16_t kObjectBytes = 512;  // all other offsets

  friend bool operator==(const HotspotLayout&, const HotspotLayout&) = default;
};

// The most entries of a table and bytes of a name in it that are read.
inline constexpr uint32_t kMaxHotspotEntries = 4096;
inline constexpr uint32_t kMaxHotspotNameBytes = 64;

// Reads the tables of a process that has the library at that load bias. Cost:
// some 4,000 small reads, for which `memory` should keep pages.
// kUnsupported: a field that is needed is missing, which is named. kCorrupt:
// the tables lie.
Result<HotspotLayout> ReadHotspotLayout(const Memory& memory,
                                        const HotspotLibrary& library,
                                        uint64_t load_bias);

// A part of memory in which the JVM puts the code that it makes.
struct HotspotHeap {
  Address begin;
  Address end;
  // A byte for each segment: how many to go back to the begin of a block, as
  // far as it can say; 255: free.
  Address segments;
  uint8_t segment_shift = 0;  // log2 of a segment's bytes
};
inline constexpr size_t kMaxHotspotHeaps = 4;

// kNotFound: the JVM has none yet, as it is starting. kCorrupt: they cannot be.
Result<std::vector<HotspotHeap>> ReadHotspotHeaps(const Memory& memory,
                                                  const HotspotLayout& layout,
                                                  uint64_t load_bias);

}  // namespace ksym
