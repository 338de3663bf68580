// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "daemon/output/format.h"
#include "tests/daemon/output/test_profile.h"

namespace profd {
namespace {

using By = OutputOptions::By;

struct GoldenCase {
  const char* file;
  OutputFormat format;
  OutputOptions options;
};

const GoldenCase kCases[] = {
    {"example.folded", OutputFormat::kFolded, {}},
    {"example_by_tid.folded",
     OutputFormat::kFolded,
     {.by = By::kTid, .annotations = true, .delimiter = true}},
    {"example.txt", OutputFormat::kText, {}},
    {"example_by_tid.txt",
     OutputFormat::kText,
     {.by = By::kTid, .delimiter = true, .addresses = true}},
    {"example.json", OutputFormat::kJson, {}},
    {"example_by_tid.json",
     OutputFormat::kJson,
     {.by = By::kTid, .addresses = true}},
};

// Each format's bytes for one example are as they were reviewed.
TEST(GoldenTest, OutputIsAsReviewed) {
  const Profile profile = ExampleProfile(1);
  for (const GoldenCase& test : kCases) {
    const std::string path =
        std::string(KSYM_TEST_DATA_DIR) + "/output/" + test.file;
    const std::string actual = Render(profile, test.format, test.options);
    if (std::getenv("KSYM_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(path, std::ios::binary) << actual;
    }
    std::ifstream in(path, std::ios::binary);
    const std::string golden((std::istreambuf_iterator<char>(in)), {});
    EXPECT_EQ(actual, golden) << path << " (to accept: KSYM_UPDATE_GOLDEN=1)";
  }
}

// The order in which samples, frames and strings come leaves no trace.
TEST(GoldenTest, OutputDoesNotDependOnOrder) {
  const Profile first = ExampleProfile(1);
  for (uint32_t seed = 2; seed < 30; ++seed) {
    const Profile other = ExampleProfile(seed);
    for (const GoldenCase& test : kCases) {
      EXPECT_EQ(Render(first, test.format, test.options),
                Render(other, test.format, test.options))
          << test.file << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace profd
