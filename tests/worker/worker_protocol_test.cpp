// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_protocol.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

#include "base/hash.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

FileContent some_content() {
  FileContent content{sha256("text"), {}, "a problem"};
  content.facts.names_file = true;
  content.facts.is_vendors = true;
  content.facts.time_macro = "__TIME__";
  content.facts.pieces = "__ __TI";
  return content;
}

WorkerReply some_reply() {
  WorkerReply reply;
  reply.accesses_complete = true;
  reply.unobserved_because = "another reason";
  reply.compiled.uncacheable_reason = "a reason";
  reply.compiled.artifact.bytes = Bytes::of("cubin");
  reply.compiled.artifact.target = Target::sm(90);
  reply.compiled.artifact.entries = {{"t<3>", "_Z1tILi3EEvPi"}};
  reply.observations = {{"a/h.h", FileAccess::State::Read, false, {1, 2, 3, 4, 5}, some_content()},
                        {"b/h.h", FileAccess::State::Missing, true, {}, {}}};
  reply.pch = {PchResult::Outcome::Created, "", 123, 456, {reply.observations[0]}, "a warning\n", true, true};
  return reply;
}

TEST(WorkerProtocol, ReplyRoundTrips) {
  const auto back = decode_reply(frame_of(some_reply()));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_TRUE(back->accesses_complete);
  EXPECT_EQ(back->unobserved_because, "another reason");
  EXPECT_EQ(back->compiled.uncacheable_reason, "a reason");
  EXPECT_EQ(back->compiled.artifact.bytes.view(), "cubin");
  EXPECT_EQ(back->compiled.artifact.entries, some_reply().compiled.artifact.entries);
  ASSERT_EQ(back->observations.size(), 2U);
  EXPECT_EQ(back->observations[0].stamp, (FileStamp{1, 2, 3, 4, 5}));
  EXPECT_EQ(back->observations[0].content.digest, sha256("text"));
  EXPECT_EQ(back->observations[0].content.facts, some_content().facts);
  EXPECT_EQ(back->observations[0].content.problem, "a problem");
  EXPECT_TRUE(back->observations[1].inconsistent);
  EXPECT_EQ(back->pch.outcome, PchResult::Outcome::Created);
  EXPECT_EQ(back->pch.size, 123U);
  EXPECT_EQ(back->pch.checksum, 456U);
  EXPECT_EQ(back->pch.observations.size(), 1U);
  EXPECT_EQ(back->pch.log, "a warning\n");
  EXPECT_TRUE(back->pch.log_checked);
  EXPECT_TRUE(back->pch.permanent);
}

TEST(WorkerProtocol, RejectsFailedPchWithoutReason) {
  for (const auto outcome : {PchResult::Outcome::Rejected, PchResult::Outcome::Unavailable}) {
    WorkerReply reply = some_reply();
    reply.pch = {outcome, ""};
    EXPECT_FALSE(decode_reply(frame_of(reply)).has_value());
    reply.pch.reason = "why";
    EXPECT_TRUE(decode_reply(frame_of(reply)).has_value());
  }
}

TEST(WorkerProtocol, DependencySetOfCompilerIsSentWithArtifact) {
  WorkerReply reply = some_reply();
  DependencySet dependency_set;
  dependency_set.items.push_back({DependencySet::kAbsolute, DependencySet::State::Read, "/h.h", {}, 0});
  reply.has_dependency_set = true;
  reply.compiled.artifact.dependency_set = std::make_shared<const DependencySet>(dependency_set);
  const auto back = decode_reply(frame_of(reply));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(*back->compiled.artifact.dependency_set, dependency_set);
}

TEST(WorkerProtocol, JobRoundTripsAndTruncationsAreRejected) {
  WorkerJob job{{Unit::cuda("k.cu", "source"), Target::sm(80), {}, "/"},
                {PchRequest::Mode::Use, "/p", 7, 9, "a warning\n", true},
                {SandboxPlan::Mode::MayRunPrograms, true, {"/a", "/b"}, {"/c"}},
                Digest{{7}}};
  const std::string whole = frame_of(job).payload;
  const auto back = decode_job(whole);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->recipe.unit.key(), job.recipe.unit.key());
  EXPECT_EQ(back->pch.mode, PchRequest::Mode::Use);
  EXPECT_EQ(back->pch.log, "a warning\n");
  EXPECT_TRUE(back->pch.log_checked);
  EXPECT_EQ(back->pch.path, "/p");
  EXPECT_EQ(back->pch.size, 7U);
  EXPECT_EQ(back->pch.checksum, 9U);
  EXPECT_EQ(back->sandbox.mode, SandboxPlan::Mode::MayRunPrograms);
  EXPECT_TRUE(back->sandbox.reads_roots);
  EXPECT_EQ(back->sandbox.readable, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_EQ(back->sandbox.writable, std::vector<std::string>{"/c"});
  EXPECT_EQ(back->access_check, Digest{{7}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_job(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
}

TEST(WorkerProtocol, RejectsFileRequestWithoutPath) {
  const FileRequest request{FileRequest::Purpose::Write, "/a/file"};
  const std::string whole = frame_of(request).payload;
  const auto back = decode_file_request(whole);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->purpose, FileRequest::Purpose::Write);
  EXPECT_EQ(back->path, "/a/file");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_file_request(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
  for (const std::string& path : {std::string(), std::string(4096, 'x'), std::string("a\0b", 3)}) {
    EXPECT_EQ(decode_file_request(frame_of(FileRequest{{}, path}).payload).error().code, Code::Corrupt) << path;
  }
  EXPECT_FALSE(decode_file_request("\x03" + whole.substr(1)).has_value()) << "an unknown purpose";
}

TEST(WorkerProtocol, FileReplyHasFileOrError) {
  const auto rejected = decode_file_reply(frame_of(FileReply{EACCES, {}}));
  ASSERT_TRUE(rejected.has_value()) << rejected.error().message;
  EXPECT_EQ(rejected->error, EACCES);
  const auto opened = decode_file_reply(frame_of(FileReply{0, Fd(open("/dev/null", O_RDONLY | O_CLOEXEC))}));
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  EXPECT_TRUE(static_cast<bool>(opened->file));
  EXPECT_FALSE(decode_file_reply(frame_of(FileReply{0, {}})).has_value());
  EXPECT_FALSE(decode_file_reply(frame_of(FileReply{5000, {}})).has_value());
  EXPECT_FALSE(decode_file_reply(frame_of(FileRequest{{}, "/a"})).has_value());
  EXPECT_FALSE(decode_file_reply({Frame::Type::Opened, "xyz", {}}).has_value());
}

TEST(WorkerProtocol, SendToClosedChannelFails) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  theirs = Fd();
  const Status sent = send_frame(ours.get(), frame_of(some_reply()));
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().code, Code::Io);
}

TEST(WorkerProtocol, LargeArtifactNeedsSealedFile) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  WorkerReply reply = some_reply();
  const std::string large(1 << 20, 'x');
  reply.compiled.artifact.bytes = Bytes::of(large);
  Frame frame = frame_of(reply);
  ASSERT_TRUE(frame.attached);
  EXPECT_LT(frame.payload.size(), large.size());
  ASSERT_TRUE(send_frame(theirs.get(), frame).has_value());
  const auto received = receive_frame(ours.get(), 20s);
  ASSERT_TRUE(received.has_value() && *received);
  const auto back = decode_reply(**received);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->compiled.artifact.bytes.view(), large);

  frame.attached = Fd(memfd_create("not sealed", MFD_CLOEXEC));
  ASSERT_TRUE(write_all(frame.attached.get(), large, "a memory file").has_value());
  EXPECT_EQ(decode_reply(frame).error().code, Code::Corrupt);
  frame.attached = Fd();
  EXPECT_EQ(decode_reply(frame).error().code, Code::Corrupt) << "nothing is attached";
}

TEST(WorkerProtocol, RejectsArtifactInFileThatCanShrink) {
  WorkerReply reply = some_reply();
  const std::string large(1 << 20, 'x');
  reply.compiled.artifact.bytes = Bytes::of(large);
  Frame frame = frame_of(reply);
  ASSERT_TRUE(frame.attached);
  const TemporaryDirectory directory;
  frame.attached = Fd(open(directory.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(write_all(frame.attached.get(), large, "an ordinary file").has_value());
  EXPECT_FALSE(decode_reply(frame).has_value()) << "a file system without seals";
  for (const int seals : {F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, F_SEAL_SEAL | F_SEAL_GROW | F_SEAL_WRITE}) {
    frame.attached = Fd(memfd_create("half sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_TRUE(write_all(frame.attached.get(), large, "a memory file").has_value());
    ASSERT_EQ(fcntl(frame.attached.get(), F_ADD_SEALS, seals), 0);
    EXPECT_FALSE(decode_reply(frame).has_value()) << seals;
  }
}

TEST(WorkerProtocol, RejectsTruncatedReplies) {
  const std::string whole = frame_of(some_reply()).payload;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_reply({Frame::Type::Compiled, whole.substr(0, size)}).has_value()) << size;
  }
  EXPECT_FALSE(decode_reply({Frame::Type::Compiled, whole + "x"}).has_value());
}

TEST(WorkerProtocol, RejectsTruncatedFrames) {
  const std::string whole = encode_frame({Frame::Type::Compiled, "payload"});
  ASSERT_TRUE(decode_frame(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_frame(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
}

TEST(WorkerProtocol, RejectsWrongMagicVersionTypeOrSize) {
  const std::string whole = encode_frame({Frame::Type::Compiled, "payload"});
  std::string magic = whole;
  magic[0] = 'X';
  EXPECT_NE(decode_frame(magic).error().message.find("invalid frame"), std::string::npos);
  std::string version = whole;
  version[8] = 9;
  EXPECT_NE(decode_frame(version).error().message.find("version 9"), std::string::npos);
  EXPECT_NE(decode_frame(version).error().message.find("same installation"), std::string::npos);
  std::string type = whole;
  type[12] = 77;
  EXPECT_NE(decode_frame(type).error().message.find("77"), std::string::npos);
  std::string size = whole;
  size[23] = 0x7f;
  EXPECT_FALSE(decode_frame(size).has_value());
}

TEST(WorkerProtocol, ErrorRoundTrips) {
  const Error back = decode_failure(frame_of(WorkerFailure{{Code::CompileFailed, "message", "log"}, {}}).payload).error;
  EXPECT_EQ(back.code, Code::CompileFailed);
  EXPECT_EQ(back.message, "message");
  EXPECT_EQ(back.log, "log");
  EXPECT_EQ(decode_failure("").error.code, Code::Corrupt);
}

TEST(WorkerProtocol, SendsFramesAndEndOfChannelIsNoError) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const std::string large(3 << 20, 'x');  // more than the socket buffer
  std::thread sender([&] { EXPECT_TRUE(send_frame(theirs.get(), {Frame::Type::Compile, large}).has_value()); });
  const auto frame = receive_frame(ours.get(), 20s);
  sender.join();
  ASSERT_TRUE(frame.has_value() && *frame);
  EXPECT_EQ((*frame)->payload, large);
  EXPECT_EQ(receive_frame(ours.get(), 1ms).error().code, Code::TimedOut);
  theirs = Fd();
  const auto end = receive_frame(ours.get(), 20s);
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->has_value());
}

TEST(FileAccessRecorder, MarksFileThatAppeared) {
  FileAccessRecorder recorder;
  recorder.missing("h.h");
  recorder.read("h.h", {1, 2, 3, 4, 5}, {});
  recorder.found("g.h", {1, 9, 3, 4, 5});
  recorder.read("g.h", {1, 9, 3, 4, 5}, {});
  recorder.read("i.h", {1, 7, 3, 4, 5}, {});
  recorder.read("i.h", {1, 7, 3, 4, 6}, {});
  const auto seen = recorder.take();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(seen[0].inconsistent);
  EXPECT_FALSE(seen[1].inconsistent);
  EXPECT_EQ(seen[1].state, FileAccess::State::Read);
  EXPECT_TRUE(seen[2].inconsistent) << "it changed between two reads";
  EXPECT_TRUE(recorder.take().empty());
}

TEST(FileAccessRecorder, MarksReadsWithSameStampAndDifferentContent) {
  FileAccessRecorder recorder;
  recorder.read("h.h", {1, 2, 3, 4, 5}, {sha256("one"), {}, {}});
  recorder.read("h.h", {1, 2, 3, 4, 5}, {sha256("two"), {}, {}});
  recorder.found("g.h", {1, 9, 3, 4, 5});
  recorder.read("g.h", {1, 9, 3, 4, 5}, {sha256("one"), {}, {}});
  const auto seen = recorder.take();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].inconsistent);
  EXPECT_FALSE(seen[1].inconsistent);
  EXPECT_EQ(seen[1].content.digest, sha256("one"));
}

TEST(FileAccessRecorder, IgnoresWrittenFilesAndSnapshotsAtOutput) {
  FileAccessRecorder recorder("/pch/ours");
  recorder.missing("scratch");
  recorder.read("a.h", {1, 2, 3, 4, 5}, {});
  recorder.missing("b.h");
  recorder.writing("scratch");
  recorder.writing("/pch/ours");
  recorder.read("scratch", {1, 3, 3, 4, 5}, {});
  recorder.read("/pch/ours", {1, 4, 3, 4, 5}, {});
  recorder.read("c.h", {1, 5, 3, 4, 5}, {});
  const auto before = recorder.take_until_output();
  ASSERT_TRUE(before);
  ASSERT_EQ(before->size(), 2U);
  EXPECT_EQ((*before)[1].path, "b.h");
  const auto all = recorder.take();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].path, "c.h");
}

TEST(FileAccessRecorder, TakeForgetsSnapshot) {
  FileAccessRecorder recorder("/pch/ours");
  recorder.missing("a.h");
  recorder.writing("/pch/ours");
  (void)recorder.take();
  EXPECT_FALSE(recorder.take_until_output().has_value());
}

TEST(FileAccessRecorder, MergesTwoRecords) {
  const std::vector<FileAccess> first{{"a.h", FileAccess::State::Exists, false, {1, 2, 3, 4, 5}, {}},
                                      {"b.h", FileAccess::State::Missing, false, {}, {}}};
  const std::vector<FileAccess> second{{"a.h", FileAccess::State::Read, false, {1, 2, 3, 4, 5}, {}},
                                       {"b.h", FileAccess::State::Read, false, {1, 9, 3, 4, 5}, {}},
                                       {"c.h", FileAccess::State::Missing, false, {}, {}}};
  const auto joined = merge_accesses(first, second);
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_EQ(joined[0].state, FileAccess::State::Read);
  EXPECT_FALSE(joined[0].inconsistent);
  EXPECT_TRUE(joined[1].inconsistent) << "it was missing and appeared later";
  EXPECT_EQ(joined[2].path, "c.h");
}

}  // namespace
}  // namespace kiln::test
