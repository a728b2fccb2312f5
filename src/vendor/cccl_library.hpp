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

#include "base/dynamic_library.hpp"
#include "vendor/cccl_abi.hpp"

namespace kiln {

/// A release of cuda-cccl whose library kiln knows how to call. The interface has no version of its own and has changed
/// between releases, so a library is known by the id that its linker wrote into it, or not at all.
struct CcclRelease {
  const char* build_id;
  const char* release;     ///< of the package
  int headers;             ///< CCCL_VERSION of the headers that belong to it, such as 3006000
  int cuda;                ///< the CUDA major that it is for
  bool reduce_takes_init;  ///< its reduce is compiled for an initial value rather than for a type and a kind of init
};
/// The one table; adding a release is adding a line (docs/cccl.md says how to find out what belongs there).
const std::vector<CcclRelease>& cccl_releases();

/// A libcccl.c.parallel on this machine, without opening it.
struct CcclCandidate {
  std::string path;
  std::string headers;   ///< the include folder that belongs to it; empty where that is not there
  std::string build_id;  ///< empty where the file has none
  int headers_version = 0;
  std::string found_by;                  ///< explicit, mapped, package, VIRTUAL_ENV
  const CcclRelease* release = nullptr;  ///< null: kiln does not know it
  /// Why it cannot be used, with what to do; empty where it can.
  std::string problem() const;
};

/// `explicit_path` is the library, or a folder into which cuda-cccl was installed (site-packages).
std::vector<CcclCandidate> cccl_candidates(const std::string& explicit_path);
/// The one to use: the explicit one, else the first in the order that kiln knows, else the first. Code::Unavailable
/// where there is none, with what to install.
Result<CcclCandidate> choose_cccl(const std::string& explicit_path);

/// How a compile of the library's goes.
struct CcclBuildOptions {
  int capability = 0;              ///< 90 for sm_90
  std::string headers;             ///< CCCL's include folder
  std::string toolkit;             ///< the CUDA toolkit's include folder
  std::vector<std::string> flags;  ///< further ones for NVRTC
  std::vector<std::string>
      operators;  ///< LTO-IR instead of the source of an operator, in the spec's order; empty: source
};

class CcclBuild;

/// Whether calls of an algorithm take temporary storage; those of the others are nothing but launches.
bool takes_temporary(cccl::Algorithm algorithm);

/// The opened library. Never closed. Any thread.
class CcclLibrary {
 public:
  /// Opens it and before it what it needs, in this order: libcuda.so.1 (a stub serves for compiling), libnvrtc,
  /// libnvJitLink. A needed one that the process has open already under its name is taken instead. Refuses a library
  /// that `release` does not fit.
  static Result<std::shared_ptr<const CcclLibrary>> open(const CcclCandidate& candidate,
                                                         const std::vector<std::string>& needs);

  const CcclRelease& release() const { return *release_; }
  const std::string& build_id() const { return build_id_; }

  /// Compiles. The library writes what it has to say to stdout and stderr, whoever calls it sees to these.
  static Result<CcclBuild> compile(const std::shared_ptr<const CcclLibrary>& self, const cccl::Spec& spec,
                                   const CcclBuildOptions& options);
  /// Takes a blob that an envelope vouches for.
  static Result<CcclBuild> deserialise(const std::shared_ptr<const CcclLibrary>& self, cccl::Algorithm algorithm,
                                       std::string_view blob);

 private:
  friend class CcclBuild;
  CcclLibrary(DynamicLibrary library, const CcclCandidate& candidate);
  void* find(cccl::Algorithm algorithm, const char* what) const;  ///< `cccl_device_<algorithm>_<what>`

  const DynamicLibrary library_;
  const CcclRelease* const release_;
  const std::string build_id_;
};

/// A build result of the library's: compiled or deserialised, perhaps loaded. Not copyable: it owns what is in it.
class CcclBuild {
 public:
  CcclBuild(CcclBuild&& other) noexcept;
  CcclBuild& operator=(CcclBuild&&) = delete;
  ~CcclBuild();

  int capability() const { return build_->head().capability; }
  /// The cubin.
  std::string_view payload() const;
  Result<std::string> serialise() const;
  /// Gives it to the CUDA driver. Code::LoadRefused where that does not take it, Code::Unavailable without a device.
  Status load();

  /// Puts it on a stream; with no storage, where it takes some, says in `bytes` how much it needs and does nothing
  /// else. The spec is the one that it was compiled for, and has passed its check; the call has not.
  Status run(const cccl::Spec& spec, const cccl::Call& call, void* storage, std::size_t& bytes) const;

 private:
  friend class CcclLibrary;
  CcclBuild(std::shared_ptr<const CcclLibrary> library, cccl::Algorithm algorithm);

  std::shared_ptr<const CcclLibrary> library_;
  cccl::Algorithm algorithm_;
  std::unique_ptr<cccl_abi::AnyBuild> build_;
};

}  // namespace kiln
