#include "compile/worker_protocol.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kMagic = "KILNWRK1";
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kHeadSize = 8 + 4 + 4 + 8;
constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;

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

// Reads exactly `size` bytes; fewer only where the other side has ended.
Result<std::string> receive(int channel, std::uint64_t size, std::chrono::nanoseconds deadline) {
  std::string bytes;
  while (bytes.size() < size) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - system_clock().steady());
    if (left.count() <= 0) return failure(Code::TimedOut, "the other side does not answer");
    pollfd watched{channel, POLLIN, 0};
    const int ready = poll(&watched, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1 << 30)));
    if (ready < 0 && errno != EINTR) return io_failure("cannot wait for", "the worker's channel", errno);
    if (ready <= 0) continue;
    // Grown piece by piece: a length from outside is believed only as far as bytes have come.
    const std::size_t had = bytes.size();
    bytes.resize(had + std::min(kPiece, size - had));
    const ssize_t got = read(channel, bytes.data() + had, bytes.size() - had);
    bytes.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR && errno != ECONNRESET) {
      return io_failure("cannot read from", "the worker's channel", errno);
    }
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return bytes;
  }
  return bytes;
}

}  // namespace

std::string encode_frame(const Frame& frame) { return encode_head(frame) + frame.payload; }

Result<Frame> decode_frame(std::string_view bytes) {
  const Result<Head> head = decode_head(bytes.substr(0, kHeadSize));
  if (!head) return head.error();
  if (bytes.size() - kHeadSize < head->size) return failure(Code::Corrupt, "a frame that is cut short");
  return Frame{head->type, std::string(bytes.substr(kHeadSize, head->size))};
}

std::string encode(const WorkerReply& reply) {
  Writer out;
  out.u8(reply.observed ? 1 : 0).text(reply.compiled.not_cacheable).text(encode_metadata(reply.compiled.artifact));
  out.text(encode(reply.observations)).text(reply.compiled.artifact.bytes.view());
  return std::move(out).bytes();
}

Result<WorkerReply> decode_reply(std::string_view payload) {
  Reader in(payload);
  WorkerReply reply;
  reply.observed = in.u8() == 1;
  reply.compiled.not_cacheable = in.text();
  auto artifact = decode_metadata(in.text());
  if (!artifact) return std::move(artifact).error();
  std::string not_cacheable = std::move(reply.compiled.not_cacheable);
  reply.compiled = {std::move(*artifact), std::move(not_cacheable)};
  auto observations = decode_observations(in.text());
  if (!observations) return std::move(observations).error();
  reply.observations = std::move(*observations);
  reply.compiled.artifact.bytes = Bytes::copy_of(in.text());
  if (!in.done()) return failure(Code::Corrupt, "a worker's answer that is cut short or has something behind it");
  return reply;
}

std::string encode(const WorkerFailure& failure) {
  Writer out;
  out.u8(static_cast<std::uint8_t>(failure.error.code)).text(failure.error.message).text(failure.error.log);
  out.text(encode(failure.observations));
  return std::move(out).bytes();
}

WorkerFailure decode_failure(std::string_view payload) {
  Reader in(payload);
  const std::uint8_t code = in.u8();
  WorkerFailure decoded;
  decoded.error.code = code <= static_cast<std::uint8_t>(Code::Internal) ? static_cast<Code>(code) : Code::Internal;
  decoded.error.message = in.text();
  decoded.error.log = in.text();
  auto observations = decode_observations(in.text());
  if (!in.done() || !observations) return {failure(Code::Corrupt, "a worker's error that is cut short"), {}};
  decoded.observations = std::move(*observations);
  return decoded;
}

Status send_frame(int channel, const Frame& frame) {
  const std::string head = encode_head(frame);
  for (std::string_view part : {std::string_view(head), std::string_view(frame.payload)}) {
    while (!part.empty()) {
      // MSG_NOSIGNAL: a dead worker must not end the program by SIGPIPE.
      const ssize_t put = send(channel, part.data(), part.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return io_failure("cannot write to", "the worker's channel", errno);
      part.remove_prefix(static_cast<std::size_t>(put));
    }
  }
  return {};
}

Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds limit) {
  const auto deadline = system_clock().steady() + limit;
  const Result<std::string> bytes = receive(channel, kHeadSize, deadline);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return std::optional<Frame>();
  const Result<Head> head = decode_head(*bytes);
  if (!head) return head.error();
  Result<std::string> payload = receive(channel, head->size, deadline);
  if (!payload) return std::move(payload).error();
  if (payload->size() < head->size) return failure(Code::Corrupt, "the other side ended in the middle of a frame");
  return std::optional<Frame>(Frame{head->type, std::move(*payload)});
}

}  // namespace kiln
