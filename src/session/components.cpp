// SPDX-License-Identifier: Apache-2.0
#include "session/components.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/cccl/cccl_compiler.hpp"
#include "backends/command/command_compiler.hpp"
#include "backends/cuda/link_compiler.hpp"
#include "backends/cuda/nvjitlink_compiler.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "backends/factory/backend_table.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "base/process/system_info.hpp"
#include "cache/cache_owners.hpp"
#include "session/config/trust_policy_file.hpp"
#include "session/remote_factory.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln {
namespace {

// Returns PWD if it names the working directory, because compilers use that spelling in debug information.
std::string working_directory() {
  struct stat spelled;
  struct stat real;
  const auto shell = environment_variable("PWD");
  if (shell && shell->starts_with('/') && stat(shell->c_str(), &spelled) == 0 && stat(".", &real) == 0 &&
      spelled.st_dev == real.st_dev && spelled.st_ino == real.st_ino) {
    return *shell;
  }
  char buffer[PATH_MAX];
  // The working directory was removed, or this user cannot enter it (a service that root started in its home), so no
  // header is found in it. Neither is one in the root directory.
  if (getcwd(buffer, sizeof buffer) == nullptr || faccessat(AT_FDCWD, buffer, X_OK, AT_EACCESS) != 0) return "/";
  return buffer;
}

Recipe recipe_with(const Compiler& compiler, const Unit& unit, const Target& target, CompilerIdentity identity) {
  // A CCCL algorithm includes no file of the program, so the working directory must not affect its key.
  Recipe recipe{unit, effective_target(unit, target), std::move(identity),
                unit.kind() == "cccl" ? "/" : working_directory()};
  recipe.self_contained = compiler.is_self_contained(recipe);
  return recipe;
}

// Returns the directory of the digests and epochs. A cache that is not used because of its owner holds none: its owner
// could link it to any directory of this user.
std::string memory_directory(const Config& config) {
  const std::string& root = config.cache_path.front();
  const std::vector<uid_t> owners(config.cache_trusted_users.begin(), config.cache_trusted_users.end());
  return is_trusted_cache(root, owners) ? root + "/v1" : host_local_path();
}

}  // namespace

// The results are valid on this host only: the directory is next to the cache, or a local one if hosts share the cache.
std::string library_check_directory(const Config& config, const std::string& cache_root) {
  if (config.disable || cache_root.empty()) return {};
  return claims_directory(cache_root) + "/checks";
}

// Next to the cache, or local to this host if hosts share the cache: only one host at a time installs into a directory.
std::string bundled_headers_directory(const Config& config, const std::string& cache_root) {
  if (config.disable || cache_root.empty()) return {};
  return claims_directory(cache_root) + "/headers";
}

DiskStore::Options disk_store_options(const Config& config, std::string root, bool read_only) {
  DiskStore::Options options;
  options.root = std::move(root);
  options.max_bytes = config.cache_max_bytes;
  options.read_only = read_only;
  options.trusted_owners.assign(config.cache_trusted_users.begin(), config.cache_trusted_users.end());
  return options;
}

Components::Components(Config config, EventEmitter emitter, const TrustOptions& trust, ResultLoader* loader)
    : config_(std::move(config)), emitter_(std::move(emitter)),
      scope_(NamespaceScope().narrowed(config_.trust_namespaces)) {
  const bool remembers = !config_.disable && !config_.cache_path.empty();
  const std::string memory = remembers ? memory_directory(config_) : std::string();
  digests_ = std::make_unique<FileDigestCache>(remembers ? memory + "/digests" : std::string(),
                                               FileDigestCache::Options{config_.digest_always});
  params_.units = this;
  params_.loader = loader;
  params_.digests = digests_.get();
  params_.emitter = emitter_;
  params_.compile_allowed = config_.may_compile;
  if (!config_.disable) {
    policy_ = make_trust_policy(trust, config_, emitter_);
    emit_bad_namespaces();
    BundleSet::Options options{scope_, nullptr};
    if (remembers && config_.trust_remember_epochs) {
      options.epochs = std::make_shared<EpochMemory>(memory + "/epochs", emitter_);
    }
    bundles_ = std::make_shared<BundleSet>(config_.bundles, policy_, emitter_, std::move(options));
    params_.bundles = bundles_.get();
    params_.bundles_exact = config_.bundles_exact;
    if (!config_.remote_url.empty()) fleet_ = std::make_unique<FleetServices>(config_, policy_, scope_, emitter_);
    open_stores();
  }
  if (!config_.record.empty()) recorder_ = std::make_unique<ProfileRecorder>(config_.record, emitter_);
  params_.slots = &slots_;
  resolver_ = std::make_unique<Resolver>(params_);
  headers_ = std::make_unique<PchManager>(
      [this] { return pch_cache_options(config_, disks_.empty() ? std::string() : disks_.front()->root()); }, *digests_,
      emitter_, config_.worker_memory);
  checks_ = std::make_unique<LibraryCheck>(
      [this] { return library_check_directory(config_, disks_.empty() ? std::string() : disks_.front()->root()); },
      emitter_);
  bundled_ = std::make_unique<BundledHeaders>(
      [this] { return bundled_headers_directory(config_, disks_.empty() ? std::string() : disks_.front()->root()); },
      emitter_);
  if (config_.jobs == 0U) return;
  WorkerPool::Options workers;
  workers.program = config_.worker_path;
  workers.max_workers = config_.jobs;
  workers.memory_limit = config_.worker_memory;
  workers_ = std::make_unique<WorkerPool>(std::move(workers));
}

Components::~Components() = default;

std::shared_ptr<DiskStore> Components::open_disk(const std::string& root, bool read_only) {
  auto store = DiskStore::open(disk_store_options(config_, root, read_only), emitter_);
  if (store) return std::move(*store);
  emitter_.emit(Event::Kind::CacheUnavailable, "disk", store.error().message);
  return nullptr;
}

void Components::emit_bad_namespaces() const {
  for (const std::string& each : config_.trust_namespaces) {
    if (is_name_space_pattern(each)) continue;
    emitter_.emit(Event::Kind::ConfigWarning, "trust.namespaces",
                  "trust.namespaces: '" + each +
                      "' is not a valid namespace and matches nothing; use one such as acme/vision, or acme/* for all "
                      "below acme");
  }
}

Components::Tiers Components::open_tiers(const NamespaceScope& scope, std::shared_ptr<Store> bundles,
                                         std::shared_ptr<Store> remote) {
  std::vector<TieredStore::Tier> tiers;
  // Same distance as a disk, so that bundle entries are not copied into the cache.
  if (bundles != nullptr) tiers.push_back({std::move(bundles), TieredStore::Distance::Disk});
  // Fetched entries are kept out of this user's cache: docs/internals/decisions/0011.md. Any unit can therefore use
  // that cache.
  for (const auto& disk : disks_) tiers.push_back({disk, TieredStore::Distance::Disk, true, false});
  Tiers made;
  if (remote != nullptr) {
    if (!config_.cache_path.empty()) {
      made.fetched = open_disk(fetched_root(config_.cache_path.front(), policy_, scope), false);
    }
    if (made.fetched != nullptr) tiers.push_back({made.fetched, TieredStore::Distance::Disk, false, true});
    tiers.push_back({std::move(remote), TieredStore::Distance::Remote});
  }
  if (!tiers.empty()) made.store = std::make_unique<TieredStore>(std::move(tiers), emitter_);
  return made;
}

Store* Components::store_for(const Unit& unit) {
  if (unit.served_by().empty() || bundles_ == nullptr) return params_.store;
  const MutexLock lock(views_mutex_);
  auto view = views_.find(unit.served_by());
  if (view == views_.end()) {
    const NamespaceScope scope = scope_.narrowed(unit.served_by());
    std::shared_ptr<Store> bundles;
    if (bundles_->has_any()) bundles = std::make_shared<ScopedBundles>(bundles_, scope);
    Tiers tiers = open_tiers(scope, std::move(bundles), fleet_ != nullptr ? fleet_->store_within(scope) : nullptr);
    view = views_.emplace(unit.served_by(), std::move(tiers)).first;
  }
  return view->second.store.get();
}

void Components::open_stores() {
  for (std::size_t i = 0; i < config_.cache_path.size(); ++i) {
    if (auto disk = open_disk(config_.cache_path[i], i > 0)) disks_.push_back(std::move(disk));
  }
  std::shared_ptr<Store> bundles;
  if (bundles_->has_any()) bundles = bundles_;
  tiers_ = open_tiers(scope_, std::move(bundles), fleet_ != nullptr ? fleet_->store() : nullptr);
  if (tiers_.store == nullptr) return;
  params_.has_remote_tier = fleet_ != nullptr && fleet_->store() != nullptr;
  params_.store = tiers_.store.get();
  if (fleet_ != nullptr) {
    params_.fleet = fleet_->claims();
    const FleetPolicy policy = make_fleet_policy(config_);
    params_.server_time_budget = policy.budget;
    params_.background_server_time_budget = policy.background_budget;
    if (params_.fleet != nullptr) params_.fleet_place = FleetPlace::of_host(host_identity());
    params_.lease_ttl = config_.lease_ttl;
  }
  if (disks_.empty()) return;
  claims_ = std::unique_ptr<Claims>(new LocalClaims(LocalClaims::for_cache(disks_.front()->root())));
  params_.claims = claims_.get();
  params_.history = &disks_.front()->history();
  params_.activity = &disks_.front()->activity();
}

std::unique_ptr<Compiler> Components::wrap_in_workers(std::unique_ptr<Compiler> inner, bool closed_in_process) {
  WorkerCompiler::Options options;
  options.pool = workers_.get();
  options.headers = headers_.get();
  options.checks = checks_.get();
  options.bundled = bundled_.get();
  options.timeout = config_.worker_time_limit;
  options.sandbox = {config_.worker_sandbox, config_.worker_readable};
  options.closed_in_process = closed_in_process;
  return std::make_unique<WorkerCompiler>(std::move(inner), *digests_, options, emitter_);
}

std::unique_ptr<Compiler> Components::make_by(const BackendFactory& backend, const std::string& device) {
  auto compiler = backend.make_compiler(device);
  if (!backend.compiles_in_worker()) return compiler;
  for (const std::string& name : config_.opencl_in_process) {
    const bool is_start = name.ends_with('*') && device.starts_with(name.substr(0, name.size() - 1));
    if (backend.kind() == "opencl" && (is_start || device == name)) return compiler;
  }
  return wrap_in_workers(std::move(compiler), config_.closed_in_process);
}

// The parts of a link are units of their own, which are looked up and cached like others.
std::unique_ptr<Compiler> Components::make_linker() {
  Compiler* const cuda = compiler_of("cuda", {});
  const auto get = [this, cuda](const Recipe& part, const RequestContext& context) -> Result<CompileResult> {
    auto answer = resolver_->get(part, *cuda, context);
    if (!answer) return std::move(answer).error();
    return CompileResult{std::move(answer->artifact), std::move(answer->uncacheable_reason)};
  };
  // Never in this process: corrupt code crashes the linker, and parts can come from any source.
  auto linker = wrap_in_workers(std::make_unique<NvJitLinkCompiler>("", config_.nvrtc, *digests_), false);
  return std::make_unique<LinkCompiler>(std::move(linker), *cuda, get, *digests_);
}

Compiler* Components::compiler_of(const std::string& kind, const std::string& which) {
  std::unique_ptr<Compiler>& compiler = compilers_[{kind, which}];
  if (compiler != nullptr) return compiler.get();
  if (const BackendFactory* const backend = find_backend(kind)) compiler = make_by(*backend, which);
  if (kind == "cuda") {
    compiler = wrap_in_workers(std::make_unique<NvrtcCompiler>(config_.nvrtc, *digests_), config_.closed_in_process);
  }
  if (kind == "cccl") {
    compiler =
        wrap_in_workers(std::make_unique<CcclCompiler>(config_.cccl, config_.nvrtc, *digests_, bundled_.get()), false);
  }
  if (kind == "link") compiler = make_linker();
  if (kind == "command" && !which.empty()) {
    compiler =
        std::make_unique<CommandCompiler>(which, *digests_, CommandCompiler::Options{config_.worker_time_limit, {}});
  }
  return compiler.get();
}

Result<Compiler*> Components::compiler(const Unit& unit, const Target& target) {
  if (target.form == Form::External) {
    return make_error(Code::Unsupported, "kiln stores the code of '" + target.name() + "' but cannot compile it");
  }
  const MutexLock lock(mutex_);
  // NVRTC compiles for every architecture. An OpenCL compiler belongs to its device, a command compiler to its program.
  // The latter needs no worker, because each of its compiles is a process of its own.
  std::string which;
  if (target.form == Form::OpenClBinary) which = target.architecture;
  if (unit.kind() == "command" && !unit.options().empty()) which = unit.options().front();
  Compiler* const compiler = compiler_of(unit.kind(), which);
  if (compiler == nullptr) {
    return make_error(Code::Unsupported, "no compiler takes units of kind '" + unit.kind() + "'");
  }
  return compiler;
}

bool Components::drain(std::chrono::nanoseconds timeout) { return fleet_ == nullptr || fleet_->drain(timeout); }

void Components::finish() {
  if (params_.activity != nullptr) params_.activity->flush();
  if (fleet_ != nullptr) fleet_->finish();
}

void Components::interrupt() {
  if (workers_ != nullptr) workers_->interrupt();
  const MutexLock lock(mutex_);
  for (const auto& [kind, compiler] : compilers_) {
    if (compiler != nullptr) compiler->interrupt();
  }
}

Result<Recipe> Components::recipe(const Unit& unit, const Target& target, const RequestContext& context) {
  const auto compiler = this->compiler(unit, target);
  if (!compiler) return compiler.error();
  auto identity = (*compiler)->identity(context);
  if (!identity) return std::move(identity).error();
  return recipe_with(**compiler, unit, target, std::move(*identity));
}

std::optional<Recipe> Components::undigested_recipe(const Unit& unit, const Target& target) {
  const auto compiler = this->compiler(unit, target);
  auto identity = compiler ? (*compiler)->undigested_identity() : std::nullopt;
  if (!identity) return std::nullopt;
  return recipe_with(**compiler, unit, target, std::move(*identity));
}

}  // namespace kiln
