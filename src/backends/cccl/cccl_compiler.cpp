// SPDX-License-Identifier: Apache-2.0
#include "backends/cccl/cccl_compiler.hpp"

#include <algorithm>
#include <charconv>

#include "backends/cccl/cccl_check.hpp"
#include "backends/cccl/cccl_headers.hpp"
#include "backends/cccl/output_capture.hpp"
#include "backends/cuda/cubin.hpp"
#include "backends/cuda/nvrtc_program.hpp"
#include "backends/kernel_entries.hpp"
#include "backends/source_scan.hpp"
#include "backends/text_facts.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "core/cccl_envelope.hpp"

namespace kiln {
namespace {

// Indexes into CompilerIdentity::libraries and ::roots.
enum Library : std::size_t { kDriver, kNvrtc, kLinker, kLibraries };
enum Root : std::size_t { kCccl, kToolkit, kRoots };

// Returns the first directory that contains this file: first `own` (next to NVRTC), then each known toolkit.
std::string directory_with(const char* file, std::string own, const std::string& in_toolkit) {
  std::vector<std::string> directories{std::move(own)};
  for (const std::string& toolkit : named_toolkits()) directories.push_back(toolkit + in_toolkit);
  directories.push_back("/usr/local/cuda" + in_toolkit);
  for (std::string& directory : directories) {
    if (stamp_of((directory + file).c_str())) return std::move(directory);
  }
  return {};
}

// Returns the libcuda to load. A compile only needs the library to be present. A stub comes before the real one,
// because the result must not depend on the driver.
std::string driver_for(const std::string& nvrtc) {
  constexpr const char* kStub = "/stubs/libcuda.so";
  const std::string directory = directory_with(kStub, parent_path(nvrtc), "/lib64");
  return directory.empty() ? "libcuda.so.1" : directory + kStub;
}

// Returns the headers of NVRTC's toolkit, or of any toolkit if that one has none.
std::string toolkit_for(const std::string& nvrtc) {
  return directory_with("/cuda_fp16.h", parent_path(parent_path(nvrtc)) + "/include", "/include");
}

std::vector<std::string> directory_options(const Recipe& recipe) {
  // Same options as the library passes: one for CUB, Thrust and libcu++ each.
  const std::string cccl = "-I" + recipe.compiler.roots[kCccl].path;
  return {cccl, cccl, cccl, "-I" + recipe.compiler.roots[kToolkit].path};
}

bool is_complete(const CompilerIdentity& identity) {
  return identity.libraries.size() == kLibraries && identity.roots.size() == kRoots;
}

}  // namespace

CcclCompiler::CcclCompiler(std::string library, const std::string& nvrtc, FileDigestCache& digests,
                           BundledHeaders* bundled)
    : path_(std::move(library)), in_worker_(false), digests_(digests), bundled_(bundled), nvrtc_(nvrtc, digests),
      linker_("", nvrtc, digests) {}

CcclCompiler::CcclCompiler(const CompilerIdentity& found, FileDigestCache& digests)
    : path_(found.path), in_worker_(true), digests_(digests),
      nvrtc_(is_complete(found) ? found.libraries[kNvrtc] : "", digests, InputTracking::On),
      linker_(is_complete(found) ? found.libraries[kLinker] : "", "", digests, InputTracking::On) {}

Result<std::string> CcclCompiler::nvrtc_of(const CompilerIdentity& found) {
  if (!is_complete(found)) return make_error(Code::Corrupt, "invalid recipe: it does not name its libraries");
  return found.libraries[kNvrtc];
}

Result<CcclCompiler::Toolchain> CcclCompiler::find(const CompilerIdentity& nvrtc) {
  const MutexLock lock(mutex_);
  if (found_) return *found_;
  int major = 0;
  std::from_chars(nvrtc.version.data(), nvrtc.version.data() + nvrtc.version.size(), major);
  auto library = choose_cccl(path_, major);
  if (!library) return library.error();
  if (std::string problem = library->unusable_reason(); !problem.empty()) {
    return make_error(Code::Unavailable, std::move(problem));
  }
  if (const int cuda = library->cuda; cuda != major) {
    return make_error(Code::Unavailable, library->path + " needs NVRTC of CUDA " + std::to_string(cuda) +
                                             ", but the selected one is " + nvrtc.version + " (" + nvrtc.path +
                                             "); set KILN_NVRTC to a matching one");
  }
  Toolchain found{std::move(*library), driver_for(nvrtc.path), toolkit_for(nvrtc.path)};
  if (found.toolkit.empty() && bundled_ != nullptr) {
    const std::vector<IncludeRoot> roots = bundled_->roots(nvrtc);
    if (!roots.empty()) found.toolkit = roots.back().path;
  }
  if (found.toolkit.empty()) {
    return make_error(
        Code::Unavailable,
        "the headers of a CUDA toolkit (cuda_fp16.h), which CCCL algorithms need, were not found; install "
        "one, set CUDA_HOME to its directory, or use NVRTC 13.3 or later, which bundles them");
  }
  found_ = std::move(found);
  return *found_;
}

Result<CompilerIdentity> CcclCompiler::identity(const RequestContext& context) {
  auto nvrtc = nvrtc_.identity(context);
  if (!nvrtc) return std::move(nvrtc).error();
  auto linker = linker_.identity(context);
  if (!linker) return std::move(linker).error();
  const auto found = find(*nvrtc);
  if (!found) return found.error();
  const auto library = digests_.lookup(found->library.path, context.requested_at);
  if (!library) return make_error(Code::Unavailable, found->library.path + " cannot be read");
  CompilerIdentity identity;
  identity.name = "cccl";
  identity.version = found->library.version;
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
  return make_error(Code::Unsupported,
                    "the CCCL library supports plain architectures such as sm_90, not " + target.name());
}

Status CcclCompiler::open(const Recipe& recipe) {
  if (!in_worker_) {
    return make_error(Code::Unavailable,
                      "CCCL algorithms are compiled only in kiln-worker, because the library prints to the terminal of "
                      "its process; install kiln-worker (KILN_WORKER) or allow workers (jobs)");
  }
  if (library_ != nullptr) return {};
  const auto path = nvrtc_of(recipe.compiler);
  if (!path) return path.error();
  auto candidate = choose_cccl(recipe.compiler.path);
  if (!candidate) return candidate.error();
  candidate->version = recipe.compiler.version;  // a sandbox can hide the directory that states it
  auto nvrtc = NvrtcLibrary::open(*path);
  if (!nvrtc) return nvrtc.error();
  opened_nvrtc_ = std::move(*nvrtc);
  auto library = CcclLibrary::open(*candidate, recipe.compiler.libraries);
  if (!library) return library.error();
  library_ = std::move(*library);
  return {};
}

Result<CompileResult> CcclCompiler::precompile(const Recipe& recipe, cccl::Algorithm algorithm, const PchRequest& order,
                                               PchResult& report) const {
  const CcclHeaders headers = cccl_headers(algorithm, recipe.target);
  const Unit nothing = Unit::cuda(kCcclHeadersProgram, "\n");
  std::vector<std::string> options{"-arch=" + recipe.target.architecture};
  const auto add = [&](const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
  };
  add(directory_options(recipe));
  add(headers.options);
  add(recipe.unit.options());
  for (const std::string& include : headers.includes) options.push_back("-include=" + include);
  options.push_back("--create-pch=" + order.path);
  NvrtcCompilation program(*opened_nvrtc_);
  if (Status created = program.create(nothing); !created) return std::move(created).error();
  if (Status compiled = program.compile(nothing, options); !compiled) return std::move(compiled).error();
  CompileResult none;
  none.artifact.metadata.log = program.log();
  report = program.take_pch_report(none.artifact.metadata.log, order);
  return none;
}

Result<std::vector<std::string>> CcclCompiler::shared_operators(const Recipe& recipe, const cccl::Spec& spec) const {
  std::vector<std::string> code(spec.operators.size());
  for (std::size_t i = 0; i < code.size() && spec.shared_capability != 0; ++i) {
    const cccl::Operator& op = spec.operators[i];
    if (!op.shared || op.source.empty()) continue;
    const Unit unit = Unit::cuda(op.name, op.source);
    std::vector<std::string> options{"-arch=compute_" + std::to_string(spec.shared_capability), "-rdc=true", "-dlto",
                                     "-std=c++20", "-default-device"};
    for (const std::string& directory : directory_options(recipe)) options.push_back(directory);
    NvrtcCompilation program(*opened_nvrtc_);
    if (Status created = program.create(unit); !created) return std::move(created).error();
    if (Status compiled = program.compile(unit, options); !compiled) return std::move(compiled).error();
    const auto bytes = program.output(Form::LtoIr);
    if (!bytes) return bytes.error();
    code[i] = bytes->view();
  }
  return code;
}

Result<CompileResult> CcclCompiler::compile(const Recipe& recipe, const RequestContext& /*context*/) {
  PchResult none;
  return compile(recipe, {}, none);
}

Result<CompileResult> CcclCompiler::compile(const Recipe& recipe, const PchRequest& order, PchResult& report) {
  if (recipe.unit.kind() != kind()) {
    return make_error(Code::InvalidArgument,
                      "unit '" + recipe.unit.name() + "' is of kind " + recipe.unit.kind() + ", not " + kind());
  }
  const auto spec = cccl::Spec::parse(recipe.unit.source());
  if (!spec) return spec.error();
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  if (Status opened = open(recipe); !opened) return std::move(opened).error();
  const auto start = system_clock().steady();
  const OutputCapture capture;
  if (order.mode == PchRequest::Mode::Create) return precompile(recipe, spec->algorithm, order, report);
  const auto operators = shared_operators(recipe, *spec);
  if (!operators) return operators.error();
  CcclBuildOptions options{*capability_of(recipe.target), recipe.compiler.roots[kCccl].path,
                           recipe.compiler.roots[kToolkit].path, recipe.unit.options(), *operators};
  if (order.mode == PchRequest::Mode::Use) {
    for (const std::string& include : cccl_headers(spec->algorithm, recipe.target).includes)
      options.flags.push_back("-include=" + include);
    options.flags.push_back("--use-pch=" + order.path);
  }
  auto build = CcclLibrary::compile(library_, *spec, options);
  std::string log = capture.text();
  report = take_pch_report(log, order);
  if (!build) {
    return make_error(build.error().code, build.error().message + " for '" + recipe.unit.name() + "'", std::move(log));
  }
  return wrap_in_envelope(recipe, *build, milliseconds_since(system_clock(), start), std::move(log));
}

std::optional<Unit> CcclCompiler::check_before(const Recipe& recipe) {
  if (recipe.unit.kind() != kind()) return std::nullopt;
  const auto library = choose_cccl(recipe.compiler.path);
  const auto spec = cccl::Spec::parse(recipe.unit.source());
  if (!library || library->release != nullptr || !spec) return std::nullopt;
  const cccl::Spec check = cccl_check_spec(spec->algorithm);
  // The name is part of the key of the result. It contains what the digests of the libraries do not cover.
  return Unit::of_kind(kCcclCheckKind,
                       std::string(to_string(check.algorithm)) + " of cuda-cccl " + library->version + " with CCCL " +
                           std::to_string(library->headers_version),
                       check.text());
}

Result<CompileResult> CcclCompiler::check(const Recipe& recipe) {
  const auto spec = cccl::Spec::parse(recipe.unit.source());
  if (!spec) return spec.error();
  if (Status opened = open(recipe); !opened) return std::move(opened).error();
  const auto start = system_clock().steady();
  const OutputCapture capture;
  CcclBuildOptions options{
      kCcclCheckCapability, recipe.compiler.roots[kCccl].path, recipe.compiler.roots[kToolkit].path, {}, {}, true};
  const auto build = CcclLibrary::compile(library_, *spec, options);
  if (!build) {
    std::string log = capture.text();
    const std::string reason = build.error().message + ": " + std::string(first_line(log).substr(0, 300));
    return make_error(Code::CompileFailed, reason, std::move(log));
  }
  if (Status good = check_cccl_build(library_, spec->algorithm, *build); !good) {
    return make_error(Code::CompileFailed, good.error().message, capture.text());
  }
  return wrap_in_envelope(recipe, *build, milliseconds_since(system_clock(), start), capture.text());
}

Result<CompileResult> CcclCompiler::wrap_in_envelope(const Recipe& recipe, const CcclBuild& build, double ms,
                                                     std::string log) {
  const auto blob = build.serialize();
  if (!blob) return blob.error();
  auto contents = read_cubin(build.payload());
  if (!contents) return make_error(Code::CompileFailed, "the CCCL library produced no machine code", std::move(log));
  auto entries = entries_by_symbol(recipe.unit, contents->kernels, log);
  if (!entries) return std::move(entries).error();
  for (const std::string& kernel : contents->kernels) {
    const EntryPoint entry{kernel, kernel};
    if (std::find(entries->begin(), entries->end(), entry) == entries->end()) entries->push_back(entry);
  }
  const CcclEnvelope envelope{recipe.unit.source(), library_->version(),          library_->build_id(),
                              build.capability(),   std::move(contents->kernels), *blob};
  CompileResult compiled;
  compiled.artifact.bytes = Bytes::of(encode(envelope));
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.metadata = {recipe.unit.name(),
                                "cccl " + library_->version() + ", nvrtc " + opened_nvrtc_->version.text(), ms,
                                std::move(log)};
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) {
    compiled.uncacheable_reason = "an operator uses " + macro;
  }
  return compiled;
}

}  // namespace kiln
