// SPDX-License-Identifier: Apache-2.0
// A program that contains its compiled kernels. It requests them like any other program, but needs no compiler, header
// or cache on the machine where it runs. The only difference is the call of kiln_add_bundle in ../CMakeLists.txt.
#include <cstdio>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/stream.hpp>

#include "embedded_units.hpp"  // generated from kiln.toml: the units of the bundle

namespace {

bool has_all(kiln::Session& session) {
  for (const kiln::Unit& unit : embedded_units::all()) {
    for (const int capability : {80, 90}) {
      const auto artifact = session.artifact(unit, kiln::Target::sm(capability));
      if (artifact) continue;
      std::fprintf(stderr, "%s: %s\n", unit.name().c_str(), artifact.error().message.c_str());
      return false;
    }
  }
  return true;
}

// Runs one step on a field of constant temperature and returns whether the field is unchanged.
kiln::Result<bool> keeps_its_temperature(kiln::Session& session) {
  constexpr int kWidth = 64;
  const kiln::Stream stream = session.stream(kiln::Backend::Cuda).value();
  const std::vector<float> before(kWidth * kWidth, 20);
  const kiln::Buffer from = stream.copy_of(before).value();
  const kiln::Buffer to = stream.copy_of(std::vector<float>(before.size())).value();
  const auto heat_step = session.get(embedded_units::heat_cu(), "heat_step");
  if (!heat_step) return heat_step.error();
  const kiln::LaunchConfig launch(kiln::Grid(kWidth / 16, kWidth / 16), kiln::Block(16, 16), stream);
  if (auto launched = heat_step->launch(launch, kWidth, 0.25f, from, to); !launched) return launched.error();
  std::vector<float> after(before.size());
  if (auto copied = stream.download(after.data(), to, to.size()); !copied) return copied.error();
  return after == before;
}

}  // namespace

int main() {
  auto session = kiln::Session::open();
  if (!session) {
    std::fprintf(stderr, "cannot open kiln: %s\n", session.error().message.c_str());
    return 1;
  }
  if (!has_all(*session)) return 1;

  int exit_code = 0;
  if (const auto current = session->make_current(kiln::Backend::Cuda); !current) {
    std::printf("nothing was launched: %s\n", current.error().message.c_str());
  } else if (const auto right = keeps_its_temperature(*session); right) {
    std::printf("heat_step was launched, and its result is %s\n", *right ? "right" : "wrong");
    exit_code = *right ? 0 : 1;
  } else {
    std::fprintf(stderr, "heat_step: %s\n", right.error().message.c_str());
    exit_code = 1;
  }

  const kiln::SessionStatus status = session->status();
  for (const kiln::UnitStatus& unit : status.units) {
    std::printf("%s for %s: %s, from %s\n", unit.unit.c_str(), unit.target.c_str(), to_string(unit.state),
                to_string(unit.origin));
  }
  std::printf("compiled: %zu\n", status.compiled);
  return exit_code;
}
