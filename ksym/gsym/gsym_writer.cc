// SPDX-License-Identifier: Apache-2.0
#include "ksym/gsym/gsym_writer.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ksym {

GsymWriter::GsymWriter(const GsymWriterOptions& options)
    : options_(options),
      string_bytes_(options.version == GsymVersion::k1 ? 4 : 8),
      files_({{0, 0}}),
      encoded_(options.byte_order) {}

uint32_t GsymWriter::FileIndex(const FunctionBatch& batch, uint32_t index) {
  if (index >= batch.files.size()) return 0;
  const SourceFile& file = batch.files[index];
  if (file.directory.empty() && file.base.empty()) return 0;
  if (batch_files_[index] == 0) {
    const std::pair<uint64_t, uint64_t> key = {strings_.Add(file.directory),
                                               strings_.Add(file.base)};
    const auto next = static_cast<uint32_t>(files_.size());
    const auto [place, is_new] = file_ids_.emplace(key, next);
    if (is_new) files_.push_back(key);
    batch_files_[index] = place->second;
  }
  return batch_files_[index];
}

// A row of file 0 counts as none at all, and without a row there are no inlined
// calls either. So an unknown file is one with an empty path.
uint32_t GsymWriter::RowFile(const FunctionBatch& batch, uint32_t index) {
  const uint32_t known = FileIndex(batch, index);
  if (known != 0) return known;
  if (unknown_file_ == 0) {
    unknown_file_ = static_cast<uint32_t>(files_.size());
    files_.emplace_back(0, 0);
  }
  return unknown_file_;
}

void GsymWriter::Add(const FunctionBatch& batch,
                     std::span<const GsymCallSite> call_sites) {
  batch_files_.assign(batch.files.size(), 0);
  for (const FunctionInfo& function : batch.functions) {
    AddFunction(batch, function, call_sites);
    call_sites = {};
  }
}

void GsymWriter::AddFunction(const FunctionBatch& batch,
                             const FunctionInfo& function,
                             std::span<const GsymCallSite> call_sites) {
  const uint64_t size = function.range.end - function.range.start;
  if (function.range.end <= function.range.start ||
      size > std::numeric_limits<uint32_t>::max()) {
    ++losses_.empty_functions;
    return;
  }
  Encoded entry;
  entry.start = function.range.start;
  entry.size = static_cast<uint32_t>(size);
  entry.offset = encoded_.size();
  entry.name = strings_.Add(function.name);
  encoded_.Write(entry.size);
  encoded_.WriteSized(entry.name, string_bytes_);
  const size_t detail = encoded_.size();
  AddLines(batch, function);
  AddInlines(batch, function);
  entry.has_detail = encoded_.size() > detail;
  AddCallSites(call_sites);
  encoded_.Write(static_cast<uint32_t>(GsymInfo::kEnd));
  encoded_.Write(uint32_t{0});
  entry.bytes = static_cast<uint32_t>(encoded_.size() - entry.offset);
  functions_.push_back(entry);
}

namespace {

// Writes a type and a length, which is set when the value has been written.
class InfoScope {
 public:
  InfoScope(GsymInfo type, ByteWriter& out) : out_(out) {
    out_.Write(static_cast<uint32_t>(type));
    length_at_ = out_.size();
    out_.Write(uint32_t{0});
  }
  InfoScope(const InfoScope&) = delete;
  InfoScope& operator=(const InfoScope&) = delete;
  ~InfoScope() {
    out_.SetWord(length_at_,
                 static_cast<uint32_t>(out_.size() - length_at_ - 4));
  }

 private:
  ByteWriter& out_;
  size_t length_at_;
};

}  // namespace

void GsymWriter::AddLines(const FunctionBatch& batch,
                          const FunctionInfo& function) {
  rows_.clear();
  const auto rows =
      std::span(batch.lines).subspan(function.first_line, function.line_count);
  uint64_t next = function.range.start;
  for (LineRow row : rows) {
    if (row.address < next || row.address >= function.range.end) {
      ++losses_.rows;
      continue;
    }
    next = row.address + 1;
    row.file = RowFile(batch, row.file);
    if (!rows_.empty() && rows_.back().file == row.file &&
        rows_.back().line == row.line) {
      continue;
    }
    rows_.push_back(row);
  }
  if (rows_.empty()) return;
  const InfoScope scope(GsymInfo::kLineTable, encoded_);
  line_encoder_.Encode(function.range.start, rows_, encoded_);
}

void GsymWriter::WriteNode(const FunctionBatch& batch, const InlinedCall& call,
                           uint64_t base, bool has_children) {
  encoded_.WriteUleb128(call.range_count);
  for (uint32_t i = 0; i < call.range_count; ++i) {
    const AddressRange& range = batch.ranges[call.first_range + i];
    encoded_.WriteUleb128(range.start - base);
    encoded_.WriteUleb128(range.end - range.start);
  }
  encoded_.Write(static_cast<uint8_t>(has_children ? 1 : 0));
  WriteString(call.name);
  encoded_.WriteUleb128(FileIndex(batch, call.call_file));
  encoded_.WriteUleb128(call.call_line);
}

// The tree in preorder, below a node that stands for the function. bases_ has
// what the ranges at each depth count from.
void GsymWriter::AddInlines(const FunctionBatch& batch,
                            const FunctionInfo& function) {
  const auto calls = std::span(batch.inlines)
                         .subspan(function.first_inline, function.inline_count);
  if (calls.empty()) return;
  const InfoScope scope(GsymInfo::kInlines, encoded_);
  encoded_.WriteUleb128(1);
  encoded_.WriteUleb128(0);
  encoded_.WriteUleb128(function.range.end - function.range.start);
  encoded_.Write(uint8_t{1});
  WriteString(function.name);
  encoded_.WriteUleb128(0);
  encoded_.WriteUleb128(0);
  bases_.assign(1, function.range.start);
  // A node that cannot be encoded is left out with what is in it.
  size_t left_out_depth = calls.size() + 1;
  const auto fits = [&](const InlinedCall& call) {
    return call.depth >= 1 && call.depth <= bases_.size() &&
           call.depth <= left_out_depth && call.range_count > 0 &&
           batch.ranges[call.first_range].start >= bases_[call.depth - 1];
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const InlinedCall& call = calls[i];
    if (!fits(call)) {
      ++losses_.inlined_calls;
      left_out_depth = std::min<size_t>(left_out_depth, call.depth);
      continue;
    }
    left_out_depth = calls.size() + 1;
    for (; bases_.size() > call.depth; bases_.pop_back()) {
      encoded_.WriteUleb128(0);
    }
    const bool has_children =
        i + 1 < calls.size() && calls[i + 1].depth > call.depth;
    WriteNode(batch, call, bases_.back(), has_children);
    if (has_children) bases_.push_back(batch.ranges[call.first_range].start);
  }
  for (size_t i = 0; i < bases_.size(); ++i) encoded_.WriteUleb128(0);
}

void GsymWriter::AddCallSites(std::span<const GsymCallSite> call_sites) {
  if (call_sites.empty()) return;
  const InfoScope scope(GsymInfo::kCallSites, encoded_);
  encoded_.Write(static_cast<uint32_t>(call_sites.size()));
  for (const GsymCallSite& site : call_sites) {
    encoded_.Write(site.return_offset);
    encoded_.Write(site.flags);
    encoded_.Write(static_cast<uint32_t>(site.patterns.size()));
    for (const std::string_view pattern : site.patterns) WriteString(pattern);
  }
}

}  // namespace ksym
