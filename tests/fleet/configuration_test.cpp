// A program that knows nothing of fleets gains one by configuration: the same file of many_kernels, cold on one host
// and then on another. CUDA's kernels are really compiled; the double of the driver takes them and computes nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "bundle/bundle_writer.hpp"
#include "core/recipe.hpp"
#include "examples/many_kernels/semiring.hpp"
#include "fleet/rig.hpp"

namespace kiln::test {
namespace {

class UnmodifiedProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = FleetRig::unavailable(); !why.empty()) GTEST_SKIP() << why;
    rig_ = std::make_unique<FleetRig>(4);
  }
  // many_kernels on a host: what it says of itself, and where its events say that kernels came from.
  nlohmann::json many_kernels(unsigned host, const Variables& more = {}) {
    Variables all = more;
    all["KILN_DRIVER"] = KILN_DRIVER_DOUBLE;
    all["KILN_DOUBLE_DEVICES"] = "sm_90";
    all["KILN_TRACE"] = rig_->path("trace" + std::to_string(host));
    FleetProcess process = rig_->run(host, {KILN_MANY_KERNELS, "--backend", "cuda", "--json"}, all);
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    const std::string text = process.output();
    const std::string said = text.substr(std::min(text.find('{'), text.size()));
    nlohmann::json json = nlohmann::json::parse(said.substr(0, said.rfind('}') + 1), nullptr, false);
    EXPECT_TRUE(json.is_object()) << said;
    return json;
  }
  unsigned in_trace(unsigned host, const std::string& text) {
    const std::string trace = slurp(rig_->path("trace" + std::to_string(host)));
    unsigned found = 0;
    for (std::size_t at = trace.find(text); at != std::string::npos; at = trace.find(text, at + 1)) ++found;
    return found;
  }

  // A bundle of what many_kernels declares, in the authority's own name.
  std::string bundle() {
    SessionOptions options;
    options.settings = {{"cache.dir", rig_->path("host0/cache")}};
    Session session = Session::open(options).value();
    BundleWriter writer({"fleet/ci", 1});
    for (const std::string& name : semiring::typical_names()) {
      const Unit& unit = *semiring::find_unit(semiring::Backend::Cuda, name);
      BundleMember member;
      member.kind = unit.kind();
      member.unit = unit.key();
      member.artifact = session.artifact(unit, Target::sm(90)).value();
      member.request = {sha256("request of " + name)};
      member.key = key_of(member.request, *member.artifact.closure);
      member.compiler = "nvrtc";
      EXPECT_TRUE(writer.add(std::move(member)).ok());
    }
    spit(rig_->path("many.kiln"), writer.finish(&rig_->trust().authority()).value().whole());
    return rig_->path("many.kiln");
  }

  std::unique_ptr<FleetRig> rig_;
};

TEST_F(UnmodifiedProgram, GainsOtherHostsAPolicyAndABundleByConfigurationAlone) {
  const std::string before = sha256(slurp(KILN_MANY_KERNELS)).hex();
  const nlohmann::json first = many_kernels(0);
  EXPECT_EQ(first["compiled"], 5) << first;
  const nlohmann::json second = many_kernels(1);
  EXPECT_EQ(second["compiled"], 0) << second;
  EXPECT_EQ(second["found"], 5);
  EXPECT_GE(in_trace(1, "\"remote\""), 5U) << "its trace says where they came from";
  const nlohmann::json distrustful = many_kernels(2, {{"KILN_TRUST", ""}});
  EXPECT_EQ(distrustful["compiled"], 5) << "nobody is believed without a policy";

  const std::size_t requests = rig_->requests();
  const nlohmann::json bundled = many_kernels(3, {{"KILN_BUNDLES", bundle()}});
  EXPECT_EQ(bundled["compiled"], 0) << bundled;
  // The program may have the last one from the bundle, and be done, before the thread that was asked for it has.
  EXPECT_EQ(bundled["found"].get<int>() + bundled["pending"].get<int>(), 5) << bundled;
  EXPECT_EQ(bundled["failed"], 0);
  EXPECT_GE(in_trace(3, "\"bundle\""), 5U);
  EXPECT_EQ(rig_->requests(), requests) << "a bundle is nearer than any server";
  EXPECT_EQ(sha256(slurp(KILN_MANY_KERNELS)).hex(), before);
  std::printf(
      "many_kernels (one file, CUDA through the driver's double): host A compiled %d; host B compiled %d, found %d "
      "from "
      "the remote store; host C, which has no policy, compiled %d; host D with a signed bundle compiled %d, asked no "
      "server; first result after %.0f, %.0f, %.0f and %.0f ms\n",
      first.value("compiled", -1), second.value("compiled", -1), second.value("found", -1),
      distrustful.value("compiled", -1), bundled.value("compiled", -1), first.value("first_result_ms", 0.0),
      second.value("first_result_ms", 0.0), distrustful.value("first_result_ms", 0.0),
      bundled.value("first_result_ms", 0.0));
}

}  // namespace
}  // namespace kiln::test
