// Gets one artifact as a program that uses kiln would, and says how that went, a line each: for tests that need
// processes of their own. `get cub|closed|header [sleepy|held|stopped]`; everything else comes from KILN_* variables.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "core/closure.hpp"
#include "support/toolkit.hpp"

namespace {

kiln::Unit unit_named(const std::string& name) {
  if (name == "cub") {
    kiln::Unit unit = kiln::Unit::cuda("sum.cu", kiln::test::cub_source()).options(kiln::test::cub_options());
    for (const std::string& root : kiln::test::cub_roots()) unit = unit.include_root(root);
    return unit.entry("sum");
  }
  if (name == "header") {
    return kiln::Unit::cuda("header.cu", "#include <nv/target>\nextern \"C\" __global__ void k(int* p) { *p = 7; }\n")
        .include_root(kiln::test::cub_roots()[0])
        .entry("k");
  }
  return kiln::Unit::cuda("closed.cu", "extern \"C\" __global__ void k(int* p) { *p = 7; }\n").entry("k");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  using Clock = std::chrono::steady_clock;
  const std::string manner = argc > 2 ? argv[2] : "";
  const bool sleepy = manner == "sleepy";
  kiln::SessionOptions options;
  options.on_event = [&](const kiln::Event& event) {
    std::printf("event %s %s\n", to_string(event.kind), event.message.c_str());
    std::fflush(stdout);
    // A child that knows nothing of all this and lives on with every descriptor that it was given, made while the
    // compiler runs.
    if (sleepy && event.kind == kiln::Event::Kind::Miss) {
      std::thread([] {
        usleep(300'000);
        if (fork() == 0) {
          sleep(15);
          _exit(0);
        }
      }).detach();
    }
    // Between a compile and its publication, with every claim in hand: does not get on, or is stopped from outside.
    if (event.kind == kiln::Event::Kind::Compiled) {
      if (manner == "held") sleep(60);
      if (manner == "stopped") kill(getpid(), SIGSTOP);
    }
  };
  const auto start = Clock::now();
  auto session = kiln::Session::open(options);
  if (!session) {
    std::printf("error %s\n", session.error().message.c_str());
    return 1;
  }
  const auto artifact = session->artifact(unit_named(argv[1]), kiln::Target::sm(80));
  const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  const double at = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (!artifact) {
    std::printf("error %s\n", artifact.error().message.c_str());
    return 1;
  }
  if (std::getenv("KILN_TEST_CLOSURE") != nullptr) {
    const kiln::Unit unit = unit_named(argv[1]);
    const kiln::Places places{std::filesystem::current_path().string(), unit.include_roots()};
    for (const kiln::Closure::Item& item : artifact->closure->items) {
      const char* state = item.state == kiln::Closure::State::Read ? "read" : "absent";
      std::printf("%s %s\n", state, places.path_of(item.root, item.name).c_str());
    }
  }
  std::printf("artifact %s ms %.1f at %.3f\n", kiln::sha256(artifact->bytes.view()).hex().c_str(), ms, at);
  return 0;
}
