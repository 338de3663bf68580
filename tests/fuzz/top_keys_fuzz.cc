// SPDX-License-Identifier: Apache-2.0
// What a terminal sends, in two pieces, to the live table: keys are the same
// wherever the bytes are cut, and no keys bring the screen to a line that is
// too wide or has control bytes. The first byte says where to cut, the next two
// how large the screen is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "daemon/output/text_columns.h"
#include "daemon/top/key_reader.h"
#include "daemon/top/top_state.h"
#include "daemon/top/top_view.h"

namespace {

void Check(bool condition) {
  if (!condition) std::abort();
}

profd::TopTables MakeTables() {
  profd::TopTables tables;
  for (const char* name : {"a", "std::sort<int>(int*) [libfoo.so]",
                           "\xe6\xbc\xa2\xe5\xad\x97", "[parked]"}) {
    profd::TopRow row;
    row.name = name;
    row.place = name;
    row.self[profd::ThreadState::kRunning] = 1000;
    row.total = row.self;
    tables.functions.push_back(row);
    tables.threads.push_back(row);
    tables.commands.push_back(row);
  }
  tables.duration_ns = 1'000'000;
  return tables;
}

void CheckScreen(const profd::TopTables& tables, const profd::TopState& state,
                 const profd::ScreenSize& size) {
  const auto lines = profd::DrawTop(tables, state, {.target = "x"}, size);
  Check(lines.size() <= size.rows);
  for (const profd::ScreenLine& line : lines) {
    Check(profd::ColumnsOf(line.text) <= size.columns);
    for (const char c : line.text) {
      Check(static_cast<unsigned char>(c) >= 0x20 && c != '\x7f');
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 3,
                               size - 3);
  const size_t cut = data[0] < bytes.size() ? data[0] : bytes.size();
  profd::KeyReader whole;
  profd::KeyReader pieces;
  const std::vector<profd::Key> keys = whole.Read(bytes);
  std::vector<profd::Key> same = pieces.Read(bytes.substr(0, cut));
  for (const profd::Key& key : pieces.Read(bytes.substr(cut))) {
    same.push_back(key);
  }
  Check(keys == same);
  Check(whole.is_waiting() == pieces.is_waiting());

  static const profd::TopTables kTables = MakeTables();
  const profd::ScreenSize screen = {.columns = data[1], .rows = data[2]};
  profd::TopState state;
  for (const profd::Key& key : keys) {
    const profd::TopPlace place = {.tables = kTables,
                                   .page = profd::TableRows(screen)};
    profd::ApplyKey(key, place, state);
  }
  CheckScreen(kTables, state, screen);
  return 0;
}
