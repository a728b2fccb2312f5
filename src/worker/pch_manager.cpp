// SPDX-License-Identifier: Apache-2.0
#include "worker/pch_manager.hpp"

#include <algorithm>
#include <cctype>

#include "backends/cccl/cccl_compiler.hpp"
#include "backends/cccl/cccl_headers.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "backends/dependency_builder.hpp"
#include "backends/source_scan.hpp"
#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

namespace kiln {
namespace {

// Maximum number of failed attempts. A failed attempt costs a fifth of a compile and 100 MB of writes. The first
// failure can be due to a file that was edited during the compile.
constexpr unsigned kMaxFailedAttempts = 2;

constexpr std::size_t kMinQueuedSimilar = 2;

// Minimum age of a running creation to wait for. The remaining time is then shorter than parsing the headers again; for
// a creation that has just started it is not. (CUB: creation 1.65 s, full compile 1.35 s, compile with precompiled
// headers 0.3 s.)
constexpr std::chrono::milliseconds kWorthWaiting{500};
constexpr std::chrono::seconds kMaxWait{10};
constexpr std::chrono::milliseconds kPollInterval{20};

// Returns the name of the program for which the headers are precompiled.
std::string program_of(const Recipe& recipe) {
  return recipe.unit.kind() == "cccl" ? kCcclHeadersProgram : recipe.unit.name();
}

// Returns true if a log names this file as the compiler does: `name(line)` at the start of a line, `"name"`, and
// `line 3 of name`. Warnings about the leading directives of a program name it, and units with other names would get
// them.
bool has_name(std::string_view log, std::string_view name) {
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (std::size_t at = log.find(name); at != std::string_view::npos; at = log.find(name, at + 1)) {
    const std::string_view before = log.substr(0, at);
    const std::string_view after = log.substr(at + name.size());
    if ((before.empty() || before.ends_with('\n')) && after.starts_with('(')) return true;
    if (before.ends_with('"') && after.starts_with('"')) return true;
    if (before.ends_with(" of ") && (after.empty() || !is_word(after.front()))) return true;
  }
  return false;
}

bool names_unit(const Recipe& recipe, std::string_view log) {
  if (log.empty() || recipe.unit.kind() == "cccl") return false;
  const std::string program = program_of(recipe);
  const std::string name = file_name(program);
  return name.empty() || has_name(log, name) || has_name(log, program);
}

// Returns the reason why the log of the headers cannot be part of the logs of other units; empty if it can.
std::string log_not_shareable_reason(const Recipe& recipe, std::string_view log) {
  if (log.empty()) return {};
  // The CCCL library includes the headers in another order and other headers, too.
  if (recipe.unit.kind() == "cccl") return "the compiler reports warnings for them";
  if (log.size() > Pch::kMaxLogBytes) return "the compiler reports too many warnings for them";
  return {};
}

bool names_program(const Recipe& recipe, std::string_view leading, const std::vector<FileAccess>& observations) {
  std::vector<std::string_view> texts = options_of(recipe);
  for (const Header& header : recipe.unit.headers()) texts.push_back(header.content);
  texts.push_back(leading);
  MacroPieces pieces;
  for (const std::string_view text : texts) pieces.add(text);
  for (const FileAccess& observation : observations) {
    pieces.add(observation.content.facts);
  }
  return pieces.names_file() || std::any_of(texts.begin(), texts.end(), may_expand_base_file) ||
         std::any_of(observations.begin(), observations.end(), [&](const FileAccess& observation) {
           return observation.state == FileAccess::State::Read && observation.content.facts.names_program;
         });
}

// Returns the reason why another unit must not use the precompiled header of this unit; empty if it can.
std::string not_shareable_reason(const Recipe& recipe, const WorkerReply& reply) {
  // A CCCL algorithm is not a program; its headers come before all other text.
  const std::string source = recipe.unit.kind() == "cccl" ? std::string() : recipe.unit.full_source();
  const std::string_view leading = leading_directives(source);
  if (std::string reason = log_not_shareable_reason(recipe, reply.pch.log); !reason.empty()) return reason;
  if (names_program(recipe, leading, reply.pch.observations)) return "they use __BASE_FILE__";
  return {};
}

// Returns the key under which it is stored that the log of these precompiled headers was checked.
Digest log_check_key(const Digest& headers, std::uint64_t checksum) {
  BinaryWriter out;
  out.text("kiln pch log").digest(headers).u64(checksum);
  return sha256(out.bytes());
}

}  // namespace

PchManager::PchManager(FindPchCache pch_cache, FileDigestCache& digests, EventEmitter emitter,
                       std::uint64_t worker_memory)
    : find_pch_cache_(std::move(pch_cache)), digests_(digests), emitter_(std::move(emitter)),
      worker_memory_(worker_memory) {}

bool PchManager::HeaderStats::has_failed() {
  if (system_clock().wall() > failed_until) failed_attempts = 0;
  return failed_attempts >= kMaxFailedAttempts;
}

bool PchManager::HeaderStats::add_failures(unsigned count, const PchVerdict& verdict) {
  (void)has_failed();  // forgets old ones
  failed_attempts += count;
  failed_until = expiry_of(verdict);
  return has_failed();
}

// Returns the key of a precompiled header. Unlike an `ArtifactKey` it contains paths: the file contains the paths of
// its headers and does not leave the host.
Digest PchManager::digest_of(const Recipe& recipe, const std::vector<std::string>& start) {
  const Unit& unit = recipe.unit;
  BinaryWriter out;
  out.text("kiln pch 4").text(recipe.working_directory).text(unit.kind());
  const auto list = [&](const std::vector<std::string>& texts) {
    out.u32(static_cast<std::uint32_t>(texts.size()));
    for (const std::string& text : texts) out.text(text);
  };
  list(start);
  out.text(recipe.target.architecture).u8(static_cast<std::uint8_t>(recipe.target.form));
  out.digest(recipe.compiler.digest).u32(static_cast<std::uint32_t>(recipe.compiler.environment.size()));
  for (const auto& [name, value] : recipe.compiler.environment) out.text(name).text(value);
  list(unit.options());
  const std::vector<IncludeRoot> roots = recipe.path_roots().roots;
  out.u32(static_cast<std::uint32_t>(roots.size()));
  for (const IncludeRoot& root : roots) out.text(root.path).text(root.sentinel);
  for (const Header& header : unit.headers()) out.text(header.name).text(header.content);
  return sha256(out.bytes());
}

std::optional<Digest> PchManager::headers_of(const Recipe& recipe) {
  std::call_once(found_, [this] {
    // Out of memory disables precompiled headers, which only costs time. An exception must not leave call_once: see
    // base/once.hpp.
    ignore_failures([this] {
      if (auto options = find_pch_cache_()) pch_cache_ = make_pch_cache(std::move(*options));
    });
  });
  if (pch_cache_ == nullptr) return std::nullopt;
  const Unit& unit = recipe.unit;
  if (has_debug_options(recipe)) return std::nullopt;
  if (unit.kind() == "cccl") {
    const auto spec = cccl::Spec::parse(unit.source());
    if (!spec) return std::nullopt;
    CcclHeaders headers = cccl_headers(spec->algorithm, recipe.target);
    if (headers.includes.empty()) return std::nullopt;
    std::vector<std::string> start = std::move(headers.options);
    start.insert(start.end(), headers.includes.begin(), headers.includes.end());
    return digest_of(recipe, start);
  }
  if (unit.kind() != "cuda") return std::nullopt;
  const std::string source = unit.full_source();
  const std::string_view start = leading_directives(source);
  if (start.empty()) return std::nullopt;
  // A quoted header is searched next to the program first.
  return digest_of(recipe, {std::string(start), parent_path(unit.name())});
}

PchManager::PendingUse::PendingUse(PchManager& owner, const Digest& headers) : owner_(owner), headers_(headers) {
  const MutexLock lock(owner_.mutex_);
  ++owner_.stats_[headers_].interested;
}

PchManager::PendingUse::~PendingUse() {
  const MutexLock lock(owner_.mutex_);
  HeaderStats& sight = owner_.stats_[headers_];
  --sight.interested;
  sight.seen = true;
}

PchManager::InProgress::InProgress(PchManager& owner, const Digest& headers) : owner_(owner), headers_(headers) {
  const MutexLock lock(owner_.mutex_);
  owner_.stats_[headers_].making = system_clock().steady();
}

PchManager::InProgress::~InProgress() {
  const MutexLock lock(owner_.mutex_);
  owner_.stats_[headers_].making.reset();
  owner_.made_.notify_all();
}

// Waits for another thread that creates the header. Returns true if there was one and it finished.
bool PchManager::wait_for_writer(const Digest& headers, const RequestContext& context) {
  const Deadline deadline(system_clock(), kMaxWait);
  const MutexLock lock(mutex_);
  const HeaderStats& sight = stats_[headers];
  if (!sight.making || system_clock().steady() - *sight.making < kWorthWaiting) return false;
  while (sight.making && deadline.remaining().count() > 0 && !context.stop.stop_requested())
    made_.wait_for(mutex_, kPollInterval);
  return !sight.making;
}

void PchManager::emit(Event::Kind kind, const Recipe& recipe, std::string message,
                      const RequestContext& context) const {
  if (!emitter_) return;
  Event event = make_event(kind, recipe.unit, recipe.target, context.task_id);
  event.origin = "headers";
  event.message = std::move(message);
  emitter_.emit(event);
}

// Creating one costs a fifth of a compile and saves four fifths of the next one: it pays off at the second unit.
// Headers of CCCL algorithms are created separately and serve half of all algorithms: they pay off at three units.
bool PchManager::should_create(const Recipe& recipe, const Digest& headers, const RequestContext& context) {
  bool pays_off = false;
  {
    const MutexLock lock(mutex_);
    if (unavailable_) return false;
    HeaderStats& sight = stats_[headers];
    if (sight.has_failed()) return false;
    pays_off = sight.interested > 1 || sight.seen;
    if (recipe.unit.kind() == "cccl" && context.queued_similar >= kMinQueuedSimilar) pays_off = true;
  }
  return (pays_off || pch_cache_->requested_before(headers)) && !has_failed_before(recipe, headers, context);
}

// An earlier attempt on this host counts for as long as its result is stored.
bool PchManager::has_failed_before(const Recipe& recipe, const Digest& headers, const RequestContext& context) {
  const auto verdict = pch_cache_->verdict(failure_key(headers));
  if (!verdict) return false;
  {
    const MutexLock lock(mutex_);
    HeaderStats& sight = stats_[headers];
    if (sight.has_failed()) return true;
    (void)sight.add_failures(kMaxFailedAttempts, *verdict);
  }
  const char* const again = verdict->kind == PchVerdict::Kind::Rejected ? "a day" : "30 days";
  emit(Event::Kind::PchUnavailable, recipe,
       "not created: an attempt on this host failed (" + verdict->reason + "); kiln tries again " + again + " after it",
       context);
  return true;
}

std::optional<PchManager::PchPlan> PchManager::use(const Recipe& recipe, const Digest& headers,
                                                   const RequestContext& context) {
  std::string corruption;
  auto pch = pch_cache_->find(headers, &corruption);
  if (!corruption.empty()) emit(Event::Kind::PchDropped, recipe, corruption, context);
  if (!pch) return std::nullopt;
  // Keeps the digests of the files that the header was created from: the compile depends on these, regardless of the
  // disk content when it ends. The stamps are current ones, to match the compiler's own accesses to the same files.
  for (FileAccess& observation : pch->observations) {
    if (observation.state == FileAccess::State::Missing) continue;
    const auto stamp = stamp_of(locate(recipe.working_directory, observation.path).c_str());
    observation.stamp = stamp.value_or(FileStamp{});
  }
  if (const auto changed = check(pch->dependency_set, recipe.path_roots(), digests_, context.requested_at)) {
    drop(recipe, headers, changed->description, context);
    return std::nullopt;
  }
  PchPlan plan;
  plan.headers = headers;
  plan.order = {PchRequest::Mode::Use, std::move(pch->path), pch->size, pch->checksum, std::move(pch->log)};
  plan.order.file = std::move(pch->file);
  if (!plan.order.log.empty())
    plan.order.log_checked = pch_cache_->verdict(log_check_key(headers, plan.order.checksum)).has_value();
  plan.observations = std::move(pch->observations);
  return plan;
}

PchManager::Check::Check(PchManager& owner, const Digest& compiler, CompilerIdentity nvrtc,
                         std::unique_ptr<PchCache::Writer> making)
    : owner_(owner), compiler_(compiler), nvrtc_(std::move(nvrtc)), making_(std::move(making)) {}

PchManager::Check::~Check() {
  const MutexLock lock(owner_.mutex_);
  Standing& standing = owner_.libraries_[compiler_];
  if (standing == Standing::Checking) standing = Standing::Unchecked;  // the check had no result
}

// Returns the NVRTC that parses the headers of a recipe.
std::optional<CompilerIdentity> PchManager::nvrtc_of(const Recipe& recipe) {
  if (recipe.unit.kind() != "cccl") return recipe.compiler;
  const auto path = CcclCompiler::nvrtc_of(recipe.compiler);
  if (!path) return std::nullopt;
  auto identity = NvrtcCompiler(*path, digests_).identity({});
  if (!identity) return std::nullopt;
  return std::move(*identity);
}

PchManager::Standing PchManager::standing_of(const Recipe& recipe, const RequestContext& context) {
  {
    const MutexLock lock(mutex_);
    if (const Standing known = libraries_[recipe.compiler.digest]; known != Standing::Unknown) return known;
  }
  const auto nvrtc = nvrtc_of(recipe);
  const auto verdict = nvrtc ? pch_cache_->verdict(pch_verdict_key(*nvrtc)) : std::nullopt;
  if (verdict) return evaluate(recipe, *nvrtc, *verdict, context);
  const MutexLock lock(mutex_);
  Standing& standing = libraries_[recipe.compiler.digest];
  if (standing == Standing::Unknown) standing = Standing::Unchecked;
  return standing;
}

PchManager::Standing PchManager::evaluate(const Recipe& recipe, const CompilerIdentity& nvrtc,
                                          const PchVerdict& verdict, const RequestContext& context) {
  const Standing standing = verdict.kind == PchVerdict::Kind::Good ? Standing::Good : Standing::Off;
  {
    const MutexLock lock(mutex_);
    if (std::exchange(libraries_[recipe.compiler.digest], standing) == standing) return standing;
  }
  if (standing == Standing::Off) {
    const char* const what =
        verdict.kind == PchVerdict::Kind::Differs ? "they change its output" : "they cannot be checked with it";
    emit(Event::Kind::PchUnavailable, recipe,
         "precompiled headers are off for NVRTC " + nvrtc.version + " (" + nvrtc.path + "): " + what + " (" +
             verdict.reason + "), so every unit is compiled in full; use another NVRTC (KILN_NVRTC) to enable them",
         context);
  }
  return standing;
}

std::unique_ptr<PchManager::Check> PchManager::begin_check(const Recipe& recipe, const RequestContext& context) {
  auto nvrtc = nvrtc_of(recipe);
  if (!nvrtc) return nullptr;
  const Digest key = pch_verdict_key(*nvrtc);
  // Another process may be checking, or may have finished since the lookup.
  auto making = pch_cache_->try_begin_write(key);
  if (making == nullptr) return nullptr;
  if (const auto verdict = pch_cache_->verdict(key)) {
    (void)evaluate(recipe, *nvrtc, *verdict, context);
    return nullptr;
  }
  {
    const MutexLock lock(mutex_);
    Standing& standing = libraries_[recipe.compiler.digest];
    if (standing != Standing::Unchecked) return nullptr;
    standing = Standing::Checking;
  }
  return std::make_unique<Check>(*this, recipe.compiler.digest, std::move(*nvrtc), std::move(making));
}

bool PchManager::passes_check(const PchPlan& plan, const Recipe& recipe, const AskWorker& ask,
                              const RequestContext& context) {
  const Check& check = *plan.check;
  const auto verdict = check_pch(recipe, check.nvrtc_, check.making_->order(), ask);
  if (!verdict) return false;
  // If the result cannot be stored, the next process repeats the check.
  if (verdict->kind != PchVerdict::Kind::Unusable) (void)check.making_->publish(*verdict);
  return evaluate(recipe, check.nvrtc_, *verdict, context) == Standing::Good;
}

// A check takes a fraction of the time that an algorithm saves with precompiled headers. Other units are compiled in
// full meanwhile.
PchManager::Standing PchManager::wait_for_check(const Recipe& recipe, const RequestContext& context) {
  const Deadline deadline(system_clock(), kMaxWait);
  const MutexLock lock(mutex_);
  const Standing& standing = libraries_[recipe.compiler.digest];
  while (recipe.unit.kind() == "cccl" && standing == Standing::Checking && deadline.remaining().count() > 0 &&
         !context.stop.stop_requested()) {
    made_.wait_for(mutex_, kPollInterval);
  }
  return standing;
}

bool PchManager::is_being_created(const Digest& headers) {
  const MutexLock lock(mutex_);
  return stats_[headers].making.has_value();
}

PchManager::PchPlan PchManager::plan(const Recipe& recipe, const Digest& headers, const RequestContext& context) {
  PchPlan none;
  none.headers = headers;
  Standing standing = standing_of(recipe, context);
  if (standing == Standing::Checking && !is_being_created(headers)) standing = wait_for_check(recipe, context);
  if (standing != Standing::Good && standing != Standing::Unchecked) return none;
  PchPlan plan = choose(recipe, headers, context);
  if (plan.order.mode == PchRequest::Mode::None || standing == Standing::Good) return plan;
  plan.check = begin_check(recipe, context);
  if (plan.check == nullptr && wait_for_check(recipe, context) != Standing::Good) return none;
  return plan;
}

PchManager::PchPlan PchManager::choose(const Recipe& recipe, const Digest& headers, const RequestContext& context) {
  PchPlan plan;
  plan.headers = headers;
  {
    const MutexLock lock(mutex_);
    if (unavailable_) return plan;
  }
  if (auto ready = use(recipe, headers, context)) return std::move(*ready);
  if (!should_create(recipe, headers, context)) return plan;
  plan.making = pch_cache_->try_begin_write(headers);
  if (plan.making == nullptr) {
    auto ready = wait_for_writer(headers, context) ? use(recipe, headers, context) : std::nullopt;
    return ready ? std::move(*ready) : std::move(plan);
  }
  // Another thread or process may have created it since the lookup.
  if (auto ready = use(recipe, headers, context)) return std::move(*ready);
  if (!plan.making->reserve()) {
    plan.making.reset();
    return plan;
  }
  plan.underway = std::make_unique<InProgress>(*this, headers);
  plan.order = plan.making->order();
  return plan;
}

void PchManager::drop(const Recipe& recipe, const Digest& headers, const std::string& reason,
                      const RequestContext& context) {
  // Threads that look at the same time find the same reason; one of them reports it.
  if (pch_cache_->remove(headers)) emit(Event::Kind::PchDropped, recipe, reason, context);
}

Digest PchManager::failure_key(const Digest& headers) const {
  return pch_failure_key(headers, pch_cache_->options().max_bytes, worker_memory_);
}

void PchManager::mark_failed(const Digest& headers, const Recipe& recipe, const std::string& reason, Retry retry,
                             const RequestContext& context) {
  const auto kind = retry == Retry::NextMonth ? PchVerdict::Kind::Differs : PchVerdict::Kind::Rejected;
  const PchVerdict verdict{kind, reason, system_clock().wall()};
  {
    const MutexLock lock(mutex_);
    (void)stats_[headers].add_failures(retry == Retry::Soon ? 1 : kMaxFailedAttempts, verdict);
  }
  emit(Event::Kind::PchUnavailable, recipe, "not stored: " + reason, context);
  // If it cannot be stored, other processes try it too.
  if (retry != Retry::Soon) (void)pch_cache_->publish_verdict(failure_key(headers), verdict);
}

void PchManager::count_failure(const Digest& headers, const Recipe& recipe, const std::string& reason,
                               const RequestContext& context) {
  {
    const MutexLock lock(mutex_);
    HeaderStats& sight = stats_[headers];
    if (sight.has_failed()) return;
    if (!sight.add_failures(1, {PchVerdict::Kind::Rejected, reason, system_clock().wall()})) return;
  }
  mark_failed(headers, recipe, reason, Retry::NextDay, context);
}

void PchManager::remember_log_check(const Digest& headers, std::uint64_t checksum) {
  // If it cannot be stored, the check is repeated.
  (void)pch_cache_->publish_verdict(log_check_key(headers, checksum),
                                    {PchVerdict::Kind::Good, {}, system_clock().wall()});
}

void PchManager::keep(PchPlan& plan, const Recipe& recipe, const WorkerReply& reply, const RequestContext& context) {
  const PchResult& report = reply.pch;
  DependencyResult built = build_dependency_set(recipe, report.observations, false, {}, digests_);
  if (!built.uncacheable_reason.empty()) {
    const Retry retry = built.permanent ? Retry::NextMonth : Retry::Soon;
    return mark_failed(plan.headers, recipe, built.uncacheable_reason, retry, context);
  }
  // The name is not in the key: units with other names may not have this problem.
  if (names_unit(recipe, report.log))
    return mark_failed(plan.headers, recipe, "the compiler's warnings for them name the unit", Retry::Soon, context);
  if (const std::string reason = not_shareable_reason(recipe, reply); !reason.empty())
    return mark_failed(plan.headers, recipe, reason, Retry::NextMonth, context);
  Pch pch{{}, report.size, report.checksum, std::move(built.dependency_set), report.observations, report.log};
  // The compiler also looks up a file of the program's own name, which is specific to this program.
  const std::string program = normalize_path(program_of(recipe));
  std::erase_if(pch.observations, [&](const FileAccess& observation) {
    return observation.state != FileAccess::State::Read && normalize_path(observation.path) == program;
  });
  const Status published = plan.making->publish(pch);
  if (!published) return mark_failed(plan.headers, recipe, published.error().message, Retry::NextDay, context);
  if (report.log_checked) remember_log_check(plan.headers, report.checksum);
  emit(Event::Kind::PchCreated, recipe, std::to_string(report.size >> 20) + " MB of precompiled headers", context);
}

std::vector<FileAccess> PchManager::finish(PchPlan& plan, const Recipe& recipe, const WorkerReply& reply,
                                           const RequestContext& context) {
  switch (reply.pch.outcome) {
    case PchResult::Outcome::Used:
      emit(Event::Kind::PchUsed, recipe, std::to_string(plan.order.size >> 20) + " MB of precompiled headers", context);
      if (reply.pch.log_checked && !plan.order.log_checked) remember_log_check(plan.headers, plan.order.checksum);
      return merge_accesses(std::move(plan.observations), reply.observations);
    case PchResult::Outcome::Created:
      if (plan.making == nullptr) break;  // the plan did not request it
      keep(plan, recipe, reply, context);
      plan.making.reset();
      plan.underway.reset();  // waiting threads can use the header now
      break;
    case PchResult::Outcome::Rejected:
      if (plan.order.mode == PchRequest::Mode::None) break;
      if (plan.order.mode == PchRequest::Mode::Use)
        drop(recipe, plan.headers, "rejected: " + reply.pch.reason, context);
      if (plan.order.mode == PchRequest::Mode::Create || reply.pch.permanent) {
        mark_failed(plan.headers, recipe, reply.pch.reason, reply.pch.permanent ? Retry::NextMonth : Retry::NextDay,
                    context);
      } else {
        count_failure(plan.headers, recipe, "it was rejected when it was used: " + reply.pch.reason, context);
      }
      break;
    case PchResult::Outcome::Unavailable: {
      {
        const MutexLock lock(mutex_);
        if (std::exchange(unavailable_, true)) break;
      }
      emit(Event::Kind::PchUnavailable, recipe, reply.pch.reason, context);
      break;
    }
    case PchResult::Outcome::None: break;
  }
  return reply.observations;
}

void PchManager::invalidate(const PchPlan& plan, const Recipe& recipe, const RequestContext& context) {
  if (plan.order.mode == PchRequest::Mode::None) return;
  const bool is_use = plan.order.mode == PchRequest::Mode::Use;
  const std::string reason = is_use ? "a worker that used it crashed" : "a worker that created it crashed";
  if (is_use) drop(recipe, plan.headers, reason, context);
  count_failure(plan.headers, recipe, reason, context);  // the unit may be the cause
}

}  // namespace kiln
