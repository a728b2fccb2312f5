// SPDX-License-Identifier: Apache-2.0
// Text that a terminal interprets, in all output that shows external files.
#include "apps/on_terminal.hpp"
#include "bundle/oci_manifest.hpp"
#include "hostile/hostile_input.hpp"

namespace kiln::test {
namespace {

// Sequences that some terminal obeys (interprets as a command), or that change the visible order of a line.
const Strings kObeyed = {
    "\x1b]0;owned\x07",  // ESC and BEL
    "\x1b[2J",
    "\xc2\x9b"
    "2J",  // C1, as UTF-8
    "\x9b"
    "2J",  // C1, as a byte: invalid UTF-8
    "\x7f",
    "\r",
    "\xe2\x80\xae",  // U+202E, right to left
    "\xe2\x81\xa6",  // U+2066, isolate
    "\xe2\x80\x8f",  // U+200F, mark
    "\xd8\x9c",      // U+061C, mark
};

std::string hostile_text() {
  std::string text = "x";
  for (const std::string& each : kObeyed) text += each + "x";
  return text;
}

/// Returns a description of the sequences that the output still contains.
std::string obeyed_in(std::string said) {
  // Sequences that kiln itself writes to a terminal: colors, the progress line and line ends.
  for (const std::string own :
       {"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\r\x1b[K", "\r\n"}) {
    for (std::size_t at = 0; (at = said.find(own, at)) != std::string::npos;) said.replace(at, own.size(), " ");
  }
  std::string found;
  for (const std::string& each : kObeyed) {
    if (said.find(each) == std::string::npos) continue;
    for (const char c : each) {
      char hex[8];
      std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(c));
      found += hex;
    }
    found += ' ';
  }
  return found;
}

class HostileText : public HostileInput {
 protected:
  /// Runs kiln with a pipe and on a terminal, and expects none of kObeyed in the output.
  void expect_harmless(const Strings& arguments, const std::string& what, const std::string& shown = "x") {
    const Ran piped = run(arguments, variables_);
    EXPECT_EQ(obeyed_in(piped.out + piped.err), "") << what << ", in a pipe: " << piped.err;
    EXPECT_NE((piped.out + piped.err).find(shown), std::string::npos) << what << " is not shown: " << piped.err;
    Strings command = arguments;
    command.insert(command.begin(), KILN_PROGRAM);
    Variables with = {{"HOME", path("home")},
                      {"PATH", "/usr/local/cuda/bin:/usr/bin:/bin"},
                      {"TERM", "xterm"},
                      {"KILN_CACHE_DIR", path("cache")}};
    for (const auto& [name, value] : variables_) with[name] = value;
    OnTerminal terminal(command, with, 200);
    EXPECT_EQ(terminal.exit_code(), piped.exit_code) << what;
    EXPECT_EQ(obeyed_in(terminal.seen()), "") << what << ", on a terminal";
  }
  Variables variables_;
};

TEST_F(HostileText, TerminalEscapesInUnitNamesAreEscaped) {
  write_text(path("app.kiln"), image_of({member_of(hostile_text(), Target::parse("sm_80").value())}).to_file());
  write_text(path("none.kiln"), image_of({member_of("a.cu", Target::parse("sm_80").value())}).to_file());
  expect_harmless({"bundle", "ls", "app.kiln"}, "ls");
  expect_harmless({"bundle", "diff", "none.kiln", "app.kiln"}, "diff");
  expect_harmless({"bundle", "extract", "app.kiln", hostile_text(), "--arch", "sm_90", "-o", "x"}, "extract");
}

TEST_F(HostileText, TerminalEscapesInFileNamesAreEscaped) {
  const std::string name = hostile_text();
  expect_harmless({"bundle", "verify", name}, "a missing file");
  write_text(path(name), "not a bundle");
  expect_harmless({"bundle", "ls", name}, "a file");
  expect_harmless({"bundle", "create", name, "-o", "x"}, "a manifest");
  expect_harmless({name}, "a command");
  expect_harmless({"bundle", "ls", "a.kiln", "--" + name}, "an option");
  variables_["KILN_CACHE_DIR"] = path(hostile_text() + "/cache");
  expect_harmless({"doctor"}, "doctor");
}

TEST_F(HostileText, TerminalEscapesInMediaTypesAreEscaped) {
  const std::string type = hostile_text();
  // A media type is text in JSON, so only UTF-8 gets that far.
  std::string utf8 = type;
  utf8.erase(utf8.find("\x9b"
                       "2J",
                       utf8.find("\xc2\x9b") + 2),
             3);
  const auto blob = [&](const nlohmann::json& json) {
    const std::string text = json.dump();
    write_text(path("layout/blobs/sha256/" + sha256(text).hex()), text);
    return nlohmann::json{{"digest", "sha256:" + sha256(text).hex()}, {"size", text.size()}};
  };
  std::filesystem::create_directories(path("layout/blobs/sha256"));
  write_text(path("layout/oci-layout"), R"({"imageLayoutVersion":"1.0.0"})");
  nlohmann::json config = blob({{"a", 1}});
  config["mediaType"] = utf8;
  nlohmann::json manifest = blob({{"schemaVersion", 2}, {"config", config}, {"layers", nlohmann::json::array()}});
  manifest["mediaType"] = kOciManifest;
  write_text(path("layout/index.json"), nlohmann::json{{"schemaVersion", 2}, {"manifests", {manifest}}}.dump());
  expect_harmless({"bundle", "verify", "layout"}, "a config's type", "its config is of type x");
}

TEST_F(HostileText, TerminalEscapesInCompilerLogsAreEscaped) {
  if (run({"doctor", "--json"}).finding("NVRTC")["state"] == "problem") GTEST_SKIP() << "there is no NVRTC here";
  std::string text = hostile_text();
  text.erase(text.find('\r'), 1);  // it would end the line
  write("loud.cu", "#error " + text + "\n");
  expect_harmless({"compile", "loud.cu", "--arch", "sm_80"}, "an error's log", "\n");
  write(text + ".cu", kSmallKernel);
  expect_harmless({"explain", text + ".cu", "--arch", "sm_80"}, "explain", "\\u001b]0;owned");
  expect_harmless({"compile", text + ".cu", "--arch", "sm_80"}, "compile", "\\u001b]0;owned");
}

TEST_F(HostileText, JsonOutputHasNoControlCharacters) {
  write_text(path("app.kiln"), image_of({member_of(hostile_text(), Target::parse("sm_80").value())}).to_file());
  const Ran ran = run({"bundle", "ls", "app.kiln", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(obeyed_in(ran.out), "");
  const std::string unit = ran.json()["artifacts"][0]["unit"];
  EXPECT_NE(unit.find("\xe2\x80\xae"), std::string::npos) << "the value itself is unchanged: " << ran.out;
}

}  // namespace
}  // namespace kiln::test
