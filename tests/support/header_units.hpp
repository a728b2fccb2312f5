#pragma once

#include <string>

#include <kiln/unit.hpp>

#include "support/toolkit.hpp"

namespace kiln::test {

/// A small kernel that includes one header of the toolkit, and so is compiled in a worker. Each number is another one.
inline Unit header_unit(int number) {
  const std::string text = std::to_string(number);
  return Unit::cuda("small-" + text + ".cu",
                    "#include <nv/target>\nextern \"C\" __global__ void k(int* p) { *p = " + text + "; }\n")
      .include_root(cub_roots()[0])
      .entry("k");
}

/// As it, with another header.
inline Unit half_unit(int number) {
  const std::string text = std::to_string(number);
  return Unit::cuda("half-" + text + ".cu",
                    "#include <cuda_fp16.h>\nextern \"C\" __global__ void k(__half* p) { *p = __hadd(*p, __half(" +
                        text + ")); }\n")
      .include_root(cub_roots()[1])
      .entry("k");
}

/// A kernel that includes CUB: a compile of one to two seconds.
inline Unit cub_unit(const std::string& name = "sum.cu") {
  Unit unit = Unit::cuda(name, cub_source()).options(cub_options());
  for (const std::string& root : cub_roots()) unit = unit.include_root(root);
  return unit.entry("sum");
}

/// The compiler doubles a string until no memory is left: from 768 MB it gets the last in two seconds.
inline Unit memory_eater() {
  std::string source = "// include\n#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(x)))\n#define C(x) B(B(x))\n";
  source += "__device__ const char text[] = C(C(\"" + std::string(2000, 'x') + "\"));\n";
  return Unit::cuda("memory_eater.cu", source + "extern \"C\" __global__ void k(char* p) { *p = text[1]; }\n")
      .entry("k");
}

/// A list of types that is twice as long with each of forty steps: the compiler takes next to no memory, and for ever.
inline Unit time_eater() {
  return Unit::cuda("time_eater.cu",
                    "// include\n"
                    "template <int... I> struct List {};\n"
                    "template <class A, class B> struct Join;\n"
                    "template <int... I, int... K> struct Join<List<I...>, List<K...>> {\n"
                    "  using type = List<I..., (int(sizeof...(I)) + K)...>;\n"
                    "};\n"
                    "template <int N> struct Twice {\n"
                    "  using type = typename Join<typename Twice<N - 1>::type, typename Twice<N - 1>::type>::type;\n"
                    "};\n"
                    "template <> struct Twice<0> { using type = List<0>; };\n"
                    "extern \"C\" __global__ void k(int* p) { typename Twice<40>::type list; *p = sizeof(list); }\n")
      .entry("k");
}

}  // namespace kiln::test
