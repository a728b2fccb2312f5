// SPDX-License-Identifier: Apache-2.0
#include "worker/library_check.hpp"

#include <kiln/version.hpp>

#include "base/catch_to_error.hpp"
#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

constexpr std::chrono::milliseconds kCheckPollInterval{100};

std::string described(const CompilerIdentity& compiler, const Unit& check) {
  return compiler.path + ", whose release this version of kiln does not know: the check of " + check.name();
}

Status status_of(const PchVerdict& verdict, const CompilerIdentity& compiler, const Unit& check) {
  if (verdict.kind == PchVerdict::Kind::Good) return {};
  return make_error(Code::Unavailable, described(compiler, check) + " failed: " + verdict.reason +
                                           "; install a release that kiln knows (kiln doctor)");
}

}  // namespace

Digest library_check_key(const CompilerIdentity& compiler, const Unit& check) {
  BinaryWriter out;
  out.text("kiln library check").text(version()).digest(compiler.digest).text(check.name()).text(check.source());
  for (const IncludeRoot& root : compiler.roots) out.text(root.path);
  return sha256(out.bytes());
}

Digest access_check_key(const CompilerIdentity& compiler) {
  BinaryWriter out;
  out.text("kiln access check").text(version()).digest(compiler.digest).text(compiler.path);
  return sha256(out.bytes());
}

PchCache* LibraryCheck::cache() {
  // An exception must not leave call_once: see base/once.hpp.
  std::call_once(found_, [this] {
    ignore_failures([this] {
      if (std::string directory = find_directory_(); !directory.empty())
        cache_ = std::make_unique<PchCache>(PchCache::Options{std::move(directory), 0, {}});
    });
  });
  return cache_.get();
}

LibraryCheck::Unfinished::~Unfinished() {
  const MutexLock lock(owner_.mutex_);
  if (const auto found = owner_.results_.find(key_); found != owner_.results_.end() && !found->second)
    owner_.results_.erase(found);
  owner_.finished_.notify_all();
}

// Waits for a check of another thread. Returns nothing if this thread must run it.
std::optional<PchVerdict> LibraryCheck::known(const Digest& key, const RequestContext& context) {
  for (;;) {
    const auto [found, is_new] = results_.try_emplace(key);
    if (is_new) return std::nullopt;
    if (found->second) return found->second;
    if (context.stop.stop_requested()) return PchVerdict{PchVerdict::Kind::Unusable, {}, {}};
    (void)finished_.wait_for(mutex_, kCheckPollInterval);
  }
}

Status LibraryCheck::pass(const Recipe& recipe, const Unit& check, const Run& run, const RequestContext& context) {
  const Digest key = library_check_key(recipe.compiler, check);
  {
    const MutexLock lock(mutex_);
    if (const auto result = known(key, context)) {
      if (result->kind == PchVerdict::Kind::Unusable) return make_error(Code::Cancelled, "it was canceled");
      return status_of(*result, recipe.compiler, check);
    }
  }
  const Unfinished unfinished(*this, key);
  const auto start = system_clock().steady();
  std::optional<PchVerdict> verdict = cache() != nullptr ? cache()->verdict(key) : std::nullopt;
  Status outcome;
  if (!verdict) {
    if (emitter_) {
      emitter_.emit(Event::Kind::LibraryChecked, "checking",
                    described(recipe.compiler, check) + " runs before its first compile");
    }
    const auto writer = cache() != nullptr ? cache()->try_begin_write(key) : nullptr;
    const auto compiled = run();
    const bool is_result = compiled || compiled.error().code == Code::CompileFailed;
    if (is_result) {
      const auto kind = compiled ? PchVerdict::Kind::Good : PchVerdict::Kind::Rejected;
      verdict = PchVerdict{kind, compiled ? std::string() : compiled.error().message, system_clock().wall()};
      // If it cannot be stored, the next process checks again.
      if (writer != nullptr) (void)writer->publish(*verdict);
    } else {
      outcome = compiled.error();
    }
    if (verdict && emitter_) {
      Event event = make_event(Event::Kind::LibraryChecked, recipe.unit, recipe.target, context.task_id);
      event.selected = compiled ? "passed" : "failed";
      event.ms = milliseconds_since(system_clock(), start);
      event.message = described(recipe.compiler, check) + (compiled ? " passed" : " failed: " + verdict->reason);
      emitter_.emit(event);
    }
  }
  if (!verdict) return outcome;
  const MutexLock lock(mutex_);
  results_[key] = verdict;
  return status_of(*verdict, recipe.compiler, check);
}

Digest LibraryCheck::access_check(const CompilerIdentity& compiler) {
  const Digest key = access_check_key(compiler);
  {
    const MutexLock lock(mutex_);
    if (const auto found = access_checks_.find(key); found != access_checks_.end()) return found->second;
  }
  const std::optional<PchVerdict> verdict = cache() != nullptr ? cache()->verdict(key) : std::nullopt;
  const bool passed = verdict && verdict->kind == PchVerdict::Kind::Good;
  const Digest worker = passed ? Digest::from_hex(verdict->reason).value_or(Digest()) : Digest();
  const MutexLock lock(mutex_);
  return access_checks_.try_emplace(key, worker).first->second;
}

void LibraryCheck::remember_access_check(const CompilerIdentity& compiler, const Digest& worker) {
  if (worker == Digest() || access_check(compiler) == worker) return;
  const Digest key = access_check_key(compiler);
  {
    const MutexLock lock(mutex_);
    access_checks_[key] = worker;
  }
  if (cache() != nullptr)
    (void)cache()->publish_verdict(key, {PchVerdict::Kind::Good, worker.hex(), system_clock().wall()});
}

}  // namespace kiln
