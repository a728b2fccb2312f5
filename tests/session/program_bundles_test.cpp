// SPDX-License-Identifier: Apache-2.0
// Bundles that a program or a package adds to all sessions of its process. Cases that run in one process see the paths
// of earlier cases, whose files are gone.
#include "bundle/program_bundles.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include <kiln/session.hpp>

#include "base/hash.hpp"
#include "bundle/bundle_writer.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

Unit blur() { return Unit::cuda("blur.cu", "extern \"C\" __global__ void blur() {}").with_entry("blur"); }

class ProgramBundles : public testing::Test {
 protected:
  /// Writes an unsigned bundle with one unit for one architecture.
  std::string bundle(const std::string& name, const std::string& target) {
    BundleMember member;
    member.kind = blur().kind();
    member.unit = blur().key();
    member.artifact.bytes = Bytes::of("code for " + target);
    member.artifact.target = Target::parse(target).value();
    member.artifact.entries.push_back({"blur", "blur"});
    member.artifact.metadata = {blur().name(), "nvrtc 99.1.2", 0, {}};
    member.request = {sha256("request " + target)};
    member.key = {sha256("key " + target)};
    member.compiler = "nvrtc";
    member.version = "99.1.2";
    member.compiler_digest = sha256("nvrtc 99.1.2");
    BundleWriter writer({"acme/vision", 1});
    EXPECT_TRUE(writer.add(member).has_value());
    write_text(directory_.path(name), writer.finish(nullptr).value().to_file());
    return directory_.path(name);
  }
  /// Opens a session without a compiler that trusts no bundle file.
  Session session(std::map<std::string, std::string> more = {}) {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_.path("cache")}, {"nvrtc", "/no/nvrtc"}};
    options.settings.merge(more);
    options.on_event = log_.callback();
    return Session::open(options).value();
  }
  /// Returns how many events reported that this case's bundle is not used.
  std::ptrdiff_t rejections(const std::string& name) {
    const auto reported = log_.of(Event::Kind::BundleRejected);
    return std::count_if(reported.begin(), reported.end(), [&](const Event& event) {
      return event.message.find(directory_.path(name)) != std::string::npos;
    });
  }

  const std::size_t earlier_ = program_bundle_count();
  TemporaryDirectory directory_;
  EventLog log_;
};

TEST_F(ProgramBundles, UnsignedBundleServesSessionsOpenedBeforeAndAfter) {
  Session before = session();
  EXPECT_FALSE(before.artifact(blur(), Target::sm(80)));
  ASSERT_TRUE(use_bundle(bundle("a.kiln", "sm_80")));
  Session after = session();
  for (Session* each : {&before, &after}) {
    const auto artifact = each->artifact(blur(), Target::sm(80));
    ASSERT_TRUE(artifact.has_value()) << artifact.error().message;
    EXPECT_EQ(artifact->bytes.view(), "code for sm_80");
  }
  EXPECT_EQ(rejections("a.kiln"), 0);
}

TEST_F(ProgramBundles, BundlesOfSeveralPackagesAreAllUsed) {
  Session session = this->session();
  ASSERT_TRUE(use_bundle(bundle("a.kiln", "sm_80")));
  EXPECT_TRUE(session.artifact(blur(), Target::sm(80)));
  ASSERT_TRUE(use_bundle(bundle("b.kiln", "sm_90")));
  EXPECT_TRUE(session.artifact(blur(), Target::sm(90)));
}

TEST_F(ProgramBundles, SamePathIsAddedOnceAndRelativePathIsResolvedAtOnce) {
  const std::string path = bundle("a.kiln", "sm_80");
  ASSERT_EQ(chdir(directory_.path().c_str()), 0);
  EXPECT_TRUE(use_bundle("a.kiln"));
  EXPECT_TRUE(use_bundle("./a.kiln"));
  EXPECT_TRUE(use_bundle(path));
  ASSERT_EQ(chdir("/"), 0);
  EXPECT_EQ(program_bundle_count(), earlier_ + 1);
  EXPECT_TRUE(session().artifact(blur(), Target::sm(80)));
}

TEST_F(ProgramBundles, MissingAndInvalidFilesAreErrorsAndAddNothing) {
  const Status missing = use_bundle(directory_.path("none.kiln"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::Unavailable) << missing.error().message;
  write_text(directory_.path("text.kiln"), "not a bundle");
  const Status invalid = use_bundle(directory_.path("text.kiln"));
  ASSERT_FALSE(invalid);
  EXPECT_EQ(invalid.error().code, Code::Corrupt) << invalid.error().message;
  EXPECT_EQ(program_bundle_count(), earlier_);
}

TEST_F(ProgramBundles, BundleRemovedLaterIsReportedOnceAndSkipped) {
  const std::string path = bundle("a.kiln", "sm_80");
  ASSERT_TRUE(use_bundle(path));
  ASSERT_EQ(unlink(path.c_str()), 0);
  Session session = this->session();
  EXPECT_FALSE(session.artifact(blur(), Target::sm(80)));
  EXPECT_FALSE(session.artifact(blur(), Target::sm(90)));
  EXPECT_EQ(rejections("a.kiln"), 1);
}

TEST_F(ProgramBundles, BundleThatEveryUserCanWriteToIsRejected) {
  const std::string open = bundle("open.kiln", "sm_80");
  ASSERT_EQ(chmod(open.c_str(), 0666), 0);
  const Status rejected = use_bundle(open);
  ASSERT_FALSE(rejected);
  EXPECT_EQ(rejected.error().code, Code::Denied) << rejected.error().message;
  EXPECT_EQ(program_bundle_count(), earlier_);
  // As root installs it for others, and as a user with umask 002 does.
  ASSERT_EQ(chmod(open.c_str(), 0664), 0);
  ASSERT_TRUE(use_bundle(open));
  ASSERT_EQ(chmod(open.c_str(), 0666), 0);
  EXPECT_FALSE(session().artifact(blur(), Target::sm(80)));
  EXPECT_EQ(rejections("open.kiln"), 1);
}

TEST_F(ProgramBundles, NamespacesOfTheUserRestrictThem) {
  ASSERT_TRUE(use_bundle(bundle("a.kiln", "sm_80")));
  Session session = this->session({{"trust.namespaces", "other/*"}});
  EXPECT_FALSE(session.artifact(blur(), Target::sm(80)));
  EXPECT_EQ(rejections("a.kiln"), 1);
}

TEST_F(ProgramBundles, ErrorWithoutCompilerNamesArchitecturesOfBundle) {
  ASSERT_TRUE(use_bundle(bundle("a.kiln", "sm_80")));
  const auto artifact = session().artifact(blur(), Target::sm(75));
  ASSERT_FALSE(artifact);
  const std::string& message = artifact.error().message;
  EXPECT_NE(message.find("no bundle has usable code for sm_75 (bundle " + directory_.path("a.kiln") +
                         " has it for sm_80; add sm_75 with "),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("/no/nvrtc"), std::string::npos) << message;
}

}  // namespace
}  // namespace kiln::test
