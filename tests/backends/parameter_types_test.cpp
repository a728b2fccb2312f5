// SPDX-License-Identifier: Apache-2.0
#include "backends/parameter_types.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kiln::test {
namespace {

using Kind = KernelParameter::Kind;

TEST(ParameterType, NumbersHaveKindAndSize) {
  const auto expect = [](const char* type, Kind kind, std::size_t size) {
    const KernelParameter parameter = parameter_of_type(type);
    EXPECT_EQ(parameter.type, type);
    EXPECT_EQ(parameter.kind, kind) << type;
    EXPECT_EQ(parameter.size, size) << type;
  };
  expect("float", Kind::Float, 4);
  expect("double", Kind::Float, 8);
  expect("half", Kind::Float, 2);
  expect("const int", Kind::Integer, 4);
  expect("unsigned long long", Kind::Integer, 8);
  expect("uchar", Kind::Integer, 1);
  expect("float4", Kind::Unknown, 0);
  expect("Point", Kind::Unknown, 0);
  expect("", Kind::Unknown, 0);
}

TEST(ParameterType, PointersHaveElements) {
  const auto expect = [](const char* type, Kind element, std::size_t size) {
    const KernelParameter parameter = parameter_of_type(type);
    EXPECT_EQ(parameter.kind, Kind::Pointer) << type;
    EXPECT_EQ(parameter.size, sizeof(void*)) << type;
    EXPECT_EQ(parameter.element, element) << type;
    EXPECT_EQ(parameter.element_size, size) << type;
  };
  expect("float*", Kind::Float, 4);
  expect("float const*", Kind::Float, 4);
  expect("const double * restrict", Kind::Float, 8);
  expect("void*", Kind::Unknown, 0);
  expect("Point*", Kind::Unknown, 0);
  expect("float**", Kind::Unknown, 0);
  expect("float4*", Kind::Unknown, 0);
  expect("ushort16 const*", Kind::Unknown, 0);
}

std::vector<std::string> types_of(const std::string& symbol, const std::vector<std::size_t>& sizes) {
  std::vector<std::string> types;
  for (const KernelParameter& parameter : parameters_of_symbol(symbol, sizes)) types.push_back(parameter.type);
  return types;
}

TEST(ParametersOfSymbol, ComeFromAMangledName) {
  // void scale<double>(double*, double, long long)
  const KernelParameters parameters = parameters_of_symbol("_Z5scaleIdEvPT_S0_x", {8, 8, 8});
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[0].kind, Kind::Pointer);
  EXPECT_EQ(parameters[0].element_size, 8U);
  EXPECT_EQ(parameters[1].kind, Kind::Float);
  EXPECT_EQ(parameters[2].type, "long long");
  // void k<3>(Pair<int, float>, int (*)(int, int), int)
  const std::string nested = "_Z1kILi3EEv4PairIifEPFiiiEi";
  EXPECT_EQ(types_of(nested, {8, 8, 4}), (std::vector<std::string>{"Pair<int, float>", "int (*)(int, int)", "int"}));
  EXPECT_EQ(parameters_of_symbol(nested, {8, 8, 4})[0].kind, Kind::Unknown);
  EXPECT_EQ(parameters_of_symbol("_Z1kv", {}).size(), 0U);
}

TEST(ParametersOfSymbol, AreSizesOnlyIfTypesAreNotKnown) {
  const std::vector<std::string> none = {"", ""};
  EXPECT_EQ(types_of("plain", {8, 4}), none);
  EXPECT_EQ(types_of("_Z5scalef", {8, 4}), none) << "another number of parameters";
  EXPECT_EQ(types_of("_Z5scale", {8, 4}), none) << "truncated";
  EXPECT_EQ(types_of("_Z1k" + std::string(2000, 'f'), {8, 4}), none) << "too long";
  const KernelParameters other = parameters_of_symbol("_Z5scaleif", {8, 4});
  EXPECT_EQ(other[0].kind, Kind::Unknown) << "an int does not have 8 bytes";
  EXPECT_EQ(other[0].size, 8U);
  EXPECT_EQ(other[1].kind, Kind::Float);
}

// Each level of such a name doubles its text.
TEST(ParametersOfSymbol, RejectNamesThatGrow) {
  std::string symbol = "_Z1k1AI";
  for (int i = 0; i < 40; ++i) symbol += "1BIS_S_";
  symbol += std::string(41, 'E');
  EXPECT_EQ(types_of(symbol, {8}), std::vector<std::string>{""});
}

}  // namespace
}  // namespace kiln::test
