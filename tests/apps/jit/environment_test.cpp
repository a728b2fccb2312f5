// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/environment.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "apps/jit/jit_fixture.hpp"
#include "apps/kiln/jit/plan.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class JitEnvironment : public JitFixture {
 protected:
  // Creates a virtual environment with these distributions.
  std::string environment(const std::string& name, const std::vector<std::string>& distributions) const {
    const std::string prefix = room_.path(name);
    fs::create_directories(prefix + "/bin");
    write_text(prefix + "/bin/python", "");
    chmod((prefix + "/bin/python").c_str(), 0755);
    write_text(prefix + "/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n");
    for (const std::string& each : distributions)
      fs::create_directories(prefix + "/lib/python3.11/site-packages/" + each + ".dist-info");
    return prefix;
  }
};

TEST_F(JitEnvironment, ReadsDistributionsOfTheInterpreterOfACommand) {
  const std::string prefix = environment("venv", {"Toy_System-1.2.0", "cuda_core-1.0"});
  const auto python = jit::PythonEnvironment::of({prefix + "/bin/python", "x.py"});
  EXPECT_EQ(python.prefix, prefix);
  EXPECT_EQ(python.python, "python3.11");
  EXPECT_EQ(python.versions.at("toy-system"), "1.2.0");
  EXPECT_EQ(python.versions.at("cuda-core"), "1.0");
}

TEST_F(JitEnvironment, ReadsTheInterpreterOfAScript) {
  const std::string prefix = environment("venv", {"toy-1.2"});
  const std::string script = room_.path("serve");
  write_text(script, "#!" + prefix + "/bin/python -u\nprint()\n");
  EXPECT_EQ(jit::PythonEnvironment::of({script}).prefix, prefix);
}

TEST_F(JitEnvironment, SaysThatAShimIsNoInterpreter) {
  fs::create_directories(room_.path("pyenv/shims"));
  const std::string shim = room_.path("pyenv/shims/python3");
  write_text(shim, "#!/usr/bin/env bash\nexec pyenv exec python3 \"$@\"\n");
  chmod(shim.c_str(), 0755);
  const ScopedEnv path("PATH", room_.path("pyenv/shims").c_str());
  const ScopedEnv inactive("VIRTUAL_ENV", "");
  for (const std::vector<std::string>& command : {std::vector<std::string>{"python3", "x.py"}, {shim}, {}}) {
    const auto python = jit::PythonEnvironment::of(command);
    EXPECT_NE(python.problem.find(shim + " is a script"), std::string::npos) << python.problem;
    EXPECT_NE(python.problem.find("give the path of the interpreter"), std::string::npos);
  }
  const std::string prefix = environment("venv", {"toy-1.0"});
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python"}).problem, "");
  write_text(prefix + "/bin/python", "#!/bin/sh\nexec python3.11\n");
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python"}).problem, "") << "its packages are next to it";
}

TEST_F(JitEnvironment, PrefersTheCommandToTheActiveEnvironment) {
  const std::string first = environment("first", {"toy-1.0"});
  const std::string second = environment("second", {"toy-2.0"});
  const ScopedEnv active("VIRTUAL_ENV", first.c_str());
  EXPECT_EQ(jit::PythonEnvironment::of({}).versions.at("toy"), "1.0");
  EXPECT_EQ(jit::PythonEnvironment::of({"/bin/sh"}).versions.at("toy"), "1.0");
  EXPECT_EQ(jit::PythonEnvironment::of({second + "/bin/python"}).versions.at("toy"), "2.0");
}

TEST_F(JitEnvironment, ReadsOnlyThePackagesOfTheInterpreterThatRuns) {
  const ScopedEnv home("HOME", room_.path("home").c_str());
  const std::string prefix = room_.path("local");
  fs::create_directories(prefix + "/bin");
  for (const std::string version : {"3.9", "3.10"}) {
    fs::create_directories(prefix + "/lib/python" + version + "/site-packages/toy-" + version + ".dist-info");
    write_text(prefix + "/bin/python" + version, "");
  }
  const auto python = jit::PythonEnvironment::of({prefix + "/bin/python3.9"});
  EXPECT_EQ(python.python, "python3.9");
  EXPECT_EQ(python.versions.at("toy"), "3.9");
  fs::create_symlink("python3.9", prefix + "/bin/python3");
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python3"}).python, "python3.9") << "links are followed";
  write_text(prefix + "/bin/python", "");
  const auto unknown = jit::PythonEnvironment::of({prefix + "/bin/python"});
  EXPECT_EQ(unknown.python, "");
  EXPECT_FALSE(unknown.versions.contains("toy")) << "nothing states which of the two runs";
  write_text(prefix + "/pyvenv.cfg", "home = /usr/bin\nversion = 3.10.4\n");
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python"}).versions.at("toy"), "3.10");
}

TEST_F(JitEnvironment, PackagesOfEachDirectoryInPythonpathComeFirst) {
  const std::string prefix = environment("venv", {"toy-1.0", "other-1.0"});
  fs::create_directories(room_.path("a directory with a long name/toy-2.0.dist-info"));
  fs::create_directories(room_.path("another directory/toy-3.0.dist-info"));
  fs::create_directories(room_.path("another directory/third-3.0.dist-info"));
  const std::string both = room_.path("a directory with a long name") + "::" + room_.path("another directory");
  const ScopedEnv search_path("PYTHONPATH", both.c_str());
  const auto python = jit::PythonEnvironment::of({prefix + "/bin/python"});
  EXPECT_EQ(python.versions.at("toy"), "2.0");
  EXPECT_EQ(python.versions.at("third"), "3.0");
  EXPECT_EQ(python.versions.at("other"), "1.0");
}

TEST_F(JitEnvironment, PackagesOfTheUserComeBeforeThoseOfThePrefix) {
  const ScopedEnv home("HOME", room_.path("home").c_str());
  const std::string prefix = room_.path("local");
  fs::create_directories(prefix + "/bin");
  write_text(prefix + "/bin/python3.10", "");
  fs::create_directories(prefix + "/lib/python3.10/site-packages/toy-1.0.dist-info");
  fs::create_directories(room_.path("home/.local/lib/python3.10/site-packages/toy-2.0.dist-info"));
  fs::create_directories(room_.path("home/.local/lib/python3.9/site-packages/toy-3.0.dist-info"));
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python3.10"}).versions.at("toy"), "2.0");
  const ScopedEnv without("PYTHONNOUSERSITE", "1");
  EXPECT_EQ(jit::PythonEnvironment::of({prefix + "/bin/python3.10"}).versions.at("toy"), "1.0");
}

TEST_F(JitEnvironment, SaysWhichVersionsNoRuleCovers) {
  jit::PythonEnvironment python;
  python.versions["toy"] = "0.9";
  const auto plans = jit::plan_systems(rules_, python, {});
  ASSERT_TRUE(plans);
  ASSERT_EQ(plans->size(), 2U);
  EXPECT_EQ(plans->front().system.rule, nullptr);
  EXPECT_NE(plans->front().skipped.find("0.9"), std::string::npos);
  python.versions.clear();
  EXPECT_TRUE(jit::plan_systems(rules_, python, {})->empty()) << "not installed";
}

TEST_F(JitEnvironment, EnvironmentNamesVersionsAndForHostCodeTheHost) {
  jit::Rule rule = rules_.front();
  jit::PythonEnvironment python;
  python.python = "python3.11";
  python.versions["toy"] = "1.0";
  const std::string device = jit::environment_text(rule, python);
  EXPECT_NE(device.find("distribution toy 1.0\n"), std::string::npos);
  EXPECT_EQ(device.find("libc"), std::string::npos);
  rule.host_code = true;
  const std::string host = jit::environment_text(rule, python);
  EXPECT_NE(host.find("libc "), std::string::npos);
  EXPECT_NE(host.find("python python3.11"), std::string::npos);
}

TEST_F(JitEnvironment, PlansHostCodeOnlyIfEnabled) {
  rules_.front().host_code = true;
  jit::PythonEnvironment python;
  python.versions["toy"] = "1.0";
  EXPECT_FALSE(jit::plan_systems(rules_, python, {})->front().skipped.empty());
  jit::PlanOptions options;
  options.host_code = {"toy"};
  EXPECT_NE(jit::plan_systems(rules_, python, options)->front().skipped, "") << "the version of Python is not known";
  python.python = "python3.11";
  EXPECT_TRUE(jit::plan_systems(rules_, python, options)->front().skipped.empty());
  options.host_code = {"toi"};
  EXPECT_FALSE(jit::plan_systems(rules_, python, options)) << "unknown system";
  options.host_code.clear();
  options.configured_host_code = {"toi", "toy"};
  const auto plans = jit::plan_systems(rules_, python, options);
  ASSERT_TRUE(plans) << "a setting can have names of adapters and of other releases";
  EXPECT_TRUE(plans->front().skipped.empty());
}

TEST_F(JitEnvironment, ChoosesTheRootByOptionVariableAndRule) {
  jit::PythonEnvironment python;
  python.versions["toy"] = "1.0";
  jit::PlanOptions options;
  options.systems = {"toy"};
  const auto root = [&] { return jit::plan_systems(rules_, python, options)->front(); };
  const ScopedEnv home("HOME", room_.path().c_str());
  EXPECT_EQ(root().root, room_.path(".toy"));
  options.own_roots = "/cache/jit";
  EXPECT_EQ(root().root, "/cache/jit/toy");
  EXPECT_EQ(root().variable_value, "/cache/jit/toy");
  const ScopedEnv variable("TOY_CACHE", "/data/toy");
  EXPECT_EQ(root().root, "/data/toy");
  EXPECT_EQ(root().variable_value, "");
  {
    const ScopedEnv several("TOY_CACHE", "/data/a:/data/b");
    EXPECT_NE(root().skipped, "") << "a list of directories is no root";
  }
  options.roots = {{"toy", "/given"}};
  EXPECT_EQ(root().root, "/given");
  EXPECT_EQ(root().variable_value, "/given") << "the command uses the given directory";
}

TEST_F(JitEnvironment, VariableNamesTheDirectoryAboveTheSubdirectoryOfAGivenRoot) {
  rules_.front().subdirectory = ".cache/toy";
  jit::PythonEnvironment python;
  python.versions["toy"] = "1.0";
  jit::PlanOptions options;
  options.systems = {"toy"};
  options.own_roots = "/cache/jit";
  options.roots = {{"toy", "/given/.cache/toy"}};
  const auto plans = jit::plan_systems(rules_, python, options);
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_EQ(plans->front().variable_value, "/given");
  options.roots = {{"toy", "/given"}};
  const auto unusable = jit::plan_systems(rules_, python, options);
  ASSERT_FALSE(unusable) << "the command would not find it";
  EXPECT_NE(unusable.error().message.find("use /given/.cache/toy"), std::string::npos) << unusable.error().message;
  options.own_roots.clear();
  EXPECT_TRUE(jit::plan_systems(rules_, python, options)) << "no command runs";
}

TEST_F(JitEnvironment, GivenRootAppliesToAllSystemsWithItsVariable) {
  rules_.back().variable = rules_.front().variable;
  jit::PythonEnvironment python;
  python.versions["toy"] = "1.0";
  jit::PlanOptions options;
  options.own_roots = "/cache/jit";
  const auto expect_value = [&](const std::string& value) {
    const auto plans = jit::plan_systems(rules_, python, options);
    ASSERT_TRUE(plans) << plans.error().message;
    ASSERT_EQ(plans->size(), 2U);
    for (const jit::SystemPlan& plan : *plans) {
      EXPECT_EQ(plan.variable_value, value) << plan.system.system;
      EXPECT_EQ(plan.root, value) << plan.system.system;
      EXPECT_EQ(plan.skipped, "");
    }
  };
  expect_value("/cache/jit/toy");
  options.own_roots = "/cache:1/jit";
  expect_value("/cache:1/jit/toy");
  for (const char* name : {"toy", "single"}) {
    options.roots = {{name, "/given"}};
    expect_value("/given");
    const ScopedEnv variable("TOY_CACHE", "/data/toy");
    expect_value("/given");
  }
  options.roots = {{"toy", "/given"}, {"single", "/given"}};
  expect_value("/given");
  options.roots = {{"toy", "/given"}, {"single", "/other"}};
  const auto two = jit::plan_systems(rules_, python, options);
  ASSERT_FALSE(two) << "the variable has one value";
  EXPECT_NE(two.error().message.find("another --root sets TOY_CACHE to /given"), std::string::npos)
      << two.error().message;
  options.own_roots.clear();
  EXPECT_TRUE(jit::plan_systems(rules_, python, options)) << "no command runs";
}

}  // namespace
}  // namespace kiln::test
