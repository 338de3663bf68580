// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ksym/base/byte_writer.h"
#include "ksym/base/function_batch.h"

namespace ksym {

// Writes line programs. Most rows become one byte, which advances the address
// and the line at once, if both steps are small; how the 252 values of that
// byte are divided between the two is chosen per function by the size of the
// result.
class GsymLineEncoder {
 public:
  // Appends the program of these rows, at least one: rising addresses from
  // `start` on, files as the file has them.
  void Encode(uint64_t start, const std::vector<LineRow>& rows,
              ByteWriter& out);

 private:
  struct Step {
    int64_t line = 0;
    uint64_t address = 0;
    uint64_t count = 0;
  };
  // The lines that one byte can step: [min, min + range).
  struct Split {
    int64_t min = 0;
    int64_t range = 1;
  };

  void CountSteps(uint64_t start, const std::vector<LineRow>& rows);
  Split ChooseSplit() const;
  uint64_t Cost(const Split& split) const;
  static void EncodeStep(const Split& split, int64_t line, uint64_t address,
                         ByteWriter& out);

  std::vector<Step> steps_;
};

}  // namespace ksym
