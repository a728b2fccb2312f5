#include "compile/nvrtc_compiler.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "compile/nvrtc_program.hpp"
#include "compile/option_check.hpp"
#include "compile/source_text.hpp"

namespace kiln {
namespace {

// Options that write files, read files that no closure could cover, or say again what the target says.
constexpr RefusedOption kRefused[] = {
    {"--gpu-architecture", "the target says it"},
    {"-arch", "the target says it"},
    {"--create-pch", "it writes a file"},
    {"--use-pch", "what is in a precompiled header cannot be seen"},
    {"--pch", "what is in a precompiled header cannot be seen"},
    {"-pch", "what is in a precompiled header cannot be seen"},
    {"--fdevice-time-trace", "it writes a file, and ends the process where it cannot"},
    {"-fdevice-time-trace", "it writes a file, and ends the process where it cannot"},
    {"--time", "it writes a file"},
    {"-time", "it writes a file"},
};

// The first two and the last are not documented; NVRTC's parts ask for them all the same. Sorted by name.
constexpr const char* kVariables[] = {"EDG_BASE", "EDG_MODULES_PATH", "NVRTC_APPEND_FLAGS", "NVRTC_PREPEND_FLAGS",
                                      "NVVM_IR_VER_CHK"};

std::string architecture_option(const Target& target) {
  std::string architecture = target.architecture;
  // PTX and LTO-IR are for a virtual architecture; `sm_` would work for some and not for others.
  if (target.form != Form::Cubin) architecture.replace(0, 3, "compute_");
  return "--gpu-architecture=" + architecture;
}

std::vector<std::string> options_for(const Recipe& recipe, const PchOrder& order, CudaVersion version) {
  std::vector<std::string> options{architecture_option(recipe.target)};
  const std::vector<std::string>& own = recipe.unit.options();
  options.insert(options.end(), own.begin(), own.end());
  for (const IncludeRoot& root : recipe.unit.include_roots()) options.push_back("-I" + root.path);
  if (recipe.target.form == Form::LtoIr) options.emplace_back("-dlto");
  // NVRTC's own cache is off, so that a hit is ours and a compile is a compile. Older ones have none.
  if (version >= CudaVersion{12, 9}) options.emplace_back("--no-cache");
  if (order.mode == PchOrder::Mode::Create) options.push_back("--create-pch=" + order.path);
  if (order.mode == PchOrder::Mode::Use) options.push_back("--use-pch=" + order.path);
  return options;
}

}  // namespace

NvrtcCompiler::NvrtcCompiler(std::string path, FileDigests& digests, Watched watched)
    : path_(std::move(path)), digests_(digests), opened_(watched) {}

Result<NvrtcCandidate> NvrtcCompiler::candidate() {
  const MutexLock lock(mutex_);
  if (!candidate_) candidate_ = choose_nvrtc(NvrtcSearch::of_this_process(path_));
  if (!candidate_ && !path_.empty()) {
    return failure(Code::Unavailable, "the NVRTC that was asked for, " + path_ +
                                          ", is not there; mend the setting nvrtc (KILN_NVRTC) or remove it, and one "
                                          "is searched for");
  }
  if (!candidate_) {
    return failure(
        Code::Unavailable,
        "no NVRTC was found; install a CUDA toolkit or the PyPI package nvidia-cuda-nvrtc, or set KILN_NVRTC "
        "to the path of libnvrtc (kiln doctor lists where it was looked for)");
  }
  return *candidate_;
}

std::optional<Digest> NvrtcCompiler::digest_of(const NvrtcCandidate& candidate) {
  Sha256 hash;
  for (const std::string& path : {candidate.path, candidate.builtins}) {
    if (path.empty()) continue;
    const auto seen = digests_.look(path);
    if (!seen) return std::nullopt;
    hash.add(seen->digest.bytes);
  }
  return hash.finish();
}

Result<CompilerIdentity> NvrtcCompiler::identity() {
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return found.error();
  CompilerIdentity identity;
  identity.name = "nvrtc";
  identity.version = found->version.text();
  identity.path = found->path;
  const std::optional<Digest> digest = digest_of(*found);
  if (!digest) return failure(Code::Unavailable, found->path + " or its builtins file cannot be read");
  identity.digest = *digest;
  identity.environment = environment_variables(kVariables);
  return identity;
}

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcCompiler::library() {
  const Result<NvrtcCandidate> found = candidate();
  if (!found) return found.error();
  return opened_.open(found->path, [&] { return digest_of(*found); });
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
  return failure(Code::Unsupported,
                 "NVRTC " + (*nvrtc)->version.text() + " does not compile for " + target.name() + "; it knows" + known);
}

bool NvrtcCompiler::closed(const Recipe& recipe) const {
  const std::vector<std::string_view> texts = texts_of(recipe);
  const std::vector<std::string_view> options = options_of(recipe);
  const auto names_file = [](std::string_view option) {
    return names_option_file(option) || option.find("pch") != std::string_view::npos;
  };
  return !has_debug_options(recipe) && std::none_of(texts.begin(), texts.end(), could_include) &&
         std::none_of(options.begin(), options.end(), names_file);
}

std::size_t NvrtcCompiler::pch_heap_size() {
  const auto nvrtc = library();
  std::size_t size = 0;
  if (!nvrtc || (*nvrtc)->pch_heap_size == nullptr || (*nvrtc)->pch_heap_size(&size) != 0) return 0;
  return size;
}

Result<Compiled> NvrtcCompiler::compile(const Recipe& recipe) {
  PchReport none;
  return compile(recipe, {}, none);
}

Result<Compiled> NvrtcCompiler::compile(const Recipe& recipe, const PchOrder& order, PchReport& report) {
  if (recipe.unit.kind() != kind()) {
    return failure(Code::InvalidArgument,
                   "unit '" + recipe.unit.name() + "' is of kind " + recipe.unit.kind() + ", not " + kind());
  }
  if (Status good = check_options(recipe.unit, kRefused); !good) return std::move(good).error();
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  const auto nvrtc = library();
  if (!nvrtc) return nvrtc.error();

  const auto start = system_clock().steady();
  CudaProgram program(**nvrtc);
  if (Status created = program.create(recipe.unit); !created) return std::move(created).error();
  Status done = program.compile(recipe.unit, options_for(recipe, order, (*nvrtc)->version));
  if (!done) return std::move(done).error();
  auto entries = program.entries(recipe.unit);
  if (!entries) return std::move(entries).error();
  auto bytes = program.output(recipe.target.form);
  if (!bytes) return std::move(bytes).error();

  Compiled compiled;
  compiled.artifact.bytes = std::move(*bytes);
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.closure = std::make_shared<const Closure>();
  std::string log = program.log();
  report = take_pch_report(log, order);
  compiled.artifact.about = {recipe.unit.name(), "nvrtc " + (*nvrtc)->version.text(),
                             milliseconds_since(system_clock(), start), std::move(log)};
  if (const std::string macro = time_macro_of(recipe); !macro.empty()) {
    compiled.not_cacheable = "the source uses " + macro;
  } else if (!opened_.is_watched() && !opened_.is(recipe.compiler.digest)) {
    compiled.not_cacheable = "the compiler's files are not those that this process has open";
  } else if (!opened_.is_watched() && !closed(recipe)) {
    compiled.not_cacheable = "it was compiled in this process, where the headers that it read cannot be seen";
  }
  return compiled;
}

}  // namespace kiln
