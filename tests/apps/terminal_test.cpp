// SPDX-License-Identifier: Apache-2.0
// The output on a terminal, which is a pseudo-terminal of the test, and in a pipe.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <kiln/kiln.hpp>

#include "apps/on_terminal.hpp"
#include "apps/run_kiln.hpp"
#include "base/files/files.hpp"
#include "base/process/process.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

class Terminal : public KilnProgram {
 protected:
  std::map<std::string, std::string> variables(const std::string& terminal = "xterm") {
    return {{"HOME", path("home")},
            {"PATH", "/usr/bin:/bin"},
            {"TERM", terminal},
            {"KILN_CACHE_DIR", path("cache")},
            {"KILN_STATUS_DIR", path("status")}};
  }
  OnTerminal on_terminal(Strings arguments, const std::map<std::string, std::string>& with,
                         unsigned short columns = 100) {
    arguments.insert(arguments.begin(), KILN_PROGRAM);
    return OnTerminal(arguments, with, columns);
  }
  // A slow program that measures nothing, to test the progress line.
  const Strings kSlow = {"calibrate", "--file", "c.json", "--", "sleep", "3"};
};

TEST_F(Terminal, ShowsAndRemovesProgressLine) {
  OnTerminal terminal = on_terminal(kSlow, variables());
  EXPECT_TRUE(terminal.says("kiln: measuring; do not run anything else on this machine; ")) << terminal.seen();
  EXPECT_TRUE(terminal.says(" s so far")) << terminal.seen();
  EXPECT_EQ(terminal.exit_code(), 1);
  const std::size_t gone = terminal.seen().rfind("\r\033[K");
  ASSERT_NE(gone, std::string::npos);
  EXPECT_EQ(terminal.seen().find("so far", gone), std::string::npos) << terminal.seen();
  EXPECT_NE(terminal.seen().find("\033[31merror: \033[0m", gone), std::string::npos) << "in red: " << terminal.seen();
}

TEST_F(Terminal, DumbTerminalAndJsonHaveNoProgress) {
  Strings quick = kSlow;
  quick.back() = "0.6";
  OnTerminal dumb = on_terminal(quick, variables("dumb"));
  Strings json = quick;
  json.insert(json.begin() + 1, "--json");
  OnTerminal reader = on_terminal(json, variables());
  Strings in_few_words = quick;
  in_few_words.insert(in_few_words.begin() + 1, "--quiet");
  OnTerminal quiet = on_terminal(in_few_words, variables());
  for (OnTerminal* terminal : {&dumb, &reader, &quiet}) {
    EXPECT_EQ(terminal->exit_code(), 1);
    EXPECT_EQ(terminal->seen().find("so far"), std::string::npos) << terminal->seen();
  }
  EXPECT_EQ(dumb.seen().find('\033'), std::string::npos) << dumb.seen();
  EXPECT_EQ(quiet.seen().find("hint:"), std::string::npos) << quiet.seen();
}

TEST_F(Terminal, NoColorStillRedrawsProgressLine) {
  auto plain = variables();
  plain["NO_COLOR"] = "1";
  OnTerminal terminal = on_terminal(kSlow, plain, 40);
  EXPECT_TRUE(terminal.says("\rmeasuring")) << terminal.seen();
  EXPECT_EQ(terminal.exit_code(), 1);
  EXPECT_EQ(terminal.seen().find("\033[31m"), std::string::npos) << terminal.seen();
  EXPECT_NE(terminal.seen().find("…\033[K"), std::string::npos) << "the line is cut to 40 columns: " << terminal.seen();
}

TEST_F(Terminal, ErrorNamesNextStep) {
  const Ran silent = run({"compile", "nothing.cu", "--arch", "sm_80"});
  EXPECT_EQ(silent.exit_code, 1);
  EXPECT_TRUE(silent.says("kiln: error: there is no file nothing.cu\nkiln: hint: check the path and its permissions"))
      << silent.err;
  EXPECT_FALSE(run({"compile", "nothing.cu", "--arch", "sm_80", "--quiet"}).says("hint:"));
  const Ran eloquent = run({"cache", "show", "abcd"});
  EXPECT_TRUE(eloquent.says("'kiln cache ls' lists the keys\n")) << eloquent.err;
  EXPECT_FALSE(eloquent.says("hint:")) << eloquent.err;
}

/// A fixture in which the test process compiles.
class LiveProcess : public Terminal {
 protected:
  Session session() {
    SessionOptions options;
    options.settings = {{"cache.dir", path("cache")}, {"status.dir", path("status")}};
    return Session::open(options).value();
  }
  Ran status(Strings more) {
    more.insert(more.begin(), "status");
    return run(more, {{"KILN_STATUS_DIR", path("status")}});
  }
  nlohmann::json first() {
    const nlohmann::json processes = status({"--json"}).json()["processes"];
    return processes.is_array() && !processes.empty() ? processes[0] : nlohmann::json::object();
  }
  const std::string kPid = std::to_string(getpid());
};

TEST_F(LiveProcess, StatusListsCompiledAndFailedUnits) {
  {
    Session here = session();
    here.request({Unit::cuda("good.cu", kSmallKernel).with_entry("k"), Unit::cuda("bad.cu", "this is no CUDA")},
                 Target::sm(80));
    ASSERT_TRUE(eventually([&] { return here.status().pending == 0; }, kHangTimeout));
    ASSERT_TRUE(eventually([&] { return first().value("failed", 0) == 1 && first().value("compiled", 0) == 1; }));
    const nlohmann::json seen = first();
    EXPECT_EQ(seen["pid"], getpid());
    EXPECT_NE(seen["command"].get<std::string>().find("test_kiln_program"), std::string::npos);
    EXPECT_EQ(seen["pending"], 0);
    EXPECT_EQ(seen["units"][0]["unit"], "bad.cu") << "failed units come before ready ones";
    EXPECT_EQ(seen["units"][0]["state"], "failed");
    EXPECT_EQ(seen["units"][1]["target"], "sm_80");
    const Ran text = status({kPid});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_NE(text.out.find("2 requested: 1 compiled, 0 cached, 0 pending, 1 failed"), std::string::npos) << text.out;
    EXPECT_EQ(text.out.find('\033'), std::string::npos) << "no colors in a pipe";

    OnTerminal watching = on_terminal({"status", kPid, "--watch"}, variables());
    EXPECT_TRUE(watching.says("good.cu")) << watching.seen();
    watching.interrupt();
    EXPECT_EQ(watching.exit_code(), 0);
    EXPECT_TRUE(watching.seen().starts_with("\033[?1049h\033[?25l")) << "alternate screen without a cursor";
    EXPECT_NE(watching.seen().find("\033[?25h\033[?1049l"), std::string::npos)
        << "screen and cursor are restored: " << watching.seen();
  }
  const Ran gone = status({kPid});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_TRUE(gone.says("has no status file")) << gone.err;
  EXPECT_EQ(status({"--json"}).json()["processes"].size(), 0u);
}

TEST_F(LiveProcess, CacheHitsWriteNoStatusFile) {
  const Unit unit = Unit::cuda("good.cu", kSmallKernel).with_entry("k");
  ASSERT_TRUE(session().artifact(unit, Target::sm(80)));
  std::filesystem::remove_all(path("status"));
  Session here = session();
  ASSERT_TRUE(here.artifact(unit, Target::sm(80)));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(std::filesystem::exists(path("status")));
}

}  // namespace
}  // namespace kiln::test
