// SPDX-License-Identifier: Apache-2.0
// CCCL algorithms through a session: really compiled and loaded by NVIDIA's library, into the driver double. They are
// not run on a stream, because the library rejects a driver that is not NVIDIA's.
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "backends/cccl/cccl_library.hpp"
#include "backends/cccl/output_capture.hpp"
#include "session/access.hpp"
#include "session/cccl_fixture.hpp"
#include "support/fixtures/cccl_tree.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/nvrtc12_tree.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

using cccl::Call;
using std::chrono::seconds;

const cccl::Spec& reduction() {
  static const cccl::Spec spec = cccl::find_predefined("reduce_sum_i32").value();
  return spec;
}

class CcclSession : public CcclTest {
 protected:
  /// Returns a copy of the library of an unknown release: one byte of its build id is changed.
  std::string unknown_library() {
    const CcclCandidate known = choose_cccl(cccl_package()).value();
    std::string bytes = read_text(known.path);
    std::string id;
    for (std::size_t i = 0; i + 1 < known.build_id.size(); i += 2) {
      id += static_cast<char>(std::stoi(known.build_id.substr(i, 2), nullptr, 16));
    }
    const std::size_t at = bytes.find(id);
    EXPECT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::string path = directory_.path("libcccl.c.parallel.so");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  TemporaryDirectory directory_;
};

TEST_F(CcclSession, RequestCompilesAndLoadsInBackground) {
  {
    Session session = Session::open(options()).value();
    ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
    std::string printed;
    {
      const OutputCapture capture;
      session.request({reduction()});
      EXPECT_TRUE(eventually([&] { return log_.count(Event::Kind::Loaded) == 1; }, kHangTimeout));
      printed = capture.text();
    }
    EXPECT_EQ(printed, "");
    EXPECT_EQ(driver_.counts().libraries, 1U);
    const auto callable = cccl::get(session, reduction(), seconds(120));
    ASSERT_TRUE(callable.has_value()) << callable.error().message;
    EXPECT_EQ(callable->kernels(), envelope_of(artifact()).kernels);
    EXPECT_EQ(driver_.counts().libraries, 1U);
    EXPECT_EQ(log_.count(Event::Kind::LoadRejected), 0U);
  }
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclSession, PlanIsReadyOnceAlgorithmsAreLoaded) {
  static const Requirements requirements{"reducing", [] { return Units{reduction()}; }};
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  for (const NotReady& cold : WarmupPlan("test").stage(requirements).ensure_warm(session, seconds(120)))
    ADD_FAILURE() << cold.reason;
  EXPECT_EQ(driver_.counts().libraries, 1U);
  EXPECT_TRUE(cccl::get(session, reduction(), seconds(120)).has_value());
  EXPECT_TRUE(eventually([&] { return log_.count(Event::Kind::Loaded) == 1; }));
}

TEST_F(CcclSession, CallableKeepsSessionAlive) {
  std::optional<cccl::Callable> callable;
  {
    Session session = Session::open(options()).value();
    ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
    callable = cccl::get(session, reduction(), seconds(120)).value();
  }
  EXPECT_EQ(driver_.counts().libraries, 1U);
  callable.reset();
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclSession, AlgorithmHasNoKernels) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const auto kernel = session.get(reduction(), "", seconds(120));
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, Code::InvalidArgument);
  EXPECT_NE(kernel.error().message.find("kiln::cccl::get"), std::string::npos) << kernel.error().message;
}

TEST_F(CcclSession, InvalidSpecIsImmediateError) {
  Session session = Session::open(options()).value();
  cccl::Spec spec = reduction();
  spec.iterators.clear();
  EXPECT_EQ(cccl::get(session, spec).error().code, Code::InvalidArgument);
}

TEST_F(CcclSession, UnusableArtifactIsRebuiltAndReplaced) {
  {
    // Bytes with valid checksums that the library would accept, with names that their code does not contain.
    SessionOptions same = options();
    same.on_event = nullptr;
    Session session = Session::open(same).value();
    ResolvedArtifact answer = session.resolve(reduction(), Target::sm(80)).value();
    CcclEnvelope envelope = envelope_of(answer.artifact);
    std::string blob(envelope.blob);
    blob[blob.rfind(envelope.kernels.front()) + 10] = '?';
    envelope.blob = blob;
    answer.artifact.bytes = Bytes::of(encode(envelope));
    ASSERT_TRUE(
        detail::SessionAccess::components(session).disks().front()->put(answer.key, answer.artifact, {}).has_value());
  }
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const auto callable = cccl::get(session, reduction(), seconds(120));
  ASSERT_TRUE(callable.has_value()) << callable.error().message;
  EXPECT_GE(log_.count(Event::Kind::LoadRejected), 1U);
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
}

TEST_F(CcclSession, UnknownLibraryReleaseIsRejectedWithNextStep) {
  static const Requirements requirements{"reducing", [] { return Units{reduction()}; }};
  SessionOptions own = options(unknown_library());
  own.record_undeclared = true;
  Session session = Session::open(own).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const auto callable = cccl::get(session, reduction(), seconds(120));
  ASSERT_FALSE(callable.has_value());
  EXPECT_EQ(callable.error().code, Code::Unavailable);
  EXPECT_NE(callable.error().message.find("does not know"), std::string::npos);
  EXPECT_NE(callable.error().message.find("install"), std::string::npos) << callable.error().message;
  const auto rejected = log_.of(Event::Kind::CalledFallback);
  ASSERT_EQ(rejected.size(), 1U);
  EXPECT_EQ(rejected.front().message, callable.error().message);
  EXPECT_NE(rejected.front().unit, "");
  EXPECT_EQ(session.undeclared().size(), 1U);
  const std::vector<NotReady> cold = WarmupPlan("test").stage(requirements).ensure_warm(session, seconds(120));
  ASSERT_EQ(cold.size(), 1U) << "a plan is not ready with an algorithm that get refuses";
  EXPECT_EQ(cold.front().reason, callable.error().message);
}

// The package has a library for CUDA 13 and one for CUDA 12, which is of an unknown release here.
TEST_F(CcclSession, LibraryIsForCudaVersionOfNvrtc) {
  const std::string site = directory_.path("site");
  const CcclTree tree(cccl_package(), site, CcclTree::Headers::Linked);
  std::filesystem::create_directories(site + "/cuda/compute/cu12/cccl");
  std::filesystem::copy_file(unknown_library(), site + "/cuda/compute/cu12/cccl/libcccl.c.parallel.so");
  for (const bool is_cuda12 : {true, false}) {
    SessionOptions own = options(site);
    if (is_cuda12) own.settings["nvrtc"] = make_nvrtc12_tree(directory_.path("cuda"));
    Session session = Session::open(own).value();
    ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
    const auto callable = cccl::get(session, reduction(), std::chrono::nanoseconds(0));
    const std::string said = callable ? "" : callable.error().message;
    EXPECT_EQ(said.find("/cu12/") != std::string::npos, is_cuda12) << said;
  }
}

TEST_F(CcclSession, NonBlockingCallableUsesFallbackIfLibraryIsUnknown) {
  Session session = Session::open(options(unknown_library())).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  int shots = 0;
  cccl::NonBlockingCallable patient(session, reduction(), [&](const Call&) {
    ++shots;
    return Status();
  });
  const auto says_reason = [&] {
    const auto reported = log_.of(Event::Kind::CalledFallback);
    return !reported.empty() && reported.back().message.find("does not know") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return patient.run(Call{}).has_value() && says_reason(); }));
  EXPECT_FALSE(patient.used_compiled());
  EXPECT_EQ(static_cast<std::size_t>(shots), log_.count(Event::Kind::CalledFallback));
  EXPECT_EQ(log_.count(Event::Kind::CalledCompiled), 0U);
}

TEST_F(CcclSession, NonBlockingCallableUsesCompiledCodeOnceReady) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  int shots = 0;
  cccl::NonBlockingCallable patient(session, reduction(), [&](const Call&) {
    ++shots;
    return Status();
  });
  // A call without a stream, which a callable rejects: the compiled algorithm is tried, and the fallback is not called.
  EXPECT_TRUE(eventually([&] { return !patient.run(Call{}).has_value(); }, kHangTimeout));
  EXPECT_TRUE(patient.used_compiled());
  EXPECT_EQ(log_.count(Event::Kind::CalledCompiled), 1U);
  EXPECT_EQ(static_cast<std::size_t>(shots), log_.count(Event::Kind::CalledFallback));
  EXPECT_EQ(log_.count(Event::Kind::BlockingCompile), 0U) << "no caller waited";
}

TEST_F(CcclSession, ColdGetIsReportedLikeThatOfOtherUnits) {
  SessionOptions own = options();
  own.settings["cache.dir"] = directory_.path("cache");
  own.record_undeclared = true;
  Session session = Session::open(own).value();
  ASSERT_TRUE(session.make_current(Backend::Cuda).has_value());
  const auto impatient = cccl::get(session, reduction(), std::chrono::milliseconds(1));
  ASSERT_FALSE(impatient.has_value());
  EXPECT_EQ(impatient.error().code, Code::TimedOut);
  EXPECT_NE(impatient.error().message.find("run your own code until then"), std::string::npos)
      << impatient.error().message;
  const std::vector<Event> fallbacks = log_.of(Event::Kind::CalledFallback);
  ASSERT_EQ(fallbacks.size(), 1U) << "the caller runs its own code";
  EXPECT_EQ(fallbacks[0].unit, "reduce_sum_i32");
  EXPECT_EQ(fallbacks[0].warm, false);
  EXPECT_EQ(fallbacks[0].message, impatient.error().message);

  ASSERT_TRUE(cccl::get(session, reduction(), seconds(120)).has_value());
  const std::vector<Event> waits = log_.of(Event::Kind::BlockingCompile);
  ASSERT_EQ(waits.size(), 1U);
  EXPECT_EQ(waits[0].unit, "reduce_sum_i32");
  EXPECT_NE(waits[0].message.find("cccl_session_test.cpp:"), std::string::npos) << waits[0].message;

  ASSERT_EQ(session.undeclared().size(), 2U);
  EXPECT_EQ(session.undeclared()[0].unit, "reduce_sum_i32");
  EXPECT_NE(session.undeclared()[0].caller.find("cccl_session_test.cpp:"), std::string::npos);
  EXPECT_NE(log_.of(Event::Kind::Undeclared)[0].message.find("used it, which"), std::string::npos);

  const SessionStatus status = session.status();
  EXPECT_EQ(status.submitted, 1U);
  EXPECT_EQ(status.compiled, 1U);
  EXPECT_EQ(status.pending + status.failed, 0U);
  EXPECT_GT(status.wall_ms, 0);
  ASSERT_EQ(status.units.size(), 1U);
  EXPECT_EQ(status.units[0].unit, "reduce_sum_i32");
  EXPECT_EQ(status.units[0].kind, "cccl");
  EXPECT_EQ(status.units[0].target, "cccl_80");
  EXPECT_EQ(status.units[0].state, UnitStatus::State::Ready);
  EXPECT_GT(status.units[0].ms, 0);
}

TEST_F(CcclSession, BuildsForAbsentTargets) {
  Session session = Session::open(options()).value();
  const auto built = cccl::compile_for_targets(session, reduction(), {Target::sm(80), Target::sm(90)}, seconds(120));
  ASSERT_EQ(built.size(), 2U);
  for (const auto& one : built) ASSERT_TRUE(one.has_value()) << one.error().message;
  EXPECT_EQ(envelope_of(*built[0]).capability, 80);
  EXPECT_EQ(envelope_of(*built[1]).capability, 90);
  EXPECT_EQ(driver_.calls("cuInit"), 0U) << "bytes need no driver";
}

}  // namespace
}  // namespace kiln::test
