#include <kiln/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/error.hpp"

namespace kiln::test {
namespace {

TEST(Result, HoldsValueOrError) {
  const Result<std::string> good = std::string("yes");
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(*good, "yes");
  EXPECT_EQ(good->size(), 3u);
  const Result<std::string> bad = make_error(Code::Io, "no", "log");
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.error().code, Code::Io);
  EXPECT_EQ(bad.error().message, "no");
  EXPECT_EQ(bad.error().log, "log");
}

TEST(Result, ValueThrowsError) {
  Result<int> bad = make_error(Code::Denied, "not allowed");
  try {
    (void)bad.value();
    FAIL() << "did not throw";
  } catch (const ResultError& thrown) {
    EXPECT_EQ(thrown.error().code, Code::Denied);
    EXPECT_STREQ(thrown.what(), "not allowed");
  }
  EXPECT_THROW(Status(make_error(Code::Io, "x")).value(), ResultError);
  EXPECT_NO_THROW(Status().value());
}

TEST(Result, SupportsMoveOnlyTypes) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Code, NamesAreDistinct) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(Code::Internal); ++code) names.insert(to_string(static_cast<Code>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Code::Internal) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
}

TEST(IoFailure, NamesOperationAndCause) {
  EXPECT_EQ(io_error("cannot open", "/a/b", ENOENT).message, "cannot open /a/b: No such file or directory");
}

}  // namespace
}  // namespace kiln::test
