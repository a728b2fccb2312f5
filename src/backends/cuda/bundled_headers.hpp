// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "base/mutex.hpp"
#include "core/recipe.hpp"
#include "core/request_context.hpp"
#include "events/event_emitter.hpp"

namespace kiln {

/// How kiln-worker is run to install headers. It gets what a worker that compiles gets
/// (docs/internals/worker-protocol.md).
struct HeaderInstaller {
  std::string worker;                                   ///< path of kiln-worker; empty if it must not run
  std::vector<std::string> environment;                 ///< its whole environment, as NAME=value
  std::uint64_t memory_limit = std::uint64_t{4} << 30;  ///< in bytes
  bool sandboxed = true;
  std::vector<std::string> readable;  ///< directories that it can read in its sandbox, in addition to NVRTC's
};

/// The headers that NVRTC bundles since 13.3 (CUB, Thrust, libcu++, cuda_fp16.h, …), installed once per host into one
/// directory per library (docs/how-to/install.md). The library writes the files in a process of its own; they appear
/// under their final name when all are complete. Thread-safe; several processes of the same user can share the
/// directory.
class BundledHeaders {
 public:
  /// `directory` returns the directory of all installations; empty if there is none. It is called once, at first use.
  BundledHeaders(std::function<std::string()> directory, EventEmitter emitter)
      : find_directory_(std::move(directory)), emitter_(std::move(emitter)) {}

  /// Returns the include roots of the headers that this NVRTC bundles, whether or not they are installed: CCCL's, then
  /// CUDA's. Returns none if the NVRTC bundles none or there is no directory for them.
  std::vector<IncludeRoot> roots(const CompilerIdentity& nvrtc);

  /// Installs the headers of the library at path `nvrtc` into `place`, the last of its `roots`, unless they are
  /// installed. One process of a host installs, others wait for it. Returns Code::Cancelled or Code::Unavailable if
  /// they are not installed.
  Status install(const std::string& place, const std::string& nvrtc, const HeaderInstaller& installer,
                 const RequestContext& context);
  /// Returns true if the headers are installed and complete, and records their use. The files are counted once per
  /// process, or now if `checks_again`.
  Result<bool> is_installed(const std::string& place, bool checks_again = false);
  /// Returns true if `place` is a directory for bundled headers.
  bool contains(const std::string& place);

 private:
  Status install_now(const std::string& place, const std::string& nvrtc, const HeaderInstaller& installer,
                     const RequestContext& context) const;
  const std::string& directory();

  const std::function<std::string()> find_directory_;  // looks for the directory only when it is first needed
  const EventEmitter emitter_;
  std::once_flag found_;
  std::string directory_;  // constant after `found_`
  Mutex mutex_;
  std::set<std::pair<dev_t, ino_t>> complete_ KILN_GUARDED_BY(mutex_);  // directories that were found complete
};

/// The first argument of kiln-worker if it is to install headers. The arguments after it are the process id of
/// the host, the memory limit in bytes, the paths of the library and of the directory, `sandboxed` or `plain`, and the
/// directories that can be read. The worker writes the reason of a failure to kWorkerChannel.
constexpr const char* kInstallHeaders = "install-headers";

/// Returns true if this NVRTC bundles headers, by its version.
bool has_bundled_headers(const CompilerIdentity& nvrtc);
/// Returns true if the compiler's error is that it did not find a header.
bool is_missing_header(const Error& error);

/// Returns the installations in a directory.
std::vector<std::string> installed_headers(const std::string& directory);
/// Removes the installations, and remains of interrupted ones, that no compile has used for `unused`.
/// Skips those that are being installed.
void remove_bundled_headers(const std::string& directory, std::chrono::hours unused);
constexpr std::chrono::hours kUnusedHeadersAge{30 * 24};

}  // namespace kiln
