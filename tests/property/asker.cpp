// SPDX-License-Identifier: Apache-2.0
#include "asker.hpp"

#include <chrono>
#include <cstdio>

namespace kiln::test {

EventEmitter EventCounts::emitter() {
  return EventEmitter([this](const Event& event) {
    const MutexLock lock(mutex_);
    ++counts_[event.kind];
    if (event.kind == Event::Kind::NotPublished) not_published_ = event.message;
    if (event.kind == Event::Kind::Miss) missed_ = event.message;
  });
}

void EventCounts::clear() {
  const MutexLock lock(mutex_);
  counts_.clear();
  not_published_.clear();
  missed_.clear();
}

std::size_t EventCounts::of(Event::Kind kind) const {
  const MutexLock lock(mutex_);
  const auto found = counts_.find(kind);
  return found == counts_.end() ? 0 : found->second;
}

std::string EventCounts::not_published() const {
  const MutexLock lock(mutex_);
  return not_published_;
}

std::string EventCounts::missed() const {
  const MutexLock lock(mutex_);
  return missed_;
}

Requester::Requester(std::string cache, std::array<std::string, 2> nvrtc, bool pch)
    : cache_(std::move(cache)), nvrtc_(std::move(nvrtc)), pch_(pch) {}

std::unique_ptr<Components> Requester::make_components(int compiler) {
  Config config;
  config.cache_path = {cache_};
  config.nvrtc = nvrtc_.at(static_cast<std::size_t>(compiler));
  config.pch_mode = pch_;
  // Each of the two `Components` objects keeps a worker, and other processes of the host have workers too.
  config.jobs = 16;
  return std::make_unique<Components>(config, events_.emitter());
}

Got Requester::get(const Project& project, Lookups lookups, bool is_edited) {
  project.enter();
  auto& kept = kept_.at(static_cast<std::size_t>(project.compiler));
  if (!kept) kept = make_components(project.compiler);
  const std::unique_ptr<Components> fresh = make_components(project.compiler);
  const auto chance = random_() % 8;
  Components& looks = lookups == Lookups::Any && chance == 0 ? *kept : *fresh;
  Components& compiles_it = chance == 1 ? *fresh : *kept;

  Got got;
  const auto recipe = looks.recipe(project.unit(), project.target(), {});
  if (!recipe) {
    got.reason = recipe.error().message;
    return got;
  }
  events_.clear();
  const auto start = std::chrono::steady_clock::now();
  const auto answer = looks.resolver().get(*recipe, **compiles_it.compiler(recipe->unit, project.target()), {});
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  got.compiles = events_.of(Event::Kind::Compiled) + events_.of(Event::Kind::CompileFailed);
  compiles += got.compiles;
  if (got.compiles != 0) typical_ms_ = 0.9 * typical_ms_ + 0.1 * ms;
  pch_created += events_.of(Event::Kind::PchCreated);
  pch_used += events_.of(Event::Kind::PchUsed);
  pch_dropped += events_.of(Event::Kind::PchDropped);
  if (!answer) {
    got.reason = answer.error().message + "\n" + answer.error().log;
    return got;
  }
  got.ok = true;
  got.bytes = answer->artifact.bytes.view();
  for (const EntryPoint& entry : answer->artifact.entries) got.symbols.push_back(entry.symbol);
  got.origin = to_string(answer->origin);
  hits += answer->origin != Origin::Compiled;
  got.published = answer->origin != Origin::Compiled || events_.of(Event::Kind::Published) > 0;
  got.reason = events_.not_published();
  got.miss = events_.missed();
  // Without the path, so that equal reasons are counted together.
  if (!got.reason.empty()) ++unstored[got.reason.substr(got.reason.starts_with('/') ? got.reason.find(' ') + 1 : 0)];
  note(project, recipe->request_key().hex(), got, is_edited);
  return got;
}

void Requester::note(const Project& project, const std::string& request, const Got& got, bool is_edited) {
  if (project.timed()) return;  // file times are part of the output, and this function does not preserve them
  std::size_t& publications = publications_[request];
  if (is_edited) {
    publications += got.compiles != 0 && got.published ? 1 : 0;
    return;
  }
  const std::string inputs = request + '\n' + project.files();
  const auto found = stored_.find(inputs);
  if (got.compiles != 0 && found != stored_.end()) {
    const bool is_beyond = publications - found->second >= Store::kMaxDependencySets;
    if (!is_beyond)
      std::printf("needless: %s of the same files: %s\n", project.unit().name().c_str(), got.miss.c_str());
    ++(is_beyond ? beyond_hints : needless);
  }
  if (got.compiles != 0 && got.published) stored_[inputs] = ++publications;
}

BareResult Requester::bare(const Project& project) {
  project.enter();
  ++bare_compiles;
  return bare_.compile(nvrtc_.at(static_cast<std::size_t>(project.compiler)), project.unit(), project.target());
}

}  // namespace kiln::test
