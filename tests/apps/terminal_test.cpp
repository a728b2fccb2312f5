// What people see on a terminal, and what others see in a pipe. The terminal is a pseudo-terminal of the test's.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <unistd.h>

#include <kiln/kiln.hpp>

#include "apps/run_kiln.hpp"
#include "base/files.hpp"
#include "base/process.hpp"
#include "support/eventually.hpp"
#include "support/patience.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

/// A program with a terminal of its own for all that it says.
class OnTerminal {
 public:
  OnTerminal(const Strings& command, const std::map<std::string, std::string>& variables, unsigned short columns) {
    winsize size{24, columns, 0, 0};
    int master = -1;
    int slave = -1;
    EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
    master_ = Fd(master);
    const Fd terminal(slave);
    Process::Start start;
    start.arguments = command;
    for (const auto& [name, value] : variables) start.environment.push_back(name + "=" + value);
    start.descriptors = {{slave, 0}, {slave, 1}, {slave, 2}};
    auto spawned = Process::spawn(start);
    EXPECT_TRUE(spawned.ok());
    if (spawned) process_.emplace(std::move(*spawned));
  }

  /// Whether it says so within ten seconds.
  bool says(const std::string& text) {
    return eventually([&] {
      read_some();
      return seen_.find(text) != std::string::npos;
    });
  }
  void interrupt() { ::kill(process_->id(), SIGINT); }
  int exit_code() {
    std::optional<Process::Exit> exit;
    (void)eventually([&] {
      read_some();
      exit = process_->wait(1ms);
      return exit.has_value();
    });
    read_some();
    return exit ? exit->signal != 0 ? 128 + exit->signal : exit->code : -1;
  }
  const std::string& seen() const { return seen_; }

 private:
  void read_some() {
    pollfd ready{master_.get(), POLLIN, 0};
    while (poll(&ready, 1, 10) > 0 && (ready.revents & POLLIN) != 0) {
      char part[4096];
      const ssize_t size = read(master_.get(), part, sizeof part);
      if (size <= 0) return;
      seen_.append(part, static_cast<std::size_t>(size));
    }
  }
  Fd master_;
  std::optional<Process> process_;
  std::string seen_;
};

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
  // A program that takes a while and measures nothing, so that only the progress is of interest.
  const Strings kSlow = {"calibrate", "--file", "c.json", "--", "sleep", "0.9"};
};

TEST_F(Terminal, ShowsHowFarSomethingLongIsAndTakesTheLineAway) {
  OnTerminal terminal = on_terminal(kSlow, variables());
  EXPECT_TRUE(terminal.says("kiln: measuring; let the machine do nothing else meanwhile; 1 s so far"))
      << terminal.seen();
  EXPECT_EQ(terminal.exit_code(), 1);
  const std::size_t gone = terminal.seen().rfind("\r\033[K");
  ASSERT_NE(gone, std::string::npos);
  EXPECT_EQ(terminal.seen().find("so far", gone), std::string::npos) << terminal.seen();
  EXPECT_NE(terminal.seen().find("\033[31merror: \033[0m", gone), std::string::npos) << "in red: " << terminal.seen();
}

TEST_F(Terminal, ThatIsDumbOrAJsonReaderSeesNoProgress) {
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

TEST_F(Terminal, WithoutColoursStillHasALineThatIsRedrawn) {
  auto plain = variables();
  plain["NO_COLOR"] = "1";
  OnTerminal terminal = on_terminal(kSlow, plain, 40);
  EXPECT_TRUE(terminal.says("\rmeasuring")) << terminal.seen();
  EXPECT_EQ(terminal.exit_code(), 1);
  EXPECT_EQ(terminal.seen().find("\033[31m"), std::string::npos) << terminal.seen();
  EXPECT_NE(terminal.seen().find("…\033[K"), std::string::npos) << "cut to its 40 columns: " << terminal.seen();
}

TEST_F(Terminal, AnErrorNamesTheNextStep) {
  const Ran silent = run({"compile", "nothing.cu", "--arch", "sm_80"});
  EXPECT_EQ(silent.exit_code, 1);
  EXPECT_TRUE(silent.says("kiln: error: there is no file nothing.cu\nkiln: hint: see that the path is right"))
      << silent.err;
  EXPECT_FALSE(run({"compile", "nothing.cu", "--arch", "sm_80", "--quiet"}).says("hint:"));
  const Ran eloquent = run({"cache", "show", "abcd"});
  EXPECT_TRUE(eloquent.says("'kiln cache ls' lists them\n")) << eloquent.err;
  EXPECT_FALSE(eloquent.says("hint:")) << eloquent.err;
}

/// This process is the one that compiles.
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

TEST_F(LiveProcess, SaysWhatItCompiledAndWhatFailed) {
  {
    Session here = session();
    here.request({Unit::cuda("good.cu", kSmallKernel).entry("k"), Unit::cuda("bad.cu", "this is no CUDA")},
                 Target::sm(80));
    ASSERT_TRUE(eventually([&] { return here.status().pending == 0; }, kPatience));
    ASSERT_TRUE(eventually([&] { return first().value("failed", 0) == 1 && first().value("compiled", 0) == 1; }));
    const nlohmann::json seen = first();
    EXPECT_EQ(seen["pid"], getpid());
    EXPECT_NE(seen["command"].get<std::string>().find("test_kiln_program"), std::string::npos);
    EXPECT_EQ(seen["pending"], 0);
    EXPECT_EQ(seen["units"][0]["unit"], "bad.cu") << "what failed comes before what is ready";
    EXPECT_EQ(seen["units"][0]["state"], "failed");
    EXPECT_EQ(seen["units"][1]["target"], "sm_80");
    const Ran text = status({kPid});
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_NE(text.out.find("2 asked for: 1 compiled, 0 found, 0 pending, 1 failed"), std::string::npos) << text.out;
    EXPECT_EQ(text.out.find('\033'), std::string::npos) << "no colours in a pipe";

    OnTerminal watching = on_terminal({"status", kPid, "--watch"}, variables());
    EXPECT_TRUE(watching.says("good.cu")) << watching.seen();
    watching.interrupt();
    EXPECT_EQ(watching.exit_code(), 0);
    EXPECT_TRUE(watching.seen().starts_with("\033[?1049h\033[?25l")) << "a screen of its own, without a cursor";
    EXPECT_NE(watching.seen().find("\033[?25h\033[?1049l"), std::string::npos)
        << "both as they were: " << watching.seen();
  }
  const Ran gone = status({kPid});
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_TRUE(gone.says("says nothing")) << gone.err;
  EXPECT_EQ(status({"--json"}).json()["processes"].size(), 0u);
}

TEST_F(LiveProcess, ThatWasAnsweredAtOnceWritesNothing) {
  const Unit unit = Unit::cuda("good.cu", kSmallKernel).entry("k");
  ASSERT_TRUE(session().artifact(unit, Target::sm(80)));
  std::filesystem::remove_all(path("status"));
  Session here = session();
  ASSERT_TRUE(here.artifact(unit, Target::sm(80)));
  std::this_thread::sleep_for(300ms);
  EXPECT_FALSE(std::filesystem::exists(path("status")));
}

}  // namespace
}  // namespace kiln::test
