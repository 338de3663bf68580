#include "ksym/kernel/kernel_symbol_source.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "ksym/base/file.h"
#include "ksym/kernel/map_format.h"
#include "ksym/kernel/symbol_order.h"

namespace ksym {
namespace {

constexpr size_t kMaxBlobBytes = size_t{4} << 30;
constexpr size_t kMaxModulesBytes = size_t{16} << 20;
constexpr uint64_t kPageBytes = 4096;
constexpr size_t kHeadBytes = sizeof(uint64_t);

enum class Format : uint8_t { kListing, kMap, kBlob };

// A blob starts with a count below 2^32: four of its first bytes are zero,
// which no listing contains.
Format FormatOf(std::span<const std::byte> head) {
  constexpr std::array<std::byte, kHeadBytes / 2> kZeros = {};
  if (head.size() < kHeadBytes) return Format::kListing;
  if (std::memcmp(head.data(), kMapMagic.data(), kMapMagic.size()) == 0) {
    return Format::kMap;
  }
  return std::ranges::equal(head.subspan(kHeadBytes / 2, kZeros.size()), kZeros)
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
  const uint64_t page = last.value / kPageBytes * kPageBytes;
  bounds.end = Address{std::max(page + kPageBytes, last.value)};
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

Result<KernelSymbolSource> OpenBlob(int fd,
                                    const KernelSymbolOptions& options) {
  const auto text = ReadAll(fd, kMaxBlobBytes);
  if (!text) return Fail(text.error());
  const auto bytes = std::as_bytes(std::span(text->data(), text->size()));
  return KernelSymbolSource::FromBytes({bytes.begin(), bytes.end()}, options);
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
  auto map = KernelSymbolMap::FromBytes(std::move(bytes));
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
  std::array<std::byte, kHeadBytes> head = {};
  // What cannot be read at a position is a pipe: it can only be a listing.
  const ssize_t n = ::pread(fd->get(), head.data(), head.size(), 0);
  const auto read = static_cast<size_t>(std::max<ssize_t>(n, 0));
  const Format format = FormatOf(std::span(head).first(read));
  if (format == Format::kBlob) {
    auto source = OpenBlob(fd->get(), options);
    if (!source) return with_path(std::move(source.error()));
    return source;
  }
  if (format == Format::kMap) {
    auto map = KernelSymbolMap::MapFile(path);
    if (!map) return Fail(std::move(map.error()));
    return KernelSymbolSource(std::move(*map));
  }
  const std::unique_ptr<ByteStream> stream =
      options.make_stream ? options.make_stream(fd->get())
                          : std::make_unique<FdStream>(fd->get());
  auto map = LoadKallsyms(*stream, ModulesFor(path), report);
  if (!map) return with_path(std::move(map.error()));
  if (map->symbol_count() == 0) {
    return with_path({ErrorCode::kCorrupt, "there is no symbol in it"});
  }
  return KernelSymbolSource(std::move(*map));
}

}  // namespace ksym
