// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/profile/id_index.h"
#include "daemon/profile/profile.h"

namespace profd {

// The pieces that lines are put together from, each once, ranked in the order
// of their bytes. A line becomes a key, the ranks of its pieces: some bits per
// frame instead of a name. As long as no piece begins with another one, keys
// sort as the lines do. Fewer than 2^31 pieces.
class TextPieces {
 public:
  // A number for the text, the same for equal ones. Not after Rank().
  uint32_t Add(std::string_view text);
  // When all pieces are there. Cost: sorts them.
  void Rank();

  // From here on after Rank(). Ranks start at 1.
  uint32_t RankOf(uint32_t number) const { return ranks_[number]; }
  std::string_view Text(uint32_t rank) const {
    return TextOf(order_[rank - 1]);
  }
  // The bits that a rank takes in a key.
  unsigned rank_bits() const {
    return static_cast<unsigned>(std::bit_width(order_.size()));
  }
  // Whether the piece of the next rank begins with this one; if it does not,
  // none does.
  bool BeginsNext(uint32_t rank) const {
    return rank < order_.size() && Text(rank + 1).starts_with(Text(rank));
  }

 private:
  std::string_view TextOf(uint32_t number) const {
    const size_t begin = number == 0 ? 0 : ends_[number - 1];
    return std::string_view(texts_).substr(begin, ends_[number] - begin);
  }

  std::string texts_;
  std::vector<size_t> ends_;  // in texts_, by number
  IdIndex numbers_;
  std::vector<uint32_t> ranks_;  // by number
  std::vector<uint32_t> order_;  // by rank - 1: the number
};

// Appends ranks to a key, the highest bits first. A key ends in bits that are 0
// up to the end of its last byte, and no rank is 0: of two keys the one that
// ends first is the smaller one.
class KeyWriter {
 public:
  KeyWriter(unsigned rank_bits, std::string& out)
      : rank_bits_(rank_bits), out_(out) {}

  void Add(uint32_t rank) {
    bits_ = bits_ << rank_bits_ | rank;
    filled_ += rank_bits_;
    if (filled_ < 32) return;
    filled_ -= 32;
    const auto word = static_cast<uint32_t>(bits_ >> filled_);
    const std::array<char, 4> bytes = {
        static_cast<char>(word >> 24), static_cast<char>(word >> 16),
        static_cast<char>(word >> 8), static_cast<char>(word)};
    out_.append(bytes.data(), bytes.size());
  }
  // Ends the key.
  void Finish() {
    for (; filled_ >= 8; filled_ -= 8) {
      out_ += static_cast<char>(bits_ >> (filled_ - 8));
    }
    if (filled_ != 0) out_ += static_cast<char>(bits_ << (8 - filled_));
    filled_ = 0;
  }

 private:
  unsigned rank_bits_;  // at most 32
  std::string& out_;
  uint64_t bits_ = 0;    // the lowest `filled_` ones are still to be written
  unsigned filled_ = 0;  // below 32 between calls
};

class KeyReader {
 public:
  // From the rank with this index on, which is there or is the end.
  KeyReader(unsigned rank_bits, std::string_view key, size_t first = 0)
      : rank_bits_(rank_bits), key_(key), next_(first * rank_bits / 8) {
    const auto passed = static_cast<unsigned>(first * rank_bits % 8);
    if (passed == 0) return;
    bits_ = static_cast<uint8_t>(key_[next_++]);
    filled_ = 8 - passed;
  }

  // The next rank; 0 at the end.
  uint32_t Next() {
    if (filled_ < rank_bits_ && !Fill()) return 0;
    filled_ -= rank_bits_;
    return static_cast<uint32_t>(bits_ >> filled_ &
                                 ((uint64_t{1} << rank_bits_) - 1));
  }

 private:
  // False if there are not enough bits for a rank.
  bool Fill() {
    const auto byte = [&](size_t i) {
      return uint64_t{static_cast<uint8_t>(key_[next_ + i])};
    };
    if (key_.size() - next_ >= 4) {
      bits_ =
          bits_ << 32 | byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
      next_ += 4;
      filled_ += 32;
      return true;
    }
    while (filled_ < rank_bits_) {
      if (next_ == key_.size()) return false;
      bits_ = bits_ << 8 | byte(0);
      ++next_;
      filled_ += 8;
    }
    return true;
  }

  unsigned rank_bits_;
  std::string_view key_;
  size_t next_ = 0;
  uint64_t bits_ = 0;
  unsigned filled_ = 0;
};

// The ranks that two different keys begin with together.
size_t CountSharedRanks(unsigned rank_bits, std::string_view a,
                        std::string_view b);

// Numbers of what a writer makes of a sample without its stacks: made once for
// all samples that agree in command name, ids, cgroup, labels and states.
class SampleHeads {
 public:
  // What `make()` gave for the first such sample.
  template <typename Make>
  uint32_t Find(const ProfileSample& sample, const Make& make) {
    // Most samples follow one of the same process.
    if (last_ < heads_.size() && IsSame(heads_[last_].sample, sample)) {
      return heads_[last_].number;
    }
    const auto [at, is_new] = index_.FindOrInsert(
        HashOf(sample), static_cast<uint32_t>(heads_.size()),
        [&](uint32_t other) { return IsSame(heads_[other].sample, sample); });
    if (is_new) heads_.push_back({sample, make()});
    last_ = at;
    return heads_[at].number;
  }

 private:
  struct Head {
    ProfileSample sample;
    uint32_t number = 0;
  };

  static uint64_t HashOf(const ProfileSample& sample);
  static bool IsSame(const ProfileSample& a, const ProfileSample& b);

  std::vector<Head> heads_;
  uint32_t last_ = 0;  // that was found
  IdIndex index_;
};

}  // namespace profd
