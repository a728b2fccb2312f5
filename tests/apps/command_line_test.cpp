#include <filesystem>
#include <fstream>
#include <iterator>

#include "apps/run_kiln.hpp"

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
  const Variables variables = {
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

TEST_F(KilnProgram, EveryCommandIsDocumented) {
  std::ifstream file(KILN_SOURCE_DIR "/docs/cli.md");
  const std::string manual((std::istreambuf_iterator<char>(file)), {});
  for (const char* command :
       {"kiln compile",       "kiln explain",   "kiln cache stats",  "kiln cache ls",    "kiln cache show",
        "kiln cache extract", "kiln cache gc",  "kiln cache verify", "kiln cache clear", "kiln config show",
        "kiln doctor",        "kiln audit",     "kiln device-usage", "kiln warm",        "kiln remote stats",
        "kiln remote verify", "kiln remote gc", "kiln remote rm",    "kiln version",     "kiln help",
        "kiln completions",   "kiln report",    "kiln split"}) {
    EXPECT_NE(manual.find(command), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace kiln::test
