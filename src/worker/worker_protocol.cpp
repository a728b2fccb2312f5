// SPDX-License-Identifier: Apache-2.0
#include "worker/worker_protocol.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNWRK1";
constexpr std::uint32_t kVersion = 8;
constexpr std::size_t kHeadSize = 8 + 4 + 4 + 8;
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
// Below this size a copy through the socket is faster than a file.
constexpr std::size_t kWorthAFile = std::size_t{64} << 10;
constexpr std::size_t kMaxPathBytes = 4096;
constexpr std::uint32_t kMaxErrorLength = 4095;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct Head {
  Frame::Type type = Frame::Type::Failed;
  std::uint64_t size = 0;
};

Result<Head> decode_head(std::string_view bytes) {
  BinaryReader in(bytes);
  const bool magic = in.raw(kMagic.size()) == kMagic;
  const std::uint32_t version = in.u32();
  const std::uint32_t type = in.u32();
  const std::uint64_t size = in.u64();
  if (!in.ok() || !magic) return make_error(Code::Corrupt, "invalid frame: wrong magic or truncated header");
  if (version != kVersion) {
    return make_error(Code::Corrupt, "the peer uses version " + std::to_string(version) + " of the worker protocol, " +
                                         "this process version " + std::to_string(kVersion) +
                                         "; use kiln and kiln-worker of the same installation");
  }
  if (type < 1 || type > 5) return make_error(Code::Corrupt, "invalid frame: unknown type " + std::to_string(type));
  if (size > kMaxFrameBytes)
    return make_error(Code::Corrupt, "invalid frame: size of " + std::to_string(size) + " bytes");
  return Head{static_cast<Frame::Type>(type), size};
}

std::string encode_head(const Frame& frame) {
  BinaryWriter out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(static_cast<std::uint32_t>(frame.type));
  out.u64(frame.payload.size());
  return std::move(out).bytes();
}

// Reads the available bytes, at most `size`, and a descriptor that comes with them.
ssize_t take(int channel, char* bytes, std::size_t size, Fd& attached) {
  iovec part{bytes, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
    attached = Fd(fd);
  }
  return got;
}

// Waits until the channel is ready for `events`.
Status wait_for(int channel, short events, std::chrono::nanoseconds deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock().steady());
    if (left.count() <= 0) return make_error(Code::TimedOut, "timed out waiting for the peer");
    pollfd watched{channel, events, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return io_error("cannot wait for", "the worker's channel", errno);
  }
}

// Reads exactly `size` bytes; fewer only if the peer has closed the channel.
Result<std::string> receive(int channel, std::uint64_t size, std::chrono::nanoseconds deadline, Fd& attached) {
  std::string bytes;
  while (bytes.size() < size) {
    if (const Status ready = wait_for(channel, POLLIN, deadline); !ready) return ready.error();
    // Grows in steps: the size from the peer is not trusted before the bytes have arrived.
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(kPiece, size - had));
    const ssize_t got = take(channel, bytes.data() + had, bytes.size() - had, attached);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR && errno != ECONNRESET) {
      return io_error("cannot read from", "the worker's channel", errno);
    }
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return bytes;
  }
  return bytes;
}

// The first bytes of a frame carry its attachment.
ssize_t put(int channel, std::string_view bytes, int attached) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (attached >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &attached, sizeof attached);
  }
  // MSG_NOSIGNAL: a dead worker must not terminate the host by SIGPIPE.
  return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Returns a memory file with this content that can be neither modified nor resized; no file if it cannot be created.
Fd sealed_file(std::string_view content) {
  Fd file(memfd_create("kiln-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !write_all(file.get(), content, "a memory file") || fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return {};
  }
  return file;
}

// Returns the mapped content. Returns an error if the file is not sealed, because its content could change.
Result<Bytes> read_sealed(const Fd& file) {
  struct stat status;
  const int seals = file ? fcntl(file.get(), F_GET_SEALS) : -1;  // -1 for a file that cannot be sealed
  if (seals < 0 || (seals & kSeals) != kSeals || fstat(file.get(), &status) != 0) {
    return make_error(Code::Corrupt, "invalid artifact of a worker: the file is not sealed");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0 || size > kMaxFrameBytes) return make_error(Code::Corrupt, "invalid artifact of a worker: wrong size");
  void* const start = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) return io_error("cannot map", "a worker's artifact", errno);
  const std::shared_ptr<const void> owner(start, [size](void* mapped) { munmap(mapped, size); });
  return Bytes(owner, static_cast<const std::uint8_t*>(start), size);
}

void write_paths(BinaryWriter& out, const std::vector<std::string>& paths) {
  out.u32(static_cast<std::uint32_t>(paths.size()));
  for (const std::string& path : paths) out.text(path);
}

std::vector<std::string> read_paths(BinaryReader& in) {
  std::vector<std::string> paths(in.count(4));
  for (std::string& path : paths) path = in.text();
  return paths;
}

void write_pch(BinaryWriter& out, const PchResult& pch) {
  out.u8(static_cast<std::uint8_t>(pch.outcome)).text(pch.reason).u64(pch.size).u64(pch.checksum);
  out.text(encode(pch.observations)).text(pch.log).u8(pch.log_checked ? 1 : 0).u8(pch.permanent ? 1 : 0);
}

Result<PchResult> read_pch(BinaryReader& in) {
  PchResult pch;
  const std::uint8_t outcome = in.u8();
  if (outcome > 4) return make_error(Code::Corrupt, "invalid reply of a worker: unknown outcome");
  pch.outcome = static_cast<PchResult::Outcome>(outcome);
  pch.reason = in.text();
  pch.size = in.u64();
  pch.checksum = in.u64();
  auto observations = decode_observations(in.text());
  if (!observations) return std::move(observations).error();
  pch.observations = std::move(*observations);
  pch.log = in.text();
  pch.log_checked = in.u8() == 1;
  pch.permanent = in.u8() == 1;
  const bool is_failure = outcome > static_cast<std::uint8_t>(PchResult::Outcome::Used);
  if (is_failure && pch.reason.empty()) return make_error(Code::Corrupt, "invalid reply of a worker: no reason");
  return pch;
}

}  // namespace

std::string encode_frame(const Frame& frame) { return encode_head(frame) + frame.payload; }

Result<Frame> decode_frame(std::string_view bytes) {
  const Result<Head> head = decode_head(bytes.substr(0, kHeadSize));
  if (!head) return head.error();
  if (bytes.size() - kHeadSize < head->size) return make_error(Code::Corrupt, "invalid frame: truncated");
  return Frame{head->type, std::string(bytes.substr(kHeadSize, head->size)), {}};
}

Frame frame_of(const WorkerJob& job) {
  BinaryWriter out;
  out.text(encode(job.recipe)).u8(static_cast<std::uint8_t>(job.pch.mode)).text(job.pch.path);
  out.u64(job.pch.size).u64(job.pch.checksum).text(job.pch.log).u8(job.pch.log_checked ? 1 : 0);
  out.u8(static_cast<std::uint8_t>(job.sandbox.mode)).u8(job.sandbox.reads_roots ? 1 : 0);
  write_paths(out, job.sandbox.readable);
  write_paths(out, job.sandbox.writable);
  out.digest(job.access_check);
  return {Frame::Type::Compile, std::move(out).bytes()};
}

Result<WorkerJob> decode_job(std::string_view payload) {
  BinaryReader in(payload);
  auto recipe = decode_recipe(in.text());
  if (!recipe) return std::move(recipe).error();
  WorkerJob job{std::move(*recipe), {}};
  const std::uint8_t mode = in.u8();
  job.pch.path = in.text();
  job.pch.size = in.u64();
  job.pch.checksum = in.u64();
  job.pch.log = in.text();
  job.pch.log_checked = in.u8() == 1;
  const std::uint8_t sandbox = in.u8();
  job.sandbox.reads_roots = in.u8() == 1;
  job.sandbox.readable = read_paths(in);
  job.sandbox.writable = read_paths(in);
  job.access_check = in.digest();
  if (!in.at_end() || mode > 2 || sandbox > 2) {
    return make_error(Code::Corrupt, "invalid job: truncated or trailing bytes");
  }
  job.pch.mode = static_cast<PchRequest::Mode>(mode);
  job.sandbox.mode = static_cast<SandboxPlan::Mode>(sandbox);
  return job;
}

Frame frame_of(const FileRequest& request) {
  BinaryWriter out;
  out.u8(static_cast<std::uint8_t>(request.purpose)).text(request.path);
  return {Frame::Type::Open, std::move(out).bytes()};
}

Result<FileRequest> decode_file_request(std::string_view payload) {
  BinaryReader in(payload);
  const std::uint8_t purpose = in.u8();
  std::string path(in.text());
  const bool is_path = !path.empty() && path.size() < kMaxPathBytes && path.find('\0') == std::string::npos;
  if (!in.at_end() || purpose > 2 || !is_path) return make_error(Code::Corrupt, "invalid file request: no path");
  return FileRequest{static_cast<FileRequest::Purpose>(purpose), std::move(path)};
}

Frame frame_of(FileReply answer) {
  BinaryWriter out;
  out.u32(static_cast<std::uint32_t>(answer.error));
  return {Frame::Type::Opened, std::move(out).bytes(), std::move(answer.file)};
}

Result<FileReply> decode_file_reply(Frame frame) {
  BinaryReader in(frame.payload);
  const std::uint32_t error = in.u32();
  const bool has_file = static_cast<bool>(frame.attached);
  if (frame.type != Frame::Type::Opened || !in.at_end() || error > kMaxErrorLength || has_file != (error == 0)) {
    return make_error(Code::Corrupt, "invalid reply to a file request: neither a file nor an error");
  }
  return FileReply{static_cast<int>(error), std::move(frame.attached)};
}

Frame frame_of(const WorkerReply& reply) {
  const Artifact& artifact = reply.compiled.artifact;
  Frame frame{Frame::Type::Compiled, {}};
  if (artifact.bytes.size() >= kWorthAFile) frame.attached = sealed_file(artifact.bytes.view());
  BinaryWriter out;
  out.u8(reply.accesses_complete ? 1 : 0)
      .text(reply.unobserved_because)
      .digest(reply.access_check)
      .text(reply.compiled.uncacheable_reason)
      .text(encode_metadata(artifact));
  out.text(encode(reply.observations)).u8(reply.has_dependency_set ? 1 : 0);
  if (reply.has_dependency_set)
    out.text(artifact.dependency_set != nullptr ? artifact.dependency_set->encode() : DependencySet().encode());
  write_pch(out, reply.pch);
  out.u8(frame.attached ? 1 : 0);
  if (!frame.attached) out.text(artifact.bytes.view());
  frame.payload = std::move(out).bytes();
  return frame;
}

Result<WorkerReply> decode_reply(const Frame& frame) {
  BinaryReader in(frame.payload);
  WorkerReply reply;
  reply.accesses_complete = in.u8() == 1;
  reply.unobserved_because = in.text();
  reply.access_check = in.digest();
  std::string not_cacheable(in.text());
  auto artifact = decode_metadata(in.text());
  if (!artifact) return std::move(artifact).error();
  reply.compiled = {std::move(*artifact), std::move(not_cacheable)};
  auto observations = decode_observations(in.text());
  if (!observations) return std::move(observations).error();
  reply.observations = std::move(*observations);
  reply.has_dependency_set = in.u8() == 1;
  if (reply.has_dependency_set) {
    auto dependency_set = DependencySet::decode(in.text());
    if (!dependency_set) return std::move(dependency_set).error();
    reply.compiled.artifact.dependency_set = std::make_shared<const DependencySet>(std::move(*dependency_set));
  }
  auto pch = read_pch(in);
  if (!pch) return std::move(pch).error();
  reply.pch = std::move(*pch);
  const bool attached = in.u8() == 1;
  Result<Bytes> bytes = attached ? read_sealed(frame.attached) : Bytes::copy_of(in.text());
  if (!bytes) return std::move(bytes).error();
  reply.compiled.artifact.bytes = std::move(*bytes);
  if (!in.at_end()) return make_error(Code::Corrupt, "invalid reply of a worker: truncated or trailing bytes");
  return reply;
}

Frame frame_of(const WorkerFailure& failure) {
  BinaryWriter out;
  out.u8(static_cast<std::uint8_t>(failure.error.code)).text(failure.error.message).text(failure.error.log);
  out.text(encode(failure.observations)).u8(static_cast<std::uint8_t>(failure.cause));
  return {Frame::Type::Failed, std::move(out).bytes()};
}

WorkerFailure decode_failure(std::string_view payload) {
  BinaryReader in(payload);
  const std::uint8_t code = in.u8();
  WorkerFailure decoded;
  decoded.error.code = code <= static_cast<std::uint8_t>(Code::Internal) ? static_cast<Code>(code) : Code::Internal;
  decoded.error.message = in.text();
  decoded.error.log = in.text();
  auto observations = decode_observations(in.text());
  const std::uint8_t cause = in.u8();
  if (!in.at_end() || !observations || cause > static_cast<std::uint8_t>(WorkerFailure::Cause::Unseen)) {
    return {make_error(Code::Corrupt, "invalid error of a worker: truncated"), {}, WorkerFailure::Cause::Compile};
  }
  decoded.cause = static_cast<WorkerFailure::Cause>(cause);
  decoded.observations = std::move(*observations);
  return decoded;
}

Status send_frame(int channel, const Frame& frame, std::chrono::milliseconds timeout) {
  const auto deadline = system_clock().steady() + timeout;
  const std::string head = encode_head(frame);
  int attached = frame.attached.get();
  for (std::string_view part : {std::string_view(head), std::string_view(frame.payload)}) {
    while (!part.empty()) {
      if (Status ready = wait_for(channel, POLLOUT, deadline); !ready) return ready;
      const ssize_t sent = put(channel, part, attached);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent < 0) return io_error("cannot write to", "the worker's channel", errno);
      attached = -1;
      part.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  return {};
}

Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds timeout) {
  const auto deadline = system_clock().steady() + timeout;
  Fd attached;
  const Result<std::string> bytes = receive(channel, kHeadSize, deadline, attached);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return std::optional<Frame>();
  const Result<Head> head = decode_head(*bytes);
  if (!head) return head.error();
  Result<std::string> payload = receive(channel, head->size, deadline, attached);
  if (!payload) return std::move(payload).error();
  if (payload->size() < head->size) return make_error(Code::Corrupt, "the peer closed the channel within a frame");
  return std::optional<Frame>(Frame{head->type, std::move(*payload), std::move(attached)});
}

}  // namespace kiln
