#include "device/cccl_module.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "core/recipe.hpp"
#include "vendor/cubin.hpp"

namespace kiln {
namespace {

constexpr std::uintptr_t kAlignment = 16;

Error refused(const std::string& why) {
  return failure(Code::LoadRefused, "this compiled algorithm of CCCL's cannot be used: " + why);
}

bool is_identifier(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// The name that begins here. The library writes its length in eight bytes before it; what follows may look like more of
// it, since that is the next one's length.
std::string_view name_at(std::string_view text, std::size_t at) {
  std::uint64_t length = 0;
  if (at >= sizeof length) std::memcpy(&length, text.data() + at - sizeof length, sizeof length);
  if (length >= 2 && length <= text.size() - at) return text.substr(at, length);
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(at);
  return text.substr(at, static_cast<std::size_t>(std::find_if_not(begin, text.end(), is_identifier) - begin));
}

Status check_names_in(std::string_view text, const std::vector<std::string>& kernels) {
  constexpr std::string_view kMangled = "_Z";
  for (std::size_t at = text.find(kMangled); at != std::string_view::npos;) {
    const std::string_view name = name_at(text, at);
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      return refused("it names a kernel that its code does not have: " + std::string(name.substr(0, 200)));
    }
    at = text.find(kMangled, at + name.size());
  }
  return {};
}

}  // namespace

Status check_cccl_names(std::string_view blob, std::string_view code, const std::vector<std::string>& kernels) {
  const std::size_t at = code.empty() ? std::string_view::npos : blob.find(code);
  if (at == std::string_view::npos) return refused("its code is not in it");
  if (Status good = check_names_in(blob.substr(0, at), kernels); !good) return good;
  return check_names_in(blob.substr(at + code.size()), kernels);
}

CcclModule::~CcclModule() {
  const RelaxedCapture relaxed(*api_);
  build_.reset();
}

Result<std::shared_ptr<DeviceKernel>> CcclModule::kernel(const std::string& symbol) {
  return failure(
      Code::InvalidArgument,
      "an algorithm of CCCL's is called as a whole, by kiln::cccl::get, not kernel '" + symbol + "' by itself");
}

Result<CcclLoader::Opened> CcclLoader::open_for(const CcclEnvelope& envelope) {
  const MutexLock lock(mutex_);
  if (!home_) {
    auto home = find_();
    if (!home) return std::move(home).error();
    if (home->library.release == nullptr) return failure(Code::Unavailable, home->library.problem());
    home_ = std::move(*home);
  }
  if (envelope.build_id != home_->library.build_id) {
    return refused("another library made it, of cuda-cccl " + envelope.release + " (build id " + envelope.build_id +
                   "), and here is that of " + home_->library.release->release + " (" + home_->library.build_id + ")");
  }
  if (opened_.library != nullptr) return opened_;
  // The driver first: the library takes the one that the process has, under whichever name it was opened.
  auto api = CudaApi::open(driver_);
  if (!api) return std::move(api).error();
  auto library = CcclLibrary::open(home_->library, home_->needs);
  if (!library) return std::move(library).error();
  opened_ = {std::move(*api), std::move(*library)};
  return opened_;
}

Result<std::shared_ptr<Module>> CcclLoader::load(const Artifact& artifact) {
  if (artifact.target.form != form()) {
    return refused(std::string("it is none, but ") + to_string(artifact.target.form));
  }
  // The library reads numbers in its blob where they lie.
  const bool aligned = reinterpret_cast<std::uintptr_t>(artifact.bytes.data()) % kAlignment == 0;
  const Bytes bytes = aligned ? artifact.bytes : Bytes::copy_of(artifact.bytes.view());
  auto envelope = decode_cccl_envelope(bytes.view());
  if (!envelope) return refused("it is damaged: " + envelope.error().message);
  const auto spec = cccl::Spec::parse(envelope->spec);
  if (!spec) return refused("its spec is not understood: " + spec.error().message);
  if (envelope->capability != capability_of(artifact.target)) {
    return refused("it was compiled for capability " + std::to_string(envelope->capability) + ", not for " +
                   artifact.target.architecture);
  }
  const auto opened = open_for(*envelope);
  if (!opened) return opened.error();
  auto build = CcclLibrary::deserialise(opened->library, spec->algorithm, envelope->blob);
  if (!build) return refused(build.error().message);
  if (build->capability() != envelope->capability) {
    return refused("its code is for capability " + std::to_string(build->capability()) + ", its label says " +
                   std::to_string(envelope->capability));
  }
  auto contents = read_cubin(build->payload());
  if (!contents) return refused("its code is " + contents.error().message);
  if (Status named = check_cccl_names(envelope->blob, build->payload(), contents->kernels); !named) {
    return std::move(named).error();
  }
  const RelaxedCapture relaxed(*opened->api);
  if (!relaxed.entered()) return relaxed.entered().error();
  if (Status loaded = build->load(); !loaded) return std::move(loaded).error();
  return std::shared_ptr<Module>(
      std::make_shared<CcclModule>(opened->api, std::move(*build), std::move(contents->kernels)));
}

}  // namespace kiln
