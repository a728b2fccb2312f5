// SPDX-License-Identifier: Apache-2.0
// An unmodified program joins a fleet by configuration: the same binary of many_kernels runs with an empty cache on one
// host and then on another. The CUDA kernels are really compiled; the fake driver loads them and computes nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include <kiln/kiln.hpp>

#include "base/hash.hpp"
#include "bundle/bundle_writer.hpp"
#include "core/recipe.hpp"
#include "examples/many_kernels/semiring.hpp"
#include "fleet/fleet_fixture.hpp"

namespace kiln::test {
namespace {

class UnmodifiedProgram : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = FleetFixture::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    fixture_ = std::make_unique<FleetFixture>(4);
  }
  // Runs many_kernels on a host. Returns its output and the origins of its kernels from the events.
  nlohmann::json many_kernels(unsigned host, const Variables& more = {}) {
    Variables all = more;
    all["KILN_DRIVER"] = KILN_FAKE_DRIVER;
    all["KILN_FAKE_DRIVER_DEVICES"] = "sm_90";
    all["KILN_TRACE"] = fixture_->path("trace" + std::to_string(host));
    FleetProcess process = fixture_->run(host, {KILN_MANY_KERNELS, "--backend", "cuda", "--json"}, all);
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    const std::string text = process.output();
    const std::string said = text.substr(std::min(text.find('{'), text.size()));
    nlohmann::json json = nlohmann::json::parse(said.substr(0, said.rfind('}') + 1), nullptr, false);
    EXPECT_TRUE(json.is_object()) << said;
    return json;
  }
  unsigned in_trace(unsigned host, const std::string& text) {
    const std::string trace = read_text(fixture_->path("trace" + std::to_string(host)));
    unsigned found = 0;
    for (std::size_t at = trace.find(text); at != std::string::npos; at = trace.find(text, at + 1)) ++found;
    return found;
  }

  // Creates a bundle of the units that many_kernels declares, signed by the authority.
  std::string bundle() {
    SessionOptions options;
    options.settings = {{"cache.dir", fixture_->path("host0/cache")}};
    Session session = Session::open(options).value();
    BundleWriter writer({"fleet/ci", 1});
    for (const std::string& name : semiring::typical_names()) {
      const Unit& unit = *semiring::find_unit(semiring::Backend::Cuda, name);
      BundleMember member;
      member.kind = unit.kind();
      member.unit = unit.key();
      member.artifact = session.artifact(unit, Target::sm(90)).value();
      member.request = {sha256("request of " + name)};
      member.key = artifact_key(member.request, *member.artifact.dependency_set);
      member.compiler = "nvrtc";
      EXPECT_TRUE(writer.add(std::move(member)).has_value());
    }
    write_text(fixture_->path("many.kiln"), writer.finish(&fixture_->trust().authority()).value().to_file());
    return fixture_->path("many.kiln");
  }

  std::unique_ptr<FleetFixture> fixture_;
};

TEST_F(UnmodifiedProgram, GetsRemoteCachePolicyAndBundleFromConfiguration) {
  const std::string before = sha256(read_text(KILN_MANY_KERNELS)).hex();
  const nlohmann::json first = many_kernels(0);
  EXPECT_EQ(first["compiled"], 5) << first;
  const nlohmann::json second = many_kernels(1);
  EXPECT_EQ(second["compiled"], 0) << second;
  EXPECT_EQ(second["cached"], 5);
  EXPECT_GE(in_trace(1, "\"remote\""), 5U) << "the trace reports their origin";
  const nlohmann::json distrustful = many_kernels(2, {{"KILN_TRUST", ""}});
  EXPECT_EQ(distrustful["compiled"], 5) << "no signer is trusted without a policy";

  const std::size_t requests = fixture_->requests();
  const nlohmann::json bundled = many_kernels(3, {{"KILN_BUNDLES", bundle()}});
  EXPECT_EQ(bundled["compiled"], 0) << bundled;
  // The program may get the last unit from the bundle and end before the background thread has loaded it.
  EXPECT_EQ(bundled["cached"].get<int>() + bundled["pending"].get<int>(), 5) << bundled;
  EXPECT_EQ(bundled["failed"], 0);
  EXPECT_GE(in_trace(3, "\"bundle\""), 5U);
  EXPECT_EQ(fixture_->requests(), requests) << "a bundle is looked up before any server";
  EXPECT_EQ(sha256(read_text(KILN_MANY_KERNELS)).hex(), before);
  std::printf(
      "many_kernels (one file, CUDA with the fake driver): host A compiled %d; host B compiled %d, found %d "
      "from "
      "the remote store; host C, which has no policy, compiled %d; host D with a signed bundle compiled %d, sent no "
      "request to a "
      "server; first result after %.0f, %.0f, %.0f and %.0f ms\n",
      first.value("compiled", -1), second.value("compiled", -1), second.value("cached", -1),
      distrustful.value("compiled", -1), bundled.value("compiled", -1), first.value("first_result_ms", 0.0),
      second.value("first_result_ms", 0.0), distrustful.value("first_result_ms", 0.0),
      bundled.value("first_result_ms", 0.0));
}

}  // namespace
}  // namespace kiln::test
