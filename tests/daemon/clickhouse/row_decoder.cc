// SPDX-License-Identifier: Apache-2.0
#include "tests/daemon/clickhouse/row_decoder.h"

#include <gtest/gtest.h>

#include <cstring>

namespace profd::clickhouse {
namespace {

class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}
  ~Decoder() { EXPECT_TRUE(rest_.empty()) << rest_.size() << " bytes left"; }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  bool AtEnd() const { return rest_.empty(); }

  template <typename T>
  T Number() {
    T value = 0;
    const std::string_view bytes = Take(sizeof(T));
    if (bytes.size() == sizeof(T)) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }
  std::string Text() { return std::string(Take(Length())); }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (size_t left = Length(); left > 0 && !failed_; --left) {
      texts.push_back(Text());
    }
    return texts;
  }
  template <typename T>
  std::vector<T> Numbers() {
    std::vector<T> numbers;
    for (size_t left = Length(); left > 0 && !failed_; --left) {
      numbers.push_back(Number<T>());
    }
    return numbers;
  }

 private:
  size_t Length() {
    size_t length = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
      const auto byte = Number<uint8_t>();
      length += static_cast<size_t>(byte % 128) << shift;
      if (byte < 128) return length;
    }
    ADD_FAILURE() << "a length without an end";
    return 0;
  }
  std::string_view Take(size_t size) {
    if (size > rest_.size()) {
      ADD_FAILURE() << size << " bytes wanted, there are " << rest_.size();
      failed_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace

std::vector<SampleRow> DecodeSamples(std::string_view rows) {
  Decoder decoder(rows);
  std::vector<SampleRow> samples;
  while (!decoder.AtEnd()) {
    SampleRow row;
    row.time = decoder.Number<uint32_t>();
    row.hour = decoder.Number<uint32_t>();
    constexpr int kTexts = 11;
    for (int i = 0; i < kTexts; ++i) row.texts.push_back(decoder.Text());
    row.parked = decoder.Number<uint8_t>();
    row.stack = decoder.Number<uint64_t>();
    row.count = decoder.Number<uint64_t>();
    row.value = decoder.Number<uint64_t>();
    samples.push_back(std::move(row));
  }
  return samples;
}

StackRow DecodeStack(std::string_view row) {
  Decoder decoder(row);
  StackRow stack;
  stack.day = decoder.Number<uint16_t>();
  stack.stack = decoder.Number<uint64_t>();
  stack.names = decoder.Texts();
  stack.modules = decoder.Texts();
  stack.kinds = decoder.Numbers<uint8_t>();
  return stack;
}

IntervalRow DecodeInterval(std::string_view row) {
  Decoder decoder(row);
  IntervalRow interval;
  interval.time = decoder.Number<uint32_t>();
  interval.host = decoder.Text();
  interval.run = decoder.Text();
  interval.duration_ns = decoder.Number<uint64_t>();
  interval.cpus = decoder.Number<uint32_t>();
  interval.kernel = decoder.Text();
  interval.architecture = decoder.Text();
  interval.version = decoder.Text();
  interval.kinds = decoder.Texts();
  interval.units = decoder.Texts();
  interval.frequencies = decoder.Numbers<uint64_t>();
  interval.taken = decoder.Number<uint64_t>();
  interval.lost = decoder.Number<uint64_t>();
  interval.rows = decoder.Number<uint32_t>();
  return interval;
}

}  // namespace profd::clickhouse
