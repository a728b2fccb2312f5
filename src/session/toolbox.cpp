#include "session/toolbox.hpp"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/machine.hpp"
#include "compile/cccl_compiler.hpp"
#include "compile/command_compiler.hpp"
#include "compile/nvjitlink_compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/opencl_compiler.hpp"
#include "compile/parts_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "session/remote_parts.hpp"
#include "session/trust_file.hpp"

namespace kiln {
namespace {

// As the shell spells it where that is the same folder: so do compilers in debug information.
std::string working_directory() {
  struct stat spelt;
  struct stat real;
  const auto shell = environment_variable("PWD");
  if (shell && shell->starts_with('/') && stat(shell->c_str(), &spelt) == 0 && stat(".", &real) == 0 &&
      spelt.st_dev == real.st_dev && spelt.st_ino == real.st_ino) {
    return *shell;
  }
  char buffer[PATH_MAX];
  // A folder that was removed has no headers in it. The root folder is as good: headers do not lie there either.
  if (getcwd(buffer, sizeof buffer) == nullptr) return "/";
  return buffer;
}

}  // namespace

// Beside the cache, where that is on this host: they are large, and of no use to anyone else. An image that is built in
// a container would carry NVIDIA's headers away, so there somebody must want it.
std::optional<PchShelf::Options> pch_shelf_of(const Config& config, const std::string& cache_root,
                                              std::string* why_not) {
  const std::string folder = join_path(cache_root, "v1");
  std::string reason;
  if (config.pch == Config::Pch::Off) reason = "precompiled ones are switched off (pch = off)";
  if (config.disable || cache_root.empty()) reason = "there is no cache to keep precompiled ones beside";
  if (reason.empty() && config.pch == Config::Pch::Auto && in_container()) {
    reason = "precompiled ones are off in a container, whose image would carry them away (KILN_PCH=on)";
  }
  if (reason.empty() && claims_folder(cache_root) != folder) {
    reason = cache_root + " cannot be written to, or other hosts see it too";
  }
  if (why_not != nullptr) *why_not = reason;
  if (!reason.empty()) return std::nullopt;
  return PchShelf::Options{folder + "/pch", config.pch_max_bytes, {}};
}

DiskStore::Options disk_options_of(const Config& config, std::string root, bool read_only) {
  DiskStore::Options options;
  options.root = std::move(root);
  options.size_bound = config.cache_max_bytes;
  options.read_only = read_only;
  options.trusted_owners.assign(config.cache_trusted_users.begin(), config.cache_trusted_users.end());
  return options;
}

Toolbox::Toolbox(Config config, Observer observer, const Trust& trust)
    : config_(std::move(config)), observer_(std::move(observer)) {
  const bool remembers = !config_.disable && !config_.cache_path.empty();
  digests_ = std::make_unique<FileDigests>(remembers ? config_.cache_path.front() + "/v1/digests" : std::string());
  parts_.digests = digests_.get();
  parts_.observer = observer_;
  parts_.may_compile = config_.may_compile;
  if (!config_.disable) {
    const TrustPolicy policy = trust_policy_of(trust, config_, observer_);
    bundles_ = std::make_shared<Bundles>(config_.bundles, policy, observer_);
    if (!config_.remote.empty()) fleet_ = std::make_unique<Fleet>(config_, policy, observer_);
    open_stores(policy);
  }
  if (!config_.record.empty()) recorder_ = std::make_unique<ProfileRecorder>(config_.record, observer_);
  resolver_ = std::make_unique<Resolver>(parts_);
  headers_ = std::make_unique<PrecompiledHeaders>(
      [this] { return pch_shelf_of(config_, disks_.empty() ? std::string() : disks_.front()->root()); }, *digests_,
      observer_);
  if (config_.jobs == 0U) return;
  WorkerPool::Options workers;
  workers.program = config_.worker;
  workers.most = config_.jobs;
  workers.memory_limit = config_.worker_memory;
  workers_ = std::make_unique<WorkerPool>(std::move(workers));
}

Toolbox::~Toolbox() = default;

std::shared_ptr<DiskStore> Toolbox::open_disk(const std::string& root, bool read_only) {
  auto store = DiskStore::open(disk_options_of(config_, root, read_only), observer_);
  if (store) return std::move(*store);
  observer_.tell(Event::Kind::CacheUnavailable, "disk", store.error().message);
  return nullptr;
}

void Toolbox::open_stores(const TrustPolicy& policy) {
  std::vector<TieredStore::Tier> tiers;
  // As near as a disk: what a bundle has is not copied into the cache.
  if (bundles_->any()) tiers.push_back({bundles_, TieredStore::Distance::Disk});
  for (std::size_t i = 0; i < config_.cache_path.size(); ++i) {
    auto disk = open_disk(config_.cache_path[i], i > 0);
    if (disk == nullptr) continue;
    disks_.push_back(disk);
    // What came from elsewhere stays out of this user's own: docs/decisions/0011.
    tiers.push_back({std::move(disk), TieredStore::Distance::Disk, true, false});
  }
  if (fleet_ != nullptr && fleet_->store() != nullptr) {
    if (!config_.cache_path.empty()) fetched_ = open_disk(fetched_root(config_.cache_path.front(), policy), false);
    if (fetched_ != nullptr) tiers.push_back({fetched_, TieredStore::Distance::Disk, false, true});
    tiers.push_back({fleet_->store(), TieredStore::Distance::Remote});
    parts_.asks_servers = true;
  }
  if (tiers.empty()) return;
  store_ = std::make_unique<TieredStore>(std::move(tiers), observer_);
  parts_.store = store_.get();
  if (fleet_ != nullptr) {
    parts_.fleet = fleet_->claims();
    parts_.server_time = config_.remote_budget;
    parts_.lease = config_.lease_time;
  }
  if (disks_.empty()) return;
  claims_ = std::unique_ptr<Claims>(new LocalClaims(LocalClaims::for_cache(disks_.front()->root())));
  parts_.claims = claims_.get();
  parts_.history = &disks_.front()->history();
}

std::unique_ptr<Compiler> Toolbox::in_workers(std::unique_ptr<Compiler> inner, bool everything) {
  WorkerCompiler::Options options;
  options.pool = workers_.get();
  options.headers = headers_.get();
  options.limit = config_.worker_time_limit;
  options.everything = everything;
  return std::make_unique<WorkerCompiler>(std::move(inner), *digests_, options, observer_);
}

// Its parts are units of their own: they are looked for and kept like others.
std::unique_ptr<Compiler> Toolbox::make_linker() {
  Compiler* const cuda = compiler_of("cuda", {});
  const auto get = [this, cuda](const Recipe& part) -> Result<Compiled> {
    auto answer = resolver_->get(part, *cuda);
    if (!answer) return std::move(answer).error();
    return Compiled{std::move(answer->artifact), std::move(answer->not_cacheable)};
  };
  // Everything in workers: damaged code crashes the linker, and parts may come from anywhere.
  auto linker = in_workers(std::make_unique<NvJitLinkCompiler>("", config_.nvrtc, *digests_), true);
  return std::make_unique<PartsCompiler>(std::move(linker), *cuda, get, *digests_);
}

Compiler* Toolbox::compiler_of(const std::string& kind, const std::string& which) {
  std::unique_ptr<Compiler>& compiler = compilers_[{kind, which}];
  if (compiler != nullptr) return compiler.get();
  if (kind == "cuda") compiler = in_workers(std::make_unique<NvrtcCompiler>(config_.nvrtc, *digests_), false);
  if (kind == "cccl") {
    compiler = in_workers(std::make_unique<CcclCompiler>(config_.cccl, config_.nvrtc, *digests_), true);
  }
  if (kind == "opencl") compiler = std::make_unique<OpenClCompiler>(which);
  if (kind == "link") compiler = make_linker();
  if (kind == "command" && !which.empty()) {
    compiler =
        std::make_unique<CommandCompiler>(which, *digests_, CommandCompiler::Options{config_.worker_time_limit, {}});
  }
  return compiler.get();
}

Result<Compiler*> Toolbox::compiler(const Unit& unit, const Target& target) {
  if (target.form == Form::Foreign) {
    return failure(Code::Unsupported, "what '" + target.name() + "' compiles is only kept by kiln, not compiled");
  }
  const MutexLock lock(mutex_);
  // NVRTC compiles for every architecture; an OpenCL compiler belongs to its device, a command's to its program. That
  // one needs no worker: each of its compiles is a process of its own already.
  std::string which;
  if (target.form == Form::OpenClBinary) which = target.architecture;
  if (unit.kind() == "command" && !unit.options().empty()) which = unit.options().front();
  Compiler* const compiler = compiler_of(unit.kind(), which);
  if (compiler == nullptr) {
    return failure(Code::Unsupported, "no compiler of kiln's takes units of kind '" + unit.kind() + "'");
  }
  return compiler;
}

void Toolbox::tell_of_bundles(const Recipe& recipe) {
  if (bundles_ != nullptr && config_.bundles_exact) bundles_->tell_of_other_compilers(recipe);
}

bool Toolbox::drain(std::chrono::nanoseconds limit) { return fleet_ == nullptr || fleet_->drain(limit); }

void Toolbox::finish() {
  if (fleet_ != nullptr) fleet_->finish();
}

void Toolbox::interrupt() {
  if (workers_ != nullptr) workers_->interrupt();
  const MutexLock lock(mutex_);
  for (const auto& [kind, compiler] : compilers_) {
    if (compiler != nullptr) compiler->interrupt();
  }
}

Result<Recipe> Toolbox::recipe(const Unit& unit, const Target& target) {
  const auto compiler = this->compiler(unit, target);
  if (!compiler) return compiler.error();
  auto identity = (*compiler)->identity();
  if (!identity) return std::move(identity).error();
  // An algorithm of CCCL's includes nothing of the program's own, so where that runs must not matter to it.
  Recipe recipe{unit, fitted(unit, target), std::move(*identity), unit.kind() == "cccl" ? "/" : working_directory()};
  recipe.closed = (*compiler)->closed(recipe);
  return recipe;
}

std::optional<Answer> Toolbox::serve(const Unit& unit, const Target& target, std::uint64_t flow, const Bytes* refused) {
  if (bundles_ == nullptr || config_.bundles_exact) return std::nullopt;
  const auto start = parts_.clock->steady();
  auto found = bundles_->find(unit, target, flow, refused);
  if (!found) return std::nullopt;
  Bundle::Pinned& pinned = found->pinned;
  Answer answer{std::move(pinned.artifact), pinned.request, pinned.key, Origin::Bundle};
  answer.artifact.closure = std::make_shared<const Closure>();
  answer.ms = milliseconds_since(*parts_.clock, start);
  answer.flow = flow;
  if (observer_) {
    Event hit = event_of(Event::Kind::Hit, unit, target, flow);
    hit.key = answer.key.hex();
    hit.origin = to_string(answer.origin);
    hit.ms = answer.ms;
    hit.message = found->bundle + ", for " + answer.artifact.target.name() + " by " + answer.artifact.about.compiler;
    observer_.tell(hit);
  }
  return answer;
}

Result<Answer> Toolbox::get(const Unit& unit, const Target& target, std::size_t company) {
  if (auto served = serve(unit, fitted(unit, target))) return std::move(*served);
  auto recipe = this->recipe(unit, target);
  if (!recipe) return recipe.error();
  recipe->company = company;
  const auto compiler = this->compiler(unit, target);
  if (!compiler) return compiler.error();
  tell_of_bundles(*recipe);
  return resolver_->get(*recipe, **compiler);
}

}  // namespace kiln
