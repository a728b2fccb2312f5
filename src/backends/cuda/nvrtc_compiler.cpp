// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvrtc_compiler.hpp"

#include <algorithm>

#include "backends/cuda/nvrtc_program.hpp"
#include "backends/option_check.hpp"
#include "backends/source_scan.hpp"
#include "backends/text_facts.hpp"
#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

// Options that write files, read files that a dependency set cannot cover, or repeat what the target sets.
constexpr RejectedOption kRejected[] = {
    {"--gpu-architecture", "the target sets it"},
    {"-arch", "the target sets it"},
    {"--create-pch", "it writes a file"},
    {"--use-pch", "the contents of a precompiled header cannot be tracked"},
    {"--pch", "the contents of a precompiled header cannot be tracked"},
    {"-pch", "the contents of a precompiled header cannot be tracked"},
    {"--use-bundled-headers", "it writes files; kiln installs the headers when a unit needs them"},
    {"--fdevice-time-trace", "it writes a file and ends the process if that fails"},
    {"-fdevice-time-trace", "it writes a file and ends the process if that fails"},
    {"--time", "it writes a file"},
    {"-time", "it writes a file"},
};

// Environment variables that NVRTC reads, sorted by name. The first two and the last one are undocumented.
constexpr const char* kVariables[] = {"EDG_BASE", "EDG_MODULES_PATH", "NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS",
                                      "NVVM_IR_VER_CHK"};

std::string architecture_option(const Target& target) {
  std::string architecture = target.architecture;
  // PTX and LTO-IR are for a virtual architecture. `sm_` works only for some of them.
  if (target.form != Form::Cubin) architecture.replace(0, 3, "compute_");
  return "--gpu-architecture=" + architecture;
}

CompilerIdentity undigested(const NvrtcCandidate& candidate) {
  CompilerIdentity identity;
  identity.name = "nvrtc";
  identity.version = candidate.version.text();
  identity.path = candidate.path;
  identity.environment = environment_variables(kVariables);
  return identity;
}

std::vector<std::string> options_for(const Recipe& recipe, const PchRequest& order, CudaVersion version) {
  std::vector<std::string> options{architecture_option(recipe.target)};
  const std::vector<std::string>& own = recipe.unit.options();
  options.insert(options.end(), own.begin(), own.end());
  for (const IncludeRoot& root : recipe.unit.include_roots()) options.push_back("-I" + root.path);
  for (const IncludeRoot& root : recipe.compiler.roots) options.push_back("-I" + root.path);
  if (recipe.target.form == Form::LtoIr) options.emplace_back("-dlto");
  // NVRTC's cache is disabled, because it would hide hits of kiln's cache and shorten compiles. Older versions have
  // none.
  if (version >= CudaVersion{12, 9}) options.emplace_back("--no-cache");
  if (order.mode == PchRequest::Mode::Create) options.push_back("--create-pch=" + order.path);
  if (order.mode == PchRequest::Mode::Use) options.push_back("--use-pch=" + order.path);
  return options;
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(std::string path, FileDigestCache& digests, InputTracking watched)
    : path_(std::move(path)), digests_(digests), opened_(watched) {}

Result<NvrtcCandidate> NvrtcCompiler::candidate() {
  const MutexLock lock(mutex_);
  if (!candidate_) candidate_ = choose_nvrtc(NvrtcSearch::of_this_process(path_));
  if (!candidate_ && !path_.empty()) {
    return make_error(Code::Unavailable,
                      "the configured NVRTC " + path_ +
                          " does not exist; correct the setting nvrtc (KILN_NVRTC) or remove it to search for "
                          "NVRTC");
  }
  if (!candidate_) {
    return make_error(
        Code::Unavailable,
        "NVRTC was not found; install a CUDA toolkit or the PyPI package nvidia-cuda-nvrtc, or set KILN_NVRTC "
        "to the path of libnvrtc (kiln doctor lists the searched directories)");
  }
  return *candidate_;
}

std::optional<Digest> NvrtcCompiler::digest_of(const NvrtcCandidate& candidate, const RequestContext& context) {
  Sha256 hash;
  for (const std::string& path : {candidate.path, candidate.builtins}) {
    if (path.empty()) continue;
    const auto seen = digests_.lookup(path, context.requested_at);
    if (!seen) return std::nullopt;
    hash.add(seen->digest.bytes);
  }
  return hash.finish();
}

Result<CompilerIdentity> NvrtcCompiler::identity(const RequestContext& context) {
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return found.error();
  const std::optional<Digest> digest = digest_of(*found, context);
  if (!digest) return make_error(Code::Unavailable, found->path + " or its builtins file cannot be read");
  is_identified_ = true;
  CompilerIdentity identity = undigested(*found);
  identity.digest = *digest;
  return identity;
}

std::optional<CompilerIdentity> NvrtcCompiler::undigested_identity() {
  if (is_identified_) return std::nullopt;
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return std::nullopt;
  const auto library = digests_.stable_state(found->path);
  if (!library || digests_.is_cached(found->path, *library)) return std::nullopt;
  return undigested(*found);
}

std::optional<Digest> NvrtcCompiler::files_state() {
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return std::nullopt;
  BinaryWriter out;
  for (const std::string& path : {found->path, found->builtins}) {
    if (path.empty()) continue;
    const auto state = digests_.stable_state(path);
    if (!state) return std::nullopt;
    const FileStamp& stamp = state->stamp;
    out.text(path).u64(state->mount).u64(stamp.device).u64(stamp.inode).u64(stamp.size);
    out.u64(static_cast<std::uint64_t>(stamp.modified_ns)).u64(static_cast<std::uint64_t>(stamp.changed_ns));
  }
  return sha256(out.bytes());
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcCompiler::library() {
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return found.error();
  return opened_.open(found->path, [&] { return digest_of(*found, {}); });
}

Status NvrtcCompiler::supports(const Target& target) {
  const auto nvrtc = library();
  if (!nvrtc) return nvrtc.error();
  const int number = target.form == Form::OpenClBinary ? 0 : capability_of(target, true).value_or(0);
  std::string known;
  for (const int architecture : (*nvrtc)->architectures) {
    if (architecture == number) return {};
    known += " sm_" + std::to_string(architecture);
  }
  return make_error(Code::Unsupported, "NVRTC " + (*nvrtc)->version.text() + " does not support " + target.name() +
                                           "; it supports" + known);
}

bool NvrtcCompiler::is_self_contained(const Recipe& recipe) const {
  const std::vector<std::string_view> texts = texts_of(recipe);
  const std::vector<std::string_view> options = options_of(recipe);
  const auto names_file = [](std::string_view option) {
    return names_option_file(option) || option.find("pch") != std::string_view::npos;
  };
  return !has_debug_options(recipe) && std::none_of(texts.begin(), texts.end(), may_include) &&
         std::none_of(options.begin(), options.end(), names_file);
}

std::size_t NvrtcCompiler::pch_heap_size() {
  const auto nvrtc = library();
  std::size_t size = 0;
  if (!nvrtc || !(*nvrtc)->has_pch() || (*nvrtc)->pch_heap_size(&size) != 0) return 0;
  return size;
}

std::size_t NvrtcCompiler::set_pch_heap_size(std::size_t size) {
  const auto nvrtc = library();
  if (nvrtc && (*nvrtc)->has_pch()) (void)(*nvrtc)->set_pch_heap_size(size);
  return pch_heap_size();
}

Result<CompileResult> NvrtcCompiler::compile(const Recipe& recipe, const RequestContext& /*context*/) {
  PchResult none;
  return compile(recipe, {}, none);
}

Result<CompileResult> NvrtcCompiler::compile(const Recipe& recipe, const PchRequest& order, PchResult& report) {
  if (recipe.unit.kind() != kind()) {
    return make_error(Code::InvalidArgument,
                      "unit '" + recipe.unit.name() + "' is of kind " + recipe.unit.kind() + ", not " + kind());
  }
  if (Status good = check_options(recipe.unit, kRejected); !good) return std::move(good).error();
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  const auto nvrtc = library();
  if (!nvrtc) return nvrtc.error();

  const auto start = system_clock().steady();
  NvrtcCompilation program(**nvrtc);
  if (Status created = program.create(recipe.unit); !created) return std::move(created).error();
  Status done = program.compile(recipe.unit, options_for(recipe, order, (*nvrtc)->version));
  if (!done) return std::move(done).error();
  auto entries = program.entries(recipe.unit);
  if (!entries) return std::move(entries).error();
  auto bytes = program.output(recipe.target.form);
  if (!bytes) return std::move(bytes).error();

  CompileResult compiled;
  compiled.artifact.bytes = std::move(*bytes);
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.dependency_set = std::make_shared<const DependencySet>();
  std::string log = program.log();
  report = program.take_pch_report(log, order);
  compiled.artifact.metadata = {recipe.unit.name(), "nvrtc " + (*nvrtc)->version.text(),
                                milliseconds_since(system_clock(), start), std::move(log)};
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) {
    compiled.uncacheable_reason = "the source uses " + macro;
  } else if (!opened_.is_watched() && !opened_.matches(recipe.compiler.digest)) {
    compiled.uncacheable_reason = "the compiler's files differ from those that this process has loaded";
  } else if (!opened_.is_watched() && !is_self_contained(recipe)) {
    compiled.uncacheable_reason = "it was compiled in this process, where the headers that it reads cannot be tracked";
  }
  return compiled;
}

}  // namespace kiln
