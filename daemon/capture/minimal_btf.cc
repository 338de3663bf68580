#include "daemon/capture/minimal_btf.h"

#include <linux/btf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

constexpr size_t kBlockBytes = 32 * 1024;
// Anonymous structs within anonymous structs; the kernel has two levels.
constexpr int kMaxNesting = 8;

// Bytes that follow a btf_type of this kind, or nothing for a kind that is
// newer than this code and so cannot be stepped over.
std::optional<size_t> TrailingBytes(uint32_t info) {
  const size_t vlen = BTF_INFO_VLEN(info);
  switch (BTF_INFO_KIND(info)) {
    case BTF_KIND_PTR:
    case BTF_KIND_FWD:
    case BTF_KIND_TYPEDEF:
    case BTF_KIND_VOLATILE:
    case BTF_KIND_CONST:
    case BTF_KIND_RESTRICT:
    case BTF_KIND_FUNC:
    case BTF_KIND_FLOAT:
    case BTF_KIND_TYPE_TAG:
      return 0;
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
      return sizeof(uint32_t);
    case BTF_KIND_ARRAY:
      return sizeof(btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
      return vlen * sizeof(btf_member);
    case BTF_KIND_ENUM:
      return vlen * sizeof(btf_enum);
    case BTF_KIND_FUNC_PROTO:
      return vlen * sizeof(btf_param);
    case BTF_KIND_DATASEC:
      return vlen * sizeof(btf_var_secinfo);
    case BTF_KIND_ENUM64:
      return vlen * 3 * sizeof(uint32_t);
    default:
      return std::nullopt;
  }
}

bool IsModifier(uint32_t kind) {
  return kind == BTF_KIND_TYPEDEF || kind == BTF_KIND_VOLATILE ||
         kind == BTF_KIND_CONST || kind == BTF_KIND_RESTRICT ||
         kind == BTF_KIND_TYPE_TAG;
}

bool IsComposite(uint32_t kind) {
  return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

// Where bytes come from: a file that is read in blocks, or memory.
class BtfSource {
 public:
  explicit BtfSource(int fd) : fd_(fd) {}
  explicit BtfSource(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Status Read(uint64_t offset, std::span<std::byte> out) const {
    if (fd_ >= 0) return ksym::ReadExactlyAt(fd_, offset, out);
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) {
      return Fail(ErrorCode::kCorrupt, "BTF ends early");
    }
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }

 private:
  int fd_ = -1;
  std::span<const std::byte> bytes_;
};

struct Member {
  uint32_t name = 0;
  uint32_t type = 0;
  uint32_t bit_offset = 0;
  uint32_t bitfield_bits = 0;
};

// Random access to the types of one BTF, by id.
class BtfReader {
 public:
  static Result<BtfReader> Open(BtfSource source) {
    BtfReader reader(source);
    auto indexed = reader.Index();
    if (!indexed) return Fail(std::move(indexed.error()));
    return reader;
  }

  // Ids are 1 .. size() - 1; 0 is void.
  size_t size() const { return type_offsets_.size(); }

  Result<btf_type> Type(uint32_t id) const {
    btf_type type = {};
    if (id == 0 || id >= size()) return Fail(ErrorCode::kCorrupt, "BTF id");
    auto read = source_.Read(types_begin_ + type_offsets_[id], Bytes(type));
    if (!read) return Fail(std::move(read.error()));
    return type;
  }

  // Without typedefs and qualifiers; 0 for void.
  Result<uint32_t> Resolve(uint32_t id) const {
    for (int step = 0; step < 32; ++step) {
      if (id == 0) return 0;
      const auto type = Type(id);
      if (!type) return Fail(type.error());
      if (!IsModifier(BTF_INFO_KIND(type->info))) return id;
      id = type->type;
    }
    return Fail(ErrorCode::kCorrupt, "BTF typedefs in a circle");
  }

  Result<std::vector<Member>> Members(uint32_t id) const {
    const auto type = Type(id);
    if (!type) return Fail(type.error());
    std::vector<btf_member> raw(BTF_INFO_VLEN(type->info));
    auto read =
        source_.Read(types_begin_ + type_offsets_[id] + sizeof(btf_type),
                     std::as_writable_bytes(std::span(raw)));
    if (!read) return Fail(std::move(read.error()));
    const bool has_bitfields = BTF_INFO_KFLAG(type->info) != 0;
    std::vector<Member> members;
    members.reserve(raw.size());
    for (const btf_member& m : raw) {
      members.push_back(
          {m.name_off, m.type,
           has_bitfields ? BTF_MEMBER_BIT_OFFSET(m.offset) : m.offset,
           has_bitfields ? BTF_MEMBER_BITFIELD_SIZE(m.offset) : 0});
    }
    return members;
  }

  // The word after an integer's btf_type: encoding, offset and bits.
  Result<uint32_t> IntEncoding(uint32_t id) const {
    uint32_t word = 0;
    auto read = source_.Read(
        types_begin_ + type_offsets_[id] + sizeof(btf_type), Bytes(word));
    if (!read) return Fail(std::move(read.error()));
    return word;
  }

  // Calls visit(offset, text) with each string.
  template <typename Visit>
  Status ForEachString(const Visit& visit) const {
    std::vector<std::byte> block(kBlockBytes);
    size_t used = 0;  // bytes of an unfinished string at the front
    uint64_t next = 0;
    while (next < strings_bytes_) {
      if (used == block.size()) block.resize(block.size() * 2);
      const size_t want =
          std::min<uint64_t>(block.size() - used, strings_bytes_ - next);
      auto read = source_.Read(strings_begin_ + next,
                               std::span(block).subspan(used, want));
      if (!read) return read;
      next += want;
      const char* begin = reinterpret_cast<const char*>(block.data());
      const char* end = begin + used + want;
      const char* text = begin;
      const auto first = static_cast<uint32_t>(next - used - want);
      while (const void* nul =
                 std::memchr(text, 0, static_cast<size_t>(end - text))) {
        const char* stop = static_cast<const char*>(nul);
        visit(first + static_cast<uint32_t>(text - begin),
              std::string_view(text, static_cast<size_t>(stop - text)));
        text = stop + 1;
      }
      used = static_cast<size_t>(end - text);
      std::memmove(block.data(), text, used);
    }
    return {};
  }

  // Structs by the offset of their name, as Index() met them.
  const std::vector<std::pair<uint32_t, uint32_t>>& structs() const {
    return structs_;
  }

 private:
  explicit BtfReader(BtfSource source) : source_(source) {}

  template <typename T>
  static std::span<std::byte> Bytes(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
  }

  Status ReadHeader() {
    btf_header header = {};
    auto read = source_.Read(0, Bytes(header));
    if (!read) return read;
    if (header.magic != BTF_MAGIC || header.version != BTF_VERSION) {
      return Fail(ErrorCode::kUnsupported, "not BTF of version 1");
    }
    types_begin_ = uint64_t{header.hdr_len} + header.type_off;
    types_bytes_ = header.type_len;
    strings_begin_ = uint64_t{header.hdr_len} + header.str_off;
    strings_bytes_ = header.str_len;
    return {};
  }

  Status Index() {
    auto status = ReadHeader();
    if (!status) return status;
    type_offsets_.push_back(0);  // void
    std::vector<std::byte> block(kBlockBytes);
    uint64_t offset = 0;
    while (offset < types_bytes_) {
      const size_t want =
          std::min<uint64_t>(block.size(), types_bytes_ - offset);
      status =
          source_.Read(types_begin_ + offset, std::span(block).first(want));
      if (!status) return status;
      const auto used = IndexBlock(std::span(block).first(want), offset);
      if (!used) return Fail(used.error());
      if (*used == 0) return Fail(ErrorCode::kCorrupt, "BTF type cut off");
      offset += *used;
    }
    return {};
  }

  // Returns the bytes of the types whose fixed part lies within the block;
  // more than the block has when the last one's members reach beyond it.
  Result<uint64_t> IndexBlock(std::span<const std::byte> block,
                              uint64_t offset) {
    uint64_t at = 0;
    while (at + sizeof(btf_type) <= block.size()) {
      btf_type type = {};
      std::memcpy(&type, block.data() + at, sizeof(type));
      const auto trailing = TrailingBytes(type.info);
      if (!trailing) {
        return Fail(ErrorCode::kUnsupported,
                    "BTF has a kind of type that is "
                    "newer than this program");
      }
      if (BTF_INFO_KIND(type.info) == BTF_KIND_STRUCT && type.name_off != 0) {
        structs_.emplace_back(type.name_off,
                              static_cast<uint32_t>(type_offsets_.size()));
      }
      type_offsets_.push_back(static_cast<uint32_t>(offset + at));
      at += sizeof(btf_type) + *trailing;
    }
    return at;
  }

  BtfSource source_;
  uint64_t types_begin_ = 0;
  uint64_t types_bytes_ = 0;
  uint64_t strings_begin_ = 0;
  uint64_t strings_bytes_ = 0;
  std::vector<uint32_t> type_offsets_;
  std::vector<std::pair<uint32_t, uint32_t>> structs_;
};

// Puts types and strings together into the bytes of a BTF.
class BtfWriter {
 public:
  uint32_t AddString(std::string_view text) {
    const auto offset = static_cast<uint32_t>(strings_.size());
    strings_ += text;
    strings_ += '\0';
    return offset;
  }
  void Word(uint32_t word) { types_.push_back(word); }
  void TypeHeader(uint32_t name, uint32_t info, uint32_t size_or_type) {
    Word(name);
    Word(info);
    Word(size_or_type);
  }

  std::vector<std::byte> Finish() const {
    btf_header header = {};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof(header);
    header.type_len = static_cast<uint32_t>(types_.size() * sizeof(uint32_t));
    header.str_off = header.type_len;
    header.str_len = static_cast<uint32_t>(strings_.size());
    std::vector<std::byte> bytes(sizeof(header) + header.type_len +
                                 header.str_len);
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), types_.data(), header.type_len);
    std::memcpy(bytes.data() + sizeof(header) + header.type_len,
                strings_.data(), strings_.size());
    return bytes;
  }

 private:
  std::string strings_ = std::string(1, '\0');
  std::vector<uint32_t> types_;
};

constexpr uint32_t Info(uint32_t kind, size_t vlen, bool kflag) {
  return (kflag ? 1u << 31 : 0u) | kind << 24 | static_cast<uint32_t>(vlen);
}

// Copies wanted structs from one BTF to another.
class Extractor {
 public:
  Extractor(const BtfReader& reader, const WantedTypes& wanted)
      : reader_(reader), wanted_(wanted) {}

  Result<std::vector<std::byte>> Run() {
    auto named = FindNames();
    if (!named) return Fail(std::move(named.error()));
    FindStructs();
    // Ids 1 .. n are the wanted structs; the types of their members follow.
    next_id_ = static_cast<uint32_t>(found_.size()) + 1;
    std::vector<std::pair<btf_type, std::vector<Member>>> extracted;
    for (const uint32_t id : found_) {
      const auto type = reader_.Type(id);
      if (!type) return Fail(type.error());
      std::vector<Member> members;
      auto kept =
          KeepMembers({.id = id}, wanted_.at(names_[type->name_off]), members);
      if (!kept) return Fail(std::move(kept.error()));
      extracted.emplace_back(*type, std::move(members));
    }
    for (const auto& [type, members] : extracted) EmitStruct(type, members);
    for (const auto& [id, copy] : leaf_ids_) leaves_.emplace_back(copy, id);
    std::ranges::sort(leaves_);
    for (const auto& [copy, id] : leaves_) {
      auto emitted = EmitLeaf(id);
      if (!emitted) return Fail(std::move(emitted.error()));
    }
    return writer_.Finish();
  }

 private:
  Status FindNames() {
    std::set<std::string, std::less<>> interesting;
    for (const auto& [name, members] : wanted_) {
      interesting.insert(name);
      interesting.insert(members.begin(), members.end());
    }
    return reader_.ForEachString([&](uint32_t offset, std::string_view text) {
      if (interesting.contains(text)) names_.emplace(offset, text);
    });
  }

  void FindStructs() {
    for (const auto& [name, id] : reader_.structs()) {
      const auto known = names_.find(name);
      if (known == names_.end() || !wanted_.contains(known->second)) continue;
      found_.push_back(id);
      struct_ids_.emplace(id, static_cast<uint32_t>(found_.size()));
    }
  }

  // A struct within the one whose members are kept, or that one itself.
  struct Nested {
    uint32_t id = 0;
    uint32_t base_bits = 0;
    int level = 0;
  };

  Status KeepMembers(Nested nested, const std::set<std::string>& wanted,
                     std::vector<Member>& kept) {
    if (nested.level > kMaxNesting) {
      return Fail(ErrorCode::kCorrupt, "BTF nesting");
    }
    const auto members = reader_.Members(nested.id);
    if (!members) return Fail(members.error());
    for (Member member : *members) {
      member.bit_offset += nested.base_bits;
      const auto resolved = reader_.Resolve(member.type);
      if (!resolved) return Fail(resolved.error());
      member.type = *resolved;
      if (member.name == 0) {
        const auto type = reader_.Type(*resolved);
        if (!type || !IsComposite(BTF_INFO_KIND(type->info))) continue;
        auto lifted = KeepMembers(
            {*resolved, member.bit_offset, nested.level + 1}, wanted, kept);
        if (!lifted) return lifted;
        continue;
      }
      const auto name = names_.find(member.name);
      if (name == names_.end() || !wanted.contains(name->second)) continue;
      const auto copyable = IsCopyable(member.type);
      if (!copyable) return Fail(copyable.error());
      if (!*copyable) continue;
      if (!struct_ids_.contains(member.type) && member.type != 0 &&
          leaf_ids_.emplace(member.type, next_id_).second) {
        ++next_id_;
      }
      kept.push_back(member);
    }
    return {};
  }

  // Members of other kinds, arrays above all, are left out. An object that
  // relocates one does not load with this BTF, and gets the whole one then.
  Result<bool> IsCopyable(uint32_t id) const {
    if (id == 0) return true;
    const auto type = reader_.Type(id);
    if (!type) return Fail(type.error());
    const uint32_t kind = BTF_INFO_KIND(type->info);
    return kind == BTF_KIND_INT || kind == BTF_KIND_PTR ||
           kind == BTF_KIND_ENUM || IsComposite(kind);
  }

  uint32_t NewId(uint32_t old) const {
    if (old == 0) return 0;
    const auto known = struct_ids_.find(old);
    return known != struct_ids_.end() ? known->second : leaf_ids_.at(old);
  }

  void EmitStruct(const btf_type& type, const std::vector<Member>& members) {
    writer_.TypeHeader(writer_.AddString(names_.at(type.name_off)),
                       Info(BTF_KIND_STRUCT, members.size(), true), type.size);
    for (const Member& member : members) {
      writer_.Word(writer_.AddString(names_.at(member.name)));
      writer_.Word(NewId(member.type));
      writer_.Word(member.bitfield_bits << 24 | member.bit_offset);
    }
  }

  // A type that CO-RE only compares by kind and size.
  Status EmitLeaf(uint32_t id) {
    const auto type = reader_.Type(id);
    if (!type) return Fail(type.error());
    const uint32_t kind = BTF_INFO_KIND(type->info);
    if (kind == BTF_KIND_INT) {
      const auto encoding = reader_.IntEncoding(id);
      if (!encoding) return Fail(encoding.error());
      writer_.TypeHeader(writer_.AddString("int"), Info(BTF_KIND_INT, 0, false),
                         type->size);
      writer_.Word(*encoding);
    } else if (kind == BTF_KIND_PTR) {
      writer_.TypeHeader(0, Info(BTF_KIND_PTR, 0, false), 0);
    } else {
      writer_.TypeHeader(0, Info(kind, 0, false), type->size);
    }
    return {};
  }

  const BtfReader& reader_;
  const WantedTypes& wanted_;
  BtfWriter writer_;
  std::unordered_map<uint32_t, std::string> names_;    // by string offset
  std::vector<uint32_t> found_;                        // wanted structs' ids
  std::unordered_map<uint32_t, uint32_t> struct_ids_;  // old id -> new
  std::unordered_map<uint32_t, uint32_t> leaf_ids_;    // old id -> new
  std::vector<std::pair<uint32_t, uint32_t>> leaves_;  // new id, old id
  uint32_t next_id_ = 0;
};

}  // namespace

WantedTypes StructsOfObject(std::span<const std::byte> object_btf) {
  WantedTypes wanted;
  const auto reader = BtfReader::Open(BtfSource(object_btf));
  if (!reader) return wanted;
  std::unordered_map<uint32_t, std::string> names;
  const auto named = reader->ForEachString(
      [&](uint32_t offset, std::string_view text) { names[offset] = text; });
  if (!named) return wanted;
  for (const auto& [name, id] : reader->structs()) {
    std::string plain = names[name];
    plain.resize(std::min(plain.find("___"), plain.size()));
    const auto members = reader->Members(id);
    if (!members) continue;
    for (const Member& member : *members) {
      wanted[plain].insert(names[member.name]);
    }
  }
  return wanted;
}

Result<std::vector<std::byte>> MinimalBtf(int btf_fd,
                                          const WantedTypes& wanted) {
  const auto reader = BtfReader::Open(BtfSource(btf_fd));
  if (!reader) return Fail(reader.error());
  return Extractor(*reader, wanted).Run();
}

}  // namespace profd
