#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "backends/compiler.hpp"
#include "backends/file_access.hpp"
#include "backends/pch.hpp"
#include "base/files/files.hpp"
#include "worker/sandbox.hpp"

namespace kiln {

/// A message between a host process and its worker, sent over a socket pair (docs/worker-protocol.md).
struct Frame {
  enum class Type : std::uint32_t { Compile = 1, Compiled = 2, Failed = 3, Open = 4, Opened = 5 };
  Type type = Type::Failed;
  std::string payload;
  Fd attached = {};  ///< a sealed memory file or, with Opened, a file, if the payload refers to one
};

/// The descriptor number of a worker's channel.
constexpr int kWorkerChannel = 3;

/// A job for a worker.
struct WorkerJob {
  Recipe recipe;
  PchRequest pch;
  SandboxPlan sandbox{};
  /// The files of a worker that passed the check of its file accesses with this compiler on this host
  /// (`WorkerReply::access_check`). A worker with the same files does not repeat the check. Zeros mean none.
  Digest access_check{};
};

/// A request of a worker to open a file that its sandbox does not allow it to open.
struct FileRequest {
  enum class Purpose : std::uint8_t {
    Input = 0,  ///< the compiler reads it as an input of the unit
    Other = 1,  ///< it is read outside of a compile
    Write = 2,
  };
  Purpose purpose = Purpose::Input;
  std::string path;
};

/// The host's reply: a descriptor, or the errno with which the worker's call fails.
struct FileReply {
  int error = 0;
  Fd file;
};

/// The result of a worker: the artifact and the compiler's file accesses.
struct WorkerReply {
  CompileResult compiled;
  /// True if the worker has certainly recorded every file access of the compiler.
  bool accesses_complete = false;
  std::string unobserved_because{};  ///< the reason otherwise, if the worker knows it
  /// A digest of the files that the worker runs with, if its file accesses are recorded; otherwise zeros.
  Digest access_check{};
  std::vector<FileAccess> observations;
  /// True if the compiler reports its inputs by itself. The artifact then has its dependency set, and `observations` is
  /// not used.
  bool has_dependency_set = false;
  PchResult pch;
};

/// The error of a worker, with the file accesses of its compiler up to then.
struct WorkerFailure {
  enum class Cause : std::uint8_t {
    Compile,     ///< the compile failed with this error
    Exhausted,   ///< the compiler ran out of memory; says nothing about the unit, and the worker cannot be used again
    NoCompiler,  ///< the worker does not have the recipe's compiler; nothing was compiled
    Unseen,  ///< the compiler opens files in a way that the worker cannot intercept; its sandbox must allow more reads
  };
  Error error;
  std::vector<FileAccess> observations;
  Cause cause = Cause::Compile;
};

Frame frame_of(const WorkerJob& job);
Frame frame_of(const WorkerFailure& failure);
/// A large artifact is passed in a sealed memory file, which is not copied and cannot be modified.
Frame frame_of(const WorkerReply& reply);

Frame frame_of(const FileRequest& request);
Frame frame_of(FileReply answer);

Result<WorkerJob> decode_job(std::string_view payload);
Result<FileRequest> decode_file_request(std::string_view payload);
Result<FileReply> decode_file_reply(Frame frame);
WorkerFailure decode_failure(std::string_view payload);
Result<WorkerReply> decode_reply(const Frame& frame);

/// Encode a frame without its attachment, and decode the complete frame at the start of `bytes`. For tests and the
/// fuzzer.
std::string encode_frame(const Frame& frame);
Result<Frame> decode_frame(std::string_view bytes);

/// Sends a frame. Fails after `timeout`, too: a worker that hangs before it has read everything must not block its
/// host.
Status send_frame(int channel, const Frame& frame, std::chrono::milliseconds timeout = std::chrono::hours(24));
/// Receives a frame. Returns nothing if the peer closed the channel between two frames, and an error after `timeout`.
Result<std::optional<Frame>> receive_frame(int channel, std::chrono::milliseconds timeout);

}  // namespace kiln
