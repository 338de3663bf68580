// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "ksym/ksym.h"

namespace {

void Throw(void* /*context*/, const char* /*bytes*/, size_t /*size*/) {
  throw std::runtime_error("the disk is full");
}

// An exception of a C++ callback becomes a status and its text.
TEST(CApi, NoExceptionGetsOut) {
  ksym_filter_options options = {};
  options.size = sizeof(options);
  options.write_log = Throw;
  ksym_filter* filter = nullptr;
  ASSERT_EQ(ksym_filter_open(&options, &filter), KSYM_OK);
  EXPECT_EQ(ksym_filter_push(filter, "a line\n", 7), KSYM_INTERNAL);
  EXPECT_STREQ(ksym_last_error(), "the disk is full");
  ksym_filter_close(filter);
}

// The last error is the calling thread's own.
TEST(CApi, ErrorsAreOfTheirThread) {
  ksym_source* source = nullptr;
  ASSERT_NE(ksym_open_file("/first", nullptr, &source), KSYM_OK);
  std::thread([] {
    EXPECT_STREQ(ksym_last_error(), "");
    ksym_source* other = nullptr;
    EXPECT_NE(ksym_open_file("/second", nullptr, &other), KSYM_OK);
    EXPECT_NE(std::string(ksym_last_error()).find("/second"),
              std::string::npos);
  }).join();
  EXPECT_NE(std::string(ksym_last_error()).find("/first"), std::string::npos);
}

// A long error is cut, not written past its room.
TEST(CApi, LongErrorsAreCut) {
  ksym_source* source = nullptr;
  const std::string path(3000, 'x');
  EXPECT_NE(ksym_open_file(path.c_str(), nullptr, &source), KSYM_OK);
  EXPECT_EQ(std::string(ksym_last_error()).size(), 1023u);
}

}  // namespace
