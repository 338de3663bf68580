// SPDX-License-Identifier: Apache-2.0
#include "ksym/kernel/kernel_symbol_source.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

constexpr size_t kMaxBlobBytes = size_t{4} << 30;
constexpr size_t kMaxModulesBytes = size_t{16} << 20;
constexpr size_t kFileHeadBytes = sizeof(uint64_t);

enum class Format : uint8_t { kListing, kMap, kBlob };

// A blob starts with a count below 2^32: four of its first bytes are zero,
// which no listing contains.
Format FormatOf(std::span<const std::byte> head) {
  constexpr std::array<std::byte, kFileHeadBytes / 2> kZeros = {};
  if (head.size() < kFileHeadBytes) return Format::kListing;
  if (std::memcmp(head.data(), kMapMagic.data(), kMapMagic.size()) == 0) {
    return Format::kMap;
  }
  return std::ranges::equal(head.subspan(kFileHeadBytes / 2, kZeros.size()),
                            kZeros)
             ? Format::kBlob
             : Format::kListing;
}

struct TextBounds {
  Address start;
  Address end;
};

TextBounds BoundsOf(const KallsymsBlob& blob,
                    const KernelSymbolOptions& options) {
  TextBounds bounds;
  SymbolNameBuffer buffer;
  Address last;
  blob.ForEach(buffer, [&](const KernelSymbol& symbol) {
    if (last.value == 0) bounds.start = symbol.start;
    last = symbol.start;
    return true;
  });
  for (const char* name : {"_text", "_stext"}) {
    if (const auto found = blob.LookupName(name)) bounds.start = *found;
  }
  const uint64_t page = last.value / kKernelPageBytes * kKernelPageBytes;
  bounds.end = Address{std::max(page + kKernelPageBytes, last.value)};
  if (const auto found = blob.LookupName("_etext")) bounds.end = *found;
  return {options.stext.value_or(bounds.start),
          options.etext.value_or(bounds.end)};
}

Result<KallsymsBlob> ViewBlob(std::span<const std::byte> bytes,
                              const KernelSymbolOptions& options) {
  const auto unbounded = KallsymsBlob::FromBlob(bytes, {}, {});
  if (!unbounded) return unbounded;
  const TextBounds bounds = BoundsOf(*unbounded, options);
  return KallsymsBlob::FromBlob(bytes, bounds.start, bounds.end);
}

// A stream whose first bytes have been taken already.
class ResumedStream final : public ByteStream {
 public:
  ResumedStream(std::string_view taken, ByteStream& rest)
      : taken_(taken), rest_(rest) {}

  Result<size_t> Read(std::span<char> out) override {
    if (taken_.empty()) return rest_.Read(out);
    const size_t n = taken_.copy(out.data(), out.size());
    taken_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view taken_;
  ByteStream& rest_;
};

// A file's first bytes.
struct Head {
  std::string bytes;
  // They are gone: what is read of a pipe does not come again.
  bool taken = false;
};

Result<Head> ReadHead(int fd) {
  Head head;
  head.bytes.resize(kFileHeadBytes);
  ssize_t n = ::pread(fd, head.bytes.data(), kFileHeadBytes, 0);
  // A pipe has no place to read at: its bytes are taken off.
  if (n < 0 && errno == ESPIPE) {
    head.taken = true;
    FdStream pipe(fd);
    n = 0;
    for (size_t more = 1; more > 0 && std::cmp_less(n, kFileHeadBytes);) {
      const auto read = pipe.Read(std::span(head.bytes).subspan(size_t(n)));
      if (!read) return Fail(read.error());
      more = *read;
      n += static_cast<ssize_t>(more);
    }
  }
  head.bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return head;
}

// A blob, or a compact map from a pipe.
Result<KernelSymbolSource> OpenBytes(int fd, const Head& head,
                                     const KernelSymbolOptions& options) {
  auto text = ReadAll(fd, kMaxBlobBytes);
  if (!text) return Fail(text.error());
  if (head.taken) text->insert(0, head.bytes);
  const auto bytes = std::as_bytes(std::span(text->data(), text->size()));
  return KernelSymbolSource::FromBytes({bytes.begin(), bytes.end()}, options);
}

struct Listing {
  int fd;
  const Head& head;
  std::string modules;  // as /proc/modules has them
};

Result<KernelSymbolMap> OpenListing(const Listing& listing,
                                    const KernelSymbolOptions& options,
                                    KallsymsReport* report) {
  const std::unique_ptr<ByteStream> stream =
      options.make_stream ? options.make_stream(listing.fd)
                          : std::make_unique<FdStream>(listing.fd);
  const Head& head = listing.head;
  ResumedStream whole(head.taken ? head.bytes : std::string_view(), *stream);
  auto map = LoadKallsyms(whole, listing.modules, report);
  if (map && map->symbol_count() == 0) {
    return Fail(ErrorCode::kCorrupt, "there is no symbol in it");
  }
  return map;
}

// The text of /proc/modules for the running kernel's own listing, nothing for
// any other file. A kernel without modules does not have it.
std::string ModulesFor(const std::string& path) {
  if (path != kRunningKernelSymbols) return {};
  auto modules = ReadFile("/proc/modules", kMaxModulesBytes);
  return modules ? std::move(*modules) : std::string();
}

}  // namespace

Result<KernelSymbolSource> KernelSymbolSource::FromBytes(
    std::vector<std::byte> bytes, const KernelSymbolOptions& options) {
  if (FormatOf(bytes) == Format::kBlob) {
    auto blob = ViewBlob(bytes, options);
    if (!blob) return Fail(std::move(blob.error()));
    return KernelSymbolSource(BlobTable(std::move(bytes), *blob));
  }
  auto map = KernelSymbolMap::FromBytes(bytes);
  if (!map) return Fail(std::move(map.error()));
  return KernelSymbolSource(std::move(*map));
}

std::optional<KernelSymbol> KernelSymbolSource::Find(Address address,
                                                     SymbolNameBuffer& buffer,
                                                     SymbolQuery query) const {
  if (const KernelSymbolMap* table = map()) {
    return table->Find(address, buffer, query);
  }
  std::optional<KernelSymbol> found;
  blob()->FindAliases(address, buffer, [&](const KernelSymbol& symbol) {
    if (query.kinds == SymbolKinds::kText && !IsTextType(symbol.type)) {
      return true;
    }
    found = symbol;
    return false;
  });
  if (found && found->name.starts_with(kPaddingPrefix) &&
      found->name.size() > kPaddingPrefix.size()) {
    found->in_prefix = true;
    if (query.prefix_names == PrefixNames::kFold) {
      found->name.remove_prefix(kPaddingPrefix.size());
    }
  }
  return found;
}

std::vector<Address> KernelSymbolSource::FindByName(
    std::string_view name) const {
  if (const KernelSymbolMap* table = map()) return table->FindByName(name);
  return blob()->LookupNames(name);
}

void KernelSymbolSource::ForEach(SymbolNameBuffer& buffer,
                                 const Visitor& visit) const {
  if (const KernelSymbolMap* table = map()) {
    table->ForEach(buffer, visit);
  } else {
    blob()->ForEach(buffer, visit);
  }
}

size_t KernelSymbolSource::symbol_count() const {
  const KernelSymbolMap* table = map();
  return table != nullptr ? table->symbol_count() : blob()->symbol_count();
}

std::span<const std::byte> KernelSymbolSource::bytes() const {
  const KernelSymbolMap* table = map();
  return table != nullptr ? table->bytes() : blob()->bytes();
}

Result<KernelSymbolSource> OpenKernelSymbols(const std::string& path,
                                             const KernelSymbolOptions& options,
                                             KallsymsReport* report) {
  const auto fd = OpenInput(path);
  // OpenInput has named the path already.
  if (!fd) return Fail(fd.error());
  const auto with_path = [&](Error error) {
    return Fail(std::move(error).WithContext(path));
  };
  const auto head = ReadHead(fd->get());
  if (!head) return with_path(head.error());
  const Format format = FormatOf(std::as_bytes(std::span(head->bytes)));
  if (format == Format::kBlob || (format == Format::kMap && head->taken)) {
    auto source = OpenBytes(fd->get(), *head, options);
    if (!source) return with_path(std::move(source.error()));
    return source;
  }
  if (format == Format::kMap) {
    auto map = KernelSymbolMap::MapFile(path);
    if (!map) return Fail(std::move(map.error()));
    return KernelSymbolSource(std::move(*map));
  }
  auto map = OpenListing({fd->get(), *head, ModulesFor(path)}, options, report);
  if (!map) return with_path(std::move(map.error()));
  return KernelSymbolSource(std::move(*map));
}

}  // namespace ksym
