// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace ksym {

enum class CfiLayout : uint8_t { kEhFrame, kDebugFrame };
enum class CfiWidth : uint8_t { k32, k64 };  // of lengths and offsets

struct CieFields {
  std::string augmentation = "zR";
  uint8_t pointers = 0;  // DW_EH_PE_*, where the augmentation has R
  uint8_t version = 1;
  uint8_t return_register = 16;
  // def_cfa rsp, 8; offset rip, 1 (cfa - 8)
  std::string instructions = std::string("\x0c\x07\x08\x90\x01", 5);
};

// Writes call-frame information byte by byte: what no assembler will. The
// section's address is 0.
class CfiBuilder {
 public:
  explicit CfiBuilder(CfiLayout layout, CfiWidth width = CfiWidth::k32)
      : layout_(layout), width_(width) {}

  // Returns its offset.
  size_t AddCie(const CieFields& cie) {
    const size_t offset = bytes_.size();
    std::string body;
    Put(body, cie.version);
    body += cie.augmentation;
    Put(body, uint8_t{0});
    if (cie.version == 4) body += std::string("\x08\x00", 2);
    body += "\x01\x78";  // code alignment 1, data alignment -8
    Put(body, cie.return_register);
    if (cie.augmentation.starts_with("z")) {
      std::string data;
      if (cie.augmentation.find('R') != std::string::npos) {
        Put(data, cie.pointers);
      }
      Put(body, static_cast<uint8_t>(data.size()));
      body += data;
    }
    body += cie.instructions;
    const uint64_t id = layout_ == CfiLayout::kEhFrame
                            ? 0
                            : std::numeric_limits<uint64_t>::max();
    AddEntry(id, body);
    pointers_ = cie.pointers;
    has_data_ = cie.augmentation.starts_with("z");
    return offset;
  }

  // Belongs to the CIE that was added last, or to the one at `cie`.
  void AddFde(size_t cie, uint64_t start, uint64_t size,
              std::string_view instructions) {
    const size_t header = width_ == CfiWidth::k64 ? 12 : 4;
    const size_t id_size =
        layout_ == CfiLayout::kDebugFrame && width_ == CfiWidth::k64 ? 8 : 4;
    const size_t id_at = bytes_.size() + header;
    std::string body;
    const bool is_relative = (pointers_ & 0x70) == 0x10;
    PutPointer(body, start - (is_relative ? id_at + id_size : 0));
    PutPointer(body, size);
    if (has_data_) Put(body, uint8_t{0});
    body += instructions;
    AddEntry(layout_ == CfiLayout::kEhFrame ? id_at - cie : cie, body);
  }

  void AddRaw(std::string_view bytes) { bytes_ += bytes; }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  static void Put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  void PutPointer(std::string& out, uint64_t value) const {
    switch (pointers_ & 0x0f) {
      case 2:
      case 10:
        Put(out, static_cast<uint16_t>(value));
        break;
      case 3:
      case 11:
        Put(out, static_cast<uint32_t>(value));
        break;
      case 1:
      case 9:
        PutLeb128(out, value);
        break;
      default:
        Put(out, value);
        break;
    }
  }

  // Padded to a width at which signed and unsigned ones look alike.
  static void PutLeb128(std::string& out, uint64_t value) {
    for (int i = 0; i < 5; ++i) {
      Put(out, static_cast<uint8_t>((value & 0x7f) | 0x80));
      value >>= 7;
    }
    Put(out, uint8_t{0});
  }

  void AddEntry(uint64_t id, const std::string& body) {
    const bool is_wide = width_ == CfiWidth::k64;
    const bool has_wide_id = is_wide && layout_ == CfiLayout::kDebugFrame;
    const uint64_t length = body.size() + (has_wide_id ? 8 : 4);
    if (is_wide) {
      Put(bytes_, uint32_t{0xffffffff});
      Put(bytes_, length);
    } else {
      Put(bytes_, static_cast<uint32_t>(length));
    }
    if (has_wide_id) {
      Put(bytes_, id);
    } else {
      Put(bytes_, static_cast<uint32_t>(id));
    }
    bytes_ += body;
  }

  CfiLayout layout_;
  CfiWidth width_;
  std::string bytes_;
  uint8_t pointers_ = 0;
  bool has_data_ = false;
};

}  // namespace ksym
