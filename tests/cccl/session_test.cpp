// CCCL's algorithms through a session: really compiled and loaded by NVIDIA's library, into the driver double. What is
// then put on a stream is not run: the library refuses a driver that is not NVIDIA's.
#include <fstream>
#include <optional>
#include <string>

#include "cccl/cccl_fixture.hpp"
#include "compile/output_capture.hpp"
#include "session/config.hpp"
#include "session/toolbox.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/patience.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln::test {
namespace {

using cccl::Call;
using std::chrono::seconds;

const cccl::Spec& reduction() {
  static const cccl::Spec spec = cccl::named("reduce_sum_i32").value();
  return spec;
}

class CcclSession : public CcclTest {
 protected:
  /// A copy of the library that is of no release that anybody knows: one byte of its build id is another.
  std::string unknown_library() {
    const CcclCandidate known = choose_cccl(cccl_package()).value();
    std::string bytes = slurp(known.path);
    std::string id;
    for (std::size_t i = 0; i + 1 < known.build_id.size(); i += 2) {
      id += static_cast<char>(std::stoi(known.build_id.substr(i, 2), nullptr, 16));
    }
    const std::size_t at = bytes.find(id);
    EXPECT_NE(at, std::string::npos);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    std::string path = folder_.path("libcccl.c.parallel.so");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  TemporaryDirectory folder_;
};

TEST_F(CcclSession, ARequestCompilesAndLoadsInTheBackgroundAndAGetFindsItReady) {
  {
    Session session = Session::open(options()).value();
    ASSERT_TRUE(session.make_current("cuda").ok());
    std::string printed;
    {
      const OutputCapture capture;
      session.request({reduction()});
      EXPECT_TRUE(eventually([&] { return log_.count(Event::Kind::Loaded) == 1; }, kPatience));
      printed = capture.text();
    }
    EXPECT_EQ(printed, "");
    EXPECT_EQ(driver_.counts().libraries, 1U);
    const auto callable = cccl::get(session, reduction(), seconds(120));
    ASSERT_TRUE(callable.ok()) << callable.error().message;
    EXPECT_EQ(callable->kernels(), envelope_of(artifact()).kernels);
    EXPECT_EQ(driver_.counts().libraries, 1U);
    EXPECT_EQ(log_.count(Event::Kind::LoadRefused), 0U);
  }
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclSession, APlanIsWarmOnceItsAlgorithmsAreLoaded) {
  static const Needs needs{"reducing", [] { return Units{reduction()}; }};
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  for (const Cold& cold : Plan("test").stage(needs).ensure_warm(session, seconds(120))) ADD_FAILURE() << cold.why;
  EXPECT_EQ(driver_.counts().libraries, 1U);
  EXPECT_TRUE(cccl::get(session, reduction(), seconds(120)).ok());
  EXPECT_TRUE(eventually([&] { return log_.count(Event::Kind::Loaded) == 1; }));
}

TEST_F(CcclSession, ACallableKeepsItsSession) {
  std::optional<cccl::Callable> callable;
  {
    Session session = Session::open(options()).value();
    ASSERT_TRUE(session.make_current("cuda").ok());
    callable = cccl::get(session, reduction(), seconds(120)).value();
  }
  EXPECT_EQ(driver_.counts().libraries, 1U);
  callable.reset();
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CcclSession, AKernelOfAnAlgorithmIsNotToBeHad) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  const auto kernel = session.get(reduction(), "", seconds(120));
  ASSERT_FALSE(kernel.ok());
  EXPECT_EQ(kernel.error().code, Code::InvalidArgument);
  EXPECT_NE(kernel.error().message.find("kiln::cccl::get"), std::string::npos) << kernel.error().message;
}

TEST_F(CcclSession, ASpecThatMakesNoSenseIsAnErrorAtOnce) {
  Session session = Session::open(options()).value();
  cccl::Spec spec = reduction();
  spec.iterators.clear();
  EXPECT_EQ(cccl::get(session, spec).error().code, Code::InvalidArgument);
}

TEST_F(CcclSession, AnArtifactThatCannotBeUsedIsBuiltAgainAndReplaced) {
  {
    // Bytes that the store's checksums cover and the library would take, with names that their code does not have.
    SessionOptions same = options();
    Toolbox toolbox(Config::load(same, {}), {});
    Answer answer = toolbox.get(reduction(), Target::sm(80)).value();
    CcclEnvelope envelope = envelope_of(answer.artifact);
    std::string blob(envelope.blob);
    blob[blob.rfind(envelope.kernels.front()) + 10] = '?';
    envelope.blob = blob;
    answer.artifact.bytes = Bytes::of(encode(envelope));
    ASSERT_TRUE(toolbox.disks().front()->put(answer.key, answer.artifact).ok());
  }
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  const auto callable = cccl::get(session, reduction(), seconds(120));
  ASSERT_TRUE(callable.ok()) << callable.error().message;
  EXPECT_GE(log_.count(Event::Kind::LoadRefused), 1U);
  EXPECT_EQ(log_.count(Event::Kind::Compiled), 1U);
}

TEST_F(CcclSession, ALibraryOfAnUnknownReleaseIsRefusedWithWhatToInstall) {
  Session session = Session::open(options(unknown_library())).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  const auto callable = cccl::get(session, reduction(), seconds(120));
  ASSERT_FALSE(callable.ok());
  EXPECT_EQ(callable.error().code, Code::Unavailable);
  EXPECT_NE(callable.error().message.find("a release that this kiln does not know"), std::string::npos);
  EXPECT_NE(callable.error().message.find("Install"), std::string::npos) << callable.error().message;
}

TEST_F(CcclSession, WhoeverDoesNotWaitGoesOnByTheOneShotRoadWhereTheLibraryIsUnknown) {
  Session session = Session::open(options(unknown_library())).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  int shots = 0;
  cccl::Patient patient(session, reduction(), [&](const Call&) {
    ++shots;
    return Status();
  });
  const auto says_why = [&] {
    const auto told = log_.of(Event::Kind::CalledOneShot);
    return !told.empty() && told.back().message.find("does not know") != std::string::npos;
  };
  EXPECT_TRUE(eventually([&] { return patient.run(Call{}).ok() && says_why(); }));
  EXPECT_FALSE(patient.was_warm());
  EXPECT_EQ(static_cast<std::size_t>(shots), log_.count(Event::Kind::CalledOneShot));
  EXPECT_EQ(log_.count(Event::Kind::CalledWarm), 0U);
}

TEST_F(CcclSession, WhoeverDoesNotWaitIsWarmOnceItIsThere) {
  Session session = Session::open(options()).value();
  ASSERT_TRUE(session.make_current("cuda").ok());
  int shots = 0;
  cccl::Patient patient(session, reduction(), [&](const Call&) {
    ++shots;
    return Status();
  });
  // A call on the null stream, which a callable refuses: what is warm is tried, and no other road is taken.
  EXPECT_TRUE(eventually([&] { return !patient.run(Call{}).ok(); }, kPatience));
  EXPECT_TRUE(patient.was_warm());
  EXPECT_EQ(log_.count(Event::Kind::CalledWarm), 1U);
  EXPECT_EQ(static_cast<std::size_t>(shots), log_.count(Event::Kind::CalledOneShot));
  EXPECT_EQ(log_.count(Event::Kind::HotCompile), 0U) << "nobody waited";
}

TEST_F(CcclSession, BuildsForTargetsThatAreNotHere) {
  Session session = Session::open(options()).value();
  const auto built = cccl::build(session, reduction(), {Target::sm(80), Target::sm(90)}, seconds(120));
  ASSERT_EQ(built.size(), 2U);
  for (const auto& one : built) ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(envelope_of(*built[0]).capability, 80);
  EXPECT_EQ(envelope_of(*built[1]).capability, 90);
  EXPECT_EQ(driver_.calls("cuInit"), 0U) << "bytes need no driver";
}

}  // namespace
}  // namespace kiln::test
