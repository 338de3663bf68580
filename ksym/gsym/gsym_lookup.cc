// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_lookup.h"

#include <span>
#include <string>

#include "ksym/gsym/gsym_index.h"
#include "ksym/gsym/gsym_inline.h"
#include "ksym/gsym/gsym_line_table.h"

namespace ksym {
namespace {

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "GSYM: " + std::move(what));
}

std::unexpected<Error> NoName() {
  return Corrupt("a name is not in the string table");
}

// The parts of a function's information that a lookup needs; null: absent.
struct Parts {
  std::span<const std::byte> lines;
  std::span<const std::byte> inlines;
  std::span<const std::byte> call_sites;
  uint32_t merged = 0;
};

// One lookup in one function. The result is put together in `answer`.
class FunctionLookup {
 public:
  FunctionLookup(const GsymFile& file, uint64_t address, GsymAnswer& answer)
      : file_(file), address_(address), answer_(answer) {}

  // Before Run(): the lookup may use the function's index, or have one made.
  void UseIndex(GsymIndex& index, uint32_t function) {
    indices_ = &index;
    function_ = function;
  }

  // `in` stands behind the function's size.
  Status Run(ByteCursor in) {
    const uint64_t name = in.ReadSized(file_.string_bytes());
    auto parts = ReadParts(in);
    if (!parts) return Fail(std::move(parts.error()));
    if (!file_.HasString(name)) return NoName();
    answer_.merged_functions = parts->merged;
    answer_.refs.push_back(
        {.function = name, .offset = address_ - answer_.start.value});
    if (parts->call_sites.data() != nullptr) {
      const auto read = ReadCallSites(parts->call_sites);
      if (!read) return read;
    }
    if (parts->lines.data() == nullptr) return {};
    if (indices_ != nullptr) {
      index_ = indices_->Visit(
          function_, {parts->lines, parts->inlines, answer_.start.value});
    }
    const auto has_line = SetLine(parts->lines);
    if (!has_line) return Fail(has_line.error());
    if (!*has_line || parts->inlines.data() == nullptr) return {};
    return AddInlinedCalls(parts->inlines);
  }

 private:
  Result<Parts> ReadParts(ByteCursor in) const;
  Result<bool> SetLine(std::span<const std::byte> bytes);
  Status AddInlinedCalls(std::span<const std::byte> bytes);
  Status AddIndexedCalls();
  Status AddFrame(const GsymInlineNode& node);
  Status ReadCallSites(std::span<const std::byte> bytes);
  ByteCursor Cursor(std::span<const std::byte> bytes) const {
    return ByteCursor(bytes, file_.byte_order());
  }

  const GsymFile& file_;
  uint64_t address_;
  GsymAnswer& answer_;
  GsymIndex* indices_ = nullptr;
  uint32_t function_ = 0;
  const GsymFunctionIndex* index_ = nullptr;
};

Result<Parts> FunctionLookup::ReadParts(ByteCursor in) const {
  Parts parts;
  while (in.ok()) {
    const auto type = static_cast<GsymInfo>(in.Read<uint32_t>());
    const auto bytes = in.ReadBytes(in.Read<uint32_t>());
    if (!in.ok()) break;
    switch (type) {
      case GsymInfo::kEnd:
        return parts;
      case GsymInfo::kLineTable:
        parts.lines = bytes;
        break;
      case GsymInfo::kInlines:
        parts.inlines = bytes;
        break;
      case GsymInfo::kMergedFunctions:
        parts.merged = Cursor(bytes).Read<uint32_t>();
        break;
      case GsymInfo::kCallSites:
        parts.call_sites = bytes;
        break;
      default:  // of a later version
        break;
    }
  }
  return Corrupt("a function's information is cut off");
}

// The row that covers the address, if there is one.
Result<bool> FunctionLookup::SetLine(std::span<const std::byte> bytes) {
  LineRow found;
  bool is_found = false;
  const auto take = [&](const LineRow& row) {
    if (row.address > address_) return false;
    found = row;
    is_found = true;
    return true;  // of several rows at one address the last one counts
  };
  const uint64_t start = answer_.start.value;
  const bool ok =
      index_ != nullptr
          ? index_->VisitRows(Cursor(bytes), start, address_ - start, take)
          : RunGsymLineTable(Cursor(bytes), start, take);
  if (!ok) return Corrupt("a line table is malformed");
  // File 0 is no file: the row says that nothing is known.
  if (!is_found || found.file == 0) return false;
  if (!file_.FindPath(found.file)) {
    return Corrupt("a line's file is not in the file table");
  }
  answer_.refs.back().file = found.file;
  answer_.refs.back().line = found.line;
  return true;
}

// Walks down the nodes that contain the address. They come outermost first and
// frames innermost first, so the calls are collected before they are named.
Status FunctionLookup::AddInlinedCalls(std::span<const std::byte> bytes) {
  if (index_ != nullptr) return AddIndexedCalls();
  GsymInlineReader reader(Cursor(bytes), file_.string_bytes());
  std::vector<GsymInlineNode> chain;
  uint64_t base = answer_.start.value;
  GsymInlineNode node;
  for (;;) {
    node.contains = false;
    const bool has_node =
        reader.Next(base, node, [&](uint64_t start, uint64_t size) {
          if (address_ - start < size) node.contains = true;
        });
    if (!has_node) break;
    if (!node.contains) {
      if (chain.empty()) break;  // the function's own node has no siblings
      if (node.has_children) reader.SkipChildren();
      continue;
    }
    chain.push_back(node);
    if (!node.has_children) break;
    base = node.first_start;
  }
  if (!reader.ok()) return Corrupt("inlined calls are malformed");
  // The first one is the function's own.
  for (size_t i = chain.size(); i > 1; --i) {
    const auto added = AddFrame(chain[i - 1]);
    if (!added) return added;
  }
  return {};
}

Status FunctionLookup::AddIndexedCalls() {
  Status status;
  const uint64_t start = answer_.start.value;
  index_->VisitInlines(start, address_ - start, [&](const auto& node) {
    if (status && !node.is_function) status = AddFrame(node);
  });
  return status;
}

// The last frame becomes the inlined function's, and its caller's follows.
Status FunctionLookup::AddFrame(const GsymInlineNode& node) {
  const auto call = file_.FindPath(node.call_file);
  if (!call) return Corrupt("a call's file is not in the file table");
  if (!file_.HasString(node.name)) return NoName();
  GsymFrameRef caller = answer_.refs.back();
  // DWARF 2 has no attributes for the place of a call.
  const bool has_place =
      !file_.IsEmpty(call->directory) || !file_.IsEmpty(call->base);
  caller.file = has_place ? node.call_file : GsymFrameRef::kNoFile;
  caller.line = has_place ? node.call_line : 0;
  answer_.refs.back().function = node.name;
  answer_.refs.back().offset = address_ - node.first_start;
  answer_.refs.push_back(caller);
  return {};
}

Status FunctionLookup::ReadCallSites(std::span<const std::byte> bytes) {
  ByteCursor in = Cursor(bytes);
  const auto count = in.Read<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto return_offset = in.Read<uint64_t>();
    in.Read<uint8_t>();  // whether the callee is in this file
    const auto patterns = in.Read<uint32_t>();
    for (uint32_t k = 0; k < patterns && in.ok(); ++k) {
      const auto text = file_.String(in.ReadSized(file_.string_bytes()));
      if (!text) return Corrupt("a pattern is not in the string table");
      if (in.ok() && answer_.start.value + return_offset == address_) {
        answer_.call_patterns.push_back(*text);
      }
    }
  }
  if (!in.ok()) return Corrupt("call sites are malformed");
  return {};
}

Result<bool> Lookup(const GsymFile& file, ElfAddress address, GsymIndex* index,
                    GsymAnswer& answer) {
  answer.frames.clear();
  answer.refs.clear();
  answer.call_patterns.clear();
  answer.merged_functions = 0;
  const auto first = file.FindLastStart(address);
  if (!first) return false;
  answer.start = file.FunctionStart(*first);
  // Functions that start together have different ends.
  for (uint32_t i = *first; i < file.function_count(); ++i) {
    if (file.FunctionStart(i) != answer.start) break;
    ByteCursor in = file.FunctionBytes(i);
    answer.size = in.Read<uint32_t>();
    if (!in.ok()) return Corrupt("a function's information is cut off");
    // One without a size, as other writers have them, reaches up to the next.
    if (answer.size != 0 && address - answer.start >= answer.size) continue;
    FunctionLookup lookup(file, address.value, answer);
    if (index != nullptr) lookup.UseIndex(*index, i);
    const auto done = lookup.Run(in);
    if (!done) return Fail(done.error());
    return true;
  }
  return false;
}

// The references' texts, which were all found to be there.
void AddTexts(const GsymFile& file, GsymAnswer& answer) {
  for (const GsymFrameRef& ref : answer.refs) {
    GsymFrame& frame = answer.frames.emplace_back(
        GsymFrame{.function = file.String(ref.function).value_or(""),
                  .offset = ref.offset});
    const auto path = file.FindFile(ref.file);
    if (!path) continue;
    frame.directory = path->directory;
    frame.file = path->base;
    frame.line = ref.line;
  }
}

Result<bool> LookupTexts(const GsymFile& file, ElfAddress address,
                         GsymIndex* index, GsymAnswer& answer) {
  auto found = Lookup(file, address, index, answer);
  AddTexts(file, answer);
  return found;
}

}  // namespace

Result<bool> LookupGsym(const GsymFile& file, ElfAddress address,
                        GsymAnswer& answer) {
  return LookupTexts(file, address, nullptr, answer);
}

Result<bool> LookupGsym(const GsymFile& file, ElfAddress address,
                        GsymIndex& index, GsymAnswer& answer) {
  return LookupTexts(file, address, &index, answer);
}

Result<bool> LookupGsymRefs(const GsymFile& file, ElfAddress address,
                            GsymIndex& index, GsymAnswer& answer) {
  return Lookup(file, address, &index, answer);
}

}  // namespace ksym
