// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvjitlink_compiler.hpp"

#include <algorithm>
#include <deque>

#include "backends/cuda/cubin.hpp"
#include "backends/kernel_entries.hpp"
#include "backends/option_check.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "core/link_parts.hpp"

namespace kiln {
namespace {

constexpr RejectedOption kRejected[] = {
    {"-arch", "the target sets it"},
    {"-ptx", "the target sets it"},
    {"-lto", "the parts determine it"},
};

// The first version that has a cache and an option to disable it.
constexpr CudaVersion kFirstWithCache{12, 9};

// Architectures to list in error messages. The list contains only architectures that exist, because 12.9 prints a line
// for each one that it does not know.
constexpr int kArchitectures[] = {50, 52, 53, 60, 61,  62,  70,  72,  75,  80, 86,
                                  87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

// Environment variables that the library reads and that can change its output, sorted by name.
constexpr const char* kVariables[] = {"LIBNVVM_NVVM_VERSION", "LLVM_OVERRIDE_PRODUCER", "NVVM_IR_VER_CHK",
                                      "NV_NVVM_VERSION"};

std::string architecture_option(const Target& target) {
  std::string architecture = target.architecture;
  if (target.form == Form::Ptx) architecture.replace(0, 3, "compute_");
  return "-arch=" + architecture;
}

// Returns the options with which every link starts. The check for a supported target uses the same ones.
std::vector<std::string> target_options(const NvJitLinkLibrary& library, const Target& target, bool lto) {
  std::vector<std::string> options{architecture_option(target)};
  // The linker's cache is disabled: it would hide hits of kiln's cache, and the linker opens the driver to locate it.
  if (library.version >= kFirstWithCache) options.emplace_back("-no-cache");
  if (lto) options.emplace_back("-lto");
  if (target.form == Form::Ptx) options.emplace_back("-ptx");
  return options;
}

// A link operation of nvJitLink and its inputs.
class LinkSession {
 public:
  explicit LinkSession(const NvJitLinkLibrary& library) : library_(library) {}
  ~LinkSession() {
    if (state_ != nullptr) library_.destroy(&state_);
  }
  LinkSession(const LinkSession&) = delete;
  LinkSession& operator=(const LinkSession&) = delete;

  bool create(const std::vector<std::string>& options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    return library_.create(&state_, static_cast<std::uint32_t>(texts.size()), texts.data()) == 0;
  }

  // The result of each step counts: after a rejected part, completing the link can still report success.
  bool add(const LinkPartView& part) {
    // Copies the part. The library ignores the given size of PTX and reads up to a NUL, which every std::string has.
    // Parts within the unit's source are not aligned.
    const std::string& bytes = inputs_.emplace_back(part.bytes);
    const int kind = part.form == Form::Cubin ? NvJitLinkLibrary::kCubin
                     : part.form == Form::Ptx ? NvJitLinkLibrary::kPtx
                                              : NvJitLinkLibrary::kLtoIr;
    const std::string name(part.name);
    return library_.add_data(state_, kind, bytes.data(), bytes.size(), name.c_str()) == 0;
  }

  bool complete() { return library_.complete(state_) == 0; }

  std::optional<Bytes> output(Form form) {
    std::size_t size = 0;
    const int sized = form == Form::Ptx ? library_.ptx_size(state_, &size) : library_.cubin_size(state_, &size);
    if (sized != 0 || size == 0) return std::nullopt;
    std::string bytes(size, '\0');
    const int got = form == Form::Ptx ? library_.ptx(state_, bytes.data()) : library_.cubin(state_, bytes.data());
    if (got != 0) return std::nullopt;
    return Bytes::of(std::move(bytes));
  }

  std::string log() {
    return text(library_.error_log_size, library_.error_log) + text(library_.info_log_size, library_.info_log);
  }

 private:
  std::string text(int (*size_of)(NvJitLinkState*, std::size_t*), int (*get)(NvJitLinkState*, char*)) {
    std::size_t size = 0;
    if (state_ == nullptr || size_of(state_, &size) != 0 || size == 0) return {};
    std::string log(size + 1, '\0');  // versions differ in whether the size includes the NUL
    if (get(state_, log.data()) != 0) return {};
    log.resize(log.find('\0'));
    return log;
  }

  const NvJitLinkLibrary& library_;
  NvJitLinkState* state_ = nullptr;
  std::deque<std::string> inputs_;  // the deque keeps their addresses until the link is completed
};

Result<CubinContents> contents_of(const Bytes& bytes, Form form) {
  if (form == Form::Cubin) return read_cubin(bytes.view());
  // PTX contains names of files but not their times: its bytes depend only on those of the parts.
  return CubinContents{ptx_kernels(bytes.view()), false};
}

Error not_linked(const Unit& unit, const std::string& what, LinkSession& linking) {
  std::string said = linking.log();
  std::string message = "nvJitLink failed to " + what + " unit '" + unit.name() + "'";
  if (!said.empty()) message += ": " + said.substr(0, said.find('\n'));
  return make_error(Code::CompileFailed, std::move(message), std::move(said));
}

Status link_all(LinkSession& linking, const Unit& unit, const std::vector<LinkPartView>& parts,
                const std::vector<std::string>& options) {
  if (!linking.create(options)) return not_linked(unit, "start linking", linking);
  for (const LinkPartView& part : parts) {
    if (!linking.add(part)) return not_linked(unit, "add the part '" + std::string(part.name) + "' to", linking);
  }
  if (!linking.complete()) return not_linked(unit, "link", linking);
  return {};
}

}  // namespace

NvJitLinkCompiler::NvJitLinkCompiler(std::string path, std::string nvrtc, FileDigestCache& digests,
                                     InputTracking watched)
    : path_(std::move(path)), nvrtc_(std::move(nvrtc)), digests_(digests), opened_(watched) {}

Result<NvJitLinkCandidate> NvJitLinkCompiler::candidate() {
  const MutexLock lock(mutex_);
  if (!candidate_) candidate_ = choose_nvjitlink(path_, NvrtcSearch::of_this_process(nvrtc_));
  if (candidate_) return *candidate_;
  if (!path_.empty()) return make_error(Code::Unavailable, "the configured nvJitLink " + path_ + " does not exist");
  return make_error(
      Code::Unavailable,
      "nvJitLink was not found next to NVRTC or in NVRTC's search path; install a CUDA toolkit or the PyPI "
      "package nvidia-nvjitlink of the same CUDA version as NVRTC");
}

Result<CompilerIdentity> NvJitLinkCompiler::identity(const RequestContext& context) {
  const Result<NvJitLinkCandidate> found = candidate();
  if (!found) return found.error();
  const auto seen = digests_.lookup(found->path, context.requested_at);
  if (!seen) return make_error(Code::Unavailable, found->path + " cannot be read");
  CompilerIdentity identity;
  identity.name = "nvjitlink";
  identity.version = found->major != 0 ? std::to_string(found->major) : "unknown";
  identity.path = found->path;
  identity.digest = seen->digest;
  identity.environment = environment_variables(kVariables);
  return identity;
}

Result<std::shared_ptr<const NvJitLinkLibrary>> NvJitLinkCompiler::library() {
  const Result<NvJitLinkCandidate> found = candidate();
  if (!found) return found.error();
  return opened_.open(found->path, [&]() -> std::optional<Digest> {
    const auto seen = digests_.lookup(found->path);
    return seen ? std::optional(seen->digest) : std::nullopt;
  });
}

Status NvJitLinkCompiler::supports(const Target& target) {
  const auto linker = library();
  if (!linker) return linker.error();
  const auto takes = [&](const Target& asked) {
    return LinkSession(**linker).create(target_options(**linker, asked, true));
  };
  // The library crashes on invalid architecture names, so it is not called with them.
  const bool sensible = (target.form == Form::Cubin || target.form == Form::Ptx) &&
                        target.architecture.starts_with("sm_") && Target::parse(target.architecture).has_value();
  if (sensible && takes(target)) return {};
  std::string known;
  for (const int number : kArchitectures) {
    if (takes(Target::sm(number))) known += " sm_" + std::to_string(number);
  }
  return make_error(Code::Unsupported, "nvJitLink " + (*linker)->version.text() + " does not support " + target.name() +
                                           "; it produces cubins and PTX for" + known);
}

bool NvJitLinkCompiler::is_self_contained(const Recipe& recipe) const {
  const auto& options = recipe.unit.options();
  if (std::any_of(options.begin(), options.end(), names_option_file)) return false;
  const auto parts = decode_link_parts(recipe.unit);
  return parts && std::none_of(parts->begin(), parts->end(), [](const LinkPartView& p) { return p.unit.has_value(); });
}

std::string NvJitLinkCompiler::uncacheable_reason(const Recipe& recipe) const {
  if (opened_.is_watched()) return {};
  if (!opened_.matches(recipe.compiler.digest))
    return "the linker's file differs from the one that this process has loaded";
  if (environment_variables(kVariables) != recipe.compiler.environment)
    return "the recipe was created for another environment";
  return {};
}

Result<CompileResult> NvJitLinkCompiler::compile(const Recipe& recipe, const RequestContext& /*context*/) {
  const Unit& unit = recipe.unit;
  const auto parts = decode_link_parts(unit);
  if (!parts) return parts.error();
  bool lto = false;
  for (const LinkPartView& part : *parts) {
    if (part.unit) {
      return make_error(Code::InvalidArgument, "the part '" + part.unit->name() + "' of unit '" + unit.name() +
                                                   "' is a unit, which must be compiled before it is linked");
    }
    lto = lto || part.form == Form::LtoIr;
  }
  if (Status good = check_options(unit, kRejected); !good) return std::move(good).error();
  if (Status supported = supports(recipe.target); !supported) return std::move(supported).error();
  const auto linker = library();
  if (!linker) return linker.error();

  // Only LTO produces PTX. The library reports an error if no part has LTO-IR.
  std::vector<std::string> options = target_options(**linker, recipe.target, lto || recipe.target.form == Form::Ptx);
  options.insert(options.end(), unit.options().begin(), unit.options().end());

  const auto start = system_clock().steady();
  LinkSession linking(**linker);
  if (Status linked = link_all(linking, unit, *parts, options); !linked) return std::move(linked).error();
  auto bytes = linking.output(recipe.target.form);
  if (!bytes) return not_linked(unit, "return the output of", linking);
  const auto contents = contents_of(*bytes, recipe.target.form);
  if (!contents) return contents.error();
  auto entries = entries_by_symbol(unit, contents->kernels, linking.log());
  if (!entries) return std::move(entries).error();

  CompileResult compiled;
  compiled.artifact.bytes = std::move(*bytes);
  compiled.artifact.target = recipe.target;
  compiled.artifact.entries = std::move(*entries);
  compiled.artifact.dependency_set = std::make_shared<const DependencySet>();
  compiled.artifact.metadata = {unit.name(), "nvjitlink " + (*linker)->version.text(),
                                milliseconds_since(system_clock(), start), linking.log()};
  compiled.uncacheable_reason =
      contents->has_line_table ? "it has line information, into which the linker writes the times of the source files"
                               : uncacheable_reason(recipe);
  return compiled;
}

}  // namespace kiln
