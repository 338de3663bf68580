// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/history/columns.h"
#include "daemon/history/stored_flames.h"
#include "daemon/history/tables.h"
#include "ksym/base/result.h"

namespace profd::history {

// The two kinds of files, as bytes; docs/formats.md gives the layout. All
// decoders take bytes of anyone and hold to daemon/history/limits.h.
// Files are written in this version. Those before are read as well: version 1
// has no names of cgroups, 2 no thinnings, 3 no summaries, 4 no flames, 5 no
// slices.
inline constexpr uint32_t kFormatVersion = 6;
inline constexpr size_t kJournalHeaderBytes = 24;
inline constexpr size_t kRecordHeaderBytes = 12;

// The beginning of a journal.
std::string JournalHeader(uint64_t sequence);
// A record with what `tables` has beyond `from`. kLimit: it would be larger
// than a reader takes.
ksym::Result<std::string> EncodeRecord(Tables& tables, const Sizes& from);

// What a journal holds up to its last good record.
struct JournalContent {
  Tables tables;
  uint64_t sequence = 0;
  size_t records = 0;
  size_t good_bytes = 0;  // of the header and the good records
  // Bytes behind them: of a record that is being written, or was when the
  // writer ended, or of one that is damaged, with all that follow.
  size_t bytes_after = 0;
};
// kCorrupt, kUnsupported: the header is not that of a journal of this version.
// A journal without its whole header is one without records.
ksym::Result<JournalContent> DecodeJournal(std::string_view bytes);

// The sequence numbers that a segment stands for: that of the journal which it
// was made of, or those of all segments that were put together in it.
struct Sequences {
  uint64_t first = 0;
  uint64_t last = 0;

  friend bool operator==(const Sequences&, const Sequences&) = default;
};

// A segment may be without these.
struct SegmentExtras {
  Tables* summary = nullptr;  // daemon/history/summary.h; its rows are sorted
  const StoredFlames* flames = nullptr;
};
// All of `tables` as one file; sorts its rows. kLimit: it would be larger than
// a reader takes.
ksym::Result<std::string> EncodeSegment(Tables& tables, Sequences sequences,
                                        const SegmentExtras& extras = {});
struct SegmentContent {
  Tables tables;
  Sequences sequences;
  std::optional<StoredFlames> flames = std::nullopt;
};
// All of the content or nothing. A file without flames gives all that it has
// where these are asked for. `room` has the tables of a file that is not needed
// any more: their memory is used again.
ksym::Result<SegmentContent> DecodeSegment(std::string_view bytes,
                                           Content content = Content::kAll,
                                           Tables room = {});

// What the beginning of a segment says of it. Each is larger, also one of an
// older version, whose header is smaller.
inline constexpr size_t kSegmentHeaderBytes = 744;
struct SegmentOutline {
  // Where the summary is in the file, packed, and what it is then.
  struct Summary {
    size_t offset = 0;
    uint32_t packed_size = 0;
    uint32_t size = 0;
    uint32_t checksum = 0;
  };

  Sequences sequences;
  Sizes most;  // so many of each there are at the most
  size_t text_bytes = 0;
  std::optional<Summary> summary = std::nullopt;
};
ksym::Result<SegmentOutline> ReadSegmentOutline(std::string_view beginning);
// `packed` are the bytes from its offset on.
ksym::Result<Tables> DecodeSummary(const SegmentOutline::Summary& summary,
                                   std::string_view packed);

// Which file of a directory it is. Sequence numbers order files as they were
// written, whatever the clock did.
struct FileName {
  Sequences sequences;  // of a journal twice its own
  bool is_segment = false;
  // When the first part of a segment begins and the last one ends, in seconds
  // since 1970, rounded outwards.
  uint64_t begin_s = 0;
  uint64_t end_s = 0;

  friend bool operator==(const FileName&, const FileName&) = default;
};
// "000000000012.journal",
// "000000000006-000000000011-1795568400-1795572000.segment".
std::string TextOf(const FileName& name);
// Nothing: it is no file of a history.
std::optional<FileName> ParseFileName(std::string_view text);
// The name of the segment that holds these. There is a part.
FileName SegmentNameOf(const Tables& tables, Sequences sequences);
FileName JournalName(uint64_t sequence);

}  // namespace profd::history
