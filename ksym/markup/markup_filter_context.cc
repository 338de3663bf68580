// SPDX-License-Identifier: Apache-2.0
// How MarkupFilter takes context elements in, and the lines about modules.
#include <algorithm>
#include <string>
#include <utility>

#include "ksym/markup/markup_fields.h"
#include "ksym/markup/markup_filter.h"

namespace ksym {
namespace {

std::string Hex(uint64_t value) {
  std::string out;
  MarkupPrinter(MarkupColor::kOff, out).Hex(value);
  return out;
}

}  // namespace

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
  if (const MarkupMmap* other = context_.FindOverlap(*parsed)) {
    ReportOverlap(*other, element);
    return;
  }
  if (!HasRoom(context_.has_room_for_mmap(), element)) return;
  const MarkupMmap* mmap = context_.AddMmap(std::move(*parsed));
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
  if (context_.empty()) return;
  EndModuleLine();
  PrintDeferred();
  printer_.RawElement(element);
  printer_.Text(line_end());
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

}  // namespace ksym
