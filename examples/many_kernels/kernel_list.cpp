// SPDX-License-Identifier: Apache-2.0
#include "kernel_list.hpp"

#include "sources.hpp"

namespace semiring {

namespace {

std::vector<Member> make_members() {
  const std::vector<std::string> semirings = {"max_plus", "min_plus", "max_times"};
  std::vector<Member> all;
  const auto add = [&all](const std::string& macro, const std::string& name, const std::string& parameters) {
    all.push_back({name, macro + "(" + name + ", " + parameters + ")\n"});
  };
  for (const std::string& semiring : semirings) {
    for (const std::string type : {"f32", "f64", "i32", "i64"}) {
      add("GEMM", "gemm_" + semiring + "_" + type, semiring + ", " + type);
      add("ARGMAX", "argmax_" + semiring + "_" + type, semiring + ", " + type);
    }
  }
  for (const std::string type : {"f32", "f64"}) {
    add("BACKWARD_A", "backward_a_" + type, type);
    add("BACKWARD_B", "backward_b_" + type, type);
  }
  for (const std::string& semiring : semirings) add("BATCHED", "batched_" + semiring + "_f32", semiring + ", f32");
  return all;
}

// All units of a language share one preamble text, so that its digest is computed once.
kiln::Units make_units(const kiln::Unit& preamble) {
  kiln::Units units;
  for (const Member& member : members()) units.push_back(preamble.instance(member.name, member.instance));
  return units;
}

// Returns all units in the order of `members`. Creates them on the first call.
const kiln::Units& all_units(Backend backend) {
  if (backend == Backend::OpenCl) {
    static const kiln::Units opencl = make_units(kiln::Unit::opencl("semiring.cl", "").with_preamble(kOpenClSource));
    return opencl;
  }
  static const kiln::Units cuda = make_units(kiln::Unit::cuda("semiring.cu", "").with_preamble(kCudaSource));
  return cuda;
}

kiln::Units typical_units(Backend backend) {
  kiln::Units units;
  for (const std::string& name : typical_names()) units.push_back(*find_unit(backend, name));
  return units;
}

// Declared once at namespace scope. A declaration costs nothing until it is requested.
const kiln::Requirements typical_opencl{"semiring", [] { return typical_units(Backend::OpenCl); }};
const kiln::Requirements typical_cuda{"semiring", [] { return typical_units(Backend::Cuda); }};
const kiln::Requirements all_opencl{"semiring, all of it", [] { return all_units(Backend::OpenCl); }};
const kiln::Requirements all_cuda{"semiring, all of it", [] { return all_units(Backend::Cuda); }};

}  // namespace

const std::vector<Member>& members() {
  static const std::vector<Member> all = make_members();
  return all;
}

const std::vector<std::string>& typical_names() {
  static const std::vector<std::string> names = {"gemm_max_plus_f32", "argmax_max_plus_f32", "backward_a_f32",
                                                 "backward_b_f32", "batched_max_plus_f32"};
  return names;
}

const kiln::Requirements& typical(Backend backend) {
  return backend == Backend::OpenCl ? typical_opencl : typical_cuda;
}
const kiln::Requirements& everything(Backend backend) { return backend == Backend::OpenCl ? all_opencl : all_cuda; }

const kiln::Unit* find_unit(Backend backend, const std::string& name) {
  for (std::size_t at = 0; at < members().size(); ++at) {
    if (members()[at].name == name) return &all_units(backend)[at];
  }
  return nullptr;
}

}  // namespace semiring
