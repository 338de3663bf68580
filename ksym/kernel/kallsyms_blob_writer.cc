// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kallsyms_blob_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ksym/base/keyed_hash.h"
#include "ksym/kernel/kallsyms_blob.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

// The lengths of the prefixes that can become tokens. Names shorter than the
// first are candidates as a whole.
constexpr std::array<size_t, 14> kPrefixLengths = {
    10, 24, 31, 38, 45, 52, 64, 80, 100, 128, 256, 512, 1024, 2000};

// The long form of an id whose low byte is FF reads as the short form of
// another id, so id 511 is never given out.
constexpr size_t kMaxUsedTokens = kBlobMaxTokens - 1;
constexpr size_t kShortIds = 256;

// A token must not end within a character of a UTF-8 name.
bool CutsCharacter(std::string_view name, size_t length) {
  return length < name.size() &&
         (static_cast<uint8_t>(name[length]) & 0xc0u) == 0x80;
}

// The prefixes of a name that are candidates, shortest first.
template <typename Visit>
void ForEachCandidate(std::string_view name, Visit&& visit) {
  if (name.size() < kPrefixLengths.front()) {
    visit(name);
    return;
  }
  for (const size_t length : kPrefixLengths) {
    if (length > name.size()) return;
    if (!CutsCharacter(name, length)) visit(name.substr(0, length));
  }
}

// Chooses the tokens and encodes names with them.
class Tokens {
 public:
  explicit Tokens(const std::vector<BlobSymbol>& symbols);

  // The payload of the name's record.
  std::string Encode(std::string_view name) const;
  // The texts, by id.
  const std::vector<std::string_view>& texts() const { return texts_; }

 private:
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, size_t, TextHash> ids_;
};

Tokens::Tokens(const std::vector<BlobSymbol>& symbols) {
  std::unordered_map<std::string_view, size_t, TextHash> uses;
  for (const BlobSymbol& symbol : symbols) {
    ForEachCandidate(symbol.name,
                     [&](std::string_view prefix) { ++uses[prefix]; });
  }
  struct Candidate {
    size_t weight;
    std::string_view text;
  };
  std::vector<Candidate> candidates;
  candidates.reserve(uses.size());
  for (const auto& [text, count] : uses) {
    candidates.push_back({count * text.size(), text});
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return std::tie(b.weight, a.text) < std::tie(a.weight, b.text);
  });
  // A candidate that begins a token already chosen saves little beside it.
  std::unordered_map<std::string_view, bool, TextHash> begins_chosen;
  for (const Candidate& candidate : candidates) {
    if (texts_.size() == kMaxUsedTokens) break;
    if (begins_chosen.contains(candidate.text)) continue;
    ids_.emplace(candidate.text, texts_.size());
    texts_.push_back(candidate.text);
    for (size_t length = 1; length <= candidate.text.size(); ++length) {
      begins_chosen.emplace(candidate.text.substr(0, length), true);
    }
  }
}

std::string Tokens::Encode(std::string_view name) const {
  // Longest first. A token that is not longer than its code saves nothing.
  std::string payload;
  std::string_view best;
  size_t best_id = 0;
  ForEachCandidate(name, [&](std::string_view prefix) {
    const auto found = ids_.find(prefix);
    if (found == ids_.end()) return;
    best = prefix;
    best_id = found->second;
  });
  const size_t code_bytes = best_id < kShortIds ? 3 : 4;
  if (best.size() <= code_bytes) return std::string(name);
  payload += static_cast<char>(kBlobTokenMarker);
  if (best_id >= kShortIds) payload += static_cast<char>(best_id >> 8);
  payload += static_cast<char>(best_id & 0xff);
  payload += static_cast<char>(kBlobTokenMarker);
  payload += name.substr(best.size());
  return payload;
}

class BlobBytes {
 public:
  template <typename T>
  void Append(const T& value) {
    AppendArray(std::span(&value, 1));
  }
  template <typename T>
  void AppendArray(std::span<const T> items) {
    const auto bytes = std::as_bytes(items);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void Align(size_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  void AppendSized(std::string_view text) {
    Align(sizeof(uint64_t));
    Append(uint64_t{text.size()});
    AppendArray(std::span(text.data(), text.size()));
  }
  std::vector<std::byte> Take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

void SortSymbols(std::vector<BlobSymbol>& symbols) {
  // Symbols that are equal in all of this are the same.
  std::ranges::sort(symbols, [](const BlobSymbol& a, const BlobSymbol& b) {
    if (a.address != b.address) return a.address < b.address;
    return AliasBefore({a.name, a.type}, {b.name, b.type});
  });
}

Status CheckSymbol(const BlobSymbol& symbol, size_t payload_bytes) {
  const auto shown = [&] {
    constexpr size_t kShown = 64;
    return "symbol \"" + symbol.name.substr(0, kShown) +
           (symbol.name.size() > kShown ? "...\"" : "\"");
  };
  if (symbol.name.empty()) return Fail(ErrorCode::kInvalid, "no name");
  if (static_cast<uint8_t>(symbol.name[0]) == kBlobTokenMarker) {
    return Fail(ErrorCode::kUnsupported,
                shown() + " starts with the byte FF, which a blob cannot say");
  }
  if (payload_bytes > kBlobMaxPayload) {
    return Fail(ErrorCode::kLimit,
                shown() + " is longer than a blob can hold (65535 bytes)");
  }
  return {};
}

struct Names {
  std::string records;
  std::vector<uint32_t> offsets;
};

Result<Names> EncodeNames(const std::vector<BlobSymbol>& symbols,
                          const Tokens& tokens) {
  Names names;
  names.offsets.reserve(symbols.size());
  for (const BlobSymbol& symbol : symbols) {
    const std::string payload = tokens.Encode(symbol.name);
    if (auto ok = CheckSymbol(symbol, payload.size()); !ok) {
      return Fail(std::move(ok.error()));
    }
    if (names.records.size() + kBlobRecordHead + payload.size() >
        std::numeric_limits<uint32_t>::max()) {
      return Fail(ErrorCode::kLimit, "more than 4 GiB of names");
    }
    names.offsets.push_back(static_cast<uint32_t>(names.records.size()));
    names.records += symbol.type;
    names.records += static_cast<char>(payload.size() & 0xff);
    names.records += static_cast<char>(payload.size() >> 8);
    names.records += payload;
  }
  return names;
}

}  // namespace

Result<std::vector<std::byte>> WriteKallsymsBlob(
    std::vector<BlobSymbol> symbols) {
  SortSymbols(symbols);
  const Tokens tokens(symbols);
  auto names = EncodeNames(symbols, tokens);
  if (!names) return Fail(std::move(names.error()));

  std::vector<uint32_t> name_order(symbols.size());
  std::iota(name_order.begin(), name_order.end(), 0u);
  std::ranges::sort(name_order, {}, [&](uint32_t i) {
    return std::pair(std::string_view(symbols[i].name), i);
  });

  BlobBytes out;
  out.Append(uint64_t{symbols.size()});
  for (const BlobSymbol& symbol : symbols) out.Append(symbol.address.value);
  out.AppendArray(std::span<const uint32_t>(names->offsets));
  out.AppendArray(std::span<const uint32_t>(name_order));
  out.AppendSized(names->records);
  std::string table;
  std::vector<uint32_t> index;
  for (const std::string_view text : tokens.texts()) {
    index.push_back(static_cast<uint32_t>(table.size()));
    table += text;
  }
  out.AppendSized(table);
  out.Align(sizeof(uint64_t));
  out.Append(uint64_t{index.size()});
  out.AppendArray(std::span<const uint32_t>(index));
  return out.Take();
}

}  // namespace ksym
