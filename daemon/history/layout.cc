// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/layout.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "daemon/base/now_ns.h"
#include "daemon/history/joined_columns.h"
#include "daemon/history/limits.h"
#include "ksym/base/byte_reader.h"
#include "ksym/base/byte_writer.h"

namespace profd::history {
namespace {

using ksym::ErrorCode;
using ksym::Fail;
using ksym::Result;
using ksym::Status;

// They end in a newline, so that a transfer in text mode shows.
constexpr std::string_view kJournalMagic = "KSYMHJN\n";
constexpr std::string_view kSegmentMagic = "KSYMHSG\n";
static_assert(kColumnsOfVersions.size() == kFormatVersion);
// A journal is written in each interval and read for minutes, the segment of
// one for an hour, and that of an hour, or what was thinned out, for a month.
constexpr int kRecordLevel = 3;
constexpr int kSegmentLevel = 9;
constexpr int kHourLevel = 17;
// The checksum is of what is before it, and of the list of columns behind it.
constexpr size_t kSegmentChecksumAt = 32;
constexpr size_t kColumnEntryBytes = 12;
// A segment has its summary behind the columns, and its flames behind that.
constexpr uint32_t kFirstVersionWithSummary = 4;
constexpr uint32_t kFirstVersionWithFlames = 5;
constexpr size_t kExtras = 2;
static_assert(kSegmentHeaderBytes ==
              kSegmentChecksumAt + 4 +
                  (kColumns + kExtras) * kColumnEntryBytes);

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string_view TextOfBytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint32_t Checksum(std::string_view bytes, uint32_t begin = 0) {
  return static_cast<uint32_t>(::crc32_z(
      begin, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

Result<std::string> Pack(std::string_view bytes, int level) {
  std::string packed(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(),
                                    bytes.size(), level);
  if (ZSTD_isError(size) != 0) {
    return Fail(ErrorCode::kIo, ZSTD_getErrorName(size));
  }
  packed.resize(size);
  return packed;
}

// The size was checked against a bound.
Result<std::string> Unpack(std::string_view packed, size_t size) {
  std::string bytes;
  // Megabytes that need not be cleared before.
  bytes.resize_and_overwrite(size, [&](char* room, size_t most) {
    const size_t done =
        ZSTD_decompress(room, most, packed.data(), packed.size());
    return ZSTD_isError(done) != 0 ? 0 : done;
  });
  if (bytes.size() != size) {
    return Fail(ErrorCode::kCorrupt, "packed bytes are damaged");
  }
  return bytes;
}

Status TooLarge() {
  return Fail(ErrorCode::kLimit, "holds more than a file may");
}

// Those that the version lacks are empty.
Result<ColumnViews> Split(std::string_view payload, size_t columns) {
  ColumnViews views;
  if (auto done = SplitColumns(payload, std::span(views).first(columns));
      !done) {
    return Fail(std::move(done.error()));
  }
  return views;
}

// Reads the next record and appends it. False: there is none that is whole and
// right, and nothing was appended to the parts and rows.
bool TakeRecord(ksym::ByteReader& reader, size_t columns, Tables& tables) {
  const std::string_view header = reader.ReadString(kRecordHeaderBytes);
  if (!reader.ok()) return false;
  ksym::ByteReader numbers(BytesOf(header));
  const auto packed_size = numbers.Read<uint32_t>();
  const auto size = numbers.Read<uint32_t>();
  const auto checksum = numbers.Read<uint32_t>();
  const std::string_view packed = reader.ReadString(packed_size);
  // The size decides how much memory the unpacking takes, so it is looked at
  // first.
  if (!reader.ok() || size > kMaxColumnBytes) return false;
  if (Checksum(packed, Checksum(header.substr(0, 8))) != checksum) return false;
  const auto payload = Unpack(packed, size);
  if (!payload) return false;
  const auto views = Split(*payload, columns);
  if (!views) return false;
  // A record without a part says nothing, and there could be millions.
  const size_t parts = tables.parts.size();
  return AppendColumns(*views, tables) && tables.parts.size() > parts;
}

// What both kinds of files begin with.
struct FileStart {
  uint32_t version = 0;
  size_t columns = 0;  // that files of its version have
  uint64_t sequence = 0;
};

Result<FileStart> ReadStart(ksym::ByteReader& reader, std::string_view magic) {
  if (reader.ReadString(magic.size()) != magic) {
    return Fail(ErrorCode::kCorrupt, "is no file of a history");
  }
  const auto version = reader.Read<uint32_t>();
  if (!reader.ok()) return Fail(ErrorCode::kCorrupt, "its header is damaged");
  if (version == 0 || version > kFormatVersion) {
    return Fail(ErrorCode::kUnsupported,
                fmt::format("is of version {} of the format; known are 1 to {}",
                            version, kFormatVersion));
  }
  return FileStart{.version = version,
                   .columns = kColumnsOfVersions[version - 1],
                   .sequence = reader.Read<uint64_t>()};
}

struct ColumnEntry {
  uint32_t packed_size = 0;
  uint32_t size = 0;
  uint32_t checksum = 0;
};
using ColumnEntries = std::array<ColumnEntry, kColumns + kExtras>;

struct SegmentHeader {
  Sequences sequences;
  size_t columns = 0;  // of tables
  size_t extras = 0;   // the summary, then the flames
  // The entries of extras that it does not have say that these are empty.
  ColumnEntries entries = {};

  size_t all_columns() const { return columns + extras; }
  const ColumnEntry& summary() const { return entries[columns]; }
  const ColumnEntry& flames() const { return entries[columns + 1]; }
  size_t bytes() const {
    return kSegmentChecksumAt + 4 + all_columns() * kColumnEntryBytes;
  }
};

Result<ColumnEntries> ReadEntries(std::string_view bytes, size_t columns) {
  ColumnEntries entries;
  ksym::ByteReader reader(BytesOf(bytes));
  uint64_t packed = 0;
  uint64_t unpacked = 0;
  for (ColumnEntry& entry : std::span(entries).first(columns)) {
    entry.packed_size = reader.Read<uint32_t>();
    entry.size = reader.Read<uint32_t>();
    entry.checksum = reader.Read<uint32_t>();
    packed += entry.packed_size;
    unpacked += entry.size;
    if (entry.size > kMaxColumnBytes) return Fail(TooLarge().error());
  }
  // Each column is within its bound by now; that says little of all.
  if (packed > kMaxStoredBytes || unpacked > kMaxStoredBytes) {
    return Fail(TooLarge().error());
  }
  return entries;
}

// The columns follow.
Result<SegmentHeader> ReadSegmentHeader(std::string_view bytes) {
  ksym::ByteReader reader(BytesOf(bytes));
  const auto start = ReadStart(reader, kSegmentMagic);
  if (!start) return Fail(start.error());
  SegmentHeader header = {
      .sequences = {.first = start->sequence, .last = reader.Read<uint64_t>()},
      .columns = start->columns,
      .extras = (start->version >= kFirstVersionWithSummary ? size_t{1} : 0) +
                (start->version >= kFirstVersionWithFlames ? 1 : 0)};
  const auto columns = reader.Read<uint32_t>();
  const auto checksum = reader.Read<uint32_t>();
  const std::string_view list =
      reader.ReadString(header.all_columns() * kColumnEntryBytes);
  if (!reader.ok() || columns != header.all_columns() ||
      Checksum(list, Checksum(bytes.substr(0, kSegmentChecksumAt))) !=
          checksum) {
    return Fail(ErrorCode::kCorrupt, "its header is damaged");
  }
  if (header.sequences.last < header.sequences.first) {
    return Fail(ErrorCode::kCorrupt, "its sequence numbers are none");
  }
  const auto entries = ReadEntries(list, header.all_columns());
  if (!entries) return Fail(entries.error());
  header.entries = *entries;
  return header;
}

template <typename Number>
bool ParseNumber(std::string_view& text, Number& number) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool SkipPrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string JournalHeader(uint64_t sequence) {
  ksym::ByteWriter writer;
  writer.WriteText(kJournalMagic);
  writer.Write(kFormatVersion);
  writer.Write(sequence);
  writer.Write(Checksum(TextOfBytes(writer.bytes())));
  return std::string(TextOfBytes(writer.bytes()));
}

Result<std::string> EncodeRecord(Tables& tables, const Sizes& from) {
  const std::string payload = JoinColumns(EncodeColumns(tables, from));
  if (payload.size() > kMaxColumnBytes) return Fail(TooLarge().error());
  const auto packed = Pack(payload, kRecordLevel);
  if (!packed) return Fail(packed.error());
  ksym::ByteWriter writer;
  writer.Write(static_cast<uint32_t>(packed->size()));
  writer.Write(static_cast<uint32_t>(payload.size()));
  // The sizes as well: one that is damaged would lead anywhere.
  writer.Write(Checksum(*packed, Checksum(TextOfBytes(writer.bytes()))));
  writer.WriteText(*packed);
  return std::string(TextOfBytes(writer.bytes()));
}

Result<JournalContent> DecodeJournal(std::string_view bytes) {
  JournalContent content;
  if (bytes.size() > kMaxStoredBytes) return Fail(TooLarge().error());
  // Its writer ended, or is, between creating it and the header's end.
  if (bytes.size() < kJournalHeaderBytes &&
      kJournalMagic.starts_with(bytes.substr(0, kJournalMagic.size()))) {
    content.bytes_after = bytes.size();
    return content;
  }
  ksym::ByteReader reader(BytesOf(bytes));
  const auto start = ReadStart(reader, kJournalMagic);
  if (!start) return Fail(start.error());
  content.sequence = start->sequence;
  const std::string_view covered =
      bytes.substr(0, std::min(bytes.size(), reader.offset()));
  if (reader.Read<uint32_t>() != Checksum(covered) || !reader.ok()) {
    return Fail(ErrorCode::kCorrupt, "its header is damaged");
  }
  content.good_bytes = reader.offset();
  // Up to the first that is damaged: nothing tells where another one begins,
  // and later ones name what it has.
  while (!reader.AtEnd() &&
         TakeRecord(reader, start->columns, content.tables)) {
    ++content.records;
    content.good_bytes = reader.offset();
  }
  content.bytes_after = bytes.size() - content.good_bytes;
  return content;
}

Result<std::string> EncodeSegment(Tables& tables, Sequences sequences,
                                  const SegmentExtras& extras) {
  const Columns columns = EncodeColumns(tables, {});
  std::array<std::string, kExtras> more;
  if (extras.summary != nullptr) {
    more[0] = JoinColumns(EncodeColumns(*extras.summary, {}));
  }
  if (extras.flames != nullptr) more[1] = EncodeFlames(*extras.flames);
  // Several numbers are those of an hour. Neither that nor what was thinned out
  // is packed again, and both are kept for long.
  const bool is_last_form =
      sequences.first != sequences.last || !tables.thinnings.empty();
  const int level = is_last_form ? kHourLevel : kSegmentLevel;
  ksym::ByteWriter entries;
  std::string data;
  const auto add = [&](std::string_view column) -> Status {
    if (column.size() > kMaxColumnBytes) return TooLarge();
    const auto packed = Pack(column, level);
    if (!packed) return Fail(packed.error());
    entries.Write(static_cast<uint32_t>(packed->size()));
    entries.Write(static_cast<uint32_t>(column.size()));
    entries.Write(Checksum(*packed));
    data += *packed;
    return {};
  };
  for (const std::string& column : columns) {
    if (auto added = add(column); !added) return Fail(added.error());
  }
  for (std::string& extra : more) {
    // One that readers would refuse only costs room.
    if (extra.size() > kMaxColumnBytes) extra.clear();
    if (auto added = add(extra); !added) return Fail(added.error());
  }
  if (data.size() > kMaxStoredBytes) return Fail(TooLarge().error());
  ksym::ByteWriter writer;
  writer.WriteText(kSegmentMagic);
  writer.Write(kFormatVersion);
  writer.Write(sequences.first);
  writer.Write(sequences.last);
  writer.Write(static_cast<uint32_t>(kColumns + kExtras));
  writer.Write(Checksum(TextOfBytes(entries.bytes()),
                        Checksum(TextOfBytes(writer.bytes()))));
  writer.WriteBytes(entries.bytes());
  writer.WriteText(data);
  return std::string(TextOfBytes(writer.bytes()));
}

Result<SegmentContent> DecodeSegment(std::string_view bytes, Content content,
                                     Tables room) {
  const auto header = ReadSegmentHeader(bytes);
  if (!header) return Fail(header.error());
  room.Clear();
  SegmentContent segment = {.tables = std::move(room),
                            .sequences = header->sequences};
  if (content == Content::kFlames && header->flames().size == 0) {
    content = Content::kAll;
  }
  ksym::ByteReader reader(BytesOf(bytes.substr(header->bytes())));
  std::array<std::string, kColumns + kExtras> unpacked;
  for (size_t i = 0; i < header->all_columns(); ++i) {
    const ColumnEntry& entry = header->entries[i];
    const std::string_view packed = reader.ReadString(entry.packed_size);
    if (!reader.ok() || Checksum(packed) != entry.checksum) {
      return Fail(ErrorCode::kCorrupt, "a column is damaged");
    }
    const bool is_wanted = i < header->columns ? HasColumn(content, i)
                                               : content == Content::kFlames &&
                                                     i > header->columns;
    if (!is_wanted) continue;
    auto column = Unpack(packed, entry.size);
    if (!column) return Fail(column.error());
    unpacked[i] = std::move(*column);
  }
  if (!reader.AtEnd()) {
    return Fail(ErrorCode::kCorrupt, "there are bytes behind its end");
  }
  ColumnViews views;
  std::copy_n(unpacked.begin(), header->columns, views.begin());
  if (auto done = AppendColumns(views, segment.tables, content); !done) {
    return Fail(std::move(done.error()));
  }
  if (content != Content::kFlames) return segment;
  auto flames = DecodeFlames(unpacked[header->columns + 1], segment.tables);
  if (!flames) return Fail(std::move(flames.error()));
  segment.flames = std::move(*flames);
  return segment;
}

Result<SegmentOutline> ReadSegmentOutline(std::string_view beginning) {
  const auto header = ReadSegmentHeader(beginning);
  if (!header) return Fail(header.error());
  std::array<size_t, kColumns> sizes = {};
  const auto columns = std::span(header->entries).first(header->columns);
  std::ranges::transform(columns, sizes.begin(), &ColumnEntry::size);
  SegmentOutline outline = {.sequences = header->sequences,
                            .most = MostElements(sizes),
                            .text_bytes = sizes[kTextColumn]};
  const ColumnEntry& summary = header->summary();
  if (summary.size == 0) return outline;
  outline.summary = {.offset = header->bytes(),
                     .packed_size = summary.packed_size,
                     .size = summary.size,
                     .checksum = summary.checksum};
  for (const ColumnEntry& column : columns) {
    outline.summary->offset += column.packed_size;
  }
  return outline;
}

Result<Tables> DecodeSummary(const SegmentOutline::Summary& summary,
                             std::string_view packed) {
  if (packed.size() != summary.packed_size ||
      Checksum(packed) != summary.checksum) {
    return Fail(ErrorCode::kCorrupt, "its summary is damaged");
  }
  const auto payload = Unpack(packed, summary.size);
  if (!payload) return Fail(payload.error());
  const auto views = Split(*payload, kColumns);
  if (!views) return Fail(views.error());
  Tables tables;
  if (auto done = AppendColumns(*views, tables); !done) {
    return Fail(std::move(done.error()));
  }
  return tables;
}

std::string TextOf(const FileName& name) {
  const auto& [first, last] = name.sequences;
  if (!name.is_segment) return fmt::format("{:012}.journal", first);
  return fmt::format("{:012}-{:012}-{}-{}.segment", first, last, name.begin_s,
                     name.end_s);
}

std::optional<FileName> ParseFileName(std::string_view text) {
  FileName name;
  auto& [first, last] = name.sequences;
  std::string_view rest = text;
  if (!ParseNumber(rest, first)) return std::nullopt;
  last = first;
  name.is_segment = rest != ".journal";
  if (name.is_segment &&
      !(SkipPrefix(rest, "-") && ParseNumber(rest, last) && first <= last &&
        SkipPrefix(rest, "-") && ParseNumber(rest, name.begin_s) &&
        SkipPrefix(rest, "-") && ParseNumber(rest, name.end_s))) {
    return std::nullopt;
  }
  // Numbers in another form than ours are in a name of somebody else.
  if (TextOf(name) != text) return std::nullopt;
  return name;
}

FileName SegmentNameOf(const Tables& tables, Sequences sequences) {
  uint64_t begin = std::numeric_limits<uint64_t>::max();
  uint64_t end = 0;
  for (const Part& part : tables.parts) {
    begin = std::min(begin, part.start_unix_ns / kNsPerSecond);
    const uint64_t ends = ksym::CheckedAdd(part.start_unix_ns, part.duration_ns)
                              .value_or(std::numeric_limits<uint64_t>::max());
    end = std::max(end, ends / kNsPerSecond + 1);
  }
  return {.sequences = sequences,
          .is_segment = true,
          .begin_s = begin,
          .end_s = end};
}

FileName JournalName(uint64_t sequence) {
  return {.sequences = {.first = sequence, .last = sequence}};
}

}  // namespace profd::history
