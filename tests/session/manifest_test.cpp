// SPDX-License-Identifier: Apache-2.0
#include "session/config/manifest.hpp"

#include <string>

#include <gtest/gtest.h>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

Manifest read(const std::string& text) {
  Result<Manifest> manifest = parse_manifest(text, "/project");
  EXPECT_TRUE(manifest.has_value()) << text << "\n" << (manifest.has_value() ? "" : manifest.error().message);
  return manifest.has_value() ? std::move(*manifest) : Manifest();
}

TEST(Manifest, ListsArchitecturesAlgorithmsAndSources) {
  const Manifest manifest = read(R"(
architectures = ["sm_80", "sm_90", "sm_80"]

[[unit]]
source = "examples/kernels/saxpy.cu"
include = ["include", "/opt/cub"]
options = ["-std=c++17", "-DN=4"]
entries = ["saxpy", "scale<float, 4>"]

[[unit]]
name = "blur"
source = "blur.cl"

[[cccl]]
spec = "radix_sort_u64_i32"

[[cccl]]
name = "longest"
algorithm = "reduce"
iterators = ["f32", "f32"]
operators = ["maximum"]
)");
  EXPECT_EQ(manifest.architectures, (std::vector<Target>{Target::sm(80), Target::sm(90)}));
  ASSERT_EQ(manifest.members.size(), 4U);
  EXPECT_EQ(manifest.members[0].name, "radix_sort_u64_i32");
  EXPECT_EQ(manifest.members[0].spec->text(), cccl::find_predefined("radix_sort_u64_i32").value().text());
  EXPECT_EQ(manifest.members[1].name, "longest");
  EXPECT_EQ(manifest.members[1].spec->text(), cccl::reduce<float>(cccl::OperatorKind::Maximum).text());

  const Manifest::UnitEntry& saxpy = manifest.members[2];
  EXPECT_EQ(saxpy.name, "saxpy.cu");
  EXPECT_FALSE(saxpy.spec);
  EXPECT_EQ(saxpy.source.file, "/project/examples/kernels/saxpy.cu");
  ASSERT_EQ(saxpy.source.include_roots.size(), 2U);
  EXPECT_EQ(saxpy.source.include_roots[0].path, "/project/include");
  EXPECT_EQ(saxpy.source.include_roots[1].path, "/opt/cub");
  EXPECT_EQ(saxpy.source.options, (std::vector<std::string>{"-std=c++17", "-DN=4"}));
  EXPECT_EQ(saxpy.source.entries, (std::vector<std::string>{"saxpy", "scale<float, 4>"}));
  EXPECT_FALSE(saxpy.source.opencl);
  EXPECT_EQ(manifest.members[3].name, "blur");
  EXPECT_TRUE(manifest.members[3].source.opencl);
}

TEST(Manifest, ReadsNamespaceAndEpoch) {
  const Manifest manifest = read("namespace = \"acme/vision-2\"\nepoch = 3\n");
  EXPECT_EQ(manifest.name_space, "acme/vision-2");
  EXPECT_EQ(manifest.epoch, 3U);
  EXPECT_EQ(read("").name_space, "local");
  EXPECT_EQ(read("").epoch, 0U);
}

TEST(Manifest, ListsAllPredefinedSpecs) { EXPECT_EQ(read("[[cccl]]\nspec = \"all\"\n").members.size(), 18U); }

TEST(Manifest, ListsFamilies) {
  const Manifest manifest = read(R"toml(
[[family]]
name = "semiring.cu"
preamble = "kernels/semiring.cuh"
include = ["include"]
options = ["-DN=4"]

[family.instances]
gemm_f32 = "GEMM(gemm_f32, float)\n"
"scale<float, 4>" = ""

[[family]]
preamble = "blur.cl"
instances = {k = "K(k)"}
)toml");
  ASSERT_EQ(manifest.members.size(), 2U);
  const Manifest::UnitEntry& semiring = manifest.members[0];
  EXPECT_EQ(semiring.name, "semiring.cu");
  EXPECT_EQ(semiring.source.file, "/project/kernels/semiring.cuh");
  EXPECT_EQ(semiring.source.include_roots.at(0).path, "/project/include");
  EXPECT_EQ(semiring.source.options, std::vector<std::string>{"-DN=4"});
  ASSERT_EQ(semiring.source.instances.size(), 2U);
  EXPECT_EQ(semiring.source.instances[0].entry, "gemm_f32");
  EXPECT_EQ(semiring.source.instances[0].source, "GEMM(gemm_f32, float)\n");
  EXPECT_EQ(semiring.source.instances[1].entry, "scale<float, 4>");
  EXPECT_EQ(semiring.source.instances[1].source, "");
  EXPECT_EQ(manifest.members[1].name, "blur.cl");
  EXPECT_TRUE(manifest.members[1].source.opencl);
}

TEST(Manifest, FamilyHasKeysOfProgramsUnits) {
  const TemporaryDirectory directory;
  write_text(directory.path("scale.cuh"), "#include \"n.h\"\n#define K(name) kernel\n");
  write_text(directory.path("kiln.toml"),
             "[[family]]\nname = \"scale.cu\"\npreamble = \"scale.cuh\"\noptions = [\"-DN=4\"]\n"
             "instances = {\"scale<4>\" = \"\", k = \"K(k)\\n\"}\n");
  const Result<Manifest> manifest = read_manifest(directory.path("kiln.toml"));
  ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
  const Result<std::vector<Unit>> units = read_units(manifest->members.at(0).source);
  ASSERT_TRUE(units.has_value()) << units.error().message;
  const Unit family = Unit::cuda("scale.cu", "")
                          .with_preamble("#include \"n.h\"\n#define K(name) kernel\n")
                          .with_include_root(directory.path())
                          .with_option("-DN=4");
  ASSERT_EQ(units->size(), 2U);
  EXPECT_EQ(units->at(0), family.instance("k", "K(k)\n"));
  EXPECT_EQ(units->at(1), family.instance("scale<4>", ""));
  EXPECT_EQ(&units->at(0).preamble(), &units->at(1).preamble()) << "instances share the preamble";
}

TEST(Manifest, AcceptsSpecInEveryJsonForm) {
  const Manifest manifest = read(R"(
[[cccl]]
algorithm = "unary_transform"
iterators = ["i32", {storage = 8, alignment = 4}]
operators = [{name = "f", state_size = 4, state_alignment = 4, shared = true, source = """
extern "C" __device__ void f(void* state, void* x, void* result) {}
"""}]
)");
  ASSERT_EQ(manifest.members.size(), 1U);
  EXPECT_EQ(manifest.members[0].name, "unary_transform_i32");
  const cccl::Operator& op = manifest.members[0].spec->operators[0];
  EXPECT_EQ(op.kind, cccl::OperatorKind::Stateful);
  EXPECT_TRUE(op.shared);
}

TEST(Manifest, RejectsUnknownInputWithLineAndColumn) {
  const struct {
    const char* text;
    const char* place;
    const char* what;
  } rejected[] = {
      {"a = ", "line 1, column ", ""},
      {"architecture = []", "line 1, column 1: ", "did you mean 'architectures'?"},
      {"architectures = \"sm_80\"", "line 1, column 1: ", "array"},
      {"architectures = [\"sm_80\",\n  \"sm80\"]", "line 2, column 3: ", "sm80"},
      {"architectures = [80]", "line 1, column 18: ", "strings"},
      {"epoch = 1\nnamespace = \"Acme\"", "line 2, column 1: ", "lower-case"},
      {"namespace = \"\"", "line 1, column 1: ", "lower-case"},
      {"namespace = [\"acme\"]", "line 1, column 1: ", "lower-case"},
      {"namespace = \"a//b\"", "line 1, column 1: ", "lower-case"},
      {"name_space = \"a\"", "line 1, column 1: ", "did you mean 'namespace'?"},
      {"epoch = -1", "line 1, column 1: ", "whole number"},
      {"epoch = \"3\"", "line 1, column 1: ", "whole number"},
      {"epoch = 1.5", "line 1, column 1: ", "whole number"},
      {"cccl = 3", "line 1, column 1: ", "[[cccl]]"},
      {"[cccl]\nspec = \"all\"", "line 1, column 2: ", "[[cccl]]"},
      {"unit = [1]", "line 1, column 9: ", "[[unit]]"},
      {"[[cccl]]\nspec = \"radix\"", "line 2, column 1: ", "radix_sort_u64_i32"},
      {"[[cccl]]\nspec = \"select_i32\"\norder = 1", "line 3, column 1: ", "order"},
      {"[[cccl]]\nname = \"a\"\nspec = \"all\"", "line 2, column 1: ", "name"},
      {"[[cccl]]\nspec = 4", "line 2, column 1: ", "string"},
      {"\n[[cccl]]\nname = \"a\"", "line 2, column ", "algorithm"},
      {"[[cccl]]\nalgorithm = \"sort\"", "line 2, column 1: ", "sort"},
      {"[[cccl]]\nalgorithm = \"for\"\n  color = 3", "line 3, column 3: ", "color"},
      {"[[cccl]]\nalgorithm = \"for\"\niterators = [\"i32\"]\noperators = [\n{name = \"f\", source = 3}]",
       "line 5, column 14: ", "operators[0].source"},
      {"[[cccl]]\nalgorithm = \"for\"\niterators = [1979-05-27]\noperators = [\"plus\"]",
       "line 3, column 14: ", "iterators[0]"},
      {"[[cccl]]\nalgorithm = \"for\"\niterators = [{storage = -8, alignment = 4}]\noperators = [\"plus\"]",
       "line 3, column 15: ", "iterators[0].storage"},
      {"[[unit]]\nname = \"a\"", "line 1, column ", "source"},
      {"[[unit]]\nsource = \"\"", "line 2, column 1: ", "source"},
      {"[[unit]]\nsource = \"a\\u0000.cu\"", "line 2, column 1: ", "source"},
      {"[[unit]]\nsource = \"a.cu\"\nentrys = [\"k\"]", "line 3, column 1: ", "'entries'"},
      {"[[unit]]\nsource = \"a.cu\"\nbackend = \"hip\"", "line 3, column 1: ", "opencl"},
      {"[[unit]]\nsource = \"a.cu\"\n[[unit]]\nsource = \"b/a.cu\"", "line 3, column ", "two units"},
      {"[[unit]]\nsource = \"a.cu\"\npreamble = \"b.cu\"", "line 3, column 1: ", "preamble"},
      {"[family]\npreamble = \"a.cuh\"", "line 1, column 2: ", "[[family]]"},
      {"[[family]]\ninstances = {k = \"K(k)\"}", "line 1, column ", "'preamble' is missing"},
      {"[[family]]\npreamble = \"a.cuh\"", "line 1, column ", "'instances' is missing"},
      {"[[family]]\npreamble = \"a.cuh\"\ninstances = [\"k\"]", "line 3, column 1: ", "[family.instances]"},
      {"[[family]]\npreamble = \"a.cuh\"\ninstances = {}", "line 3, column 1: ", "at least one instance"},
      {"[[family]]\npreamble = \"a.cuh\"\n[family.instances]\nk = 4", "line 4, column 1: ", "must be a string"},
      {"[[family]]\npreamble = \"a.cuh\"\n[family.instances]\nk = \"\\u0000\"", "line 4, column 1: ", "string"},
      {"[[family]]\npreamble = \"a.cuh\"\n[family.instances]\n\"\" = \"K\"", "line 4, column 1: ", "entry"},
      {"[[family]]\npreamble = \"a.cuh\"\nentries = [\"k\"]\n[family.instances]\nk = \"K\"",
       "line 3, column 1: ", "entries"},
      {"[[unit]]\nsource = \"a.cu\"\n[[family]]\nname = \"a.cu\"\npreamble = \"a.cuh\"\ninstances = {k = \"K\"}",
       "line 3, column ", "two units"},
      {"[[cccl]]\nspec = \"all\"\n[[cccl]]\nspec = \"select_i32\"", "line 3, column ", "two units"},
  };
  for (const auto& [text, place, what] : rejected) {
    const Result<Manifest> manifest = parse_manifest(text, "");
    ASSERT_FALSE(manifest.has_value()) << text;
    EXPECT_EQ(manifest.error().code, Code::InvalidArgument) << text;
    EXPECT_EQ(manifest.error().message.substr(0, std::string(place).size()), place) << text << "\n"
                                                                                    << manifest.error().message;
    EXPECT_NE(manifest.error().message.find(what), std::string::npos) << text << "\n" << manifest.error().message;
  }
}

TEST(Manifest, RejectsDeeplyNestedNamesBeforeStackOverflow) {
  std::string deep = "a";
  for (int i = 0; i != 500'000; ++i) deep += ".a";
  for (const std::string& text : {"[" + deep + "]", deep + " = 1", "x = 1\ny = {" + deep + " = 1}"}) {
    const Result<Manifest> manifest = parse_manifest(text, "");
    ASSERT_FALSE(manifest.has_value());
    EXPECT_NE(manifest.error().message.find("too many parts"), std::string::npos) << manifest.error().message;
  }
  EXPECT_EQ(parse_manifest("x = 1\ny = {" + deep + " = 1}", "").error().message.find("line 2"), 0U);
  std::string nested = "a = 1";
  for (int i = 0; i != 200; ++i) nested = "a.a.a.a.a.a.a.a = {" + nested + "}";
  EXPECT_NE(parse_manifest(nested, "").error().message.find("256 deep"), std::string::npos);
  // Dots in strings and comments do not count.
  const std::string dots(1000, '.');
  EXPECT_TRUE(parse_manifest("# " + dots + "\n[[unit]]\nsource = \"" + dots + "\"\nname = '''\n" + dots +
                                 "'''\noptions = [\"\\\"" + dots + "\", \"\"\"" + dots + "\"\"\"]\n",
                             "")
                  .has_value());
}

TEST(Manifest, ReadsFileWithPathsRelativeToIt) {
  const TemporaryDirectory directory;
  write_text(directory.path("k.cu"), "#include \"k.h\"\n");
  write_text(directory.path("kiln.toml"), "architectures = [\"sm_90\"]\n[[unit]]\nsource = \"k.cu\"\n");
  const Result<Manifest> manifest = read_manifest(directory.path("kiln.toml"));
  ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
  ASSERT_EQ(manifest->members.size(), 1U);
  const Result<Unit> unit = read_unit(manifest->members[0].source);
  ASSERT_TRUE(unit.has_value()) << unit.error().message;
  EXPECT_EQ(unit->name(), "k.cu");
  ASSERT_EQ(unit->include_roots().size(), 1U) << "a quoted header is looked up next to the source";
  EXPECT_EQ(unit->include_roots()[0].path, directory.path());

  EXPECT_EQ(read_manifest(directory.path("other.toml")).error().code, Code::Io);
  write_text(directory.path("bad.toml"), "unit = 3\n");
  EXPECT_NE(read_manifest(directory.path("bad.toml")).error().message.find("bad.toml: line 1"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
