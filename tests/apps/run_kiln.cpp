// SPDX-License-Identifier: Apache-2.0
#include "apps/run_kiln.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "apps/json_schema.hpp"
#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/fixtures/files.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace fs = std::filesystem;

namespace {

bool is_ours(const std::string& entry) {
  for (const char* prefix : {"KILN_", "HOME=", "XDG_", "NO_COLOR="}) {
    if (entry.starts_with(prefix)) return true;
  }
  return false;
}

// Expects that the JSON of a command is as its schema states, in every test.
void expect_schema(const std::vector<std::string>& arguments, const Ran& ran) {
  const std::string file = schema_file(arguments);
  const bool prints_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  const nlohmann::json document = ran.json();
  if (file.empty() || !prints_json || !document.is_object()) return;
  EXPECT_EQ(schema_problem(nlohmann::json::parse(read_text(file)), document), "") << file << ": " << ran.out;
}

}  // namespace

nlohmann::json Ran::finding(const std::string& check) const {
  const auto all = json();
  for (const auto& each : all["findings"]) {
    if (each["check"] == check) return each;
  }
  ADD_FAILURE() << "no check for " << check << " in " << out;
  return {};
}

std::string detail(const nlohmann::json& finding, const std::string& what) {
  for (const auto& each : finding["details"]) {
    if (each["what"] == what) return each["value"];
  }
  return {};
}

void KilnProgram::SetUp() {
  std::string pattern = (fs::temp_directory_path() / "kiln-cli-XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  root_ = fs::canonical(pattern).string();
  fs::current_path(root_);
}

void KilnProgram::TearDown() {
  fs::current_path("/");
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

std::string KilnProgram::write(const std::string& name, const std::string& text) {
  fs::create_directories(fs::path(path(name)).parent_path());
  std::ofstream(path(name)) << text;
  // A unit whose header changed less than 20 ms ago is not cached, and a fast machine compiles it before that.
  if (name.ends_with(".h")) system_clock().sleep(std::chrono::milliseconds(25));
  return path(name);
}

Ran KilnProgram::run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables) {
  std::vector<std::string> command = arguments;
  command.insert(command.begin(), KILN_PROGRAM);
  Ran ran = run_program(command, variables);
  expect_schema(arguments, ran);
  return ran;
}

Ran KilnProgram::run_program(const std::vector<std::string>& command,
                             const std::map<std::string, std::string>& variables) {
  // Ignore leaks of the OpenCL driver at exit. Only sanitizer builds read this variable.
  std::map<std::string, std::string> ours = {
      {"HOME", path("home")},
      {"KILN_CACHE_DIR", path("cache")},
      {"LSAN_OPTIONS", "print_suppressions=0:suppressions=" + write(".leaks", "leak:libpocl\nleak:libLLVM\n")}};
  for (const auto& [name, value] : variables) ours[name] = value;
  Process::SpawnOptions start;
  start.arguments = command;
  for (std::string& entry : current_environment()) {
    const bool is_replaced = ours.contains(entry.substr(0, entry.find('=')));
    if (!is_ours(entry) && !is_replaced) start.environment.push_back(std::move(entry));
  }
  for (const auto& [name, value] : ours) {
    if (!value.empty()) start.environment.push_back(name + "=" + value);
  }
  const Fd in(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd out(open(path(".stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const Fd err(open(path(".stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  start.descriptors = {{in.get(), 0}, {out.get(), 1}, {err.get(), 2}};
  auto process = Process::spawn(start);
  if (!process) {
    ADD_FAILURE() << process.error().message;
    return {};
  }
  const auto exit = process->wait(kHangTimeout);
  EXPECT_TRUE(exit.has_value()) << command[0] << " hangs";
  Ran ran;
  if (exit) ran.exit_code = exit->signal != 0 ? 128 + exit->signal : exit->code;
  ran.out = read_text(path(".stdout"));
  ran.err = read_text(path(".stderr"));
  return ran;
}

std::vector<std::string> KilnProgram::origins(const Ran& ran) {
  std::vector<std::string> origins;
  const nlohmann::json json = ran.json();
  if (json.is_discarded()) {
    ADD_FAILURE() << "not JSON: " << ran.out << ran.err;
    return origins;
  }
  for (const auto& result : json["results"]) origins.push_back(result["origin"]);
  return origins;
}

}  // namespace kiln::test
