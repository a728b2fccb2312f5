// SPDX-License-Identifier: Apache-2.0
// Gets one artifact like a program that uses kiln and prints the results, one line each, for tests that need separate
// processes. `get cub|closed|header [sleepy|held|stopped]`; everything else comes from KILN_* variables.
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
#include "core/dependency_set.hpp"
#include "support/fixtures/toolkit.hpp"

namespace {

kiln::Unit unit_named(const std::string& name) {
  if (name == "cub") {
    kiln::Unit unit = kiln::Unit::cuda("sum.cu", kiln::test::cub_source()).with_options(kiln::test::cub_options());
    for (const std::string& root : kiln::test::cub_roots()) unit = unit.with_include_root(root);
    return unit.with_entry("sum");
  }
  if (name == "header") {
    return kiln::Unit::cuda("header.cu", "#include <nv/target>\nextern \"C\" __global__ void k(int* p) { *p = 7; }\n")
        .with_include_root(kiln::test::cub_roots()[0])
        .with_entry("k");
  }
  return kiln::Unit::cuda("closed.cu", "extern \"C\" __global__ void k(int* p) { *p = 7; }\n").with_entry("k");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  using Clock = std::chrono::steady_clock;
  const std::string mode = argc > 2 ? argv[2] : "";
  const bool sleepy = mode == "sleepy";
  kiln::SessionOptions options;
  options.on_event = [&](const kiln::Event& event) {
    std::printf("event %s %s\n", to_string(event.kind), event.message.c_str());
    std::fflush(stdout);
    // Forks a child while the compiler runs. The child does not use kiln and inherits every descriptor.
    if (sleepy && event.kind == kiln::Event::Kind::Miss) {
      std::thread([] {
        usleep(300'000);
        if (fork() == 0) {
          sleep(15);
          _exit(0);
        }
      }).detach();
    }
    // After the compile and before the publication, with all claims held: hangs, or is stopped.
    if (event.kind == kiln::Event::Kind::Compiled) {
      if (mode == "held") sleep(60);
      if (mode == "stopped") raise(SIGSTOP);  // kill would let this thread run for a moment
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
    const kiln::PathRoots places{std::filesystem::current_path().string(), unit.include_roots()};
    for (const kiln::DependencySet::Dependency& item : artifact->dependency_set->items) {
      const char* state = item.state == kiln::DependencySet::State::Read ? "read" : "absent";
      std::printf("%s %s\n", state, places.path_of(item.root, item.name).c_str());
    }
  }
  std::printf("artifact %s ms %.1f at %.3f\n", kiln::sha256(artifact->bytes.view()).hex().c_str(), ms, at);
  return 0;
}
