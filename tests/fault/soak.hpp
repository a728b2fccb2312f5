// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include <kiln/kiln.hpp>

namespace kiln::test {

constexpr int kSoakProcesses = 16;
constexpr int kSoakSurvivors = 4;                // the first processes are never killed, to measure growth
constexpr int kSoakUnits = 300;                  // compiled by a short shell script
constexpr int kSoakBundled = 20;                 // only in the bundle: their compiler does not exist
constexpr int kSoakCudaUnits = 20;               // compiled by NVRTC
constexpr std::uint64_t kSoakBound = 6'000'000;  // of the 17 MB that all units take together
constexpr std::uint64_t kSoakLargestEntry = 120'000;

/// The shared counters of all processes, and the message of the first problem.
struct SoakCounts {
  std::atomic<std::uint64_t> gets, bundle, disk, compiled, waited, dropped, evicted, sessions;
  std::atomic<std::uint64_t> wrong, errors, unexpected, slowest_ms;
  std::atomic<bool> stop, complained;
  char warning[600];
  /// Digests of the output of bare NVRTC for each CUDA unit.
  Digest cuda[kSoakCudaUnits];
  /// The resources that a process has open while it has no session, and its number of gets, to detect hangs and leaks.
  struct Slot {
    std::atomic<std::uint64_t> gets, sessions, descriptors, threads, resident_kb;
  } slots[kSoakProcesses];
};

/// The directories of a soak, all below one.
struct SoakPlace {
  std::string root;
  std::string cache() const { return root + "/cache"; }
  std::string bundle() const { return root + "/app.kiln"; }
  std::string temporary() const { return root + "/tmp"; }
  std::string runtime() const { return root + "/run"; }
  std::string headers() const { return root + "/include"; }
  std::string compiler() const { return root + "/compiler"; }
};

/// Creates the directories, the compiler, the headers and the bundle and, if `cuda`, the expected results with bare
/// NVRTC.
bool prepare_soak(const SoakPlace& place, SoakCounts& counts, bool cuda);
/// Runs one process until it is asked to stop. Every tenth process also requests CUDA units.
void soak(const SoakPlace& place, SoakCounts& counts, int slot, unsigned seed, bool cuda);
/// Runs one get that compiles, like any next program, and so removes the files of killed processes. Returns false if it
/// fails.
bool soak_once(const SoakPlace& place, SoakCounts& counts);

}  // namespace kiln::test
