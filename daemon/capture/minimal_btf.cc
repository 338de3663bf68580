// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/minimal_btf.h"

#include <linux/btf.h>

#include <algorithm>
#include <bitset>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "daemon/capture/btf_reader.h"
#include "ksym/base/file.h"

namespace profd {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// Anonymous structs within anonymous structs; the kernel has two levels.
constexpr int kMaxNesting = 8;

bool IsComposite(uint32_t kind) {
  return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION;
}

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
  // What has no name has the offset 0, where the empty string must be.
  std::string strings_ = std::string(1, '\0');
  std::vector<uint32_t> types_;
};

constexpr uint32_t Info(uint32_t kind, size_t vlen, bool kflag) {
  return (kflag ? 1u << 31 : 0u) | kind << 24 | static_cast<uint32_t>(vlen);
}

// Tells most of the kernel's 100,000 names apart from a few that are wanted by
// their length and first character, at a fraction of what looking them up
// costs.
class NameFilter {
 public:
  void Add(std::string_view name) { may_be_.set(PlaceOf(name)); }
  bool MayHave(std::string_view name) const {
    return may_be_.test(PlaceOf(name));
  }

 private:
  static constexpr size_t kLengths = 64;

  static size_t PlaceOf(std::string_view name) {
    const auto first = static_cast<uint8_t>(name.empty() ? '\0' : name.front());
    return name.size() % kLengths * 256 + first;
  }

  std::bitset<kLengths * 256> may_be_;
};

// Copies wanted structs from one BTF to another.
class Extractor {
 public:
  Extractor(const BtfReader& reader, const WantedTypes& wanted)
      : reader_(reader), wanted_(wanted) {}

  Result<std::vector<std::byte>> Run() {
    auto named = FindNames();
    if (!named) return Fail(std::move(named.error()));
    FindStructs();
    // Ids 1 .. n are the wanted structs; the types of their members follow. All
    // have their numbers before the first one is written: a struct's members
    // may be of a type that comes later.
    next_id_ = static_cast<uint32_t>(found_.size()) + 1;
    std::vector<std::pair<btf_type, std::vector<BtfMember>>> extracted;
    for (const uint32_t id : found_) {
      const auto type = reader_.Type(id);
      if (!type) return Fail(type.error());
      std::vector<BtfMember> members;
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
    NameFilter filter;
    for (const std::string& name : interesting) filter.Add(name);
    return reader_.ForEachString([&](uint32_t offset, std::string_view text) {
      if (filter.MayHave(text) && interesting.contains(text)) {
        names_.emplace(offset, text);
      }
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
                     std::vector<BtfMember>& kept) {
    if (nested.level > kMaxNesting) {
      return Fail(ErrorCode::kCorrupt, "BTF nesting");
    }
    const auto members = reader_.Members(nested.id);
    if (!members) return Fail(members.error());
    for (BtfMember member : *members) {
      member.bit_offset += nested.base_bits;
      const auto resolved = reader_.Resolve(member.type);
      if (!resolved) return Fail(resolved.error());
      member.type = *resolved;
      // C code names the members of an anonymous struct as if they were of the
      // struct around it, and so do relocations.
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
      auto added = AddLeaf(member.type);
      if (!added) return added;
      kept.push_back(member);
    }
    return {};
  }

  // Gives a type the next number; of an array to its elements' as well.
  Status AddLeaf(uint32_t id) {
    if (id == 0 || struct_ids_.contains(id) ||
        !leaf_ids_.emplace(id, next_id_).second) {
      return {};
    }
    ++next_id_;
    const auto type = reader_.Type(id);
    if (!type) return Fail(type.error());
    if (BTF_INFO_KIND(type->info) != BTF_KIND_ARRAY) return {};
    const auto element = ElementOf(id);
    if (!element) return Fail(element.error());
    return AddLeaf(*element);
  }

  Result<uint32_t> ElementOf(uint32_t array) const {
    const auto read = reader_.Array(array);
    if (!read) return Fail(read.error());
    return reader_.Resolve(read->type);
  }

  // Members of other kinds are left out. An object that relocates one does not
  // load with this BTF, and gets the whole one then.
  Result<bool> IsCopyable(uint32_t id) const {
    if (id == 0) return true;
    const auto type = reader_.Type(id);
    if (!type) return Fail(type.error());
    const uint32_t kind = BTF_INFO_KIND(type->info);
    if (kind == BTF_KIND_ARRAY) {
      const auto element = ElementOf(id);
      if (!element) return Fail(element.error());
      const auto of = reader_.Type(*element);
      return of && (BTF_INFO_KIND(of->info) == BTF_KIND_INT ||
                    IsComposite(BTF_INFO_KIND(of->info)));
    }
    return kind == BTF_KIND_INT || kind == BTF_KIND_PTR ||
           kind == BTF_KIND_ENUM || IsComposite(kind);
  }

  uint32_t NewId(uint32_t old) const {
    if (old == 0) return 0;
    const auto known = struct_ids_.find(old);
    return known != struct_ids_.end() ? known->second : leaf_ids_.at(old);
  }

  void EmitStruct(const btf_type& type, const std::vector<BtfMember>& members) {
    writer_.TypeHeader(writer_.AddString(names_.at(type.name_off)),
                       Info(BTF_KIND_STRUCT, members.size(), true), type.size);
    // As the flag says, an offset has the bitfield's size above its 24 bits.
    for (const BtfMember& member : members) {
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
    } else if (kind == BTF_KIND_ARRAY) {
      const auto array = reader_.Array(id);
      const auto element = ElementOf(id);
      if (!array || !element) return Fail(ErrorCode::kCorrupt, "BTF array");
      writer_.TypeHeader(0, Info(BTF_KIND_ARRAY, 0, false), 0);
      writer_.Word(NewId(*element));
      writer_.Word(0);  // what it is indexed by does not matter
      writer_.Word(array->nelems);
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

Result<std::vector<std::byte>> Extract(BtfSource source,
                                       const WantedTypes& wanted) {
  const auto reader = BtfReader::Open(source);
  if (!reader) return Fail(reader.error());
  return Extractor(*reader, wanted).Run();
}

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
    // Relocations leave out what stands behind three underscores.
    plain.resize(std::min(plain.find("___"), plain.size()));
    const auto members = reader->Members(id);
    if (!members) continue;
    for (const BtfMember& member : *members) {
      wanted[plain].insert(names[member.name]);
    }
  }
  return wanted;
}

Result<std::vector<std::byte>> MinimalBtf(int btf_fd,
                                          const WantedTypes& wanted) {
  return Extract(BtfSource(btf_fd), wanted);
}

Result<std::vector<std::byte>> MinimalBtf(std::span<const std::byte> btf,
                                          const WantedTypes& wanted) {
  return Extract(BtfSource(btf), wanted);
}

Result<std::vector<std::byte>> MinimalKernelBtf(const WantedTypes& wanted) {
  constexpr char kPath[] = "/sys/kernel/btf/vmlinux";
  // Safe to map: nobody can truncate it.
  if (const auto mapped = ksym::MappedFile::Open(kPath)) {
    return MinimalBtf(mapped->bytes(), wanted);
  }
  const auto fd = ksym::OpenForRead(kPath);
  if (!fd) return Fail(fd.error());
  return MinimalBtf(fd->get(), wanted);
}

}  // namespace profd
