#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "base/files.hpp"
#include "compile/compiler.hpp"
#include "compile/file_recorder.hpp"
#include "compile/pch.hpp"

namespace kiln {

/// What a program and its worker say to each other, docs/worker-protocol.md: frames over a socket pair.
struct Frame {
  enum class Type : std::uint32_t { Compile = 1, Compiled = 2, Failed = 3 };
  Type type = Type::Failed;
  std::string payload;
  Fd attached = {};  ///< a sealed memory file, where the payload speaks of one
};

/// The descriptor on which a worker finds its channel.
constexpr int kWorkerChannel = 3;

/// What a worker is to do.
struct WorkerJob {
  Recipe recipe;
  PchOrder pch;
};

/// What a worker found: the artifact, and what its compiler asked the file system.
struct WorkerReply {
  Compiled compiled;
  /// Whether the worker is sure to have seen every question that the compiler asked the file system.
  bool observed = false;
  std::vector<Observation> observations;
  /// Whether the compiler knows what it read by itself: the artifact has its closure then, and observations say
  /// nothing.
  bool has_closure = false;
  PchReport pch;
};

/// Why a worker has no artifact, and what its compiler had asked the file system by then.
struct WorkerFailure {
  Error error;
  std::vector<Observation> observations;
  /// The compiler got no more memory: that says nothing of the unit, and the worker is of no use any more.
  bool exhausted = false;
};

Frame frame_of(const WorkerJob& job);
Frame frame_of(const WorkerFailure& failure);
/// An artifact that is large travels in a sealed memory file, which nobody copies and nobody can change any more.
Frame frame_of(const WorkerReply& reply);

Result<WorkerJob> decode_job(std::string_view payload);
WorkerFailure decode_failure(std::string_view payload);
Result<WorkerReply> decode_reply(const Frame& frame);

/// A frame without what is attached to it, and the frame at the start of `bytes`, which must hold it whole: for tests
/// and the fuzzer.
std::string encode_frame(const Frame& frame);
Result<Frame> decode_frame(std::string_view bytes);

/// An error after `limit`, too: a worker that hangs before it has read everything must not keep its program.
Status send_frame(int channel, const Frame& frame, std::chrono::milliseconds limit = std::chrono::hours(24));
/// Nothing where the other side has ended the conversation between two frames; an error after `limit`.
Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds limit);

}  // namespace kiln
