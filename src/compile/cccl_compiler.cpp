#include "compile/cccl_compiler.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "compile/cccl_headers.hpp"
#include "compile/kernel_entries.hpp"
#include "compile/nvrtc_program.hpp"
#include "compile/output_capture.hpp"
#include "compile/source_text.hpp"
#include "core/cccl_envelope.hpp"
#include "vendor/cubin.hpp"

namespace kiln {
namespace {

// The order of CompilerIdentity::libraries and ::roots.
enum Library : std::size_t { kDriver, kNvrtc, kLinker, kLibraries };
enum Root : std::size_t { kCccl, kToolkit, kRoots };

// The first folder that has this file: the NVRTC's own, then the one in each toolkit that is known.
std::string folder_with(const char* file, std::string own, const std::string& in_toolkit) {
  std::vector<std::string> folders{std::move(own)};
  for (const std::string& toolkit : named_toolkits()) folders.push_back(toolkit + in_toolkit);
  folders.push_back("/usr/local/cuda" + in_toolkit);
  for (std::string& folder : folders) {
    if (stamp_of((folder + file).c_str())) return std::move(folder);
  }
  return {};
}

// What the library needs of libcuda when it compiles is that it is there. A stub before the real one: what comes out
// must not depend on the driver.
std::string driver_for(const std::string& nvrtc) {
  constexpr const char* kStub = "/stubs/libcuda.so";
  const std::string folder = folder_with(kStub, folder_of(nvrtc), "/lib64");
  return folder.empty() ? "libcuda.so.1" : folder + kStub;
}

// The toolkit's headers: those of the NVRTC's own toolkit, else of any.
std::string toolkit_for(const std::string& nvrtc) {
  return folder_with("/cuda_fp16.h", folder_of(folder_of(nvrtc)) + "/include", "/include");
}

std::vector<std::string> folder_options(const Recipe& recipe) {
  // As the library gives them: one for CUB, Thrust and libcu++ each.
  const std::string cccl = "-I" + recipe.compiler.roots[kCccl].path;
  return {cccl, cccl, cccl, "-I" + recipe.compiler.roots[kToolkit].path};
}

bool is_complete(const CompilerIdentity& identity) {
  return identity.libraries.size() == kLibraries && identity.roots.size() == kRoots;
}

}  // namespace

CcclCompiler::CcclCompiler(std::string library, const std::string& nvrtc, FileDigests& digests)
    : path_(std::move(library)), in_worker_(false), digests_(digests), nvrtc_(nvrtc, digests),
      linker_("", nvrtc, digests) {}

CcclCompiler::CcclCompiler(const CompilerIdentity& found, FileDigests& digests)
    : path_(found.path), in_worker_(true), digests_(digests),
      nvrtc_(is_complete(found) ? found.libraries[kNvrtc] : "", digests, Watched::Yes),
      linker_(is_complete(found) ? found.libraries[kLinker] : "", "", digests, Watched::Yes) {}

Result<std::string> CcclCompiler::nvrtc_of(const CompilerIdentity& found) {
  if (!is_complete(found)) return failure(Code::Corrupt, "a recipe that does not name its libraries");
  return found.libraries[kNvrtc];
}

Result<CcclCompiler::Found> CcclCompiler::find(const CompilerIdentity& nvrtc) {
  const MutexLock lock(mutex_);
  if (found_) return *found_;
  auto library = choose_cccl(path_);
  if (!library) return library.error();
  if (std::string problem = library->problem(); !problem.empty()) {
    return failure(Code::Unavailable, std::move(problem));
  }
  if (const int cuda = library->release->cuda; !nvrtc.version.starts_with(std::to_string(cuda) + ".")) {
    return failure(Code::Unavailable, library->path + " needs an NVRTC of CUDA " + std::to_string(cuda) +
                                          ", and the one to be used is " + nvrtc.version + " (" + nvrtc.path +
                                          "); set KILN_NVRTC to one that fits");
  }
  Found found{std::move(*library), driver_for(nvrtc.path), toolkit_for(nvrtc.path)};
  if (found.toolkit.empty()) {
    return failure(Code::Unavailable,
                   "CCCL's algorithms need the headers of a CUDA toolkit (cuda_fp16.h), and none were found; install "
                   "one, or set CUDA_HOME to where it is");
  }
  found_ = std::move(found);
  return *found_;
}

Result<CompilerIdentity> CcclCompiler::identity() {
  auto nvrtc = nvrtc_.identity();
  if (!nvrtc) return std::move(nvrtc).error();
  auto linker = linker_.identity();
  if (!linker) return std::move(linker).error();
  const auto found = find(*nvrtc);
  if (!found) return found.error();
  const auto library = digests_.look(found->library.path);
  if (!library) return failure(Code::Unavailable, found->library.path + " cannot be read");
  CompilerIdentity identity;
  identity.name = "cccl";
  identity.version = found->library.release->release;
  identity.path = found->library.path;
  identity.digest = Sha256().add(library->digest.bytes).add(nvrtc->digest.bytes).add(linker->digest.bytes).finish();
  identity.environment = std::move(nvrtc->environment);
  identity.add_environment(linker->environment);
  identity.libraries = {found->driver, nvrtc->path, linker->path};
  identity.roots = {{found->library.headers, {}}, {found->toolkit, {}}};
  return identity;
}

Status CcclCompiler::supports(const Target& target) {
  if (target.form == Form::Cccl && capability_of(target)) return {};
  return failure(Code::Unsupported,
                 "the CCCL library compiles for plain architectures such as sm_90, not for " + target.name());
}

Status CcclCompiler::open(const Recipe& recipe) {
  if (!in_worker_) {
    return failure(Code::Unavailable,
                   "CCCL's algorithms are compiled in kiln-worker alone, because the library prints to the terminal of "
                   "its process; see to kiln-worker (KILN_WORKER), or allow workers (jobs)");
  }
  if (library_ != nullptr) return {};
  const auto path = nvrtc_of(recipe.compiler);
  if (!path) return path.error();
  const auto candidate = choose_cccl(recipe.compiler.path);
  if (!candidate) return candidate.error();
  auto nvrtc = NvrtcLibrary::open(*path);
  if (!nvrtc) return nvrtc.error();
  opened_nvrtc_ = std::move(*nvrtc);
  auto library = CcclLibrary::open(*candidate, recipe.compiler.libraries);
  if (!library) return library.error();
  library_ = std::move(*library);
  return {};
}

Result<Compiled> CcclCompiler::precompile(const Recipe& recipe, cccl::Algorithm algorithm, const PchOrder& order,
                                          PchReport& report) const {
  const CcclHeaders headers = cccl_headers(algorithm, recipe.target);
  const Unit nothing = Unit::cuda(kCcclHeadersProgram, "\n");
  std::vector<std::string> options{"-arch=" + recipe.target.architecture};
  const auto add = [&](const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
  };
  add(folder_options(recipe));
  add(headers.options);
  add(recipe.unit.options());
  for (const std::string& include : headers.includes) options.push_back("-include=" + include);
  options.push_back("--create-pch=" + order.path);
  CudaProgram program(*opened_nvrtc_);
  if (Status created = program.create(nothing); !created) return std::move(created).error();
  if (Status compiled = program.compile(nothing, options); !compiled) return std::move(compiled).error();
  Compiled none;
  none.artifact.about.log = program.log();
  report = take_pch_report(none.artifact.about.log, order);
  if (report.outcome == PchReport::Outcome::Refused && report.reason.empty()) report.reason = "NVRTC made none";
  return none;
}

Result<std::vector<std::string>> CcclCompiler::shared_operators(const Recipe& recipe, const cccl::Spec& spec) const {
  std::vector<std::string> code(spec.operators.size());
  for (std::size_t i = 0; i < code.size() && spec.shared_for != 0; ++i) {
    const cccl::Operator& op = spec.operators[i];
    if (!op.shared || op.source.empty()) continue;
    const Unit unit = Unit::cuda(op.name, op.source);
    std::vector<std::string> options{"-arch=compute_" + std::to_string(spec.shared_for), "-rdc=true", "-dlto",
                                     "-std=c++20", "-default-device"};
    for (const std::string& folder : folder_options(recipe)) options.push_back(folder);
    CudaProgram program(*opened_nvrtc_);
    if (Status created = program.create(unit); !created) return std::move(created).error();
    if (Status compiled = program.compile(unit, options); !compiled) return std::move(compiled).error();
    const auto bytes = program.output(Form::LtoIr);
    if (!bytes) return bytes.error();
    code[i] = bytes->view();
  }
  return code;
}

Result<Compiled> CcclCompiler::compile(const Recipe& recipe) {
  PchReport none;
  return compile(recipe, {}, none);
}

Result<Compiled> CcclCompiler::compile(const Recipe& recipe, const PchOrder& order, PchReport& report) {
  if (recipe.unit.kind() != kind()) {
    return failure(Code::InvalidArgument,
                   "unit '" + recipe.unit.name() + "' is of kind " + recipe.unit.kind() + ", not " + kind());
  }
  const auto spec = cccl::Spec::parse(recipe.unit.source());
  if (!spec) return spec.error();
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  if (Status opened = open(recipe); !opened) return std::move(opened).error();
  const auto start = system_clock().steady();
  const OutputCapture capture;
  if (order.mode == PchOrder::Mode::Create) return precompile(recipe, spec->algorithm, order, report);
  const auto operators = shared_operators(recipe, *spec);
  if (!operators) return operators.error();
  CcclBuildOptions options{*capability_of(recipe.target), recipe.compiler.roots[kCccl].path,
                           recipe.compiler.roots[kToolkit].path, recipe.unit.options(), *operators};
  if (order.mode == PchOrder::Mode::Use) {
    for (const std::string& include : cccl_headers(spec->algorithm, recipe.target).includes)
      options.flags.push_back("-include=" + include);
    options.flags.push_back("--use-pch=" + order.path);
  }
  auto build = CcclLibrary::compile(library_, *spec, options);
  std::string log = capture.text();
  report = take_pch_report(log, order);
  if (!build) {
    return failure(build.error().code, build.error().message + " for '" + recipe.unit.name() + "'", std::move(log));
  }
  return envelop(recipe, *build, milliseconds_since(system_clock(), start), std::move(log));
}

Result<Compiled> CcclCompiler::envelop(const Recipe& recipe, const CcclBuild& build, double ms, std::string log) {
  const auto blob = build.serialise();
  if (!blob) return blob.error();
  auto contents = read_cubin(build.payload());
  if (!contents) return failure(Code::CompileFailed, "the CCCL library made no machine code", std::move(log));
  auto entries = entries_by_symbol(recipe.unit, contents->kernels, log);
  if (!entries) return std::move(entries).error();
  const CcclEnvelope envelope{recipe.unit.source(), library_->release().release,  library_->build_id(),
                              build.capability(),   std::move(contents->kernels), *blob};
  Compiled compiled;
  compiled.artifact.bytes = Bytes::of(encode(envelope));
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.about = {
      recipe.unit.name(),
      std::string("cccl ") + library_->release().release + ", nvrtc " + opened_nvrtc_->version.text(), ms,
      std::move(log)};
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) {
    compiled.not_cacheable = "an operator uses " + macro;
  }
  return compiled;
}

}  // namespace kiln
