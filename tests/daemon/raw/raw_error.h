// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "daemon/raw/raw_file.h"

namespace profd {

// Why a file that is to be refused is.
inline ksym::Error ErrorOf(const std::string& file) {
  const auto capture = ReadRawCapture(file);
  EXPECT_FALSE(capture.has_value());
  return capture.has_value() ? ksym::Error(ksym::ErrorCode::kInvalid, "")
                             : capture.error();
}

}  // namespace profd
