// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ksym/base/result.h"
#include "ksym/tools/address_source.h"
#include "ksym/tools/symbolize_options.h"

namespace ksym {

// One answer as the style has it; JSON without a newline. `address` is nothing
// for a line of the input that is none.
void AppendAnswer(std::optional<uint64_t> address, const AddressAnswer& answer,
                  SymbolizeOptions::Style style, std::string& out);

// Answers lines with an address each. Those of a batch are looked up in the
// order of addresses, which finds most of what it needs in the CPU's cache and
// so takes less time, and written in the order of lines.
class LineAnswerer {
 public:
  // Borrows the source; writes to the descriptor.
  LineAnswerer(AddressSource& source, SymbolizeOptions::Style style, int fd)
      : source_(source), style_(style), fd_(fd) {}

  // All answers are written when it returns. Memory: a batch's, of 12 MiB or
  // one answer more.
  Status Answer(std::string_view lines);

 private:
  enum class State : uint8_t {
    kWaiting,
    kKept,     // in frames_
    kWritten,  // in texts_
  };
  struct Query {
    std::optional<uint64_t> address;
    std::optional<uint64_t> symbol_start;
    std::string_view module;
    State state = State::kWaiting;
    uint32_t begin = 0;  // of its answer
    uint32_t end = 0;
  };
  struct Place {
    uint64_t address = 0;
    uint32_t query = 0;
  };

  Status AnswerByAddress();
  void Find(const Query& query);
  void Write(const Query& query, std::string& out);
  void Keep(Query& query);
  void TakeKept(const Query& query);
  Status WriteBatch();

  AddressSource& source_;
  SymbolizeOptions::Style style_;
  int fd_;
  std::vector<Query> queries_;       // of a batch, by line
  std::vector<Place> order_;         // by address
  std::vector<uint64_t> addresses_;  // of all lines that have one
  std::vector<AnswerFrame> frames_;
  std::string texts_;
  std::string out_;
  AddressAnswer answer_;
};

}  // namespace ksym
