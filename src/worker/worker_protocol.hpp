// SPDX-License-Identifier: Apache-2.0
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

// The messages between a host process and its worker. Numbers are little-endian; `text` is a u32 and that many bytes.
// clang-format off
//   frame    = "KILNWRK1"  version u32 = 8  type u32  size u64 (at most 1 GiB)  payload
//   type     = 1 compile   kiln → worker   payload: job
//            | 2 compiled  worker → kiln   payload: reply
//            | 3 failed    worker → kiln   payload: error
//            | 4 open      worker → kiln   payload: request, while a job runs
//            | 5 opened    kiln → worker   payload: answer to the request
//
//   job      = recipe text            version u8 = 2, then the unit, the target, the compiler and the working directory as
//                                     src/core/recipe.cpp writes them
//              pch u8                 0 no precompiled header, 1 write one, 2 use one; of a unit of kind cccl 1 means: write one and
//                                     compile nothing, the reply then has an artifact without bytes
//              path text              where it is, or is to be written; absolute
//              size u64  checksum u64 (XXH3) of the file that is to be used, zero otherwise
//              log text               of the file that is to be used: what the compiler logged when it was written
//              log_checked u8         1: that log is known to be the start of the log of a compile without the file
//              sandbox u8             0 off, 1 the compiler runs no programs, 2 it runs programs
//              reads_roots u8         1: include roots and the working directory are among the readable paths
//              readable paths         directories and files that may be read besides the system's own
//              writable paths         directories that may be written to
//              access_check           32 bytes: the files of a worker that passed the check of its file accesses, or zeros
//   paths    = count u32, then so many texts
//   request  = purpose u8             0 an input of the compile, 1 read outside of one, 2 to be written
//              path text              at most 4095 bytes, no NUL
//   answer   = error u32              0: the file comes with the frame; else the errno (at most 4095) that the call fails with
//   reply    = observed u8            1: every question of the compiler was seen
//              unobserved_because text  why not, where the worker knows; empty otherwise
//              access_check           32 bytes: the files of this worker if every question was seen, otherwise zeros
//              not_cacheable text     empty, or why the artifact may not be kept
//              metadata text          as in an entry (docs/internals/formats/cache-folder.md)
//              observations text      what the compiler asked the file system
//              has_closure u8         1: the compiler knows by itself what it read, and a closure follows
//              closure text           only then; a dependency set, same page
//              pch                    what became of the precompiled header
//              attached u8            1: the artifact is in the file that came with the frame; 0: it follows
//              bytes text             only where it is not attached
//   pch      = outcome u8             0 none, 1 created, 2 used, 3 refused, 4 unavailable
//              reason text            refused and unavailable; never empty there
//              size u64  checksum u64  observations text      created: the file, and what had been asked by then
//              log text               created: what the compiler had logged by then
//              log_checked u8         created and used: as in the job, or found out by this compile
//              permanent u8           refused: 1: it stays so as long as the headers do not change
//   observations = count u32, then each:
//              path text  state u8 (1 missing, 2 found, 3 read)  both u8 (two questions had different answers)
//              device u64  inode u64  size u64  modified_ns u64  changed_ns u64
//              content                only where it was read
//   content  = digest (32 bytes, SHA-256 of the bytes that the compiler was given)
//              facts u8               bit 0 names its file, 1 names its reader, 2 names the program, 3 contains the path of an
//                                     include root, 4 may say #pragma once, 5 has ##, 6 is one of NVIDIA's
//                                     own headers
//              time_macro text        __TIME__ or the like, where the text has it
//              pieces text            identifiers that ## could join to such a macro or to __FILE__, separated by blanks
//              problem text           why the digest does not prove what was read; empty where it does
//   error    = code u8  message text  log text
//              observations text      what the compile had asked before it failed
//              cause u8               0: the compile failed
//                                     1: the compiler got no more memory; the worker is of no use any more
//                                     2: the worker does not have the recipe's compiler and compiled nothing (OpenCL: the
//                                     driver or the device is another one, or there is none); kiln compiles in its own process
//                                     3: the compiler opens files in a way that the worker does not see, so it must be asked
//                                     again with reads_roots
// clang-format on

/// A message between a host process and its worker, sent over a socket pair (docs/internals/worker-protocol.md).
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
