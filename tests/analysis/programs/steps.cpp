// SPDX-License-Identifier: Apache-2.0
// One computation in two forms, and a program that gives an audit nothing to judge:
//   faulty    40 times: allocates, launches one block, waits, copies 4 MiB to the host and back. Declares no operation
//   repaired  the same result: one copy to the device, 40 launches of full blocks, one copy to the host that the
//             operation declares as its result
//   idle      only compiles
// It runs on the first OpenCL device. The trace is that of KILN_TRACE.
#include <cstdio>
#include <cstring>
#include <vector>

#include <kiln/kiln.hpp>
#include <kiln/operation_context.hpp>
#include <kiln/stream.hpp>

namespace {

constexpr unsigned kSteps = 40;
constexpr unsigned kItems = 1 << 20;  // 4 MiB

const kiln::Unit& unit() {
  static const kiln::Unit made = kiln::Unit::opencl("steps.cl", R"(
    kernel void add_one(global float* x, uint items) {
      for (uint i = get_global_id(0); i < items; i += get_global_size(0)) x[i] += 1;
    })")
                                     .with_entry("add_one");
  return made;
}

void faulty(const kiln::Stream& stream, const kiln::Kernel& kernel, std::vector<float>& x) {
  const std::size_t bytes = x.size() * sizeof x[0];
  const kiln::Buffer items = stream.copy_of(x).value();
  for (unsigned step = 0; step < kSteps; ++step) {
    const kiln::Buffer scratch = stream.allocate(bytes).value();
    kernel.launch({kiln::Grid(1), kiln::Block(64), stream}, items, kItems).value();
    stream.synchronize().value();
    stream.download(x.data(), items, bytes).value();
    stream.upload(items, x.data(), bytes).value();
  }
}

void repaired(const kiln::Stream& stream, const kiln::Kernel& kernel, std::vector<float>& x) {
  const kiln::OperationScope run(kiln::OperationContext::new_run("test.steps", kItems, kiln::Residency::Host));
  const unsigned block = kernel.occupancy().value().block_size;
  const kiln::Buffer items = [&] {
    const kiln::OperationScope input(kiln::OperationContext::with_purpose(kiln::Purpose::Input));
    return stream.copy_of(x).value();
  }();
  for (unsigned step = 0; step < kSteps; ++step) {
    kernel.launch({kiln::Grid(kItems / block), kiln::Block(block), stream}, items, kItems).value();
  }
  const kiln::OperationScope result(kiln::OperationContext::with_purpose(kiln::Purpose::Materialize));
  stream.download(x.data(), items, x.size() * sizeof x[0]).value();
}

}  // namespace

int main(int count, char** arguments) {
  const char* const form = count == 2 ? arguments[1] : "";
  kiln::Session session = kiln::Session::open().value();
  if (std::strcmp(form, "idle") == 0) {
    (void)session.artifact(unit(), session.devices(kiln::Backend::OpenCl).value().front().target).value();
    return 0;
  }
  const kiln::Stream stream = session.stream(kiln::Backend::OpenCl).value();
  const kiln::Kernel kernel = session.get(unit(), "add_one").value();
  std::vector<float> x(kItems, 2);
  if (std::strcmp(form, "faulty") == 0) faulty(stream, kernel, x);
  if (std::strcmp(form, "repaired") == 0) repaired(stream, kernel, x);
  for (const float item : x) {
    if (item != 2 + kSteps) return 1;
  }
  std::printf("%u items are right\n", kItems);
  return 0;
}
