// SPDX-License-Identifier: Apache-2.0
#include <kiln/target.hpp>

#include <gtest/gtest.h>

#include <kiln/backend.hpp>

namespace kiln::test {
namespace {

TEST(Target, ParsesAndPrintsNames) {
  const struct {
    const char* text;
    const char* architecture;
    Form form;
  } table[] = {{"sm_75", "sm_75", Form::Cubin},     {"sm_90a", "sm_90a", Form::Cubin},
               {"sm_100f", "sm_100f", Form::Cubin}, {"sm_121", "sm_121", Form::Cubin},
               {"compute_90", "sm_90", Form::Ptx},  {"compute_120a", "sm_120a", Form::Ptx},
               {"lto_80", "sm_80", Form::LtoIr}};
  for (const auto& row : table) {
    const Result<Target> target = Target::parse(row.text);
    ASSERT_TRUE(target.has_value()) << row.text;
    EXPECT_EQ(target->architecture, row.architecture);
    EXPECT_EQ(target->form, row.form);
    EXPECT_EQ(target->name(), row.text);
  }
  EXPECT_EQ(Target::parse("sm_80").value(), Target::sm(80));
}

TEST(Target, RejectsInvalidTextWithHint) {
  for (const char* text : {"", "sm", "sm_", "sm_9", "sm_90b", "sm_a", "sm_90aa", "80", "SM_80", "sm_80 ", " sm_80",
                           "compute_", "lto", "sm_80000", "sm_-80", "sm_8 0"}) {
    const Result<Target> target = Target::parse(text);
    ASSERT_FALSE(target.has_value()) << text;
    EXPECT_EQ(target.error().code, Code::InvalidArgument);
    EXPECT_NE(target.error().message.find("sm_90"), std::string::npos);
  }
}

TEST(Backend, ParsesNamesOnly) {
  for (const Backend backend : {Backend::Cuda, Backend::OpenCl}) EXPECT_EQ(parse_backend(to_string(backend)), backend);
  for (const char* text : {"", "CUDA", "cud", "cuda ", "abacus"}) {
    const Result<Backend> backend = parse_backend(text);
    ASSERT_FALSE(backend.has_value()) << text;
    EXPECT_EQ(backend.error().code, Code::InvalidArgument);
    EXPECT_NE(backend.error().message.find("cuda or opencl"), std::string::npos);
  }
}

TEST(Target, OpenClTargetUsesDeviceName) {
  const Target target = Target::opencl("pocl:a device");
  EXPECT_EQ(target.name(), "pocl:a device");
  EXPECT_EQ(target.form, Form::OpenClBinary);
}

}  // namespace
}  // namespace kiln::test
