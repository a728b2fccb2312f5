// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_module.hpp"

#include <algorithm>
#include <cstring>

#include "backends/cuda/cubin.hpp"
#include "base/error.hpp"
#include "core/recipe.hpp"

namespace kiln {
namespace {

constexpr std::uintptr_t kAlignment = 16;

Error rejected(const std::string& reason) {
  return make_error(Code::LoadRejected, "cannot use this compiled CCCL algorithm: " + reason);
}

bool is_identifier(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// A name without a length in front is at least this long. Blobs of segmented sorts contain compressed code of
// operators, in which the two letters occur by chance.
constexpr std::size_t kMinNameLength = 16;

// Returns the name that starts here; empty if the letters are not a name. The library writes its length in eight bytes
// before it. The bytes after it can look like part of the name, because they are the length of the next one.
std::string_view name_at(std::string_view text, std::size_t at) {
  std::uint64_t length = 0;
  if (at >= sizeof length) std::memcpy(&length, text.data() + at - sizeof length, sizeof length);
  if (length >= 2 && length <= text.size() - at) return text.substr(at, length);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
  const auto run = static_cast<std::size_t>(std::find_if_not(begin, text.end(), is_identifier) - begin);
  return run >= kMinNameLength ? text.substr(at, run) : std::string_view();
}

Status check_names_in(std::string_view text, const std::vector<std::string>& kernels) {
  constexpr std::string_view kMangled = "_Z";
  for (std::size_t at = text.find(kMangled); at != std::string_view::npos;) {
    const std::string_view name = name_at(text, at);
    if (!name.empty() && std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      return rejected("it names a kernel that its code does not have: " + std::string(name.substr(0, 200)));
    }
    at = text.find(kMangled, at + std::max(name.size(), kMangled.size()));
  }
  return {};
}

}  // namespace

Status check_cccl_names(std::string_view blob, std::string_view code, const std::vector<std::string>& kernels) {
  const std::size_t at = code.empty() ? std::string_view::npos : blob.find(code);
  if (at == std::string_view::npos) return rejected("it does not contain its code");
  if (Status good = check_names_in(blob.substr(0, at), kernels); !good) return good;
  return check_names_in(blob.substr(at + code.size()), kernels);
}

CcclModule::~CcclModule() {
  const ScopedRelaxedCapture relaxed(*api_);
  build_.reset();
}

Result<std::shared_ptr<DeviceKernel>> CcclModule::kernel(const std::string& symbol) {
  return make_error(
      Code::InvalidArgument,
      "cannot get kernel '" + symbol + "' of a CCCL algorithm; use kiln::cccl::get to call the whole algorithm");
}

Result<CcclLoader::OpenLibraries> CcclLoader::open_for(const CcclEnvelope& envelope) {
  const MutexLock lock(mutex_);
  if (!library_paths_) {
    auto home = find_();
    if (!home) return std::move(home).error();
    if (std::string reason = home->library.uncallable_reason(); !reason.empty()) {
      return make_error(Code::Unavailable, std::move(reason));
    }
    library_paths_ = std::move(*home);
  }
  if (envelope.build_id != library_paths_->library.build_id) {
    return rejected("another library built it, of cuda-cccl " + envelope.release + " (build id " + envelope.build_id +
                    "), not the present one of " + library_paths_->library.version + " (" +
                    library_paths_->library.build_id + ")");
  }
  if (opened_.library != nullptr) return opened_;
  // Opens the driver first: the library uses the one that the process has loaded, under any name.
  auto api = CudaApi::open(driver_);
  if (!api) return std::move(api).error();
  auto library = CcclLibrary::open(library_paths_->library, library_paths_->requirements);
  if (!library) return std::move(library).error();
  opened_ = {std::move(*api), std::move(*library)};
  return opened_;
}

Result<std::shared_ptr<Module>> CcclLoader::load(const Artifact& artifact) {
  if (artifact.target.form != form()) {
    return rejected(std::string("its form is ") + to_string(artifact.target.form));
  }
  // The library reads numbers in its blob in place, which requires alignment.
  const bool aligned = reinterpret_cast<std::uintptr_t>(artifact.bytes.data()) % kAlignment == 0;
  const Bytes bytes = aligned ? artifact.bytes : Bytes::copy_of(artifact.bytes.view());
  auto envelope = decode_cccl_envelope(bytes.view());
  if (!envelope) return rejected("it is corrupt: " + envelope.error().message);
  const auto spec = cccl::Spec::parse(envelope->spec);
  if (!spec) return rejected("its spec is invalid: " + spec.error().message);
  if (envelope->capability != capability_of(artifact.target)) {
    return rejected("it was compiled for capability " + std::to_string(envelope->capability) + ", not for " +
                    artifact.target.architecture);
  }
  const auto opened = open_for(*envelope);
  if (!opened) return opened.error();
  auto build = CcclLibrary::deserialize(opened->library, spec->algorithm, envelope->blob);
  if (!build) return rejected(build.error().message);
  if (build->capability() != envelope->capability) {
    return rejected("its code is for capability " + std::to_string(build->capability()) + ", its envelope states " +
                    std::to_string(envelope->capability));
  }
  auto contents = read_cubin(build->payload());
  if (!contents) return rejected("its code cannot be read: " + contents.error().message);
  if (Status named = check_cccl_names(envelope->blob, build->payload(), contents->kernels); !named) {
    return std::move(named).error();
  }
  const ScopedRelaxedCapture relaxed(*opened->api);
  if (!relaxed.entered()) return relaxed.entered().error();
  if (Status loaded = build->load(); !loaded) return std::move(loaded).error();
  return std::shared_ptr<Module>(
      std::make_shared<CcclModule>(opened->api, std::move(*build), std::move(contents->kernels)));
}

}  // namespace kiln
