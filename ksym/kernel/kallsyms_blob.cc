// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kallsyms_blob.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "ksym/base/byte_reader.h"

namespace ksym {
namespace {

std::unexpected<Error> Damaged(const std::string& what) {
  return Fail(ErrorCode::kCorrupt, "kallsyms blob: " + what);
}

// Takes sections off a blob, one after another.
class SectionCursor {
 public:
  explicit SectionCursor(std::span<const std::byte> blob) : reader_(blob) {}

  bool ok() const { return reader_.ok(); }
  bool Align(size_t alignment) {
    return reader_.Seek((reader_.offset() + alignment - 1) / alignment *
                        alignment);
  }
  uint64_t ReadCount() { return reader_.Read<uint64_t>(); }
  // Skips `count` items; the offset where they start, or nothing.
  std::optional<uint64_t> Take(uint64_t count, size_t item_bytes) {
    const uint64_t start = reader_.offset();
    const auto bytes = CheckedMul(count, item_bytes);
    if (!bytes || !reader_.ok() || *bytes > reader_.remaining()) return {};
    reader_.Seek(start + *bytes);
    return start;
  }

 private:
  ByteReader reader_;
};

}  // namespace

Result<KallsymsBlob> KallsymsBlob::FromBlob(std::span<const std::byte> blob,
                                            Address stext, Address etext) {
  KallsymsBlob view;
  view.blob_ = blob;
  view.stext_ = stext;
  view.etext_ = etext;
  // Where the sections are comes first: the check of records reads in all of
  // them. Look-ups check nothing any more.
  if (auto ok = view.ParseSections(); !ok) return Fail(std::move(ok.error()));
  if (auto ok = view.CheckRecords(); !ok) return Fail(std::move(ok.error()));
  return view;
}

Status KallsymsBlob::ParseSections() {
  SectionCursor cursor(blob_);
  const uint64_t count = cursor.ReadCount();
  const auto addresses = cursor.Take(count, sizeof(uint64_t));
  const auto offsets = cursor.Take(count, sizeof(uint32_t));
  const auto name_order = cursor.Take(count, sizeof(uint32_t));
  if (!addresses || !offsets || !name_order ||
      count > std::numeric_limits<uint32_t>::max()) {
    return Damaged("shorter than its symbol count asks for");
  }
  if (!cursor.Align(8)) return Damaged("ends before the names");
  names_size_ = cursor.ReadCount();
  const auto names = cursor.Take(names_size_, 1);
  if (!names) return Damaged("ends within the names");
  if (!cursor.Align(8)) return Damaged("ends before the tokens");
  tokens_size_ = cursor.ReadCount();
  const auto tokens = cursor.Take(tokens_size_, 1);
  if (!tokens) return Damaged("ends within the tokens");
  if (!cursor.Align(8)) return Damaged("ends before the token index");
  const uint64_t token_count = cursor.ReadCount();
  const auto token_index = cursor.Take(token_count, sizeof(uint32_t));
  if (!token_index) return Damaged("ends within the token index");
  if (token_count > kBlobMaxTokens) return Damaged("more than 512 tokens");
  symbol_count_ = count;
  token_count_ = token_count;
  addresses_ = *addresses;
  offsets_ = *offsets;
  name_order_ = *name_order;
  names_ = *names;
  tokens_ = *tokens;
  token_index_ = *token_index;
  return {};
}

Status KallsymsBlob::CheckRecords() const {
  uint64_t previous = 0;
  for (size_t id = 0; id < token_count_; ++id) {
    const auto start = Load<uint32_t>(token_index_, id);
    if (start < previous || start > tokens_size_) {
      return Damaged("token " + std::to_string(id) + " out of bounds");
    }
    previous = start;
  }
  // After the tokens, which the records' names refer to.
  previous = 0;
  for (size_t i = 0; i < symbol_count_; ++i) {
    const uint64_t address = AddressAt(i);
    const auto where = [&] { return "symbol " + std::to_string(i); };
    if (address < previous) return Damaged(where() + " is out of order");
    previous = address;
    if (!ReadRecord(Load<uint32_t>(offsets_, i))) {
      return Damaged(where() + " has a name out of bounds");
    }
    if (Load<uint32_t>(name_order_, i) >= symbol_count_) {
      return Damaged("name order entry " + std::to_string(i) + " is no symbol");
    }
  }
  return {};
}

std::string_view KallsymsBlob::Token(uint32_t id) const {
  const uint64_t start = Load<uint32_t>(token_index_, id);
  const uint64_t end = id + 1 < token_count_
                           ? Load<uint32_t>(token_index_, id + 1)
                           : tokens_size_;
  return {reinterpret_cast<const char*>(blob_.data()) + tokens_ + start,
          end - start};
}

// Takes a token off the payload's front: FF id FF, or FF high low FF. The
// short form is tried first, so a low byte of FF cannot be written long.
std::optional<uint32_t> KallsymsBlob::TokenId(std::string_view& payload) const {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(payload[i]); };
  if (payload.size() >= 3 && at(2) == kBlobTokenMarker) {
    const uint32_t id = at(1);
    payload.remove_prefix(3);
    return id;
  }
  if (payload.size() >= 4 && at(3) == kBlobTokenMarker) {
    const uint32_t id = uint32_t{at(1)} << 8 | at(2);
    payload.remove_prefix(4);
    return id;
  }
  return std::nullopt;
}

std::optional<KallsymsBlob::Record> KallsymsBlob::ReadRecord(
    uint64_t offset) const {
  ByteReader reader(blob_.subspan(names_, names_size_));
  if (!reader.Seek(offset)) return std::nullopt;
  Record record = {};
  record.type = static_cast<char>(reader.Read<uint8_t>());
  record.rest = reader.ReadString(reader.Read<uint16_t>());
  if (!reader.ok()) return std::nullopt;
  if (!record.rest.empty() &&
      static_cast<uint8_t>(record.rest[0]) == kBlobTokenMarker) {
    const auto id = TokenId(record.rest);
    if (!id || *id >= token_count_) return std::nullopt;
    record.token = Token(*id);
  }
  return record;
}

KallsymsBlob::Record KallsymsBlob::RecordAt(size_t i) const {
  return ReadRecord(Load<uint32_t>(offsets_, i)).value_or(Record{});
}

int KallsymsBlob::Compare(const Record& record, std::string_view name) {
  const size_t head = std::min(record.token.size(), name.size());
  if (const int order =
          record.token.substr(0, head).compare(name.substr(0, head));
      order != 0) {
    return order;
  }
  if (record.token.size() > name.size()) return 1;
  return record.rest.compare(name.substr(head));
}

std::pair<size_t, size_t> KallsymsBlob::NameRange(std::string_view name) const {
  const auto first_where = [&](auto&& reached) {
    size_t low = 0;
    size_t high = symbol_count_;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      const Record record = RecordAt(Load<uint32_t>(name_order_, middle));
      if (reached(Compare(record, name))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  return {first_where([](int order) { return order >= 0; }),
          first_where([](int order) { return order > 0; })};
}

std::optional<Address> KallsymsBlob::LookupName(std::string_view name) const {
  const auto all = LookupNames(name);
  if (all.empty()) return std::nullopt;
  return all.front();
}

std::vector<Address> KallsymsBlob::LookupNames(std::string_view name) const {
  const auto [first, last] = NameRange(name);
  std::vector<Address> found;
  for (size_t i = first; i < last; ++i) {
    found.push_back(Address{AddressAt(Load<uint32_t>(name_order_, i))});
  }
  // The names are in order; the addresses of equal ones need not be.
  std::ranges::sort(found);
  return found;
}

std::pair<size_t, size_t> KallsymsBlob::AddressRange(uint64_t address) const {
  const auto first_after = [&](uint64_t limit) {
    size_t low = 0;
    size_t high = symbol_count_;
    while (low < high) {
      const size_t middle = low + (high - low) / 2;
      if (AddressAt(middle) > limit) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  };
  const size_t last = first_after(address);
  if (last == 0) return {0, 0};
  // The aliases of the symbol that was found, wherever in it the address is.
  const uint64_t start = AddressAt(last - 1);
  return {start == 0 ? 0 : first_after(start - 1), last};
}

KernelSymbol KallsymsBlob::SymbolAt(size_t i, uint64_t end,
                                    SymbolNameBuffer& buffer) const {
  const Record record = RecordAt(i);
  char* name = buffer.Prepare(record.size() + 1);
  std::ranges::copy(record.rest, std::ranges::copy(record.token, name).out);
  KernelSymbol symbol;
  symbol.name = {name, record.size()};
  symbol.start = Address{AddressAt(i)};
  symbol.size = std::max(end, symbol.start.value) - symbol.start.value;
  symbol.type = record.type;
  return symbol;
}

std::optional<KernelSymbol> KallsymsBlob::LookupAddress(
    Address address, SymbolNameBuffer& buffer) const {
  std::optional<KernelSymbol> found;
  FindAliases(address, buffer, [&](const KernelSymbol& symbol) {
    found = symbol;
    return false;
  });
  return found;
}

void KallsymsBlob::FindAliases(Address address, SymbolNameBuffer& buffer,
                               const Visitor& visit) const {
  if (address < stext_ || address >= etext_) return;
  const auto [first, last] = AddressRange(address.value);
  const uint64_t next =
      last < symbol_count_ ? AddressAt(last) : kMaxKernelAddress;
  for (size_t i = first; i < last; ++i) {
    KernelSymbol symbol = SymbolAt(i, std::min(next, etext_.value), buffer);
    symbol.offset = address - symbol.start;
    if (!visit(symbol)) return;
  }
}

void KallsymsBlob::ForEach(SymbolNameBuffer& buffer,
                           const Visitor& visit) const {
  size_t next = 0;
  for (size_t i = 0; i < symbol_count_; ++i) {
    while (next < symbol_count_ && AddressAt(next) <= AddressAt(i)) ++next;
    const uint64_t end = next < symbol_count_ ? AddressAt(next) : etext_.value;
    if (!visit(SymbolAt(i, end, buffer))) return;
  }
}

void KallsymsBlob::DumpAllSymbols(
    const std::function<void(std::string_view)>& line) const {
  constexpr size_t kDigits = 16;
  SymbolNameBuffer buffer;
  std::string text;
  ForEach(buffer, [&](const KernelSymbol& symbol) {
    char digits[kDigits];
    const auto end =
        std::to_chars(digits, digits + kDigits, symbol.start.value, 16).ptr;
    text.assign(kDigits - static_cast<size_t>(end - digits), '0');
    text.append(digits, end);
    text += ' ';
    text += symbol.type;
    text += ' ';
    text += symbol.name;
    text += '\n';
    line(text);
    return true;
  });
}

KallsymsBlob::Sections KallsymsBlob::SectionBytes() const {
  return {.addresses = symbol_count_ * sizeof(uint64_t),
          .offsets = symbol_count_ * sizeof(uint32_t),
          .name_order = symbol_count_ * sizeof(uint32_t),
          .names = names_size_,
          .tokens = tokens_size_,
          .token_index = token_count_ * sizeof(uint32_t)};
}

}  // namespace ksym
