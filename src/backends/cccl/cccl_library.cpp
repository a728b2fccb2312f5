// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "backends/cccl/cccl_arguments.hpp"
#include "base/error.hpp"
#include "base/files/files.hpp"

namespace kiln {
namespace {

using cccl::Algorithm;
using cccl_abi::AnyBuild;
using cccl_abi::BuildConfig;
using cccl_abi::Iterator;
using cccl_abi::Op;
using cccl_abi::Outcome;
using cccl_abi::TypeInfo;
using cccl_abi::Value;

// The two transforms form one family, and so do the two searches, except for their compile functions.
const char* family_of(Algorithm algorithm) {
  const bool transform = algorithm == Algorithm::UnaryTransform || algorithm == Algorithm::BinaryTransform;
  return transform ? "transform" : to_string(algorithm);
}

// No valid address, and no valid value of any enumeration.
constexpr std::uint64_t kPoison = 0x5a5a'5a5a'5a5a'5a5a;

// The last parameters of each compile function.
struct Tail {
  Tail(const CcclBuildOptions& options, const BuildConfig& extra)
      : major(options.capability / 10), minor(options.capability % 10), headers("-I" + options.headers),
        toolkit("-I" + options.toolkit), config(extra), unknown(options.poison_unknown ? kPoison : 0) {
    std::fill(std::begin(config.unknown), std::end(config.unknown), unknown);
  }
  int major;
  int minor;
  std::string headers;
  std::string toolkit;
  BuildConfig config;
  std::uint64_t unknown;  // in place of parameters that no known release has
};

// The last four arguments have no parameters in the known releases. The calling conventions allow that: the caller
// removes them.
template <class... Arguments>
Outcome call_compile(void* function, Tail& tail, AnyBuild* build, Arguments... arguments) {
  using Word = std::uint64_t;
  using Compile = Outcome(AnyBuild*, Arguments..., int, int, const char*, const char*, const char*, const char*,
                          BuildConfig*, Word, Word, Word, Word);
  const char* const headers = tail.headers.c_str();  // CUB, Thrust and libcu++ share one directory
  return reinterpret_cast<Compile*>(function)(build, arguments..., tail.major, tail.minor, headers, headers, headers,
                                              tail.toolkit.c_str(), &tail.config, tail.unknown, tail.unknown,
                                              tail.unknown, tail.unknown);
}

// Each line is the parameter list of the library function of that name.
Outcome compile_by(void* f, Tail& tail, AnyBuild* b, const cccl::Spec& spec, const CcclRelease& parameters,
                   CcclArguments& a) {
  const int order = static_cast<int>(spec.order);
  const int init = static_cast<int>(spec.init);
  const int determinism = static_cast<int>(spec.determinism);
  const auto it = [&](std::size_t i) -> Iterator { return a.iterator(i); };
  const auto op = [&](std::size_t i) -> Op { return a.op(i); };
  const TypeInfo type = type_info(spec.type);
  switch (spec.algorithm) {
    case Algorithm::Scan: return call_compile(f, tail, b, it(0), it(1), op(0), type, spec.inclusive, init);
    case Algorithm::Reduce:
      if (parameters.reduce_takes_init) return call_compile(f, tail, b, it(0), it(1), op(0), a.zero(), determinism);
      return call_compile(f, tail, b, it(0), it(1), op(0), type, init, determinism);
    case Algorithm::SegmentedReduce: return call_compile(f, tail, b, it(0), it(1), it(2), it(3), op(0), a.zero());
    case Algorithm::ThreeWayPartition: return call_compile(f, tail, b, it(0), it(1), it(2), it(3), it(4), op(0), op(1));
    case Algorithm::BinarySearch:
      return call_compile(f, tail, b, static_cast<int>(spec.bound), it(0), it(1), it(2), op(0));
    case Algorithm::RadixSort: return call_compile(f, tail, b, order, it(0), it(1), a.no_op(), "");
    case Algorithm::MergeSort: return call_compile(f, tail, b, it(0), it(1), it(2), it(3), op(0));
    case Algorithm::UniqueByKey: return call_compile(f, tail, b, it(0), it(1), it(2), it(3), it(4), op(0));
    case Algorithm::UnaryTransform: return call_compile(f, tail, b, it(0), it(1), op(0));
    case Algorithm::BinaryTransform: return call_compile(f, tail, b, it(0), it(1), it(2), op(0));
    case Algorithm::For: return call_compile(f, tail, b, it(0), op(0));
    case Algorithm::Histogram:
      return call_compile(f, tail, b, spec.channels, spec.active_channels, it(0), spec.levels, it(1), type,
                          std::int64_t{1}, std::int64_t{1}, spec.even);
    case Algorithm::SegmentedSort: return call_compile(f, tail, b, order, it(0), it(1), it(2), it(3));
  }
  return -1;
}

Error lacks(const CcclLibrary& library, Algorithm algorithm, const char* what) {
  return make_error(Code::Unsupported, "cuda-cccl " + library.version() + " cannot " + what + " " +
                                           to_string(algorithm) + ": the function is missing");
}

}  // namespace

CcclLibrary::CcclLibrary(DynamicLibrary library, const CcclCandidate& candidate)
    : library_(library), parameters_(candidate.parameters), version_(candidate.version), build_id_(candidate.build_id) {
}

Result<std::shared_ptr<const CcclLibrary>> CcclLibrary::open(const CcclCandidate& candidate,
                                                             const std::vector<std::string>& requirements) {
  if (candidate.parameters == nullptr) return make_error(Code::Unavailable, candidate.unusable_reason());
  // If a library is already loaded, the dynamic loader uses it for a dependency of the same name.
  for (const std::string& path : requirements) {
    const std::string name = file_name(path);
    if (dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD) != nullptr) continue;
    if (const auto opened = DynamicLibrary::open(path); !opened) return opened.error();
  }
  const auto library = DynamicLibrary::open(candidate.path);
  if (!library) return library.error();
  return std::shared_ptr<const CcclLibrary>(new CcclLibrary(*library, candidate));
}

void* CcclLibrary::find(Algorithm algorithm, const char* what) const {
  return library_.find((std::string("cccl_device_") + family_of(algorithm) + "_" + what).c_str());
}

Result<CcclBuild> CcclLibrary::compile(const std::shared_ptr<const CcclLibrary>& self, const cccl::Spec& spec,
                                       const CcclBuildOptions& options) {
  if (Status good = spec.validate(); !good) return std::move(good).error();
  const std::string name = std::string("cccl_device_") + to_string(spec.algorithm) + "_compile";
  void* const function = self->library_.find(name.c_str());
  if (function == nullptr) return lacks(*self, spec.algorithm, "compile");
  std::vector<const char*> flags;
  for (const std::string& flag : options.flags) flags.push_back(flag.c_str());
  const BuildConfig config{flags.data(), flags.size(), nullptr, 0, {}};
  CcclArguments arguments(spec, options.operators);
  Tail tail(options, config);
  CcclBuild build(self, spec.algorithm);
  const Outcome outcome = compile_by(function, tail, build.build_.get(), spec, *self->parameters_, arguments);
  if (outcome != 0) {
    return make_error(Code::CompileFailed,
                      std::string("the CCCL library failed to compile ") + to_string(spec.algorithm) + " for sm_" +
                          std::to_string(options.capability) + " (error " + std::to_string(outcome) + ")");
  }
  return build;
}

Result<CcclBuild> CcclLibrary::deserialize(const std::shared_ptr<const CcclLibrary>& self, Algorithm algorithm,
                                           std::string_view blob) {
  auto* const function =
      reinterpret_cast<Outcome (*)(AnyBuild*, const void*, std::size_t)>(self->find(algorithm, "deserialize"));
  if (function == nullptr) return lacks(*self, algorithm, "read");
  CcclBuild build(self, algorithm);
  const Outcome outcome = function(build.build_.get(), blob.data(), blob.size());
  if (outcome == 0) return build;
  return make_error(Code::LoadRejected, std::string("the CCCL library failed to read this ") + to_string(algorithm) +
                                            " (error " + std::to_string(outcome) + ")");
}

CcclBuild::CcclBuild(std::shared_ptr<const CcclLibrary> library, Algorithm algorithm)
    : library_(std::move(library)), algorithm_(algorithm), build_(std::make_unique<AnyBuild>()) {}

CcclBuild::CcclBuild(CcclBuild&& other) noexcept = default;

CcclBuild::~CcclBuild() {
  if (build_ == nullptr || build_->head().payload == nullptr) return;
  auto* const cleanup = reinterpret_cast<Outcome (*)(AnyBuild*)>(library_->find(algorithm_, "cleanup"));
  if (cleanup != nullptr) (void)cleanup(build_.get());
}

std::string_view CcclBuild::payload() const {
  return {static_cast<const char*>(build_->head().payload), build_->head().payload_size};
}

bool CcclBuild::has_overflowed() const {
  return std::any_of(build_->bytes + AnyBuild::kLargest, std::end(build_->bytes),
                     [](unsigned char byte) { return byte != 0; });
}

Result<std::string> CcclBuild::serialize() const {
  auto* const function =
      reinterpret_cast<Outcome (*)(const AnyBuild*, void**, std::size_t*)>(library_->find(algorithm_, "serialize"));
  if (function == nullptr) return lacks(*library_, algorithm_, "write");
  auto* const release = reinterpret_cast<void (*)(void*)>(library_->library_.find("cccl_serialization_buffer_free"));
  void* bytes = nullptr;
  std::size_t size = 0;
  const Outcome outcome = function(build_.get(), &bytes, &size);
  std::string blob;
  if (outcome == 0 && bytes != nullptr) blob.assign(static_cast<const char*>(bytes), size);
  if (bytes != nullptr && release != nullptr) release(bytes);
  if (!blob.empty()) return blob;
  return make_error(Code::CompileFailed, std::string("the CCCL library failed to serialize the compiled ") +
                                             to_string(algorithm_) + " (error " + std::to_string(outcome) + ")");
}

Status CcclBuild::load() {
  auto* const function = reinterpret_cast<Outcome (*)(AnyBuild*)>(library_->find(algorithm_, "load"));
  if (function == nullptr) return lacks(*library_, algorithm_, "load");
  const Outcome outcome = function(build_.get());
  const std::string what = std::string("the driver failed to load this ") + to_string(algorithm_);
  switch (outcome) {
    case 0: return {};
    case 3:    // not initialized
    case 100:  // no device
    case 101:
      return make_error(Code::Unavailable, what + ": there is no device (error " + std::to_string(outcome) + ")");
    case 209: return make_error(Code::LoadRejected, what + ": it is for another capability (error 209)");
    default: return make_error(Code::LoadRejected, what + " (error " + std::to_string(outcome) + ")");
  }
}

}  // namespace kiln
