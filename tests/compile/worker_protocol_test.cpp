#include "compile/worker_protocol.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <thread>

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

WorkerReply some_reply() {
  WorkerReply reply;
  reply.observed = true;
  reply.compiled.not_cacheable = "a reason";
  reply.compiled.artifact.bytes = Bytes::of("cubin");
  reply.compiled.artifact.target = Target::sm(90);
  reply.compiled.artifact.entries = {{"t<3>", "_Z1tILi3EEvPi"}};
  reply.observations = {{"a/h.h", Observation::State::Read, false, {1, 2, 3, 4, 5}, 6},
                        {"b/h.h", Observation::State::Missing, true, {}, 7}};
  reply.pch = {PchReport::Outcome::Created, "", 123, 456, {reply.observations[0]}};
  return reply;
}

TEST(WorkerProtocol, AReplyComesBackAsItWasSent) {
  const auto back = decode_reply(frame_of(some_reply()));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_TRUE(back->observed);
  EXPECT_EQ(back->compiled.not_cacheable, "a reason");
  EXPECT_EQ(back->compiled.artifact.bytes.view(), "cubin");
  EXPECT_EQ(back->compiled.artifact.entries, some_reply().compiled.artifact.entries);
  ASSERT_EQ(back->observations.size(), 2U);
  EXPECT_EQ(back->observations[0].stamp, (FileStamp{1, 2, 3, 4, 5}));
  EXPECT_EQ(back->observations[0].asked_ns, 6);
  EXPECT_TRUE(back->observations[1].both);
  EXPECT_EQ(back->pch.outcome, PchReport::Outcome::Created);
  EXPECT_EQ(back->pch.size, 123U);
  EXPECT_EQ(back->pch.checksum, 456U);
  EXPECT_EQ(back->pch.observations.size(), 1U);
}

TEST(WorkerProtocol, AClosureThatTheCompilerKnowsItselfComesWithTheArtifact) {
  WorkerReply reply = some_reply();
  Closure closure;
  closure.items.push_back({Closure::kAbsolute, Closure::State::Read, "/h.h", {}, 0});
  reply.has_closure = true;
  reply.compiled.artifact.closure = std::make_shared<const Closure>(closure);
  const auto back = decode_reply(frame_of(reply));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back->compiled.artifact.closure, closure);
}

TEST(WorkerProtocol, AJobComesBackAsItWasSentAndEveryTruncationIsRefused) {
  WorkerJob job{{Unit::cuda("k.cu", "source"), Target::sm(80), {}, "/"}, {PchOrder::Mode::Use, "/p", 7, 9}};
  const std::string whole = frame_of(job).payload;
  const auto back = decode_job(whole);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->recipe.unit.key(), job.recipe.unit.key());
  EXPECT_EQ(back->pch.mode, PchOrder::Mode::Use);
  EXPECT_EQ(back->pch.path, "/p");
  EXPECT_EQ(back->pch.size, 7U);
  EXPECT_EQ(back->pch.checksum, 9U);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_job(std::string_view(whole).substr(0, size)).ok()) << size;
  }
}

TEST(WorkerProtocol, ALargeArtifactComesInASealedFileAndAnUnsealedOneIsRefused) {
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
  ASSERT_TRUE(send_frame(theirs.get(), frame).ok());
  const auto received = receive_frame(ours.get(), 20s);
  ASSERT_TRUE(received.ok() && *received);
  const auto back = decode_reply(**received);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->compiled.artifact.bytes.view(), large);

  frame.attached = Fd(memfd_create("not sealed", MFD_CLOEXEC));
  ASSERT_TRUE(write_all(frame.attached.get(), large, "a memory file").ok());
  EXPECT_EQ(decode_reply(frame).error().code, Code::Corrupt);
  frame.attached = Fd();
  EXPECT_EQ(decode_reply(frame).error().code, Code::Corrupt) << "nothing is attached";
}

TEST(WorkerProtocol, EveryTruncationOfAReplyIsRefused) {
  const std::string whole = frame_of(some_reply()).payload;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_reply({Frame::Type::Compiled, whole.substr(0, size)}).ok()) << size;
  }
  EXPECT_FALSE(decode_reply({Frame::Type::Compiled, whole + "x"}).ok());
}

TEST(WorkerProtocol, EveryTruncationOfAFrameIsRefused) {
  const std::string whole = encode_frame({Frame::Type::Compiled, "payload"});
  ASSERT_TRUE(decode_frame(whole).ok());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_frame(std::string_view(whole).substr(0, size)).ok()) << size;
  }
}

TEST(WorkerProtocol, AnotherMagicVersionTypeOrSizeIsRefusedAndSaid) {
  const std::string whole = encode_frame({Frame::Type::Compiled, "payload"});
  std::string magic = whole;
  magic[0] = 'X';
  EXPECT_NE(decode_frame(magic).error().message.find("no frame"), std::string::npos);
  std::string version = whole;
  version[8] = 9;
  EXPECT_NE(decode_frame(version).error().message.find("version 9"), std::string::npos);
  EXPECT_NE(decode_frame(version).error().message.find("one installation"), std::string::npos);
  std::string type = whole;
  type[12] = 77;
  EXPECT_NE(decode_frame(type).error().message.find("77"), std::string::npos);
  std::string size = whole;
  size[23] = 0x7f;
  EXPECT_FALSE(decode_frame(size).ok());
}

TEST(WorkerProtocol, AnErrorKeepsItsCodeMessageAndLog) {
  const Error back = decode_failure(frame_of(WorkerFailure{{Code::CompileFailed, "message", "log"}, {}}).payload).error;
  EXPECT_EQ(back.code, Code::CompileFailed);
  EXPECT_EQ(back.message, "message");
  EXPECT_EQ(back.log, "log");
  EXPECT_EQ(decode_failure("").error.code, Code::Corrupt);
}

TEST(WorkerProtocol, FramesCrossAChannelAndItsEndIsNoError) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const std::string large(3 << 20, 'x');  // more than a socket takes at once
  std::thread sender([&] { EXPECT_TRUE(send_frame(theirs.get(), {Frame::Type::Compile, large}).ok()); });
  const auto frame = receive_frame(ours.get(), 20s);
  sender.join();
  ASSERT_TRUE(frame.ok() && *frame);
  EXPECT_EQ((*frame)->payload, large);
  EXPECT_EQ(receive_frame(ours.get(), 1ms).error().code, Code::TimedOut);
  theirs = Fd();
  const auto end = receive_frame(ours.get(), 20s);
  ASSERT_TRUE(end.ok());
  EXPECT_FALSE(end->has_value());
}

TEST(FileRecorder, WhatWasMissingAndThenThereIsMarked) {
  FileRecorder recorder;
  recorder.missing("h.h");
  recorder.read("h.h", {1, 2, 3, 4, 5});
  recorder.found("g.h", {1, 9, 3, 4, 5});
  recorder.read("g.h", {1, 9, 3, 4, 5});
  recorder.read("i.h", {1, 7, 3, 4, 5});
  recorder.read("i.h", {1, 7, 3, 4, 6});
  const auto seen = recorder.take();
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(seen[0].both);
  EXPECT_FALSE(seen[1].both);
  EXPECT_EQ(seen[1].state, Observation::State::Read);
  EXPECT_TRUE(seen[2].both) << "it changed between two reads";
  EXPECT_TRUE(recorder.take().empty());
}

TEST(FileRecorder, WhatTheCompilerWritesItselfIsNoInputAndOursTellsWhatWasAskedBefore) {
  FileRecorder recorder("/shelf/ours");
  recorder.missing("scratch");
  recorder.read("a.h", {1, 2, 3, 4, 5});
  recorder.missing("b.h");
  recorder.writing("scratch");
  recorder.writing("/shelf/ours");
  recorder.read("scratch", {1, 3, 3, 4, 5});
  recorder.read("/shelf/ours", {1, 4, 3, 4, 5});
  recorder.read("c.h", {1, 5, 3, 4, 5});
  const auto before = recorder.take_before_writing();
  ASSERT_TRUE(before);
  ASSERT_EQ(before->size(), 2U);
  EXPECT_EQ((*before)[1].path, "b.h");
  const auto all = recorder.take();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[2].path, "c.h");
}

TEST(FileRecorder, TwoRecordsJoinAsIfOneHadBeenMade) {
  const std::vector<Observation> first{{"a.h", Observation::State::Found, false, {1, 2, 3, 4, 5}, 1},
                                       {"b.h", Observation::State::Missing, false, {}, 1}};
  const std::vector<Observation> second{{"a.h", Observation::State::Read, false, {1, 2, 3, 4, 5}, 2},
                                        {"b.h", Observation::State::Read, false, {1, 9, 3, 4, 5}, 2},
                                        {"c.h", Observation::State::Missing, false, {}, 2}};
  const auto joined = join(first, second);
  ASSERT_EQ(joined.size(), 3U);
  EXPECT_EQ(joined[0].state, Observation::State::Read);
  EXPECT_FALSE(joined[0].both);
  EXPECT_TRUE(joined[1].both) << "it was missing, and then it was there";
  EXPECT_EQ(joined[2].path, "c.h");
}

}  // namespace
}  // namespace kiln::test
