// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>

#include <kiln/cccl.hpp>

#include "apps/bundle_program.hpp"
#include "cache/disk_store.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

TEST_F(BundleProgram, BuildIsReproducibleAcrossDirectories) {
  write_project("elsewhere/");
  const Ran first = create("app.kiln", {"--arch", "sm_80,sm_90"});
  fs::current_path(path("elsewhere"));
  const Ran second = create("app.kiln", {"--arch", "sm_80,sm_90"}, {{"KILN_CACHE_DIR", path("other_cache")}});
  EXPECT_EQ(origins(first), Strings(4, "compiled"));
  EXPECT_EQ(origins(second), Strings(4, "compiled"));
  EXPECT_EQ(first.json()["sha256"], second.json()["sha256"]);
  EXPECT_EQ(read_text(path("app.kiln")), read_text(path("elsewhere/app.kiln")));
  EXPECT_EQ(read_text(path("app.kiln")).find(root_), std::string::npos) << "the bundle contains no local path";
}

TEST_F(BundleProgram, RebuildWithWarmCacheCompilesNothing) {
  create("app.kiln");
  const Ran again = create("again.kiln", {}, {{"KILN_COMPILE", "never"}});
  EXPECT_EQ(origins(again), Strings(2, "disk"));
  EXPECT_EQ(read_text("app.kiln"), read_text("again.kiln"));
}

TEST_F(BundleProgram, CreatePrintsSummaryAndUnsignedNote) {
  const Ran ran = run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "-j", "2"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  for (const char* part : {"UNIT  ARCHITECTURE  SIZE", "a.cu  sm_80", "b.cu  sm_80", "compiled",
                           "app.kiln: ", "2 artifacts", "acme/vision, epoch 3, unsigned", "KILN_TRUST_UNSIGNED"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  EXPECT_EQ(ran.err, "") << "a pipe gets only the result";
}

TEST_F(BundleProgram, CommandLineOverridesManifest) {
  const auto json = create("app.kiln", {"--arch", "sm_90,compute_90", "--namespace", "acme/maths", "--epoch", "9"});
  EXPECT_EQ(built(json), (Strings{"a.cu compute_90", "a.cu sm_90", "b.cu compute_90", "b.cu sm_90"}));
  EXPECT_EQ(json.json()["namespace"], "acme/maths");
  EXPECT_EQ(json.json()["epoch"], 9);
  const Ran wrong = run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "--namespace", "Acme"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(wrong.says("'Acme' is not a valid namespace")) << wrong.err;
}

TEST_F(BundleProgram, ExternalEntriesArePackedFromCache) {
  auto cache = DiskStore::open({path("cache")});
  Artifact artifact;
  for (const char* system : {"triton", "cuda.core"}) {
    artifact.target = Target::external(system);
    artifact.bytes = Bytes::copy_of("code of " + std::string(system));
    artifact.metadata = {"matmul", system, 12, {}};
    ASSERT_TRUE((*cache)->put(ArtifactKey::external(system, "k"), artifact, {}).has_value());
  }
  const Variables own = {{"KILN_CACHE_DIR", path("cache")}, {"KILN_TRUST_UNSIGNED", "1"}};
  const Ran ran = run({"bundle", "create", "--external", "triton", "-o", "triton.kiln"}, own);
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("1 artifact,"), std::string::npos) << ran.out;
  EXPECT_EQ(run({"bundle", "verify", "triton.kiln"}, own).exit_code, 0);
  const auto listed = run({"bundle", "ls", "triton.kiln", "--json"}, own).json()["artifacts"];
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["unit"], "matmul");
  EXPECT_EQ(listed[0]["target"], "triton");
  EXPECT_EQ(listed[0]["form"], "foreign");
  EXPECT_EQ(listed[0]["key"], ArtifactKey::external("triton", "k").hex());
  EXPECT_EQ(run({"bundle", "merge", "triton.kiln", "triton.kiln", "-o", "both.kiln"}, own).exit_code, 0);
  EXPECT_EQ(read_text("both.kiln"), read_text("triton.kiln"));

  const Ran none = run({"bundle", "create", "--external", "numba", "-o", "x.kiln"}, own);
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(none.says("has no entries of 'numba'")) << none.err;
  EXPECT_EQ(run({"bundle", "create", "-o", "x.kiln"}, own).exit_code, 2);
  EXPECT_EQ(run({"bundle", "create", "kiln.toml", "--external", "triton", "-o", "x.kiln"}, own).exit_code, 2);
  EXPECT_FALSE(fs::exists("x.kiln"));
}

TEST_F(BundleProgram, FailedCompileKeepsExistingBundle) {
  write("app.kiln", "an older one");
  write("b.cu", "extern \"C\" __global__ void b(float* x) { x[0] = oops; }\n");
  const Ran failed = run({"bundle", "create", "kiln.toml", "-o", "app.kiln"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_TRUE(failed.says("identifier \"oops\" is undefined")) << failed.err;

  write("b.cu", "extern \"C\" __global__ void b(const char** x) { *x = __TIME__; }\n");
  const Ran timed = run({"bundle", "create", "kiln.toml", "-o", "app.kiln"});
  EXPECT_EQ(timed.exit_code, 1);
  EXPECT_TRUE(timed.says("b.cu for sm_80 cannot be added to a bundle: ")) << timed.err;

  write("b.cu", "extern \"C\" __global__ void b() {}\n");
  EXPECT_EQ(run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "--arch", "sm_20"}).exit_code, 3);
  EXPECT_EQ(run({"bundle", "create", "kiln.toml", "-o", "absent/app.kiln"}).exit_code, 1);
  EXPECT_EQ(run({"bundle", "create", "kiln.toml", "-o", "include"}).exit_code, 2);
  EXPECT_EQ(run({"bundle", "create", "kiln.toml", "-o", "x.kiln", "--key", "absent.key"}).exit_code, 1);
  EXPECT_EQ(read_text("app.kiln"), "an older one");
  EXPECT_FALSE(fs::exists("x.kiln"));
  for (const auto& file : fs::directory_iterator(".")) {
    EXPECT_FALSE(file.path().filename().string().starts_with(".app.kiln"))
        << "a temporary file remains: " << file.path();
  }
}

TEST_F(BundleProgram, OpenBundleStaysReadableAfterReplacement) {
  create("app.kiln");
  const std::string old = read_text("app.kiln");
  fs::create_hard_link("app.kiln", "held");
  create("app.kiln", {"--epoch", "4"});
  EXPECT_EQ(read_text("held"), old);
  EXPECT_NE(read_text("app.kiln"), old);
}

TEST_F(BundleProgram, ManifestErrorsHaveLineAndColumn) {
  write("kiln.toml", "epoch = 1\nnamespace = \"Acme\"\n");
  const Ran ran = run({"bundle", "create", "kiln.toml", "-o", "app.kiln"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("kiln.toml: line 2, column 1: 'namespace'")) << ran.err;
  write("kiln.toml", "architectures = [\"sm_80\"]\n");
  EXPECT_TRUE(run({"bundle", "create", "kiln.toml", "-o", "app.kiln"}).says("lists no units"));
}

TEST_F(BundleProgram, SignedBundleUsesNoCache) {
  new_key("ours.key");
  create("app.kiln");
  const Variables shared = {{"KILN_CACHE_DIR", ""}, {"KILN_CACHE_PATH", path("mine") + ":" + path("cache")}};
  EXPECT_EQ(origins(create("app.kiln", {}, shared)), Strings(2, "disk"));
  EXPECT_EQ(origins(create("app.kiln", {"--key", "ours.key"}, shared)), Strings(2, "compiled"));
  EXPECT_EQ(origins(create("app.kiln", {"--key", "ours.key"})), Strings(2, "compiled"))
      << "not even the cache of this user";
}

TEST_F(BundleProgram, ProfileSelectsUnitsAndListsUnmatched) {
  create("app.kiln");
  const std::string a = asked("app.kiln", "a.cu", "sm_90");
  const std::string unknown_unit(64, '7');
  write("profile.jsonl", a + asked("app.kiln", "a.cu", "sm_80") + a + line("gone.cu", unknown_unit, "sm_80") +
                             line("b.cu", std::string(64, '8'), "sm_80") + asked("app.kiln", "b.cu", "sm_20") + "torn");
  const Ran ran = run({"bundle", "create", "kiln.toml", "-o", "p.kiln", "--from", "profile.jsonl", "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(built(ran), (Strings{"a.cu sm_80", "a.cu sm_90"}));
  EXPECT_EQ(ran.json()["unmatched"].size(), 3U);
  EXPECT_TRUE(ran.says("gone.cu for sm_80 (key 777777777777): the manifest has no unit with this name")) << ran.err;
  EXPECT_TRUE(ran.says("b.cu for sm_80 (key 888888888888): the manifest's unit with this name has a different source"));
  EXPECT_TRUE(ran.says("b.cu for sm_20")) << ran.err;
  EXPECT_TRUE(ran.says("1 invalid lines are skipped")) << ran.err;

  const Ran instead =
      run({"bundle", "create", "kiln.toml", "-o", "p.kiln", "--from", "profile.jsonl", "--arch", "sm_75", "--json"});
  EXPECT_EQ(built(instead), (Strings{"a.cu sm_75", "b.cu sm_75"})) << instead.err;

  write("profile.jsonl", line("gone\\u001b[31m.cu", unknown_unit, "sm_80"));
  const Ran nothing = run({"bundle", "create", "kiln.toml", "-o", "n.kiln", "--from", "profile.jsonl"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_TRUE(nothing.says("nothing was written")) << nothing.err;
  EXPECT_TRUE(nothing.says("gone\\u001b[31m.cu")) << "untrusted names cannot color the terminal: " << nothing.err;
  EXPECT_FALSE(fs::exists("n.kiln"));
}

TEST_F(BundleProgram, ProfileMatchesAlgorithmForAnySharedTargets) {
  if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl in .venv: run tools/setup.sh";
  const std::string source = "extern \"C\" __device__ void twice(void* x, void* y) { *(int*)y = 2 * *(int*)x; }\n";
  write("kiln.toml",
        "architectures = [\"sm_80\"]\n[[cccl]]\nname = \"twice\"\nalgorithm = \"unary_transform\"\n"
        "iterators = [\"i32\", \"i32\"]\noperators = [{name = \"twice\", shared = true, source = '''\n" +
            source + "'''}]\n");
  const nlohmann::json op = {{"name", "twice"}, {"shared", true}, {"source", source}};
  const nlohmann::json text = {
      {"algorithm", "unary_transform"}, {"iterators", {"i32", "i32"}}, {"operators", nlohmann::json::array({op})}};
  const cccl::Spec spec = cccl::Spec::parse(text.dump()).value();
  // The plain spec, a target list that starts with the architecture of the manifest, and one that starts with another.
  std::set<std::string> keys;
  for (const Unit& unit : {spec.unit(), spec.for_targets({Target::sm(80), Target::sm(90)}).unit(),
                           spec.for_targets({Target::sm(90)}).unit()}) {
    keys.insert(unit.key().hex());
    write("profile.jsonl", line("twice", unit.key().hex(), "cccl_90", "cccl"));
    // Compiling takes seconds, so only check that it would be compiled.
    const Ran ran = run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "--from", "profile.jsonl"},
                        {{"KILN_CCCL", cccl_package()}, {"KILN_COMPILE", "never"}});
    EXPECT_EQ(ran.exit_code, 4) << ran.err;
    EXPECT_TRUE(ran.says("twice for cccl_90")) << ran.err;
  }
  EXPECT_EQ(keys.size(), 3U) << "each key is a different unit";
}

TEST_F(BundleProgram, OpenClIsBuiltForLocalDevice) {
  write("k.cl", "__kernel void k(__global float* x) { x[get_global_id(0)] += 1; }\n");
  write("kiln.toml", "[[unit]]\nsource = \"k.cl\"\nentries = [\"k\"]\n");
  const Ran ran = run({"bundle", "create", "kiln.toml", "-o", "app.kiln", "--json"});
  if (ran.exit_code == 3) GTEST_SKIP() << "no OpenCL device: " << ran.err;
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const auto artifact = run({"bundle", "ls", "app.kiln", "--json"}).json()["artifacts"][0];
  const auto ask = [&](const std::string& device) {
    return nlohmann::json{{"kiln", "profile 1"},
                          {"unit", "k.cl"},
                          {"kind", "opencl"},
                          {"key", artifact["unit_key"]},
                          {"device", device}}
               .dump() +
           "\n";
  };
  write("profile.jsonl", ask(artifact["target"]) + ask("a device of another machine"));
  const Ran from = create("again.kiln", {"--from", "profile.jsonl"});
  EXPECT_EQ(from.json()["results"].size(), 1U);
  EXPECT_EQ(from.json()["unmatched"].size(), 1U) << from.out;
  EXPECT_EQ(read_text("app.kiln"), read_text("again.kiln"));
}

TEST_F(BundleProgram, CreateWritesProvenance) {
  const std::string ours = new_key("ours.key");
  create("app.kiln", {"--key", "ours.key", "--builder-id", "https://ci.example/7", "--source-uri",
                      "git+https://git.example/a", "--source-commit", "0123456789"});
  const auto verified = [&](const std::string& file) {
    return run({"bundle", "verify", file, "--public-key", ours, "--json"}).json()["bundles"][0];
  };
  const auto stated = verified("app.kiln")["provenance"];
  EXPECT_EQ(stated["builder"], "https://ci.example/7");
  EXPECT_EQ(stated["source"], "git+https://git.example/a");
  EXPECT_EQ(stated["commit"], "0123456789");
  EXPECT_EQ(stated["compilers"][0]["name"], "nvrtc");
  EXPECT_EQ(stated["signed"], true);

  create("ci.kiln", {"--key", "ours.key", "--provenance", "ci"},
         {{"GITHUB_ACTIONS", "true"},
          {"GITHUB_SERVER_URL", "https://git.example"},
          {"GITHUB_REPOSITORY", "acme/app"},
          {"GITHUB_WORKFLOW_REF", "acme/app/build.yml@main"},
          {"GITHUB_SHA", "abcdef"}});
  EXPECT_EQ(verified("ci.kiln")["provenance"]["builder"], "https://git.example/acme/app/build.yml@main");
  EXPECT_EQ(verified("ci.kiln")["provenance"]["commit"], "abcdef");

  write("statement.json",
        R"({"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1",
    "predicate":{"buildDefinition":{"buildType":"urn:x","externalParameters":{}},
    "runDetails":{"builder":{"id":"https://other.example/1"}}}})");
  create("file.kiln", {"--key", "ours.key", "--provenance", "statement.json"});
  EXPECT_EQ(verified("file.kiln")["provenance"]["builder"], "https://other.example/1");

  const auto rejected = [&](Strings more) {
    more.insert(more.begin(), {"bundle", "create", "kiln.toml", "-o", "x.kiln"});
    return run(more).exit_code;
  };
  EXPECT_EQ(rejected({"--source-commit", "1"}), 2) << "the builder is missing";
  EXPECT_EQ(rejected({"--provenance", "kiln.toml"}), 2) << "not a statement";
  EXPECT_EQ(rejected({"--provenance", "statement.json", "--builder-id", "x"}), 2)
      << "FILE and --builder-id are exclusive";
}

}  // namespace
}  // namespace kiln::test
