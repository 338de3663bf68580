// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_decode.h"

#include <string>
#include <utility>

#include "ksym/gsym/gsym_inline.h"
#include "ksym/gsym/gsym_line_table.h"

namespace ksym {
namespace {

std::unexpected<Error> Corrupt(std::string what) {
  return Fail(ErrorCode::kCorrupt, "GSYM: " + std::move(what));
}

class Decoder {
 public:
  explicit Decoder(const GsymFile& file) : file_(file) {}

  enum class Merged : uint8_t { kAllowed, kRefused };
  Result<GsymFunction> Decode(ByteCursor in, ElfAddress start, Merged merged);

 private:
  Status DecodeInfo(GsymInfo type, std::span<const std::byte> bytes,
                    GsymFunction& function);
  Status DecodeLines(std::span<const std::byte> bytes, GsymFunction& function);
  Status DecodeInlines(std::span<const std::byte> bytes,
                       GsymFunction& function);
  Status DecodeMerged(std::span<const std::byte> bytes, GsymFunction& function);
  Status DecodeCallSites(std::span<const std::byte> bytes,
                         GsymFunction& function);
  ByteCursor Cursor(std::span<const std::byte> bytes) const {
    return ByteCursor(bytes, file_.byte_order());
  }

  const GsymFile& file_;
};

Status Decoder::DecodeLines(std::span<const std::byte> bytes,
                            GsymFunction& function) {
  const bool ok = RunGsymLineTable(Cursor(bytes), function.start.value,
                                   [&](const LineRow& row) {
                                     function.lines.push_back(row);
                                     return true;
                                   });
  if (!ok) return Corrupt("a line table is malformed");
  for (const LineRow& row : function.lines) {
    if (!file_.FindFile(row.file)) {
      return Corrupt("a line's file is not in the file table");
    }
  }
  return {};
}

Status Decoder::DecodeInlines(std::span<const std::byte> bytes,
                              GsymFunction& function) {
  GsymInlineReader reader(Cursor(bytes), file_.string_bytes());
  std::vector<uint64_t> bases = {function.start.value};
  GsymInlineNode node;
  do {
    const size_t first_range = function.ranges.size();
    const bool has_node =
        reader.Next(bases.back(), node, [&](uint64_t start, uint64_t size) {
          function.ranges.push_back({start, start + size});
        });
    if (!has_node) {
      bases.pop_back();
      continue;
    }
    const auto name = file_.String(node.name);
    if (!name || !file_.FindFile(node.call_file)) {
      return Corrupt("an inlined call refers to no name or file");
    }
    function.inlines.push_back(
        {*name, static_cast<uint32_t>(bases.size() - 1), node.call_file,
         node.call_line, static_cast<uint32_t>(first_range),
         static_cast<uint32_t>(function.ranges.size() - first_range)});
    if (node.has_children) bases.push_back(node.first_start);
    // The function's own node has no siblings.
  } while (reader.ok() && bases.size() > 1);
  if (!reader.ok()) return Corrupt("inlined calls are malformed");
  if (!function.inlines.empty()) {
    // The first node stands for the function itself, which nothing called.
    function.inlines.erase(function.inlines.begin());
  }
  return {};
}

Status Decoder::DecodeMerged(std::span<const std::byte> bytes,
                             GsymFunction& function) {
  ByteCursor in = Cursor(bytes);
  const auto count = in.Read<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto part = in.ReadBytes(in.Read<uint32_t>());
    if (!in.ok()) break;
    auto merged = Decode(Cursor(part), function.start, Merged::kRefused);
    if (!merged) return Fail(std::move(merged.error()));
    function.merged.push_back(std::move(*merged));
  }
  if (!in.ok()) return Corrupt("merged functions are malformed");
  return {};
}

Status Decoder::DecodeCallSites(std::span<const std::byte> bytes,
                                GsymFunction& function) {
  ByteCursor in = Cursor(bytes);
  const auto count = in.Read<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    GsymCallSite site;
    site.return_offset = in.Read<uint64_t>();
    site.flags = in.Read<uint8_t>();
    const auto patterns = in.Read<uint32_t>();
    for (uint32_t k = 0; k < patterns && in.ok(); ++k) {
      const auto text = file_.String(in.ReadSized(file_.string_bytes()));
      if (!text) return Corrupt("a pattern is not in the string table");
      site.patterns.push_back(*text);
    }
    function.call_sites.push_back(std::move(site));
  }
  if (!in.ok()) return Corrupt("call sites are malformed");
  return {};
}

Status Decoder::DecodeInfo(GsymInfo type, std::span<const std::byte> bytes,
                           GsymFunction& function) {
  switch (type) {
    case GsymInfo::kLineTable:
      return DecodeLines(bytes, function);
    case GsymInfo::kInlines:
      return DecodeInlines(bytes, function);
    case GsymInfo::kMergedFunctions:
      return DecodeMerged(bytes, function);
    case GsymInfo::kCallSites:
      return DecodeCallSites(bytes, function);
    default:
      ++function.unknown_infos;
      return {};
  }
}

Result<GsymFunction> Decoder::Decode(ByteCursor in, ElfAddress start,
                                     Merged merged) {
  GsymFunction function;
  function.start = start;
  function.size = in.Read<uint32_t>();
  const auto name = file_.String(in.ReadSized(file_.string_bytes()));
  if (!name) return Corrupt("a name is not in the string table");
  function.name = *name;
  while (in.ok()) {
    const auto type = static_cast<GsymInfo>(in.Read<uint32_t>());
    const auto bytes = in.ReadBytes(in.Read<uint32_t>());
    if (!in.ok()) break;
    if (type == GsymInfo::kEnd) return function;
    // Lists within lists could nest without end.
    if (type == GsymInfo::kMergedFunctions && merged == Merged::kRefused) {
      return Corrupt("merged functions have merged functions");
    }
    const auto decoded = DecodeInfo(type, bytes, function);
    if (!decoded) return Fail(decoded.error());
  }
  return Corrupt("a function's information is cut off");
}

}  // namespace

Result<GsymFunction> DecodeGsymFunction(const GsymFile& file, uint32_t index) {
  return Decoder(file).Decode(file.FunctionBytes(index),
                              file.FunctionStart(index),
                              Decoder::Merged::kAllowed);
}

}  // namespace ksym
