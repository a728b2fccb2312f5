// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cccl/cccl_library.hpp"
#include "backends/compiler.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "backends/cuda/nvjitlink_compiler.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "backends/pch.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A compiler of CCCL algorithms that uses NVIDIA's C library. A unit of kind "cccl" is a spec; its artifact is the
/// library's serialized build result in kiln's envelope. Needs neither a device nor a driver: a stub of libcuda is
/// enough.
///
/// It compiles only in workers, because the library prints to stdout and the files that it reads must be recorded. In
/// any other process it only returns its identity and rejects compiles.
/// `identity` and `supports` are thread-safe; one thread can compile.
class CcclCompiler final : public Compiler {
 public:
  /// For a host process. `library` and `nvrtc` are the values of the settings of these names. The search starts with
  /// the first call.
  /// `bundled`, which must outlive this object, is used if there is no toolkit; null means that it is not.
  CcclCompiler(std::string library, const std::string& nvrtc, FileDigestCache& digests,
               BundledHeaders* bundled = nullptr);
  /// For a worker: uses exactly the libraries that the host process found.
  CcclCompiler(const CompilerIdentity& found, FileDigestCache& digests);

  /// Returns the NVRTC that the library must use. Returns Code::Corrupt if the identity does not name it.
  static Result<std::string> nvrtc_of(const CompilerIdentity& found);

  std::string kind() const override { return "cccl"; }
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  Status supports(const Target& target) override;
  /// Returns the unit that checks the library if its release is unknown.
  std::optional<Unit> check_before(const Recipe& recipe) override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
  /// Opens the library and reads the files that identify it. Called before the files that a compile reads are recorded.
  Status open(const Recipe& recipe);
  /// Compiles with precompiled headers. If `order` requests their creation, it creates only the headers: the compile of
  /// the algorithm can take three times as long, and other compiles wait for the headers.
  Result<CompileResult> compile(const Recipe& recipe, const PchRequest& order, PchResult& report);
  /// Compiles a unit of kind `kCcclCheckKind` and checks the result (cccl_check.hpp). The error is Code::CompileFailed
  /// with the reason if the library must not be used for the algorithm.
  Result<CompileResult> check(const Recipe& recipe);

 private:
  struct Toolchain {
    CcclCandidate library;
    std::string driver;   ///< libcuda, or the toolkit's stub of it
    std::string toolkit;  ///< the toolkit's headers
  };
  Result<Toolchain> find(const CompilerIdentity& nvrtc);
  Result<CompileResult> precompile(const Recipe& recipe, cccl::Algorithm algorithm, const PchRequest& order,
                                   PchResult& report) const;
  Result<CompileResult> wrap_in_envelope(const Recipe& recipe, const CcclBuild& build, double ms, std::string log);
  /// Returns the LTO-IR of the operators that several targets share, compiled for the lowest of these targets.
  Result<std::vector<std::string>> shared_operators(const Recipe& recipe, const cccl::Spec& spec) const;

  const std::string path_;
  const bool in_worker_;
  FileDigestCache& digests_;
  BundledHeaders* const bundled_ = nullptr;
  NvrtcCompiler nvrtc_;
  NvJitLinkCompiler linker_;
  Mutex mutex_;
  std::optional<Toolchain> found_ KILN_GUARDED_BY(mutex_);
  // Used only in a worker, by its single thread.
  std::shared_ptr<const CcclLibrary> library_;
  std::shared_ptr<const NvrtcLibrary> opened_nvrtc_;
};

}  // namespace kiln
