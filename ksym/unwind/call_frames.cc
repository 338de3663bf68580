// SPDX-License-Identifier: Apache-2.0
#include "ksym/unwind/call_frames.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "ksym/base/byte_reader.h"
#include "ksym/unwind/arch.h"
#include "ksym/unwind/call_frame_program.h"

namespace ksym {

namespace {

std::string_view NameOf(CallFrameFormat format) {
  return format == CallFrameFormat::kEhFrame ? ".eh_frame" : ".debug_frame";
}

// One entry's bytes behind the length.
struct Entry {
  uint64_t offset = 0;  // of the entry
  size_t body = 0;      // of the bytes behind the length
  size_t end = 0;
  bool is_common = false;
  uint64_t common_offset = 0;  // of an FDE's CIE
  size_t fields = 0;           // behind the CIE id or pointer
};

class EntryReader {
 public:
  explicit EntryReader(const CallFrameSection& section)
      : section_(section), in_(section.bytes) {}

  // The next entry; nothing at the end, or when there is a problem().
  std::optional<Entry> Next();
  const char* problem() const { return problem_; }
  size_t offset() const { return in_.offset(); }

 private:
  std::optional<Entry> ReadBody(Entry entry, uint64_t length, bool is_64_bit);

  const CallFrameSection& section_;
  ByteReader in_;
  const char* problem_ = nullptr;
};

std::optional<Entry> EntryReader::Next() {
  while (in_.remaining() > 0) {
    Entry entry;
    entry.offset = in_.offset();
    uint64_t length = in_.Read<uint32_t>();
    // The mark of the 64-bit format (DWARF 5, section 7.4).
    const bool is_64_bit = length == 0xffffffff;
    if (is_64_bit) length = in_.Read<uint64_t>();
    if (in_.ok() && length == 0) {
      // A linker may leave the terminators of its inputs in the middle.
      if (section_.ends_with_zero) return std::nullopt;
      continue;
    }
    return ReadBody(entry, length, is_64_bit);
  }
  return std::nullopt;
}

std::optional<Entry> EntryReader::ReadBody(Entry entry, uint64_t length,
                                           bool is_64_bit) {
  entry.body = in_.offset();
  if (!in_.ok() || length > in_.remaining()) {
    problem_ = "its length is larger than the section";
    return std::nullopt;
  }
  entry.end = entry.body + static_cast<size_t>(length);
  const bool is_eh = section_.format == CallFrameFormat::kEhFrame;
  // .eh_frame's pointers to CIEs are 4 bytes in both formats.
  const bool is_wide = is_64_bit && !is_eh;
  const uint64_t id = is_wide ? in_.Read<uint64_t>() : in_.Read<uint32_t>();
  entry.fields = in_.offset();
  if (!in_.ok() || entry.fields > entry.end) {
    problem_ = "it is too short";
    return std::nullopt;
  }
  if (is_eh) {
    entry.is_common = id == 0;
    // Counted back from where it stands, and in .debug_frame from the section's
    // start (Linux Standard Base Core, 10.6.1).
    entry.common_offset = entry.body - id;
  } else {
    entry.is_common =
        id == (is_wide ? std::numeric_limits<uint64_t>::max() : 0xffffffff);
    entry.common_offset = id;
  }
  in_.Seek(entry.end);
  return entry;
}

std::span<const std::byte> BytesOf(const CallFrameSection& section,
                                   const Entry& entry) {
  return std::span(section.bytes)
      .subspan(entry.fields, entry.end - entry.fields);
}

// The letters behind 'z' of an augmentation string, which say what the
// augmentation data holds.
const char* ReadAugmentation(std::string_view letters, ByteReader& in,
                             CommonEntry& common) {
  for (const char letter : letters) {
    if (letter == 'R') {
      common.pointers = PointerEncoding(in.Read<uint8_t>());
    } else if (letter == 'L') {
      in.Read<uint8_t>();
    } else if (letter == 'P') {
      const PointerEncoding personality(in.Read<uint8_t>());
      if (!personality.is_omitted() && !personality.ReadValue(in)) {
        return "its personality's pointer encoding is unknown";
      }
    } else if (letter == 'S') {
      common.is_signal_frame = true;
    } else {
      return "its augmentation is unknown";
    }
  }
  return in.ok() ? nullptr : "it is cut off";
}

std::string_view ReadLetters(ByteReader& in, std::string& storage) {
  // Longer ones mean nothing that is known.
  constexpr size_t kMaxLetters = 16;
  for (size_t i = 0; i < kMaxLetters; ++i) {
    const char letter = static_cast<char>(in.Read<uint8_t>());
    if (letter == '\0') return storage;
    storage += letter;
  }
  storage = "?";
  return storage;
}

const char* ParseCommon(const CallFrameSection& section, const Entry& entry,
                        CommonEntry& common) {
  ByteReader in(BytesOf(section, entry));
  const auto version = in.Read<uint8_t>();
  if (version != 1 && version != 3 && version != 4) {
    return "its version is unknown";
  }
  std::string storage;
  const std::string_view letters = ReadLetters(in, storage);
  if (version == 4) {
    const auto address_size = in.Read<uint8_t>();
    const auto selector_size = in.Read<uint8_t>();
    if (address_size != 8 || selector_size != 0) {
      return "its addresses are not of 8 bytes";
    }
  }
  common.code_alignment = in.ReadUleb128();
  common.data_alignment = in.ReadSleb128();
  const uint64_t return_register =
      version == 1 ? in.Read<uint8_t>() : in.ReadUleb128();
  if (return_register != kDwarfReturnAddress) {
    return "its return address is not in register 16";
  }
  if (letters == "S") {
    common.is_signal_frame = true;
  } else if (!letters.empty()) {
    if (letters.front() != 'z') return "its augmentation is unknown";
    common.has_augmentation_data = true;
    ByteReader data(in.ReadBytes(static_cast<size_t>(in.ReadUleb128())));
    if (const char* problem =
            ReadAugmentation(letters.substr(1), data, common)) {
      return problem;
    }
  }
  if (!in.ok()) return "it is cut off";
  if (!common.pointers.IsReadable()) {
    return "its pointers are indirect or relative to a section";
  }
  return RunInitialInstructions(section, in.ReadBytes(in.remaining()), common);
}

const char* ParseFunction(const CallFrameSection& section, const Entry& entry,
                          const CommonEntry& common, FrameEntry& function) {
  if (common.problem != nullptr) return common.problem;
  ByteReader in(BytesOf(section, entry));
  const auto start =
      common.pointers.Read(in, section.address.value + entry.fields);
  // Only the encoding's format holds for it: a size is relative to nothing.
  const auto size = common.pointers.ReadValue(in);
  if (!start || !size) return "it is cut off";
  if (!CheckedAdd(*start, *size)) return "its range wraps around";
  function.offset = static_cast<uint32_t>(entry.offset);
  function.start = *start;
  function.size = *size;
  if (common.has_augmentation_data) {
    in.ReadBytes(static_cast<size_t>(in.ReadUleb128()));
  }
  if (!in.ok()) return "it is cut off";
  function.instructions = static_cast<uint32_t>(entry.fields + in.offset());
  function.instructions_size = static_cast<uint32_t>(in.remaining());
  return nullptr;
}

// Puts the entries together.
class CallFramesReader {
 public:
  explicit CallFramesReader(const CallFrameSection& section)
      : section_(section) {}

  CallFrames Read() {
    // Most are a little longer.
    constexpr size_t kBytesOfAnEntry = 32;
    frames_.functions.reserve(section_.bytes.size() / kBytesOfAnEntry);
    EntryReader entries(section_);
    size_t at = 0;
    while (const auto entry = entries.Next()) {
      if (entry->is_common ? frames_.common.size() == kMaxCommonEntries
                           : ++frame_entries_ > kMaxFrameEntries) {
        frames_.is_cut = true;
        return std::move(frames_);
      }
      if (entry->is_common) {
        AddCommon(*entry);
      } else if (!AddFunction(*entry)) {
        early_.push_back(*entry);
      }
      at = entries.offset();
    }
    // Only now are all CIEs known: nothing says that one stands before its
    // FDEs.
    for (const Entry& entry : early_) {
      if (!AddFunction(entry)) {
        AddProblem(entry.offset, "there is no CIE where it says");
      }
    }
    if (entries.problem() != nullptr) AddProblem(at, entries.problem());
    return std::move(frames_);
  }

 private:
  void AddCommon(const Entry& entry) {
    CommonEntry common;
    common.offset = entry.offset;
    common.problem = ParseCommon(section_, entry, common);
    frames_.common.push_back(common);
  }

  // The index of the CIE at an offset, or of the one past the last.
  size_t FindCommon(uint64_t offset) {
    const auto& all = frames_.common;
    if (last_ < all.size() && all[last_].offset == offset) return last_;
    const auto found = std::lower_bound(
        all.begin(), all.end(), offset,
        [](const CommonEntry& c, uint64_t value) { return c.offset < value; });
    if (found == all.end() || found->offset != offset) return all.size();
    last_ = static_cast<size_t>(found - all.begin());
    return last_;
  }

  // False when its CIE was not there so far.
  bool AddFunction(const Entry& entry) {
    const size_t common = FindCommon(entry.common_offset);
    if (common == frames_.common.size()) return false;
    FrameEntry function;
    const char* problem =
        ParseFunction(section_, entry, frames_.common[common], function);
    if (problem != nullptr) {
      AddProblem(entry.offset, problem);
      return true;
    }
    function.common = static_cast<uint32_t>(common);
    frames_.functions.push_back(function);
    return true;
  }

  void AddProblem(uint64_t offset, const char* problem) {
    ++frames_.bad_functions;
    if (!frames_.first_problem.empty()) return;
    frames_.first_problem = DescribeProblem(section_, offset, problem);
  }

  const CallFrameSection& section_;
  CallFrames frames_;
  std::vector<Entry> early_;  // FDEs whose CIE may come later
  size_t frame_entries_ = 0;
  size_t last_ = 0;
};

}  // namespace

std::string DescribeProblem(const CallFrameSection& section, uint64_t offset,
                            const char* problem) {
  std::array<char, 16> digits = {};
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16);
  std::string text(NameOf(section.format));
  text += ", entry at offset 0x";
  text.append(digits.data(), end.ptr);
  text += ": ";
  text += problem;
  return text;
}

CallFrames ReadCallFrames(const CallFrameSection& section) {
  return CallFramesReader(section).Read();
}

}  // namespace ksym
