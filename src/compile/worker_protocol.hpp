#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "compile/compiler.hpp"
#include "compile/file_recorder.hpp"

namespace kiln {

/// What a program and its worker say to each other, docs/worker-protocol.md: frames over a socket pair.
struct Frame {
  enum class Type : std::uint32_t { Compile = 1, Compiled = 2, Failed = 3 };
  Type type = Type::Failed;
  std::string payload;
};

constexpr std::uint64_t kMostFrameBytes = std::uint64_t{1} << 30;
/// The descriptor on which a worker finds its channel.
constexpr int kWorkerChannel = 3;

/// What a worker found: the artifact, and what its compiler asked the file system.
struct WorkerReply {
  Compiled compiled;
  /// Whether the worker is sure to have seen every question that the compiler asked the file system.
  bool observed = false;
  std::vector<Observation> observations;
};

std::string encode_frame(const Frame& frame);
/// The frame at the start of `bytes`, which must hold it whole: for tests and the fuzzer.
Result<Frame> decode_frame(std::string_view bytes);

std::string encode(const WorkerReply& reply);
Result<WorkerReply> decode_reply(std::string_view payload);

/// Why a worker has no artifact, and what its compiler had asked the file system by then.
struct WorkerFailure {
  Error error;
  std::vector<Observation> observations;
};
std::string encode(const WorkerFailure& failure);
WorkerFailure decode_failure(std::string_view payload);

Status send_frame(int channel, const Frame& frame);
/// Nothing where the other side has ended the conversation between two frames; an error after `limit`.
Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds limit);

}  // namespace kiln
