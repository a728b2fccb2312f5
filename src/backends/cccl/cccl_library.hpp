// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/cccl.hpp>
#include <kiln/result.hpp>

#include "backends/cccl/cccl_abi.hpp"
#include "base/process/dynamic_library.hpp"

namespace kiln {

/// A release of cuda-cccl whose library kiln knows. The interface has no version and has changed between releases, so
/// that a library is identified only by the build id that its linker wrote.
struct CcclRelease {
  const char* build_id;
  const char* release;     ///< version of the package
  int headers;             ///< CCCL_VERSION of the matching headers, such as 3006000
  int cuda;                ///< CUDA major version
  bool reduce_takes_init;  ///< reduce is compiled for an initial value instead of a type and a kind of init
};
/// Returns the table of known releases, newest first. To add a release, add a line (docs/reference/cccl.md lists how to
/// get the values).
const std::vector<CcclRelease>& cccl_releases();
/// Returns the newest known release whose headers are not newer than these. A library of an unknown release is compiled
/// with its parameters, after a check (cccl_check.hpp). Returns null for headers that are older than all known ones.
const CcclRelease* cccl_parameters_for(int headers);

/// A libcccl.c.parallel on this machine, found without opening it.
struct CcclCandidate {
  std::string path;
  std::string headers;   ///< matching include directory; empty if it does not exist
  std::string build_id;  ///< empty if the file has none
  int headers_version = 0;
  std::string found_via;                 ///< explicit, mapped, package, prefix, VIRTUAL_ENV
  const CcclRelease* release = nullptr;  ///< null if kiln does not know it
  /// The release whose parameters are used: `release`, or an older one for an unknown release; null if none fits.
  const CcclRelease* parameters = nullptr;
  std::string version = "unknown";  ///< version of the package: of the known release, else as the package states it
  int cuda = 0;                     ///< CUDA major version; 0 if unknown
  /// Returns the reason why it cannot be used for compiling, with the next step; empty if it can be used. A library of
  /// an unknown release must also pass the check.
  std::string unusable_reason() const;
  /// Returns the reason why its algorithms cannot be called in this process, with the next step; empty if they can.
  /// Calls pass structs by value, which no check without a GPU can verify: the release must be known.
  std::string uncallable_reason() const;
};

/// Returns all candidates. `explicit_path` is the library, or a directory into which cuda-cccl was installed
/// (site-packages).
std::vector<CcclCandidate> cccl_candidates(const std::string& explicit_path);
/// Returns the library to use. `cuda` is the CUDA major version of the NVRTC that compiles (nvrtc_major); 0 means any,
/// for a path that names a library. Prefers libraries for this version, among them usable ones, among them known ones,
/// among them the first in the search order. Returns Code::Unavailable with the package to install if there is none.
Result<CcclCandidate> choose_cccl(const std::string& explicit_path, int cuda = 0);

/// The options of a compile by the library.
struct CcclBuildOptions {
  int capability = 0;              ///< 90 for sm_90
  std::string headers;             ///< CCCL's include directory
  std::string toolkit;             ///< include directory of the CUDA toolkit
  std::vector<std::string> flags;  ///< additional flags for NVRTC
  std::vector<std::string>
      operators;  ///< LTO-IR in place of the source of an operator, in the spec's order; an empty element means source
  /// Passes invalid pointers where a newer library could expect further parameters or fields, so that it crashes or
  /// fails instead of reading undefined values. For checks; otherwise these places contain zeros.
  bool poison_unknown = false;
};

class CcclBuild;

/// Returns true if calls of an algorithm need temporary storage. Calls of the others are only launches.
bool takes_temporary(cccl::Algorithm algorithm);

/// The loaded library. It is never unloaded. Thread-safe.
class CcclLibrary {
 public:
  /// Opens the library after the libraries that it needs, in this order: libcuda.so.1 (a stub is enough for compiling),
  /// libnvrtc, libnvJitLink. A needed library that the process has already loaded under its name is used instead.
  /// Rejects a library whose parameters are unknown.
  static Result<std::shared_ptr<const CcclLibrary>> open(const CcclCandidate& candidate,
                                                         const std::vector<std::string>& requirements);

  /// Returns the version of the package.
  const std::string& version() const { return version_; }
  const std::string& build_id() const { return build_id_; }

  /// Compiles a spec. The library prints to stdout and stderr; the caller must capture them.
  static Result<CcclBuild> compile(const std::shared_ptr<const CcclLibrary>& self, const cccl::Spec& spec,
                                   const CcclBuildOptions& options);
  /// Deserializes a blob that its envelope has verified.
  static Result<CcclBuild> deserialize(const std::shared_ptr<const CcclLibrary>& self, cccl::Algorithm algorithm,
                                       std::string_view blob);

 private:
  friend class CcclBuild;
  CcclLibrary(DynamicLibrary library, const CcclCandidate& candidate);
  void* find(cccl::Algorithm algorithm, const char* what) const;  ///< looks up `cccl_device_<algorithm>_<what>`

  const DynamicLibrary library_;
  const CcclRelease* const parameters_;
  const std::string version_;
  const std::string build_id_;
};

/// A build result of the library, compiled or deserialized, and possibly loaded. Owns its contents and cannot be
/// copied.
class CcclBuild {
 public:
  CcclBuild(CcclBuild&& other) noexcept;
  CcclBuild& operator=(CcclBuild&&) = delete;
  ~CcclBuild();

  int capability() const { return build_->head().capability; }
  /// Returns the cubin.
  std::string_view payload() const;
  Result<std::string> serialize() const;
  /// Returns true if the library has written behind the largest build result that kiln knows.
  bool has_overflowed() const;
  /// Loads it into the CUDA driver. Returns Code::LoadRejected if the driver rejects it and Code::Unavailable without a
  /// device.
  Status load();

  /// Enqueues it on a stream. If it needs storage and `storage` is null, it only sets `bytes` to the required size. The
  /// spec is the one for which it was compiled, and is already checked; the call is not.
  Status run(const cccl::Spec& spec, const cccl::Call& call, void* storage, std::size_t& bytes) const;

 private:
  friend class CcclLibrary;
  CcclBuild(std::shared_ptr<const CcclLibrary> library, cccl::Algorithm algorithm);

  std::shared_ptr<const CcclLibrary> library_;
  cccl::Algorithm algorithm_;
  std::unique_ptr<cccl_abi::AnyBuild> build_;
};

}  // namespace kiln
