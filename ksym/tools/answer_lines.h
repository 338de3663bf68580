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

  // All answers are written when it returns. Memory: a batch's, of 4 MiB or
  // one answer more.
  Status Answer(std::string_view lines);

 private:
  struct Query {
    std::optional<uint64_t> address;
    bool is_answered = false;
    size_t begin = 0;  // of its answer, in texts_
    size_t end = 0;
  };

  void AnswerByAddress();
  void AppendAnswerTo(const Query& query, std::string& out);
  Status WriteBatch();

  AddressSource& source_;
  SymbolizeOptions::Style style_;
  int fd_;
  std::vector<Query> queries_;   // of a batch, by line
  std::vector<uint32_t> order_;  // by address
  std::string texts_;
  std::string out_;
  AddressAnswer answer_;
};

}  // namespace ksym
