// SPDX-License-Identifier: Apache-2.0
#include "daemon/capture/ring_reader.h"

#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "ksym/base/unique_fd.h"

namespace profd {
namespace {

constexpr size_t kRingBytes = size_t{1} << 20;

// A file that is laid out as a ring is: the reader's page, the writer's, and
// the data twice, of which the second is kept equal to the first.
class FakeRing {
 public:
  FakeRing()
      : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))),
        file_(::memfd_create("ring", MFD_CLOEXEC)) {
    const size_t size = 2 * page_ + 2 * kRingBytes;
    EXPECT_EQ(::ftruncate(file_.get(), static_cast<off_t>(size)), 0);
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                          file_.get(), 0);
    EXPECT_NE(memory, MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
  }
  ~FakeRing() { ::munmap(memory_, 2 * page_ + 2 * kRingBytes); }
  FakeRing(const FakeRing&) = delete;
  FakeRing& operator=(const FakeRing&) = delete;

  int fd() const { return file_.get(); }
  uint64_t consumed() const { return At(0); }

  // Returns where it is.
  uint64_t Write(const std::string& text, uint32_t flags = 0) {
    const uint64_t begin = At(page_);
    const auto header = static_cast<uint32_t>(text.size()) | flags;
    Put(begin, &header, sizeof(header));
    Put(begin + BPF_RINGBUF_HDR_SZ, text.data(), text.size());
    At(page_) = begin + BPF_RINGBUF_HDR_SZ + (text.size() + 7) / 8 * 8;
    return begin;
  }

  void SetHeader(uint64_t position, uint32_t header) {
    Put(position, &header, sizeof(header));
  }

 private:
  uint64_t& At(size_t offset) const {
    return *reinterpret_cast<uint64_t*>(memory_ + offset);
  }
  void Put(uint64_t position, const void* data, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    for (size_t i = 0; i < size; ++i) {
      const size_t place = 2 * page_ + (position + i) % kRingBytes;
      memory_[place] = memory_[place + kRingBytes] = bytes[i];
    }
  }

  size_t page_;
  ksym::UniqueFd file_;
  std::byte* memory_ = nullptr;
};

std::vector<std::string> ReadAll(RingReader& reader) {
  std::vector<std::string> texts;
  reader.Consume([&](std::span<const std::byte> record) {
    texts.emplace_back(reinterpret_cast<const char*>(record.data()),
                       record.size());
  });
  return texts;
}

RingReader Open(const FakeRing& ring) {
  return std::move(RingReader::Open(ring.fd(), kRingBytes)).value();
}

// Records come in order and once, and their space is given back.
TEST(RingReaderTest, ReadsEachRecordOnce) {
  FakeRing ring;
  RingReader reader = Open(ring);
  EXPECT_TRUE(ReadAll(reader).empty());
  ring.Write("one");
  ring.Write("");
  ring.Write("eight888");
  EXPECT_EQ(ReadAll(reader), (std::vector<std::string>{"one", "", "eight888"}));
  EXPECT_EQ(ring.consumed(), 3u * BPF_RINGBUF_HDR_SZ + 8 + 8);
  EXPECT_TRUE(ReadAll(reader).empty());
}

// A reader skips all records, those that are not complete as well, and reads
// those that come later.
TEST(RingReaderTest, SkipsWhatIsThere) {
  FakeRing ring;
  RingReader reader = Open(ring);
  ring.Write("");
  const uint64_t busy = ring.Write("busy", BPF_RINGBUF_BUSY_BIT);
  reader.Skip();
  EXPECT_EQ(ring.consumed(), busy + BPF_RINGBUF_HDR_SZ + 8);
  EXPECT_TRUE(ReadAll(reader).empty());
  ring.Write("next");
  EXPECT_EQ(ReadAll(reader), std::vector<std::string>{"next"});
}

// Records of all lengths that cross pages, windows and the ring's end are
// whole, many rings long.
TEST(RingReaderTest, ReadsAcrossAllBoundaries) {
  FakeRing ring;
  RingReader reader = Open(ring);
  const std::vector<size_t> sizes = {1,     8,      4088,   4089,  16408,
                                     65535, 131072, 200001, 300000};
  uint64_t written = 0;
  for (size_t i = 0; written < 5 * kRingBytes; ++i) {
    std::vector<std::string> expected;
    for (size_t j = 0; j < 3; ++j) {
      const size_t size = sizes[(i * 7 + j * 5) % sizes.size()];
      expected.emplace_back(size, static_cast<char>('a' + (i + j) % 26));
      expected.back().back() = '.';
      ring.Write(expected.back());
      written += size;
    }
    ASSERT_EQ(ReadAll(reader), expected) << i;
  }
}

// What is being written stops the reader, and what was given up is left out.
TEST(RingReaderTest, WaitsForWhatIsBusyAndSkipsWhatWasDiscarded) {
  FakeRing ring;
  RingReader reader = Open(ring);
  ring.Write("discarded", BPF_RINGBUF_DISCARD_BIT);
  ring.Write("first");
  const uint64_t busy = ring.Write("second", BPF_RINGBUF_BUSY_BIT);
  ring.Write("third");
  EXPECT_EQ(ReadAll(reader), std::vector<std::string>{"first"});
  EXPECT_EQ(ring.consumed(), busy);
  ring.SetHeader(busy, 6);
  EXPECT_EQ(ReadAll(reader), (std::vector<std::string>{"second", "third"}));
}

// A reader that is handed records without end stops after a ring of them.
TEST(RingReaderTest, EndsAfterARing) {
  FakeRing ring;
  RingReader reader = Open(ring);
  const std::string text(kRingBytes / 8 - BPF_RINGBUF_HDR_SZ, 'x');
  ring.Write(text);
  size_t read = 0;
  reader.Consume([&](std::span<const std::byte>) {
    ++read;
    ring.Write(text);
  });
  EXPECT_EQ(read, 8u);
}

// What is no ring is refused.
TEST(RingReaderTest, NeedsAMapThatCanBeMapped) {
  EXPECT_FALSE(RingReader::Open(-1, kRingBytes));
}

}  // namespace
}  // namespace profd
