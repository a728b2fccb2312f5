// SPDX-License-Identifier: Apache-2.0
// Sessions with a bundle. Its contents are synthetic, except in the last suite, where NVRTC compiled them and the
// driver double loads them.
#include <kiln/session.hpp>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "bundle/bundle_set.hpp"
#include "bundle/bundle_writer.hpp"
#include "bundle/profile.hpp"
#include "session/components.hpp"
#include "session/config/config.hpp"
#include "session/config/trust_policy_file.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using std::chrono::seconds;

Unit pip() { return Unit::cuda("pip.cu", "extern \"C\" __global__ void pip(int* x) { *x = 1; }").with_entry("pip"); }
Unit area() {
  return Unit::cuda("area.cu", "extern \"C\" __global__ void area(int* x) { *x = 2; }").with_entry("area");
}

std::string made_up_code(const Unit& unit, const std::string& target) {
  return "code of " + unit.name() + ' ' + target;
}

BundleMember member(const Unit& unit, const std::string& target) {
  BundleMember made;
  made.kind = unit.kind();
  made.unit = unit.key();
  made.artifact.bytes = Bytes::of(made_up_code(unit, target));
  made.artifact.target = Target::parse(target).value();
  for (const std::string& entry : unit.entries()) made.artifact.entries.push_back({entry, entry});
  made.artifact.metadata = {unit.name(), "nvrtc 99.1.2", 0, {}};
  made.request = {sha256("request " + unit.name() + target)};
  made.key = {sha256("key " + unit.name() + target)};
  made.compiler = "nvrtc";
  made.version = "99.1.2";
  made.compiler_digest = sha256("nvrtc 99.1.2");
  return made;
}

class SessionBundles : public testing::Test {
 protected:
  std::string bundle(const std::vector<BundleMember>& members, const SecretKey* key = nullptr,
                     std::uint64_t epoch = 1) {
    BundleWriter writer({"acme/vision", epoch});
    for (const BundleMember& member : members) EXPECT_TRUE(writer.add(member).has_value());
    const std::string path = directory_.path("app.kiln");
    write_text(path, writer.finish(key).value().to_file());
    return path;
  }
  /// Returns a session on a machine without a compiler, where compiling is forbidden.
  SessionOptions options(const std::string& bundles) {
    SessionOptions made;
    made.settings = {{"cache.dir", directory_.path("cache")},
                     {"bundles", bundles},
                     {"trust.unsigned", "1"},
                     {"compile", "never"},
                     {"nvrtc", "/no/nvrtc"}};
    made.on_event = log_.callback();
    return made;
  }
  std::string rejection(const SessionOptions& options) {
    Session session = Session::open(options).value();
    EXPECT_FALSE(session.artifact(pip(), Target::sm(80)).has_value());
    const auto reported = log_.of(Event::Kind::BundleRejected);
    EXPECT_EQ(reported.size(), 1U);
    return reported.empty() ? "" : reported.back().message;
  }

  TemporaryDirectory directory_;
  EventLog log_;
};

TEST_F(SessionBundles, ServesUnitWithoutCompilerAndHitNamesBuilder) {
  Session session = Session::open(options(bundle({member(pip(), "sm_80")}))).value();
  const auto artifact = session.artifact(pip(), Target::sm(80));
  ASSERT_TRUE(artifact.has_value()) << artifact.error().message;
  EXPECT_EQ(artifact->bytes.view(), made_up_code(pip(), "sm_80"));
  EXPECT_EQ(*artifact->symbol("pip"), "pip");
  const auto hits = log_.of(Event::Kind::Hit);
  ASSERT_EQ(hits.size(), 1U);
  EXPECT_EQ(hits[0].origin, "bundle");
  EXPECT_NE(hits[0].message.find("nvrtc 99.1.2"), std::string::npos) << hits[0].message;
  EXPECT_EQ(hits[0].key, member(pip(), "sm_80").key.hex());
}

TEST_F(SessionBundles, DeviceGetsMostCompatibleCode) {
  Session session =
      Session::open(options(bundle({member(pip(), "sm_80"), member(pip(), "sm_86"), member(pip(), "compute_80")})))
          .value();
  EXPECT_EQ(session.artifact(pip(), Target::sm(89))->target.name(), "sm_86");
  EXPECT_EQ(session.artifact(pip(), Target::sm(90))->target.name(), "compute_80");
}

TEST_F(SessionBundles, IncompatibleUnitIsMissAndEventListsArchitectures) {
  Session session = Session::open(options(bundle({member(pip(), "sm_80"), member(pip(), "sm_90")}))).value();
  EXPECT_FALSE(session.artifact(pip(), Target::sm(75)).has_value());
  const auto reported = log_.of(Event::Kind::BundleIncompatible);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_NE(reported[0].message.find("sm_80, sm_90"), std::string::npos) << reported[0].message;
  EXPECT_NE(reported[0].message.find("sm_75"), std::string::npos) << reported[0].message;
}

TEST_F(SessionBundles, ErrorNamesTheCommandThatAddsTheTarget) {
  const Unit opencl = Unit::opencl("scale.cl", "kernel void scale(global int* x) { *x = 1; }").with_entry("scale");
  BundleMember binary = member(opencl, "sm_80");
  binary.artifact.target = Target::opencl("a device");
  Session session = Session::open(options(bundle({member(pip(), "sm_80"), binary}))).value();
  const std::string machine_code = session.artifact(pip(), Target::sm(75)).error().message;
  EXPECT_NE(machine_code.find("has it for sm_80; add sm_75 with 'kiln bundle create --arch sm_75'"), std::string::npos)
      << machine_code;
  const std::string ptx = session.artifact(pip(), Target{"sm_75", Form::Ptx}).error().message;
  EXPECT_NE(ptx.find("add compute_75 with 'kiln bundle create --arch compute_75'"), std::string::npos) << ptx;
  // --arch has no name for an OpenCL device.
  const std::string device = session.artifact(opencl, Target::opencl("another device")).error().message;
  EXPECT_NE(device.find("app.kiln has it for "), std::string::npos) << device;
  EXPECT_EQ(device.find("--arch"), std::string::npos) << device;
}

TEST_F(SessionBundles, UnitMissingFromBundleEmitsNoEvent) {
  Session session = Session::open(options(bundle({member(pip(), "sm_80")}))).value();
  EXPECT_FALSE(session.artifact(area(), Target::sm(80)).has_value());
  const std::string same_name = session.artifact(pip().with_include_root("."), Target::sm(80)).error().message;
  EXPECT_NE(same_name.find("its unit with this name has a different source"), std::string::npos) << same_name;
  EXPECT_EQ(log_.count(Event::Kind::BundleIncompatible), 0U);
  EXPECT_EQ(log_.count(Event::Kind::BundleRejected), 0U);
}

TEST_F(SessionBundles, ServesBackgroundRequests) {
  Session session = Session::open(options(bundle({member(pip(), "sm_80"), member(area(), "sm_80")}))).value();
  session.request({pip(), area()}, Target::sm(80));
  // A timeout too short for a lookup by the caller: the engine's thread queries the bundle.
  for (const Unit& unit : {pip(), area()}) {
    Result<Artifact> artifact = session.artifact(unit, Target::sm(80), std::chrono::milliseconds(5));
    for (int i = 0; i < 1000 && !artifact; ++i) {
      artifact = session.artifact(unit, Target::sm(80), std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(artifact.has_value()) << artifact.error().message;
    EXPECT_EQ(artifact->bytes.view(), made_up_code(unit, "sm_80"));
  }
  EXPECT_EQ(session.status().failed, 0U);
}

TEST_F(SessionBundles, BundleEntriesAreNotCopiedIntoCache) {
  Session session = Session::open(options(bundle({member(pip(), "sm_80")}))).value();
  ASSERT_TRUE(session.artifact(pip(), Target::sm(80)).has_value());
  EXPECT_FALSE(exists(directory_.path("cache") + "/v1/entries"));
}

TEST_F(SessionBundles, FirstBundleWithCodeServes) {
  const std::string first = directory_.path("first.kiln");
  BundleMember hotfix = member(pip(), "sm_80");
  hotfix.artifact.bytes = Bytes::of("hotfix");
  BundleWriter writer({});
  ASSERT_TRUE(writer.add(hotfix).has_value());
  write_text(first, writer.finish(nullptr).value().to_file());
  Session session =
      Session::open(options(first + ":" + bundle({member(pip(), "sm_80"), member(area(), "sm_80")}))).value();
  EXPECT_EQ(session.artifact(pip(), Target::sm(80))->bytes.view(), "hotfix");
  EXPECT_EQ(session.artifact(area(), Target::sm(80))->bytes.view(), made_up_code(area(), "sm_80"));
}

TEST_F(SessionBundles, UnsignedBundleIsRejectedUnlessAllowed) {
  SessionOptions strict = options(bundle({member(pip(), "sm_80")}));
  strict.settings.erase("trust.unsigned");
  EXPECT_NE(rejection(strict).find("signed"), std::string::npos);
}

TEST_F(SessionBundles, OnlyBundleSignedByProgramKeyIsServed) {
  const SecretKey key = SecretKey::generate();
  SessionOptions strict = options(bundle({member(pip(), "sm_80")}, &key));
  strict.settings.erase("trust.unsigned");
  strict.trust.keys = {{key.public_key().text(), {"acme/*"}}};
  EXPECT_TRUE(Session::open(strict).value().artifact(pip(), Target::sm(80)).has_value());
  strict.trust.keys = {{SecretKey::generate().public_key().text(), {"*"}}};
  EXPECT_FALSE(rejection(strict).empty());
}

TEST_F(SessionBundles, BundleOfRevokedKeyIsRejected) {
  const SecretKey key = SecretKey::generate();
  SessionOptions strict = options(bundle({member(pip(), "sm_80")}, &key));
  strict.trust.keys = {{key.public_key().text(), {"acme/*"}}};
  strict.trust.live_namespaces = {{"acme/live", 7}};
  EXPECT_TRUE(Session::open(strict).value().artifact(pip(), Target::sm(80)).has_value());
  strict.trust.revoked = {key.public_key().id().hex()};
  EXPECT_NE(rejection(strict).find("revoked"), std::string::npos);
}

TEST_F(SessionBundles, BundleInLiveNamespaceIsRejected) {
  const SecretKey key = SecretKey::generate();
  SessionOptions strict = options(bundle({member(pip(), "sm_80")}, &key));
  strict.trust.keys = {{key.public_key().text(), {"acme/*"}}};
  strict.trust.live_namespaces = {{"acme/*", 7}};
  EXPECT_NE(rejection(strict).find("live namespace"), std::string::npos);
}

TEST(ProgramsTrust, TrustsNoKeyIfAnyPartIsInvalid) {
  TrustOptions sound;
  sound.keys = {{SecretKey::generate().public_key().text(), {"acme/*"}}};
  EXPECT_FALSE(make_trust_policy(sound, {}, {}).empty());
  for (const auto& [pattern, days] : {std::pair{"*", 7}, {"acme/live", 0}, {"acme/live", 366}, {"Acme", 7}}) {
    TrustOptions wrong = sound;
    wrong.live_namespaces = {{pattern, days}};
    EXPECT_TRUE(make_trust_policy(wrong, {}, {}).empty()) << pattern << " for " << days;
  }
  TrustOptions wrong = sound;
  wrong.revoked = {"d75a980182b10ab7"};
  EXPECT_TRUE(make_trust_policy(wrong, {}, {}).empty()) << "a prefix of an id is not a key";
}

TEST_F(SessionBundles, PolicyFileAddsToProgramPolicyAndUnreadableFileTrustsNoKey) {
  const SecretKey key = SecretKey::generate();
  SessionOptions strict = options(bundle({member(pip(), "sm_80")}, &key, 3));
  strict.settings.erase("trust.unsigned");
  const std::string policy = directory_.path("policy.toml");
  strict.settings["trust.policy"] = policy;
  write_text(policy, "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"acme/vision\"]\n");
  EXPECT_TRUE(Session::open(strict).value().artifact(pip(), Target::sm(80)).has_value());
  // The program trusts the key; the file requires a later epoch than the bundle's.
  strict.trust.keys = {{key.public_key().text(), {"*"}}};
  write_text(policy, "[minimum_epoch]\n\"acme/vision\" = 4\n");
  EXPECT_NE(rejection(strict).find("4"), std::string::npos);
}

TEST_F(SessionBundles, CorruptBundleEmitsEventAndNextTierIsUsed) {
  const std::string path = bundle({member(pip(), "sm_80")});
  std::string bytes = read_text(path);
  bytes.back() ^= 1;  // in a blob or in the padding after it
  bytes[bytes.size() - 20] ^= 1;
  write_text(path, bytes);
  Session session = Session::open(options(path)).value();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(session.artifact(pip(), Target::sm(80)).has_value());
  EXPECT_EQ(log_.count(Event::Kind::BundleRejected), 1U);
  EXPECT_EQ(log_.count(Event::Kind::Hit), 0U);
}

TEST_F(SessionBundles, LibraryLoadedDuringLookupDoesNotInvalidateBundleList) {
  const std::string first = bundle({member(pip(), "sm_80")});
  const std::string second = directory_.path("second.kiln");
  std::filesystem::copy_file(first, second);
  TrustPolicy policy;
  policy.allow_unsigned();
  BundleSet* asked = nullptr;
  int reported = 0;
  BundleSet bundles({first, second}, policy, EventEmitter([&](const Event&) {
                      // The next lookup searches for linked-in bundles again and gets its own list.
                      if (++reported == 1) {
                        ASSERT_NE(::dlopen("libanl.so.1", RTLD_NOW), nullptr) << ::dlerror();
                      }
                      EXPECT_TRUE(asked->has_any());
                      EXPECT_TRUE(asked->get(member(pip(), "sm_80").key, {}).has_value());
                    }));
  asked = &bundles;
  const Recipe recipe{pip(), Target::sm(80), {}, {}};
  bundles.emit_other_compilers(recipe, {});
  EXPECT_EQ(reported, 2);
}

TEST_F(SessionBundles, NoBundlesWhenCachingIsDisabled) {
  SessionOptions off = options(bundle({member(pip(), "sm_80")}));
  off.settings["disable"] = "1";
  EXPECT_FALSE(Session::open(off).value().artifact(pip(), Target::sm(80)).has_value());
}

TEST_F(SessionBundles, GetsAreRecordedOnceAndBackgroundRequestsAreNot) {
  SessionOptions recording = options(bundle({member(pip(), "sm_80"), member(area(), "sm_80")}));
  const std::string path = directory_.path("profile.jsonl");
  recording.settings["record"] = path;
  {
    Session session = Session::open(recording).value();
    session.request({area()}, Target::sm(80));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session.artifact(pip(), Target::sm(86)).has_value());
    EXPECT_FALSE(session.artifact(pip(), Target::sm(75)).has_value());
  }
  const auto profile = read_profile(path);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  const std::vector<ProfileEntry> expected = {{"pip.cu", "cuda", pip().key(), Target::sm(86)},
                                              {"pip.cu", "cuda", pip().key(), Target::sm(75)}};
  EXPECT_EQ(profile->entries, expected);
  EXPECT_EQ(profile->lines, 2U);
}

/// A bundle with code from NVRTC, and the driver double to load it.
class SessionBundlesCuda : public SessionBundles {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  }
  SessionOptions with_compiler(const std::string& bundles) {
    SessionOptions made = options(bundles);
    made.settings.erase("compile");
    made.settings["nvrtc"] = toolkit_nvrtc();
    made.settings["driver"] = FakeCudaDriver::path();
    return made;
  }
  BundleMember compiled(const Unit& unit, const std::string& target) {
    SessionOptions quiet = with_compiler("");
    quiet.on_event = nullptr;
    const ResolvedArtifact answer = Session::open(quiet)->resolve(unit, Target::parse(target).value()).value();
    BundleMember made = member(unit, target);
    made.artifact = answer.artifact;
    made.request = answer.request;
    made.key = answer.key;
    return made;
  }
  FakeCudaDriver driver_{"sm_86"};
};

TEST_F(SessionBundlesCuda, LowerMinorCubinIsLoadedAndKernelIsReadyDuringCapture) {
  SessionOptions none = with_compiler(bundle({compiled(pip(), "sm_80")}));
  none.settings["compile"] = "never";
  Session session = Session::open(none).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const KernelHandle handle = session.handle(pip(), "pip");
  const auto kernel = handle.get(seconds(60));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 0U);
  ASSERT_EQ(log_.count(Event::Kind::Loaded), 1U);
  EXPECT_EQ(log_.of(Event::Kind::Loaded)[0].origin, "bundle");

  cuda::Stream stream = nullptr;
  ASSERT_EQ(driver_.driver().StreamCreate(&stream, cuda::kStreamNonBlocking), cuda::DriverResult::Success);
  ASSERT_EQ(driver_.application().StreamBeginCapture(stream, cuda::CaptureMode::Global), cuda::DriverResult::Success);
  EXPECT_TRUE(handle.get_for_stream(StreamRef::from_native(stream), seconds(60)).has_value());
  GraphPointer graph = nullptr;
  ASSERT_EQ(driver_.application().StreamEndCapture(stream, &graph), cuda::DriverResult::Success);
  driver_.application().GraphDestroy(graph);
  driver_.driver().StreamDestroy(stream);
}

TEST_F(SessionBundlesCuda, UnitRejectedByDriverIsCompiled) {
  BundleMember junk = compiled(pip(), "sm_80");
  junk.artifact.bytes = Bytes::of("no cubin at all");
  SessionOptions made = with_compiler(bundle({junk}));
  made.settings["cache.dir"] = directory_.path("another cache");
  Session session = Session::open(made).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const auto kernel = session.get(pip(), "pip", seconds(60));
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  EXPECT_GE(log_.count(Event::Kind::LoadRejected), 1U);
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
}

TEST_F(SessionBundlesCuda, BundleTruncatedInPlaceEmitsOneEventAndUnitIsCompiled) {
  const std::string path = bundle({member(area(), "sm_86"), compiled(pip(), "sm_86")});
  SessionOptions made = with_compiler(path);
  made.settings["cache.dir"] = directory_.path("another cache");
  Session session = Session::open(made).value();
  ASSERT_TRUE(session.artifact(area(), Target::sm(86)).has_value());  // the bundle is open now
  ASSERT_EQ(log_.count(Event::Kind::Compiled), 0U);
  std::filesystem::resize_file(path, 0);
  const auto artifact = session.artifact(pip(), Target::sm(86));
  ASSERT_TRUE(artifact.has_value()) << artifact.error().message;
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
  const auto reported = log_.of(Event::Kind::BundleRejected);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_NE(reported[0].message.find("app.kiln was truncated while it was in use"), std::string::npos)
      << reported[0].message;
}

TEST_F(SessionBundlesCuda, ExactMatchServesSameCompilerAndReportsOthers) {
  SessionOptions exact = with_compiler(bundle({compiled(pip(), "sm_86"), member(area(), "sm_86")}));
  exact.settings["bundle.match"] = "exact";
  exact.settings["compile"] = "never";
  exact.settings["cache.dir"] = directory_.path("another cache");
  Session session = Session::open(exact).value();
  const auto same = session.artifact(pip(), Target::sm(86));
  ASSERT_TRUE(same.has_value()) << same.error().message;
  EXPECT_EQ(log_.of(Event::Kind::Hit).back().origin, "bundle");
  EXPECT_EQ(log_.count(Event::Kind::BundleIncompatible), 0U);
  const auto other = session.artifact(area(), Target::sm(86));
  ASSERT_FALSE(other.has_value());
  EXPECT_NE(other.error().message.find("app.kiln has it for sm_86"), std::string::npos) << other.error().message;
  EXPECT_EQ(other.error().message.find("add sm_86"), std::string::npos) << other.error().message;
  const auto reported = log_.of(Event::Kind::BundleIncompatible);
  ASSERT_FALSE(reported.empty());
  EXPECT_NE(reported[0].message.find("nvrtc 99.1.2"), std::string::npos) << reported[0].message;
  EXPECT_NE(reported[0].message.find("nvrtc 13"), std::string::npos) << reported[0].message;
}

}  // namespace
}  // namespace kiln::test
