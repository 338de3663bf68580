// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/process_image.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ksym/base/text.h"

namespace ksym {
namespace {

// seq_path() in the kernel escapes the newline only.
std::string DecodePath(std::string_view text) {
  constexpr std::string_view kNewline = "\\012";
  std::string path;
  for (;;) {
    const size_t at = text.find(kNewline);
    path.append(text.substr(0, at));
    if (at == std::string_view::npos) return path;
    path += '\n';
    text.remove_prefix(at + kNewline.size());
  }
}

// Keeps what ParseMaps promises while lines come in.
class MapsParser {
 public:
  // False when the line is malformed.
  bool AddLine(std::string_view line) {
    // The permissions follow the two addresses; most lines end here.
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || line.size() < space + 6) {
      return false;
    }
    const std::string_view permissions = line.substr(space + 1, 4);
    if (line[space + 5] != ' ') return false;
    if (permissions[2] != 'x') return permissions[2] == '-';
    std::string_view range = line.substr(0, space);
    line.remove_prefix(space + 6);
    auto mapping = Parse(range, line);
    if (!mapping) return false;
    const bool in_order =
        mappings_.empty() || mappings_.back().end <= mapping->start;
    if (in_order) mappings_.push_back(std::move(*mapping));
    return in_order;
  }

  std::vector<Mapping> Take() && { return std::move(mappings_); }

 private:
  static std::optional<Mapping> Parse(std::string_view range,
                                      std::string_view rest) {
    const auto start = ParseUnsigned(TakeField(range, '-'), 16);
    const auto end = ParseUnsigned(range, 16);
    const auto offset = ParseUnsigned(TakeField(rest, ' '), 16);
    const auto major = ParseUnsigned<uint32_t>(TakeField(rest, ':'), 16);
    const auto minor = ParseUnsigned<uint32_t>(TakeField(rest, ' '), 16);
    const auto inode = ParseUnsigned(TakeField(rest, ' '), 10);
    if (!start || !end || !offset || !major || !minor || !inode ||
        *start >= *end) {
      return std::nullopt;
    }
    Mapping mapping;
    mapping.start = {*start};
    mapping.end = {*end};
    mapping.file_offset = {*offset};
    mapping.device_major = *major;
    mapping.device_minor = *minor;
    mapping.inode = *inode;
    mapping.path = DecodePath(TrimLeft(rest));
    return mapping;
  }

  std::vector<Mapping> mappings_;
};

}  // namespace

bool HaveSameBytes(const Mapping& a, const Mapping& b) {
  if (a.inode != b.inode || a.device_major != b.device_major ||
      a.device_minor != b.device_minor) {
    return false;
  }
  // Where memory has no file only the kernel's own has names in it.
  if (a.inode == 0) {
    const auto is_known = [](const SharedPath& path) {
      return path.starts_with("[v") || path == kReplacedPath ||
             path == kTooLargePath;
    };
    return a.path == b.path || (!is_known(a.path) && !is_known(b.path));
  }
  return a.file_offset.value - a.start.value ==
         b.file_offset.value - b.start.value;
}

const Mapping* ProcessImage::Find(Address address) const {
  const auto next = std::upper_bound(
      mappings.begin(), mappings.end(), address,
      [](Address value, const Mapping& m) { return value < m.start; });
  if (next == mappings.begin()) return nullptr;
  const Mapping& mapping = *(next - 1);
  return address < mapping.end ? &mapping : nullptr;
}

bool MapsCollector::Add(Mapping mapping) {
  // x86-64 and others have user memory below; what Linux shows above is its
  // own.
  constexpr Address kUserEnd{uint64_t{1} << 63};
  if (mappings_.size() == limits_.mappings) {
    Mapping rest;
    rest.start = mapping.start;
    rest.end = kUserEnd;
    rest.path = kTooLargePath;
    if (rest.start < rest.end) mappings_.push_back(std::move(rest));
    return false;
  }
  if (mappings_.size() > limits_.mappings) return false;
  if (!mapping.path.empty()) {
    const SharedPath* known = paths_.Find(mapping.path);
    if (known != nullptr) {
      mapping.path = *known;
    } else if (mapping.path.size() <= limits_.path_bytes - paths_.bytes()) {
      paths_.Add(mapping.path);
    } else {
      ForgetFile(mapping);
    }
  }
  mappings_.push_back(std::move(mapping));
  return true;
}

void ForgetFile(Mapping& mapping) {
  static const SharedPath kPath(kTooLargePath);
  mapping.path = kPath;
  mapping.file_offset = {};
  mapping.device_major = 0;
  mapping.device_minor = 0;
  mapping.inode = 0;
}

std::vector<Mapping> ParseMaps(std::string_view text, size_t* malformed_lines) {
  MapsParser parser;
  size_t malformed = 0;
  while (!text.empty()) {
    if (!parser.AddLine(TakeField(text, '\n'))) ++malformed;
  }
  if (malformed_lines != nullptr) *malformed_lines = malformed;
  return std::move(parser).Take();
}

}  // namespace ksym
