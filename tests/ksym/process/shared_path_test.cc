// SPDX-License-Identifier: Apache-2.0
#include "ksym/process/shared_path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ksym {
namespace {

// Copies have one text, and an empty path has none.
TEST(SharedPathTest, CopiesShareTheText) {
  const SharedPath path("/usr/lib/libc.so.6");
  const SharedPath copy = path;  // NOLINT(performance-unnecessary-copy-*)
  EXPECT_TRUE(copy.IsSharedWith(path));
  EXPECT_EQ(copy.str().data(), path.str().data());
  EXPECT_FALSE(path.IsOnly());
  const SharedPath other("/usr/lib/libc.so.6");
  EXPECT_FALSE(other.IsSharedWith(path));
  EXPECT_TRUE(other.IsOnly());
  EXPECT_EQ(other, path);
  EXPECT_NE(other, SharedPath("/usr"));
  EXPECT_TRUE(SharedPath("").empty());
  EXPECT_TRUE(SharedPath("").IsSharedWith(SharedPath()));
  EXPECT_EQ(SharedPath(), "");
}

// It is used as a text is.
TEST(SharedPathTest, IsAText) {
  const SharedPath path(std::string_view("/a/b"));
  const std::string text = path;
  const std::string_view view = path;
  EXPECT_EQ(text, "/a/b");
  EXPECT_EQ(view, "/a/b");
  EXPECT_EQ(path.size(), 4u);
  EXPECT_TRUE(path.starts_with("/a"));
  EXPECT_TRUE(path.ends_with("/b"));
  EXPECT_FALSE(path.empty());
}

// A path is there until nobody has it, and its bytes count once.
TEST(PathPoolTest, ForgetsWhatNobodyHas) {
  PathPool pool;
  SharedPath path("/a/b");
  EXPECT_EQ(pool.Find(path), nullptr);
  pool.Add(path);
  pool.Add(SharedPath("/a/b"));
  EXPECT_EQ(pool.bytes(), 4u);
  const SharedPath equal("/a/b");
  ASSERT_NE(pool.Find(equal), nullptr);
  EXPECT_TRUE(pool.Find(equal)->IsSharedWith(path));
  pool.Sweep();
  EXPECT_EQ(pool.bytes(), 4u);
  path = SharedPath();
  pool.Sweep();
  EXPECT_EQ(pool.bytes(), 0u);
  EXPECT_EQ(pool.Find(equal), nullptr);
}

}  // namespace
}  // namespace ksym
