// SPDX-License-Identifier: Apache-2.0
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
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(*good, "yes");
  EXPECT_EQ(good->size(), 3u);
  const Result<std::string> bad = make_error(Code::Io, "no", "log");
  EXPECT_FALSE(bad.has_value());
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

TEST(Result, WhatContainsTheMessageAndTheCompilersLog) {
  const Result<int> bad = make_error(Code::CompileFailed, "cannot compile k.cu", "k.cu(1): error: expected a \";\"");
  try {
    (void)bad.value();
    FAIL() << "did not throw";
  } catch (const ResultError& thrown) {
    EXPECT_STREQ(thrown.what(), "cannot compile k.cu\nk.cu(1): error: expected a \";\"");
    EXPECT_EQ(thrown.error(), bad.error());
  }
}

TEST(Result, SupportsMoveOnlyTypes) {
  using Owner = std::unique_ptr<int>;
  Result<Owner> result = std::make_unique<int>(7);
  const Owner taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
  EXPECT_EQ(*Result<Owner>(std::make_unique<int>(8)).value(), 8);
  EXPECT_EQ(*Result<Owner>(make_error(Code::Io, "no")).value_or(std::make_unique<int>(9)), 9);
  const auto doubled = Result<Owner>(std::make_unique<int>(4)).transform([](Owner owner) { return *owner * 2; });
  EXPECT_EQ(doubled, 8);
  const auto passed = Result<Owner>(std::make_unique<int>(5))
                          .and_then([](Owner owner) -> Result<Owner> { return owner; })
                          .or_else([](Error&& error) -> Result<Owner> { return std::move(error); });
  EXPECT_EQ(**passed, 5);
  result.emplace(std::make_unique<int>(6));
  EXPECT_EQ(**result, 6);
}

TEST(Result, VoidHasTheSameInterface) {
  const Status good;
  const Status bad = make_error(Code::Io, "no");
  EXPECT_TRUE(good.has_value() && good);
  EXPECT_EQ(good.transform([] { return 3; }), 3);
  EXPECT_EQ(bad.transform([] { return 3; }).error().code, Code::Io);
  EXPECT_TRUE(good.and_then([] { return Result<int>(1); }).has_value());
  EXPECT_TRUE(bad.or_else([](const Error&) { return Status(); }).has_value());
  EXPECT_EQ(bad.transform_error([](Error error) { return make_error(Code::Denied, error.message + "!"); }).error(),
            make_error(Code::Denied, "no!"));
  EXPECT_EQ(bad.error_or({}), make_error(Code::Io, "no"));
  EXPECT_EQ(good.error_or(make_error(Code::Denied, "x")), make_error(Code::Denied, "x"));
  EXPECT_NE(good, bad);
  EXPECT_EQ(good, Status());
  Status replaced = bad;
  replaced.emplace();
  EXPECT_EQ(replaced, good);
  const Status made = Result<int>(1).transform([](int) {});
  EXPECT_TRUE(made.has_value());
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
