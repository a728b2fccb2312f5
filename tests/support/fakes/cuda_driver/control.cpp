// SPDX-License-Identifier: Apache-2.0
// The functions with which tests control the fake driver.
#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

void reset(const char* devices) {
  with_model([&](Model& model) {
    const std::uint64_t generation = model.generation;
    const std::uint64_t serial = model.serial;
    model = Model{};
    model.generation = generation + 1;
    model.serial = serial;
    model.configure(devices);
    note_initialized(model, false);
  });
}

void set_memory(std::size_t bytes) {
  with_model([&](Model& model) { model.memory = bytes; });
}

void set_driver_version(int version) {
  with_model([&](Model& model) { model.driver_version = version; });
}

void set_newest_ptx(int version) {
  with_model([&](Model& model) { model.newest_ptx = version; });
}

void fail(const char* entry, unsigned nth, DriverResult error, unsigned times) {
  with_model([&](Model& model) {
    if (nth == 0 || times == 0) return;
    model.faults[entry] = {nth - 1, times, error};
  });
}

std::size_t calls(const char* entry) {
  std::size_t count = 0;
  with_model([&](Model& model) {
    const auto found = model.calls.find(entry);
    if (found != model.calls.end()) count = found->second;
  });
  return count;
}

FakeCounts counts() {
  FakeCounts counts{};
  with_model([&](Model& model) {
    counts.contexts = model.contexts.size();
    counts.events = model.events.size();
    counts.libraries = model.libraries.size();
    counts.modules = model.modules.size();
    counts.graphs = model.graphs.size() + model.graph_execs.size();
    counts.pools = model.pools.size();
    model.streams.for_each([&](Stream, StreamState& stream) {
      if (!stream.internal) ++counts.streams;
      counts.pending += stream.work.size();
    });
    for (const auto& [address, allocation] : model.allocations) {
      if (!allocation.live) continue;
      ++counts.allocations;
      counts.bytes += allocation.size;
    }
    counts.stale_uses = model.stale_uses;
    counts.lost_captures = model.lost_captures;
    counts.relaxed_threads = model.relaxed_threads;
  });
  return counts;
}

std::size_t launch_count() {
  std::size_t count = 0;
  with_model([&](Model& model) { count = model.launches.size(); });
  return count;
}

bool launch(std::size_t index, FakeLaunch* out) {
  bool found = false;
  with_model([&](Model& model) {
    if (index >= model.launches.size()) return;
    *out = model.launches[index].record;
    found = true;
  });
  return found;
}

std::size_t load_count() {
  std::size_t count = 0;
  with_model([&](Model& model) { count = model.loads.size(); });
  return count;
}

bool load(std::size_t index, FakeLoad* out) {
  bool found = false;
  with_model([&](Model& model) {
    if (index >= model.loads.size()) return;
    *out = model.loads[index];
    found = true;
  });
  return found;
}

void on_launch(const char* kernel, FakeKernel function, void* user) {
  with_model([&](Model& model) { model.host_kernels[kernel] = {function, user}; });
}

constexpr FakeControl kControl = {reset,        set_memory, set_driver_version, set_newest_ptx, fail,     calls, counts,
                                  launch_count, launch,     load_count,         load,           on_launch};

}  // namespace

extern "C" const FakeControl* kiln_double_control() { return &kControl; }

}  // namespace kiln::test::driver
