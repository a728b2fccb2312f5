// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <map>
#include <sstream>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

TEST_F(KilnProgram, WrongUsageReturnsTwoAndSuggestsCommand) {
  EXPECT_EQ(run({}).exit_code, 2);
  const Ran typo = run({"compil", "k.cu"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_TRUE(typo.says("did you mean 'compile'?")) << typo.err;
  EXPECT_EQ(run({"cache"}).exit_code, 2);
  EXPECT_EQ(run({"cache", "lss"}).exit_code, 2);
  EXPECT_EQ(run({"compile"}).exit_code, 2);
  EXPECT_EQ(run({"compile", "k.cu", "--nonsense"}).exit_code, 2);
  write("k.cu", kSmallKernel);
  EXPECT_TRUE(run({"compile", "k.cu"}).says("--arch sm_80")) << "the message suggests the missing option";
  EXPECT_EQ(run({"compile", "k.cu"}).exit_code, 2);
  EXPECT_EQ(run({"compile", "k.cu", "--arch", "gfx90"}).exit_code, 2);
  EXPECT_EQ(run({"compile", "k.cu", "--arch", "sm_80", "--sentinel", "include=x"}).exit_code, 2);
  EXPECT_EQ(run({"compile", "absent.cu", "--arch", "sm_80"}).exit_code, 1);
}

TEST_F(KilnProgram, HelpCoversEveryCommand) {
  const Ran all = run({"help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* command : {"compile", "explain", "split", "cache", "config", "doctor", "audit", "device-usage",
                              "report", "version", "completions"}) {
    EXPECT_NE(all.out.find(command), std::string::npos) << command;
    const Ran one = run({"help", command});
    EXPECT_EQ(one.exit_code, 0) << command;
    EXPECT_EQ(one.out, run({command, "--help"}).out) << command;
    EXPECT_NE(one.out.find(std::string("Usage: kiln ") + command), std::string::npos) << one.out;
  }
  for (const char* command :
       {"compile", "explain", "cache", "config", "doctor", "audit", "device-usage", "report", "completions"}) {
    EXPECT_NE(run({"help", command}).out.find("Example"), std::string::npos) << command;
  }
  EXPECT_EQ(run({"help", "nothing"}).exit_code, 2);
}

TEST_F(KilnProgram, VersionPrintsTheVersion) {
  EXPECT_TRUE(run({"version"}).out.starts_with("kiln "));
  EXPECT_EQ(run({"--version"}).out, run({"version"}).out);
  EXPECT_FALSE(run({"version", "--json"}).json()["libraries"]["libcrypto"].get<std::string>().empty());
  EXPECT_EQ("kiln " + run({"version", "--json"}).json()["version"].get<std::string>() + "\n", run({"version"}).out);
}

TEST_F(KilnProgram, ConfigShowPrintsSourceOfEachValue) {
  write("home/.config/kiln/config.toml", "compile = \"never\"\n[cache]\nmax_size = \"1G\"\n");
  const Ran ran = run({"config", "show", "--json"}, {{"KILN_CACHE_MAX_SIZE", "2G"}});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::map<std::string, std::pair<std::string, std::string>> settings;
  const auto json = ran.json();
  for (const auto& each : json["settings"]) settings[each["name"]] = {each["value"], each["origin"]};
  EXPECT_EQ(settings["cache.max_size"], std::pair(std::string("2G"), std::string("KILN_CACHE_MAX_SIZE")));
  EXPECT_EQ(settings["compile"], std::pair(std::string("never"), path("home/.config/kiln/config.toml:1")));
  EXPECT_EQ(settings["disable"], std::pair(std::string("false"), std::string("default")));
  EXPECT_EQ(settings["cache.dir"], std::pair(path("cache"), std::string("KILN_CACHE_DIR")));
  EXPECT_NE(run({"config", "show"}).out.find("KILN_CACHE_DIR"), std::string::npos);
}

TEST_F(KilnProgram, VariablesOfRuntimeAreShownAndCheckedByConfigAndDoctor) {
  const std::map<std::string, std::string> variables = {
      {"KILN_REWRITES", "false"}, {"KILN_MEMORY_TIER", "best"}, {"KILN_CALIBRATE_QUICK", "soon"}};
  const Ran ran = run({"config", "show", "--json"}, variables);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  std::map<std::string, std::pair<std::string, std::string>> shown;
  const auto json = ran.json();
  for (const auto& each : json["variables"]) shown[each["name"]] = {each["value"], each["origin"]};
  EXPECT_EQ(shown["KILN_REWRITES"], std::pair(std::string("false"), std::string("KILN_REWRITES")));
  EXPECT_EQ(shown["KILN_MEMORY_TIER"], std::pair(std::string("pool"), std::string("default")));
  EXPECT_EQ(shown["KILN_EXECUTION_MODE"], std::pair(std::string("auto"), std::string("default")));
  const std::string doctor = run({"doctor"}, variables).out;
  for (const std::string& said : {ran.err, doctor}) {
    EXPECT_NE(said.find("KILN_MEMORY_TIER is ignored: invalid value 'best'; use pool"), std::string::npos) << said;
    EXPECT_NE(said.find("KILN_CALIBRATE_QUICK is ignored: invalid value 'soon'"), std::string::npos) << said;
    EXPECT_EQ(said.find("KILN_REWRITES is ignored"), std::string::npos) << said;
  }
}

TEST_F(KilnProgram, CompletionsAreValidAndListEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Ran ran = run({"completions", shell});
    ASSERT_EQ(ran.exit_code, 0);
    for (const char* word : {"compile", "extract", "max-size", "doctor", "verify", "fail-on"}) {
      EXPECT_NE(ran.out.find(word), std::string::npos) << shell << " lacks " << word;
    }
    write(std::string("kiln.") + shell, ran.out);
    const std::string program = run_program({"/bin/sh", "-c", std::string("command -v ") + shell}).out;
    if (program.empty()) continue;
    const Ran checked = run_program({"/bin/sh", "-c", std::string(shell) + " -n kiln." + shell});
    EXPECT_EQ(checked.exit_code, 0) << shell << ": " << checked.err;
  }
  EXPECT_EQ(run({"completions", "tcsh"}).exit_code, 2);
}

TEST_F(KilnProgram, BashCompletesCommandsAndOptions) {
  write("kiln.bash", run({"completions", "bash"}).out);
  const std::string ask =
      "source ./kiln.bash; COMP_WORDS=(kiln cache e); COMP_CWORD=2; _kiln; echo \"${COMPREPLY[*]}\";"
      "COMP_WORDS=(kiln compile --ar); COMP_CWORD=2; _kiln; echo \"${COMPREPLY[*]}\"";
  EXPECT_EQ(run_program({"/bin/bash", "-c", ask}).out, "extract\n--arch\n");
}

// tools/make_reference writes the option tables, and sections for commands that the page does not describe.
TEST_F(KilnProgram, EveryCommandIsDocumented) {
  const std::string manual =
      read_text(KILN_SOURCE_DIR "/docs/reference/cli.md") + read_text(KILN_SOURCE_DIR "/docs/_generated/cli/more.md");
  const std::string help = run({"help"}).out;
  std::istringstream lines(help.substr(help.find("Commands:")));
  int commands = 0;
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && !line.empty();) {
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (name == "help") continue;
    ++commands;
    EXPECT_NE(manual.find("\n## kiln " + name + "\n"), std::string::npos) << name << ": run tools/make_reference";
  }
  EXPECT_GT(commands, 15);
}

}  // namespace
}  // namespace kiln::test
