// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <kiln/result.hpp>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>
#include <version>
#ifdef __cpp_lib_expected
#include <expected>
#endif

namespace kiln::test {
namespace {

// The same operations on Result and, if the library has it, on std::expected: equal answers.
struct OfKiln {
  template <class T>
  using Type = Result<T>;
  static Error error(std::string message) { return {Code::Io, std::move(message), {}}; }
};
#ifdef __cpp_lib_expected
struct OfTheStandard {
  template <class T>
  using Type = std::expected<T, Error>;
  static std::unexpected<Error> error(std::string message) {
    return std::unexpected(OfKiln::error(std::move(message)));
  }
};
using Families = ::testing::Types<OfKiln, OfTheStandard>;
#else
using Families = ::testing::Types<OfKiln>;
#endif

template <class Family>
class ExpectedInterface : public ::testing::Test {};
TYPED_TEST_SUITE(ExpectedInterface, Families);

TYPED_TEST(ExpectedInterface, Constructs) {
  using Text = typename TypeParam::template Type<std::string>;
  using Sizes = typename TypeParam::template Type<std::vector<int>>;
  const auto literal = []() -> Text { return "text"; };
  EXPECT_EQ(*literal(), "text");
  EXPECT_EQ(*Text(), "");
  EXPECT_EQ(Text(std::in_place, 3, 'x')->size(), 3u);
  EXPECT_EQ(Sizes(4)->size(), 4u);
  static_assert(!std::is_convertible_v<int, Sizes>, "an explicit constructor stays explicit");
  static_assert(!std::is_default_constructible_v<typename TypeParam::template Type<std::reference_wrapper<int>>>);
  static_assert(!std::is_copy_constructible_v<typename TypeParam::template Type<std::unique_ptr<int>>>);
  static_assert(std::is_same_v<typename Text::value_type, std::string>);
  static_assert(std::is_same_v<typename Text::error_type, Error>);
}

TYPED_TEST(ExpectedInterface, ReturnsReferencesLikeItself) {
  using Text = typename TypeParam::template Type<std::string>;
  static_assert(std::is_same_v<decltype(std::declval<Text&>().value()), std::string&>);
  static_assert(std::is_same_v<decltype(std::declval<const Text&>().value()), const std::string&>);
  static_assert(std::is_same_v<decltype(std::declval<Text>().value()), std::string&&>);
  static_assert(std::is_same_v<decltype(std::declval<const Text>().value()), const std::string&&>);
  static_assert(std::is_same_v<decltype(*std::declval<const Text>()), const std::string&&>);
  static_assert(std::is_same_v<decltype(std::declval<Text&>().error()), Error&>);
  static_assert(std::is_same_v<decltype(std::declval<const Text>().error()), const Error&&>);
}

TYPED_TEST(ExpectedInterface, HoldsOneOfBoth) {
  using Number = typename TypeParam::template Type<int>;
  Number number = 3;
  EXPECT_TRUE(number.has_value() && static_cast<bool>(number));
  EXPECT_EQ(number.value_or(4), 3);
  EXPECT_TRUE(number == 3 && number == Number(3) && number != Number(4));
  number = TypeParam::error("no");
  EXPECT_FALSE(number.has_value());
  EXPECT_EQ(number.value_or(4), 4);
  EXPECT_EQ(number.error().message, "no");
  EXPECT_TRUE(number != Number(3) && number == Number(TypeParam::error("no")) &&
              number != Number(TypeParam::error("")));
  EXPECT_ANY_THROW((void)number.value());
  EXPECT_EQ(number.emplace(5), 5);
  EXPECT_EQ(number, 5);
}

TYPED_TEST(ExpectedInterface, MovesValuesOut) {
  using Owner = typename TypeParam::template Type<std::unique_ptr<int>>;
  Owner owner = std::make_unique<int>(7);
  Owner moved = std::move(owner);
  EXPECT_TRUE(owner.has_value());  // of a moved-from value
  EXPECT_EQ(*owner, nullptr);
  EXPECT_EQ(*std::move(moved).value(), 7);
}

// Older libraries have std::expected without these functions.
#if defined(__cpp_lib_expected) && __cpp_lib_expected >= 202211L
using ChainFamilies = ::testing::Types<OfKiln, OfTheStandard>;
#else
using ChainFamilies = ::testing::Types<OfKiln>;
#endif
template <class Family>
class ExpectedChains : public ::testing::Test {};
TYPED_TEST_SUITE(ExpectedChains, ChainFamilies);

TYPED_TEST(ExpectedChains, CallFunctionsWithWhatIsThere) {
  using Number = typename TypeParam::template Type<int>;
  using Text = typename TypeParam::template Type<std::string>;
  const Number good = 3;
  const Number bad = TypeParam::error("no");
  const auto text_of = [](int number) -> Text { return std::to_string(number); };
  const auto twice = [](int number) { return number * 2; };
  EXPECT_EQ(*good.and_then(text_of), "3");
  EXPECT_EQ(bad.and_then(text_of).error().message, "no");
  EXPECT_EQ(*good.transform(twice), 6);
  EXPECT_EQ(bad.transform(twice).error().message, "no");
  EXPECT_EQ(*bad.or_else([](const Error&) { return Number(9); }), 9);
  EXPECT_EQ(*good.or_else([](const Error&) { return Number(9); }), 3);
  const auto louder = [](const Error& error) { return OfKiln::error(error.message + "!"); };
  EXPECT_EQ(bad.transform_error(louder).error().message, "no!");
  EXPECT_EQ(*good.transform_error(louder), 3);
  static_assert(std::is_same_v<decltype(good.transform([](int) {})), typename TypeParam::template Type<void>>);
}

}  // namespace
}  // namespace kiln::test
