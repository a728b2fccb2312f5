#include "members.hpp"

#include <algorithm>

#include "sources.hpp"

namespace semiring {

namespace {

std::vector<Member> make_members() {
  std::vector<Member> all;
  const auto add = [&all](const std::string& macro, const std::string& name, const std::string& parameters) {
    all.push_back({name, macro + "(" + name + ", " + parameters + ")\n"});
  };
  for (const char* macro : {"GEMM", "ARGMAX"}) {
    const std::string prefix = std::string(macro) == "GEMM" ? "gemm_" : "argmax_";
    for (const std::string semiring : {"plus_times", "max_plus", "min_plus", "max_times", "min_times", "max_min"}) {
      add(macro, prefix + semiring + "_f32", semiring + ", float");
      add(macro, prefix + semiring + "_f64", semiring + ", double");
    }
  }
  for (const std::string product : {"plus", "times"}) {
    add("BACKWARD_A", "backward_a_" + product + "_f32", product + ", float");
    add("BACKWARD_B", "backward_b_" + product + "_f32", product + ", float");
  }
  for (const std::string semiring : {"plus_times", "max_plus", "min_plus"}) {
    add("BATCHED", "batched_" + semiring + "_f32", semiring + ", float");
  }
  return all;
}

kiln::Units typical_units(Backend backend) {
  kiln::Units units;
  for (const std::string& name : typical_names()) units.push_back(unit_of(backend, *find(name)));
  return units;
}

kiln::Units all_units(Backend backend) {
  kiln::Units units;
  for (const Member& member : members()) units.push_back(unit_of(backend, member));
  return units;
}

// Said here, at namespace scope, once and for all; it costs nothing until somebody requests it.
const kiln::Needs typical_opencl{"semiring", [] { return typical_units(Backend::OpenCl); }};
const kiln::Needs typical_cuda{"semiring", [] { return typical_units(Backend::Cuda); }};
const kiln::Needs all_opencl{"semiring, all of it", [] { return all_units(Backend::OpenCl); }};
const kiln::Needs all_cuda{"semiring, all of it", [] { return all_units(Backend::Cuda); }};

}  // namespace

const std::vector<Member>& members() {
  static const std::vector<Member> all = make_members();
  return all;
}

const std::vector<std::string>& typical_names() {
  static const std::vector<std::string> names = {"gemm_max_plus_f32", "argmax_max_plus_f32", "backward_a_plus_f32",
                                                 "backward_b_plus_f32", "batched_max_plus_f32"};
  return names;
}

const kiln::Needs& typical(Backend backend) { return backend == Backend::OpenCl ? typical_opencl : typical_cuda; }
const kiln::Needs& everything(Backend backend) { return backend == Backend::OpenCl ? all_opencl : all_cuda; }

const Member* find(const std::string& name) {
  const auto found =
      std::find_if(members().begin(), members().end(), [&](const Member& member) { return member.name == name; });
  return found != members().end() ? &*found : nullptr;
}

// The preamble is one text for all units of a language, and its digest is computed once.
kiln::Unit unit_of(Backend backend, const Member& member) {
  static const kiln::Unit opencl = kiln::Unit::opencl("semiring.cl", "").preamble(kOpenClSource);
  static const kiln::Unit cuda = kiln::Unit::cuda("semiring.cu", "").preamble(kCudaSource);
  return (backend == Backend::OpenCl ? opencl : cuda).instance(member.name, member.instance);
}

}  // namespace semiring
