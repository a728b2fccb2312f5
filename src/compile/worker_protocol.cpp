#include "compile/worker_protocol.hpp"

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
constexpr std::uint32_t kVersion = 4;
constexpr std::size_t kHeadSize = 8 + 4 + 4 + 8;
constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
// Below this a copy through the socket is quicker than a file.
constexpr std::size_t kWorthAFile = std::size_t{64} << 10;
constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

struct Head {
  Frame::Type type = Frame::Type::Failed;
  std::uint64_t size = 0;
};

Result<Head> decode_head(std::string_view bytes) {
  Reader in(bytes);
  const bool magic = in.raw(kMagic.size()) == kMagic;
  const std::uint32_t version = in.u32();
  const std::uint32_t type = in.u32();
  const std::uint64_t size = in.u64();
  if (!in.ok() || !magic) return failure(Code::Corrupt, "what came from the other side is no frame of kiln's");
  if (version != kVersion) {
    return failure(Code::Corrupt, "the other side speaks version " + std::to_string(version) +
                                      " of the worker protocol, " + "this one " + std::to_string(kVersion) +
                                      "; kiln and kiln-worker must come from one installation");
  }
  if (type < 1 || type > 3) return failure(Code::Corrupt, "a frame of unknown type " + std::to_string(type));
  if (size > kMostFrameBytes) return failure(Code::Corrupt, "a frame that claims " + std::to_string(size) + " bytes");
  return Head{static_cast<Frame::Type>(type), size};
}

std::string encode_head(const Frame& frame) {
  Writer out;
  out.raw(kMagic.data(), kMagic.size()).u32(kVersion).u32(static_cast<std::uint32_t>(frame.type));
  out.u64(frame.payload.size());
  return std::move(out).bytes();
}

// Reads what there is, at most `size` bytes, and takes up a descriptor that comes with them.
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

// Until the channel is ready for `events`.
Status wait_for(int channel, short events, std::chrono::nanoseconds deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock().steady());
    if (left.count() <= 0) return failure(Code::TimedOut, "the other side does not answer");
    pollfd watched{channel, events, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return io_failure("cannot wait for", "the worker's channel", errno);
  }
}

// Reads exactly `size` bytes; fewer only where the other side has ended.
Result<std::string> receive(int channel, std::uint64_t size, std::chrono::nanoseconds deadline, Fd& attached) {
  std::string bytes;
  while (bytes.size() < size) {
    if (const Status ready = wait_for(channel, POLLIN, deadline); !ready) return ready.error();
    // Grown piece by piece: a length from outside is believed only as far as bytes have come.
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(kPiece, size - had));
    const ssize_t got = take(channel, bytes.data() + had, bytes.size() - had, attached);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR && errno != ECONNRESET) {
      return io_failure("cannot read from", "the worker's channel", errno);
    }
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return bytes;
  }
  return bytes;
}

// The first piece of a frame carries what is attached to it.
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
  // MSG_NOSIGNAL: a dead worker must not end the program by SIGPIPE.
  return sendmsg(channel, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A memory file with this content that can neither be changed nor resized; no file where there is none to be had.
Fd sealed_file(std::string_view content) {
  Fd file(memfd_create("kiln-artifact", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !write_all(file.get(), content, "a memory file") || fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return {};
  }
  return file;
}

// Its content, mapped; an error where it is not sealed, because then it could change under its reader.
Result<Bytes> read_sealed(const Fd& file) {
  struct stat status;
  if (!file || (fcntl(file.get(), F_GET_SEALS) & kSeals) != kSeals || fstat(file.get(), &status) != 0) {
    return failure(Code::Corrupt, "a worker's artifact came in a file that is not sealed");
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0 || size > kMostFrameBytes) return failure(Code::Corrupt, "a worker's artifact of impossible size");
  void* const start = mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (start == MAP_FAILED) return io_failure("cannot map", "a worker's artifact", errno);
  const std::shared_ptr<const void> owner(start, [size](void* mapped) { munmap(mapped, size); });
  return Bytes(owner, static_cast<const std::uint8_t*>(start), size);
}

void write_pch(Writer& out, const PchReport& pch) {
  out.u8(static_cast<std::uint8_t>(pch.outcome)).text(pch.reason).u64(pch.size).u64(pch.checksum);
  out.text(encode(pch.observations));
}

Result<PchReport> read_pch(Reader& in) {
  PchReport pch;
  const std::uint8_t outcome = in.u8();
  if (outcome > 4) return failure(Code::Corrupt, "a worker's answer with an unknown outcome");
  pch.outcome = static_cast<PchReport::Outcome>(outcome);
  pch.reason = in.text();
  pch.size = in.u64();
  pch.checksum = in.u64();
  auto observations = decode_observations(in.text());
  if (!observations) return std::move(observations).error();
  pch.observations = std::move(*observations);
  return pch;
}

}  // namespace

std::string encode_frame(const Frame& frame) { return encode_head(frame) + frame.payload; }

Result<Frame> decode_frame(std::string_view bytes) {
  const Result<Head> head = decode_head(bytes.substr(0, kHeadSize));
  if (!head) return head.error();
  if (bytes.size() - kHeadSize < head->size) return failure(Code::Corrupt, "a frame that is cut short");
  return Frame{head->type, std::string(bytes.substr(kHeadSize, head->size)), {}};
}

Frame frame_of(const WorkerJob& job) {
  Writer out;
  out.text(encode(job.recipe)).u8(static_cast<std::uint8_t>(job.pch.mode)).text(job.pch.path);
  out.u64(job.pch.size).u64(job.pch.checksum);
  return {Frame::Type::Compile, std::move(out).bytes()};
}

Result<WorkerJob> decode_job(std::string_view payload) {
  Reader in(payload);
  auto recipe = decode_recipe(in.text());
  if (!recipe) return std::move(recipe).error();
  WorkerJob job{std::move(*recipe), {}};
  const std::uint8_t mode = in.u8();
  job.pch.path = in.text();
  job.pch.size = in.u64();
  job.pch.checksum = in.u64();
  if (!in.done() || mode > 2) return failure(Code::Corrupt, "a job that is cut short or has something behind it");
  job.pch.mode = static_cast<PchOrder::Mode>(mode);
  return job;
}

Frame frame_of(const WorkerReply& reply) {
  const Artifact& artifact = reply.compiled.artifact;
  Frame frame{Frame::Type::Compiled, {}};
  if (artifact.bytes.size() >= kWorthAFile) frame.attached = sealed_file(artifact.bytes.view());
  Writer out;
  out.u8(reply.observed ? 1 : 0).text(reply.compiled.not_cacheable).text(encode_metadata(artifact));
  out.text(encode(reply.observations)).u8(reply.has_closure ? 1 : 0);
  if (reply.has_closure) out.text(artifact.closure != nullptr ? artifact.closure->encode() : Closure().encode());
  write_pch(out, reply.pch);
  out.u8(frame.attached ? 1 : 0);
  if (!frame.attached) out.text(artifact.bytes.view());
  frame.payload = std::move(out).bytes();
  return frame;
}

Result<WorkerReply> decode_reply(const Frame& frame) {
  Reader in(frame.payload);
  WorkerReply reply;
  reply.observed = in.u8() == 1;
  std::string not_cacheable(in.text());
  auto artifact = decode_metadata(in.text());
  if (!artifact) return std::move(artifact).error();
  reply.compiled = {std::move(*artifact), std::move(not_cacheable)};
  auto observations = decode_observations(in.text());
  if (!observations) return std::move(observations).error();
  reply.observations = std::move(*observations);
  reply.has_closure = in.u8() == 1;
  if (reply.has_closure) {
    auto closure = Closure::decode(in.text());
    if (!closure) return std::move(closure).error();
    reply.compiled.artifact.closure = std::make_shared<const Closure>(std::move(*closure));
  }
  auto pch = read_pch(in);
  if (!pch) return std::move(pch).error();
  reply.pch = std::move(*pch);
  const bool attached = in.u8() == 1;
  Result<Bytes> bytes = attached ? read_sealed(frame.attached) : Bytes::copy_of(in.text());
  if (!bytes) return std::move(bytes).error();
  reply.compiled.artifact.bytes = std::move(*bytes);
  if (!in.done()) return failure(Code::Corrupt, "a worker's answer that is cut short or has something behind it");
  return reply;
}

Frame frame_of(const WorkerFailure& failure) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(failure.error.code)).text(failure.error.message).text(failure.error.log);
  out.text(encode(failure.observations)).u8(failure.exhausted ? 1 : 0);
  return {Frame::Type::Failed, std::move(out).bytes()};
}

WorkerFailure decode_failure(std::string_view payload) {
  Reader in(payload);
  const std::uint8_t code = in.u8();
  WorkerFailure decoded;
  decoded.error.code = code <= static_cast<std::uint8_t>(Code::Internal) ? static_cast<Code>(code) : Code::Internal;
  decoded.error.message = in.text();
  decoded.error.log = in.text();
  auto observations = decode_observations(in.text());
  decoded.exhausted = in.u8() == 1;
  if (!in.done() || !observations) return {failure(Code::Corrupt, "a worker's error that is cut short"), {}, false};
  decoded.observations = std::move(*observations);
  return decoded;
}

Status send_frame(int channel, const Frame& frame, std::chrono::milliseconds limit) {
  const auto deadline = system_clock().steady() + limit;
  const std::string head = encode_head(frame);
  int attached = frame.attached.get();
  for (std::string_view part : {std::string_view(head), std::string_view(frame.payload)}) {
    while (!part.empty()) {
      if (Status ready = wait_for(channel, POLLOUT, deadline); !ready) return ready;
      const ssize_t sent = put(channel, part, attached);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent < 0) return io_failure("cannot write to", "the worker's channel", errno);
      attached = -1;
      part.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  return {};
}

Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds limit) {
  const auto deadline = system_clock().steady() + limit;
  Fd attached;
  const Result<std::string> bytes = receive(channel, kHeadSize, deadline, attached);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return std::optional<Frame>();
  const Result<Head> head = decode_head(*bytes);
  if (!head) return head.error();
  Result<std::string> payload = receive(channel, head->size, deadline, attached);
  if (!payload) return std::move(payload).error();
  if (payload->size() < head->size) return failure(Code::Corrupt, "the other side ended in the middle of a frame");
  return std::optional<Frame>(Frame{head->type, std::move(*payload), std::move(attached)});
}

}  // namespace kiln
