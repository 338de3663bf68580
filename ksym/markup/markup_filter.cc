// SPDX-License-Identifier: Apache-2.0
#include "ksym/markup/markup_filter.h"

#include <algorithm>
#include <string>
#include <utility>

#include "ksym/markup/markup_fields.h"

namespace ksym {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 10;
constexpr size_t kNone = std::string_view::npos;

std::string Hex(uint64_t value) {
  std::string out;
  MarkupPrinter(MarkupColor::kOff, out).Hex(value);
  return out;
}

}  // namespace

// Finds lines without markup in one block of bytes. Each byte is looked at
// once for each of the two signs, whatever is asked for.
class MarkupFilter::BlockScanner {
 public:
  explicit BlockScanner(std::string_view block) : block_(block) {}

  // How many bytes of whole lines from `from` on have no sign of markup.
  size_t PlainSize(size_t from) {
    const size_t sign = std::min(Find("{{{", from, next_element_),
                                 Find("\033", from, next_sgr_));
    if (sign == from) return 0;
    const std::string_view plain = block_.substr(from, sign - from);
    return plain.rfind('\n') + 1;
  }

 private:
  size_t Find(std::string_view sign, size_t from, size_t& next) const {
    if (next == kNone || next < from) {
      next = std::min(block_.find(sign, from), block_.size());
    }
    return next;
  }

  std::string_view block_;
  // kNone until it was looked for.
  size_t next_element_ = kNone;
  size_t next_sgr_ = kNone;
};

MarkupFilter::MarkupFilter(const MarkupFilterOptions& options,
                           MarkupSymbolizer& symbolizer, MarkupOutput& output)
    : options_(options),
      output_(output),
      printer_(options.color, log_),
      reporter_(report_),
      renderer_({context_, symbolizer, printer_, reporter_}) {}

bool MarkupFilter::is_plain_state() const {
  return partial_.empty() && !inside_cut_line_ && !parser_.in_element() &&
         module_line_ == nullptr && printer_.in_default_state();
}

void MarkupFilter::Push(std::string_view bytes) {
  BlockScanner scanner(bytes);
  for (std::string_view rest = bytes; !rest.empty();) {
    // Most of a log has no markup; whole lines of that are copied in one step,
    // as long as nothing began before them that they may belong to.
    if (is_plain_state()) {
      const size_t plain = scanner.PlainSize(bytes.size() - rest.size());
      log_ += rest.substr(0, plain);
      rest.remove_prefix(plain);
      FlushIfLarge();
      if (rest.empty()) break;
    }
    TakeLine(rest);
  }
  Flush();
}

void MarkupFilter::TakeLine(std::string_view& bytes) {
  const size_t room = options_.max_line_bytes - partial_.size();
  const size_t newline = bytes.substr(0, room).find('\n');
  const size_t size =
      newline == kNone ? std::min(room, bytes.size()) : newline + 1;
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  if (newline != kNone && partial_.empty()) {
    FilterLine(taken, LineEnd::kNewline);
    return;
  }
  // Only a line that has no end here, or had none in the call before, is
  // copied.
  partial_ += taken;
  if (newline != kNone) {
    FilterLine(partial_, LineEnd::kNewline);
    partial_.clear();
  } else if (partial_.size() == options_.max_line_bytes) {
    const size_t cut = CutSize(partial_);
    FilterLine(std::string_view(partial_).substr(0, cut), LineEnd::kCut);
    partial_.erase(0, cut);
  }
}

// Where to cut a line that is too long: before what may be the beginning of an
// element or a control sequence, if that is in the second half.
size_t MarkupFilter::CutSize(std::string_view line) const {
  constexpr size_t kSequenceBytes = 5;
  const size_t begin = line.rfind("{{{");
  size_t cut = line.size();
  if (begin != kNone && line.find("}}}", begin) == kNone) {
    cut = begin;
  } else if (const size_t escape = line.rfind('\033');
             escape != kNone && line.size() - escape < kSequenceBytes) {
    cut = escape;
  }
  while (cut > 0 && line[cut - 1] == '{') --cut;
  return cut > line.size() / 2 ? cut : line.size();
}

void MarkupFilter::FilterLine(std::string_view line, LineEnd end) {
  // Colours end with their line. The second part of a cut line goes on with
  // those of the first.
  if (!inside_cut_line_) printer_.ResetState();
  const bool is_part = inside_cut_line_ || end == LineEnd::kCut;
  if (is_part && !counted_cut_line_ && line.find_first_of("{\033") != kNone) {
    counted_cut_line_ = true;
    ++cut_lines_;
  }
  inside_cut_line_ = end == LineEnd::kCut;
  ends_crlf_ = line.ends_with("\r\n");
  if (!drop_rest_) {
    reporter_.BeginLine(line);
    parser_.BeginLine(line);
    FilterNodes();
  }
  if (end == LineEnd::kNewline) {
    drop_rest_ = false;
    counted_cut_line_ = false;
  }
  FlushIfLarge();
}

void MarkupFilter::FilterNodes() {
  deferred_count_ = 0;
  while (true) {
    if (deferred_count_ == deferred_.size()) deferred_.emplace_back();
    MarkupNode& node = deferred_[deferred_count_];
    if (!parser_.Next(node)) break;
    if (TryContext(node)) {
      // Also what a later part of the same line brings.
      drop_rest_ = true;
      return;
    }
    ++deferred_count_;
  }
  // This line is no context, so no mmap of the module can follow any more.
  // Its line was begun before and has to end first.
  EndModuleLine();
  PrintDeferred();
}

bool MarkupFilter::TryContext(const MarkupNode& node) {
  if (node.tag == "mmap") {
    TakeMmap(node);
  } else if (node.tag == "reset") {
    TakeReset(node);
  } else if (node.tag == "module") {
    TakeModule(node);
  } else {
    return false;
  }
  return true;
}

void MarkupFilter::TakeMmap(const MarkupNode& element) {
  auto parsed = ParseMmap(element);
  if (!parsed) return;
  // The overlap first: a log that repeats its context is not out of room.
  if (const MarkupMmap* other = context_.FindOverlap(*parsed)) {
    ReportOverlap(*other, element);
    return;
  }
  if (!HasRoom(context_.has_room_for_mmap(), element)) return;
  const MarkupMmap* mmap = context_.AddMmap(std::move(*parsed));
  // The mmaps of the module that was named last join its line. One of another
  // module begins a line that says what it adds to.
  if (module_line_ != mmap->module) {
    EndModuleLine();
    PrintDeferred();
    BeginModuleLine(*mmap->module);
    printer_.Text("; adds");
  }
  module_mmaps_.push_back(mmap);
}

void MarkupFilter::TakeReset(const MarkupNode& element) {
  if (!CheckFieldCount(element, 0, reporter_)) return;
  // A log may begin with a reset, which changes nothing and is not shown.
  if (context_.empty()) return;
  EndModuleLine();
  PrintDeferred();
  printer_.RawElement(element);
  printer_.Text(line_end());
  // Only now: the line about a module was written from the context.
  context_.Reset();
  renderer_.Reset();
}

void MarkupFilter::TakeModule(const MarkupNode& element) {
  auto parsed = ParseModule(element);
  if (!parsed) return;
  if (!HasRoom(context_.has_room_for_module(), element)) return;
  const MarkupModule* module = context_.AddModule(std::move(*parsed));
  if (module == nullptr) {
    reporter_.Error("duplicate module ID", element.fields[0]);
    return;
  }
  EndModuleLine();
  PrintDeferred();
  BeginModuleLine(*module);
  printer_.Text("; BuildID=");
  printer_.Value(module->build_id);
}

std::optional<uint64_t> MarkupFilter::ParseInteger(std::string_view field,
                                                   std::string_view type) {
  const auto value = ParseMarkupInteger(field);
  if (!value) ReportWrongType(field, type, reporter_);
  return value;
}

std::optional<MarkupModule> MarkupFilter::ParseModule(
    const MarkupNode& element) {
  if (!CheckLeastFields(element, 3, reporter_)) return std::nullopt;
  const auto id = ParseInteger(element.fields[0], "module ID");
  if (!id) return std::nullopt;
  if (element.fields[2] != "elf") {
    reporter_.Error("unknown module type", element.fields[2]);
    return std::nullopt;
  }
  if (!CheckFieldCount(element, 4, reporter_)) return std::nullopt;
  auto build_id = ParseMarkupBytes(element.fields[3]);
  if (!build_id) {
    ReportWrongType(element.fields[3], "build ID", reporter_);
    return std::nullopt;
  }
  return MarkupModule{*id, std::string(element.fields[1]),
                      std::move(*build_id)};
}

std::optional<MarkupMmap> MarkupFilter::ParseMmap(const MarkupNode& element) {
  if (!CheckLeastFields(element, 3, reporter_)) return std::nullopt;
  const auto& fields = element.fields;
  const auto address = ParseMarkupAddress(fields[0]);
  if (!address) {
    ReportWrongType(fields[0], "address", reporter_);
    return std::nullopt;
  }
  const auto size = ParseInteger(fields[1], "size");
  if (!size) return std::nullopt;
  if (fields[2] != "load") {
    reporter_.Error("unknown mmap type", fields[2]);
    return std::nullopt;
  }
  if (!CheckFieldCount(element, 6, reporter_)) return std::nullopt;
  const auto id = ParseInteger(fields[3], "module ID");
  if (!id) return std::nullopt;
  auto mode = ParseMarkupMode(fields[4]);
  if (!mode) {
    ReportWrongType(fields[4], "mode", reporter_);
    return std::nullopt;
  }
  const MarkupModule* module = context_.FindModule(*id);
  if (module == nullptr) {
    reporter_.Error("unknown module ID", fields[3]);
    return std::nullopt;
  }
  const auto module_address = ParseMarkupAddress(fields[5]);
  if (!module_address) {
    ReportWrongType(fields[5], "address", reporter_);
    return std::nullopt;
  }
  return MarkupMmap{
      *address, *size, module, std::move(*mode), {module_address->value}};
}

bool MarkupFilter::HasRoom(bool has_room, const MarkupNode& element) {
  if (has_room) return true;
  ++refused_context_;
  reporter_.Error("too much context since the last reset", element.text);
  return false;
}

void MarkupFilter::ReportOverlap(const MarkupMmap& other,
                                 const MarkupNode& element) {
  reporter_.Error("overlapping mmap: #" + Hex(other.module->id) + " [" +
                      Hex(other.address.value) + "-" + Hex(other.last().value) +
                      "]",
                  element.fields[0]);
}

void MarkupFilter::BeginModuleLine(const MarkupModule& module) {
  printer_.Highlight();
  printer_.Text("[[[ELF module");
  printer_.Value(" #" + Hex(module.id) + " ");
  printer_.Text("\"");
  printer_.Value(module.name);
  printer_.Text("\"");
  module_line_ = &module;
}

void MarkupFilter::EndModuleLine() {
  if (module_line_ == nullptr) return;
  std::ranges::stable_sort(module_mmaps_, {}, &MarkupMmap::address);
  for (const MarkupMmap* mmap : module_mmaps_) {
    printer_.Text(mmap == module_mmaps_.front() ? " [" : ",[");
    printer_.Value(Hex(mmap->address.value));
    printer_.Text("-");
    printer_.Value(Hex(mmap->last().value));
    printer_.Text("](");
    printer_.Value(mmap->mode);
    printer_.Text(")");
  }
  printer_.Text("]]]");
  printer_.Text(line_end());
  printer_.Restore();
  module_mmaps_.clear();
  module_line_ = nullptr;
}

void MarkupFilter::PrintDeferred() {
  for (size_t i = 0; i < deferred_count_; ++i) {
    renderer_.Print(deferred_[i], line_end());
    FlushIfLarge();
  }
}

void MarkupFilter::Finish() {
  if (!partial_.empty() || inside_cut_line_) {
    // A last line without its end is filtered as one that has it.
    partial_ += '\n';
    FilterLine(partial_, LineEnd::kNewline);
    partial_.clear();
  }
  // An element that goes on over lines and never ended becomes text.
  parser_.Finish();
  reporter_.BeginLine({});
  MarkupNode node;
  while (parser_.Next(node)) renderer_.Print(node, line_end());
  EndModuleLine();
  printer_.ResetState();
  context_.Reset();
  renderer_.Reset();
  Flush();
}

MarkupFilter::Statistics MarkupFilter::statistics() const {
  return {cut_lines_, parser_.oversized_elements(), refused_context_};
}

void MarkupFilter::FlushIfLarge() {
  if (log_.size() + report_.size() >= kFlushBytes) Flush();
}

void MarkupFilter::Flush() {
  if (!log_.empty()) output_.WriteLog(log_);
  if (!report_.empty()) output_.WriteReport(report_);
  log_.clear();
  report_.clear();
}

}  // namespace ksym
