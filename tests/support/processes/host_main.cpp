// SPDX-License-Identifier: Apache-2.0
// A host program with a special behavior that gets many small units and prints the results, one line each:
// `host <mode> <first> <count>`, where the units are numbered. Everything else comes from KILN_* variables.
//   plain        nothing special
//   reaps        continuously waits for any child, as supervisors do
//   ignores      ignores SIGCHLD, so that the kernel keeps no status of children
//   catches      catches SIGINT and continues
//   stays        keeps its session, idle, until it is killed
//   sleepy       like `stays`, with a forked child that sleeps and does not use kiln
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "support/fixtures/header_units.hpp"
#include "support/processes/processes.hpp"

namespace {

std::atomic<int> interrupts{0};

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void behave(const std::string& mode) {
  if (mode == "ignores") signal(SIGCHLD, SIG_IGN);
  if (mode == "catches") signal(SIGINT, [](int) { ++interrupts; });
  if (mode == "reaps") {
    std::thread([] {
      for (;;) {
        if (waitpid(-1, nullptr, 0) < 0) usleep(200);
      }
    }).detach();
  }
}

bool get_all(kiln::Session& session, int first, int count) {
  kiln::Units units;
  for (int i = 0; i < count; ++i) units.push_back(kiln::test::header_unit(first + i));
  session.request(units, kiln::Target::sm(80));
  bool ok = true;
  for (const kiln::Unit& unit : units) {
    const auto artifact = session.artifact(unit, kiln::Target::sm(80));
    ok = ok && artifact.has_value();
    say(artifact ? "artifact " + unit.name() + " " + kiln::sha256(artifact->bytes.view()).hex()
                 : "error " + artifact.error().message);
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string mode = argv[1];
  behave(mode);
  say("process " + std::to_string(getpid()));
  bool ok = false;
  {
    kiln::SessionOptions options;
    options.on_event = [](const kiln::Event& event) {
      say("event " + std::string(to_string(event.kind)) + " " + event.message);
    };
    auto session = kiln::Session::open(options);
    if (!session) return 3;
    ok = get_all(*session, std::atoi(argv[2]), std::atoi(argv[3]));
    if (mode == "sleepy" && fork() == 0) {
      sleep(15);
      _exit(0);
    }
    say("done");
    while (mode == "stays" || mode == "sleepy") pause();
  }
  say("interrupts " + std::to_string(interrupts.load()));
  say("zombies " + std::to_string(kiln::test::zombies_of(getpid())));
  say("children " + std::to_string(kiln::test::children_of(getpid()).size()));
  return ok ? 0 : 1;
}
