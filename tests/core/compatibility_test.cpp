// SPDX-License-Identifier: Apache-2.0
#include "core/compatibility.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backends/cuda/nvrtc_library.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

/// The combinations that NVIDIA's CUDA 13.0 tools accept for a device of each number: nvlink for machine code, ptxas
/// for PTX. Each tool was run for every pair, with `-arch` in every variant of the number, and the results were
/// recorded here.
struct Device {
  int number;
  const char* machine_code;  ///< from best to worst, if no other variant is requested
  const char* ptx;
};

constexpr Device kDevices[] = {
    {75, "75", "75"},
    {80, "80", "80 75"},
    {86, "86 80", "86 80 75"},
    {87, "87", "87 86 80 75"},
    {88, "88", "88 87 86 80 75"},
    {89, "89 86 80", "89 88 87 86 80 75"},
    {90, "90 90a", "90a 90 89 88 87 86 80 75"},
    {100, "100 100a 100f", "100a 100f 100 90 89 88 87 86 80 75"},
    {103, "103 103a 103f 100f 100", "103a 103f 103 100f 100 90 89 88 87 86 80 75"},
    {110, "110 110a 110f", "110a 110f 110 103 100 90 89 88 87 86 80 75"},
    {120, "120 120a 120f", "120a 120f 120 110 103 100 90 89 88 87 86 80 75"},
    {121, "121 121a 121f 120f 120", "121a 121f 121 120f 120 110 103 100 90 89 88 87 86 80 75"},
};

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

/// Returns every architecture of the table with each of its variants.
std::vector<std::string> every_spelling() {
  std::vector<std::string> all;
  for (const Device& device : kDevices) {
    const std::string number = std::to_string(device.number);
    all.push_back(number);
    if (device.number >= 90) all.push_back(number + "a");
    if (device.number >= 100) all.push_back(number + "f");
  }
  return all;
}

/// Returns every possible target that serves `wanted`, from best to worst.
std::vector<std::string> serving(const Target& wanted, Form made) {
  std::vector<std::pair<unsigned, std::string>> found;
  for (const std::string& spelling : every_spelling()) {
    if (const auto score = compatibility_rank({"sm_" + spelling, made}, wanted)) found.emplace_back(*score, spelling);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (std::size_t i = 0; i != found.size(); ++i) {
    EXPECT_TRUE(i == 0 || found[i - 1].first > found[i].first) << "two targets rank equally for " << wanted.name();
    names.push_back(found[i].second);
  }
  return names;
}

TEST(Fit, MatchesNvidiaToolsForAllPairs) {
  for (const Device& device : kDevices) {
    const Target wanted = Target::sm(device.number);
    EXPECT_EQ(serving(wanted, Form::Cubin), words(device.machine_code)) << wanted.name();
    EXPECT_EQ(serving(wanted, Form::Ptx), words(device.ptx)) << wanted.name();
    EXPECT_EQ(serving({wanted.architecture, Form::Cccl}, Form::Cccl), words(device.machine_code)) << wanted.name();
  }
}

TEST(Fit, CoversArchitecturesOfNvrtc) {
  const std::string path = toolkit_nvrtc();
  if (path.empty()) GTEST_SKIP() << "no CUDA toolkit";
  const auto library = NvrtcLibrary::open(path);
  ASSERT_TRUE(library.has_value()) << library.error().message;
  int count = 0;
  ASSERT_EQ((*library)->supported_arch_count(&count), 0);
  std::vector<int> listed(static_cast<std::size_t>(count));
  ASSERT_EQ((*library)->supported_archs(listed.data()), 0);
  std::set<int> known;
  for (const Device& device : kDevices) known.insert(device.number);
  EXPECT_EQ(std::set<int>(listed.begin(), listed.end()), known)
      << "run nvlink and ptxas of this toolkit and add their results to the table above";
}

TEST(Fit, RequestedVariantRanksFirst) {
  for (const Device& device : kDevices) {
    for (const char* variant : {"a", "f"}) {
      const std::string spelling = std::to_string(device.number) + variant;
      std::vector<std::string> expected = words(device.machine_code);
      const auto same = std::find(expected.begin(), expected.end(), spelling);
      if (same == expected.end()) continue;
      expected.erase(same);
      // The plain variant is first in the table because the table requests it.
      std::vector<std::string> order = {spelling};
      for (const std::string& other :
           {std::to_string(device.number) + "a", std::to_string(device.number) + "f", std::to_string(device.number)}) {
        const auto found = std::find(expected.begin(), expected.end(), other);
        if (found == expected.end()) continue;
        order.push_back(other);
        expected.erase(found);
      }
      order.insert(order.end(), expected.begin(), expected.end());
      EXPECT_EQ(serving({"sm_" + spelling, Form::Cubin}, Form::Cubin), order) << spelling;
      EXPECT_EQ(serving({"sm_" + spelling, Form::Cubin}, Form::Ptx), words(device.ptx)) << spelling;
    }
  }
}

TEST(Fit, PrefersMachineCodeToPtx) {
  for (const Device& device : kDevices) {
    const Target wanted = Target::sm(device.number);
    for (const std::string& code : words(device.machine_code)) {
      for (const std::string& ptx : words(device.ptx)) {
        EXPECT_GT(compatibility_rank({"sm_" + code, Form::Cubin}, wanted),
                  compatibility_rank({"sm_" + ptx, Form::Ptx}, wanted))
            << code << ", " << ptx << " for " << wanted.name();
      }
    }
  }
}

TEST(Fit, FollowsProgrammingGuideForOtherToolkits) {
  const auto runs = [](const char* made, const char* wanted) {
    return compatibility_rank(Target::parse(made).value(), Target::parse(wanted).value()).has_value();
  };
  // CUDA 13.4: 10.7 is in the family of 10.0.
  EXPECT_TRUE(runs("sm_100f", "sm_107"));
  EXPECT_TRUE(runs("sm_103f", "sm_107"));
  EXPECT_TRUE(runs("sm_103", "sm_107"));
  EXPECT_FALSE(runs("sm_103a", "sm_107"));
  EXPECT_FALSE(runs("sm_107f", "sm_103"));
  // CUDA 12: desktop devices, and Tegra devices, which are compatible with no others.
  EXPECT_TRUE(runs("sm_70", "sm_75"));
  EXPECT_TRUE(runs("sm_60", "sm_61"));
  EXPECT_FALSE(runs("sm_70", "sm_72"));
  EXPECT_FALSE(runs("sm_72", "sm_75"));
  EXPECT_FALSE(runs("sm_61", "sm_62"));
  EXPECT_FALSE(runs("sm_100", "sm_101"));
  EXPECT_FALSE(runs("sm_100f", "sm_101"));
  EXPECT_FALSE(runs("sm_101f", "sm_103"));
  EXPECT_TRUE(runs("compute_70", "sm_72"));
  EXPECT_TRUE(runs("compute_72", "sm_75"));
  // Future devices: plain code runs within its major number, and PTX on all later devices.
  EXPECT_TRUE(runs("sm_120", "sm_125"));
  EXPECT_FALSE(runs("sm_120f", "sm_125"));
  EXPECT_FALSE(runs("sm_121", "sm_130"));
  EXPECT_TRUE(runs("compute_75", "sm_130"));
}

TEST(Fit, OtherFormsMustBeEqual) {
  std::vector<Target> all;
  for (const char* spelling : {"sm_80", "sm_86", "sm_90", "sm_90a"}) {
    for (const Form form : {Form::Cubin, Form::Ptx, Form::LtoIr, Form::Cccl}) all.push_back({spelling, form});
  }
  for (const char* device : {"pocl: one", "pocl: another", "sm_80"}) all.push_back(Target::opencl(device));
  for (const Target& wanted : all) {
    for (const Target& made : all) {
      const bool cuda = wanted.form == Form::Cubin && (made.form == Form::Cubin || made.form == Form::Ptx);
      const bool cccl = wanted.form == Form::Cccl && made.form == Form::Cccl;
      if (cuda || cccl) continue;
      EXPECT_EQ(compatibility_rank(made, wanted).has_value(), made == wanted)
          << made.name() << " for " << wanted.name();
    }
  }
}

TEST(Fit, RejectsInvalidArchitectures) {
  for (const char* text : {"", "sm_", "sm_a", "sm_x0", "sm_80b", "sm_80aa", "sm_99999", "80", "sm_-80", "sm_8 0"}) {
    EXPECT_FALSE(compatibility_rank({text, Form::Cubin}, Target::sm(80))) << text;
    EXPECT_FALSE(compatibility_rank({text, Form::Ptx}, Target::sm(80))) << text;
    EXPECT_FALSE(compatibility_rank(Target::sm(80), {text, Form::Cubin})) << text;
  }
}

}  // namespace
}  // namespace kiln::test
