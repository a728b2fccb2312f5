// SPDX-License-Identifier: Apache-2.0
// What a person meets who uses the program for the first time: names, spellings, messages, the order of the output.
#include <filesystem>
#include <set>

#include "apps/json_schema.hpp"
#include "apps/on_terminal.hpp"
#include "apps/run_kiln.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

Strings targets_of(const Ran& ran) {
  Strings targets;
  const auto json = ran.json();
  if (json.is_object()) {
    for (const auto& result : json["results"]) targets.push_back(result["target"]);
  }
  return targets;
}

TEST_F(KilnProgram, UnknownOptionIsNamedWithTheMostSimilarOne) {
  write("k.cu", kSmallKernel);
  const Ran typo = run({"compile", "k.cu", "--arhc", "sm_80"});
  EXPECT_EQ(typo.exit_code, 2);
  EXPECT_EQ(typo.err, "kiln: error: unknown option '--arhc'; did you mean '--arch'?\nTry 'kiln compile --help'.\n");
  EXPECT_TRUE(run({"compile", "k.cu", "--ouput=x"}).says("unknown option '--ouput'; did you mean '--output'?"));
  EXPECT_TRUE(run({"warm", "--form", "kiln.toml"}).says("did you mean '--from'?")) << "a required option is misspelled";
  EXPECT_TRUE(run({"--verson"}).says("did you mean '--version'?"));
  const Ran unlike = run({"compile", "k.cu", "--nonsense"});
  EXPECT_TRUE(unlike.says("unknown option '--nonsense'\n")) << unlike.err;
  EXPECT_TRUE(run({"compile", "k.cu", "-Z"}).says("unknown option '-Z'\n")) << "a letter is like every other one";
}

TEST_F(KilnProgram, CapitalVPrintsTheVersion) { EXPECT_EQ(run({"-V"}).out, run({"version"}).out); }

TEST_F(KilnProgram, ArchitectureIsUnderstoodInEachCommonSpelling) {
  write("k.cu", kSmallKernel);
  const auto explained = [&](const std::string& list, const Variables& variables = {}) {
    return targets_of(run({"explain", "k.cu", "--arch", list, "--json"}, variables));
  };
  EXPECT_EQ(explained("90,sm90,sm_90"), Strings{"sm_90"});
  EXPECT_EQ(explained("90a,compute90,lto_90"), (Strings{"sm_90a", "compute_90", "lto_90"}));
  const Ran wrong = run({"explain", "k.cu", "--arch", "gfx90"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(wrong.says("'gfx90' is not an architecture; use sm_90")) << wrong.err;
  const Ran split = run({"split", "k.cu", "--arch", "turing"});
  EXPECT_EQ(split.exit_code == 0, false);

  const Ran none = run({"explain", "k.cu", "--arch", "native"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_TRUE(none.says("--arch native found no CUDA device: ")) << none.err;
  EXPECT_TRUE(none.says("; name the architecture, for example --arch sm_90\n")) << none.err;
  EXPECT_EQ(explained("native,sm_75", {{"LD_LIBRARY_PATH", FakeCudaDriver::directory()},
                                       {"KILN_FAKE_DRIVER_DEVICES", "sm_90,sm_80,sm_90"}}),
            (Strings{"sm_90", "sm_80", "sm_75"}));
}

TEST_F(KilnProgram, MisspelledEntryListsTheKernelsOfTheFile) {
  write("k.cu",
        "extern \"C\" __global__ void scale(float* x) { x[0] *= 2; }\n"
        "template <class T> __global__ void add(T* x) { x[0] += 1; }\n");
  const Ran ran = run({"compile", "k.cu", "--arch", "sm_80", "--entry", "scael"});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.err,
            "kiln: error: k.cu for sm_80: unit 'k.cu' has no kernel 'scael': identifier \"scael\" is undefined; its "
            "source has scale, add<…>\n");
  const Ran type = run({"compile", "k.cu", "--arch", "sm_80", "--entry", "add<flaot>"});
  EXPECT_TRUE(type.says("has no kernel 'add<flaot>': identifier \"flaot\" is undefined; ")) << type.err;
  write("broken.cu", "extern \"C\" __global__ void scale(float* x) { x[0] *= two; }\n");
  const Ran broken = run({"compile", "broken.cu", "--arch", "sm_80", "--entry", "scael"});
  EXPECT_TRUE(broken.says("identifier \"two\" is undefined")) << "errors of the source come first: " << broken.err;
}

TEST_F(KilnProgram, MissingHeaderIsLookedForOnThisMachine) {
  write("toolkit/include/cccl/cub/kiln_only_here.cuh", "");
  write("k.cu", "#include <cub/kiln_only_here.cuh>\nextern \"C\" __global__ void k() {}\n");
  const Strings compile = {"compile", "k.cu", "--arch", "sm_80"};
  const Ran found = run(compile, {{"CUDA_HOME", path("toolkit")}});
  EXPECT_EQ(found.exit_code, 1);
  const std::string place = path("toolkit/include/cccl");
  EXPECT_TRUE(found.says("hint: cub/kiln_only_here.cuh is in " + place + ": add -I " + place + " (in a kiln.toml: "))
      << found.err;
  const Ran absent = run(compile);
  EXPECT_TRUE(absent.says("hint: no directory of this machine has cub/kiln_only_here.cuh: 'pip install cuda-cccl'"))
      << absent.err;
  write("own.cu", "#include \"mine.h\"\nextern \"C\" __global__ void k() {}\n");
  EXPECT_TRUE(run({"compile", "own.cu", "--arch", "sm_80"}).says("; add the include directory that has it"));
}

TEST_F(KilnProgram, ResultIsPrintedWhenItIsFinished) {
  write("quick.cu", kSmallKernel);
  std::string slow;  // takes seconds, so that a busy machine does not delay this process for longer
  for (int i = 0; i < 16; ++i) {
    slow += "__global__ void k" + std::to_string(i) +
            "(double* x) {\n#pragma unroll\n  for (int i = 0; i < 8; ++i) x[i] = pow(sin(x[i]), x[i + 1]);\n}\n";
  }
  write("slow.cu", slow);
  OnTerminal terminal({KILN_PROGRAM, "compile", "quick.cu", "slow.cu", "--arch", "sm_80", "--quiet"},
                      {{"HOME", path("home")}, {"PATH", "/usr/bin:/bin"}, {"KILN_CACHE_DIR", path("cache")}}, 100);
  EXPECT_TRUE(terminal.says("quick.cu  sm_80  compiled")) << terminal.seen();
  EXPECT_EQ(terminal.seen().find("slow.cu  "), std::string::npos) << "it is still being compiled: " << terminal.seen();
  EXPECT_TRUE(terminal.says("slow.cu   sm_80  compiled")) << "in the same columns: " << terminal.seen();
  EXPECT_EQ(terminal.exit_code(), 0);
}

TEST_F(KilnProgram, OutputThatCannotBeWrittenIsAnError) {
  const auto in_shell = [&](const std::string& command) {
    return run_program({"/bin/sh", "-c", std::string(KILN_PROGRAM) + ' ' + command});
  };
  for (const char* command : {"version", "--help", "config show --json", "completions bash"}) {
    const Ran full = in_shell(std::string(command) + " > /dev/full");
    EXPECT_EQ(full.exit_code, 1) << command;
    EXPECT_TRUE(full.says("kiln: error: cannot write standard output: No space left on device")) << full.err;
  }
  const Ran closed = run_program(
      {"/bin/bash", "-c", "set -o pipefail; { sleep 0.2; " + std::string(KILN_PROGRAM) + " help; } | true"});
  EXPECT_EQ(closed.exit_code, 0) << "a reader that has seen enough is no error: " << closed.err;
}

TEST_F(KilnProgram, InterruptEndsTheProgressLine) {
  OnTerminal terminal({KILN_PROGRAM, "calibrate", "--file", "c.json", "--", "sleep", "3"},
                      {{"HOME", path("home")}, {"PATH", "/usr/bin:/bin"}, {"TERM", "xterm"}}, 100);
  ASSERT_TRUE(terminal.says(" s so far")) << terminal.seen();
  terminal.interrupt();
  EXPECT_EQ(terminal.exit_code(), 128 + SIGINT);
  EXPECT_TRUE(terminal.seen().ends_with("\n")) << "the prompt of the shell gets a line of its own: " << terminal.seen();
}

/// Returns the commands of the manual page that have the option --json, with their options.
std::map<std::string, std::string> sections_of(const std::string& page) {
  std::map<std::string, std::string> sections;
  std::string name;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = std::min(page.find('\n', at), page.size());
    const std::string line = page.substr(at, end - at);
    at = end + 1;
    if (line.starts_with(".SS ")) name = line.substr(4);
    if (line.starts_with(".SH ")) name.clear();
    if (!name.empty()) sections[name] += line + '\n';
  }
  return sections;
}

TEST_F(KilnProgram, EveryCommandWithJsonHasPublishedSchema) {
  std::size_t commands = 0;
  for (const auto& [name, text] : sections_of(run({"man"}).out)) {
    if (text.find("\\fB\\-\\-json\\fR") == std::string::npos) continue;
    ++commands;
    std::string file = name.substr(std::string("kiln ").size());
    std::string plain;
    for (const char c : file) plain += c == '\\' ? std::string() : std::string(1, c == ' ' ? '-' : c);
    EXPECT_TRUE(fs::exists(KILN_SOURCE_DIR "/apps/kiln/schemas/" + plain + ".json")) << plain;
  }
  EXPECT_GT(commands, 30U);
  EXPECT_EQ(run({"version", "--json"}).json()["schema_version"], 1);
}

TEST(JsonSchema, CheckerFindsEachKindOfDifference) {
  const auto schema = nlohmann::json::parse(read_text(KILN_SOURCE_DIR "/apps/kiln/schemas/doctor.json"));
  const auto valid = nlohmann::json::parse(
      R"({"schema_version":1,"usable":true,"findings":[{"check":"a","state":"ok","text":"","advice":"","more":1}]})");
  EXPECT_EQ(schema_problem(schema, valid), "");
  const auto problem = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json wrong = valid;
    wrong[nlohmann::json::json_pointer(pointer)] = value;
    return schema_problem(schema, wrong);
  };
  EXPECT_EQ(problem("/schema_version", 2), "$.schema_version is not 1");
  EXPECT_EQ(problem("/usable", "yes"), "$.usable is a string, not \"boolean\"");
  EXPECT_NE(problem("/findings/0/state", "bad"), "");
  EXPECT_NE(problem("/findings/0", nlohmann::json::object()), "");
  EXPECT_NE(schema_problem({{"oneOf", 1}}, valid), "") << "an unknown keyword is reported";
}

TEST_F(KilnProgram, ManualPageHasEveryCommandAndRenders) {
  const std::string page = run({"man"}).out;
  const auto sections = sections_of(page);
  EXPECT_TRUE(sections.contains("kiln bundle create") && sections.contains("kiln device\\-usage")) << page;
  // Every option in the help of a command is in its section.
  for (const Strings& command :
       {Strings{"compile"}, Strings{"bundle", "create"}, Strings{"cache", "gc"}, Strings{"audit"}}) {
    Strings asked = command;
    asked.insert(asked.begin(), "help");
    const std::string help = run(asked).out;
    std::string name = "kiln";
    for (const std::string& word : command) name += ' ' + word;
    std::size_t options = 0;
    for (std::size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      const std::size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const std::string option = help.substr(at + 2, end - at - 2);
      if (option.empty() || help[at - 1] == '\'' || help.substr(0, at).find("Example") != std::string::npos) continue;
      std::string escaped = "\\-\\-";
      for (const char c : option) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
      EXPECT_NE(sections.at(name).find(escaped), std::string::npos) << name << " --" << option;
      ++options;
    }
    EXPECT_GT(options, 3U) << name;
  }
  write("kiln.1", page);
  if (!fs::exists("/usr/bin/groff")) GTEST_SKIP() << "needs groff";
  const Ran rendered = run_program({"/bin/sh", "-c", "groff -k -man -Tutf8 -ww kiln.1"});
  EXPECT_EQ(rendered.exit_code, 0);
  EXPECT_EQ(rendered.err, "") << "groff has no warnings";
  EXPECT_NE(rendered.out.find("kiln bundle create"), std::string::npos);
}

// Returns the key of the only result, as `kiln cache ls` prints it.
std::string short_key(const Ran& compiled) {
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  return compiled.exit_code == 0 ? compiled.json()["results"][0]["key"].get<std::string>().substr(0, 12) : "";
}

TEST_F(KilnProgram, BashCompletesKeysAndArchitectures) {
  write("k.cu", kSmallKernel);
  const std::string key = short_key(run({"compile", "k.cu", "--arch", "sm_80", "--json"}));
  write("kiln.bash", run({"completions", "bash"}).out);
  const auto completed = [&](const std::string& words, int at) {
    return run_program({"/bin/bash", "-c",
                        "source ./kiln.bash; compopt() { :; }; COMP_WORDS=(" + words +
                            "); COMP_CWORD=" + std::to_string(at) + "; _kiln; echo \"${COMPREPLY[*]}\""})
        .out;
  };
  EXPECT_EQ(completed(std::string(KILN_PROGRAM) + " cache show ''", 3), key + "\n");
  EXPECT_EQ(completed("kiln compile k.cu --arch nat", 4), "native\n");
  EXPECT_EQ(completed("kiln compile k.cu --arch sm_80,sm_12", 4), "sm_80,sm_120\n");
  EXPECT_EQ(completed("kiln compile --backend o", 3), "opencl\n");
  EXPECT_EQ(completed("kiln bundle create kiln.toml --key kiln.b", 5), "kiln.bash\n") << "the value is a file";
}

// Has zsh and fish complete command lines, as when the user presses Tab.
TEST_F(KilnProgram, ZshAndFishCompleteKeysAndArchitectures) {
  write("k.cu", kSmallKernel);
  const std::string key = short_key(run({"compile", "k.cu", "--arch", "sm_80", "--json"}));
  const std::string program = KILN_PROGRAM;
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"kiln ca", "cache calibrate"},
      {"kiln cache e", "extract"},
      {"kiln cache ls --j", "--json"},
      {"kiln bundle split --o", "--output"},  // the options of `kiln split` are others
      {"kiln bundle split --b", ""},
      {"kiln help bun", "bundle"},
      {"kiln compile k.cu --arch nat", "native"},
      {"kiln compile k.cu --arch sm_80,sm_12", "sm_80,sm_120"},
      {"kiln compile --backend o", "opencl"},
      {"kiln bundle create kiln.toml --key kiln.z", "kiln.zsh"},
      {program + " cache show ", key}};
  for (const std::string shell : {"zsh", "fish"}) {
    if (!fs::exists("/usr/bin/" + shell)) GTEST_SKIP() << "needs zsh and fish";
    write("kiln." + shell, run({"completions", shell}).out);
    Strings command = {"/usr/bin/" + shell, shell == "zsh" ? "-f" : "--no-config",
                       KILN_SOURCE_DIR "/tests/apps/complete." + shell, "./kiln." + shell};
    std::string expected;
    for (const auto& [line, words] : lines) {
      command.push_back(line);
      // zsh completes the part after the comma.
      expected += line + ": " + (shell == "zsh" ? words.substr(words.find(',') + 1) : words) + '\n';
    }
    const Ran ran = run_program(command);
    EXPECT_EQ(ran.out, expected) << shell << ": " << ran.err;
  }
}

}  // namespace
}  // namespace kiln::test
