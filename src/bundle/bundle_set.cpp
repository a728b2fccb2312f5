// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/format.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/embedded.hpp"
#include "bundle/program_bundles.hpp"

namespace kiln {
namespace {

Result<std::unique_ptr<Bundle>> open_bundle(const std::string& path, const TrustPolicy& policy) {
  auto source = open_bundle_source(path);
  if (!source) return std::move(source).error();
  return Bundle::open(std::move(*source), &policy);
}

}  // namespace

BundleSet::BundleSet(std::vector<std::string> paths, TrustPolicy policy, EventEmitter emitter, Options options)
    : paths_(std::move(paths)), policy_(std::move(policy)), emitter_(std::move(emitter)), options_(std::move(options)) {
}
BundleSet::BundleSet(std::vector<std::string> paths, TrustPolicy policy, EventEmitter emitter)
    : BundleSet(std::move(paths), std::move(policy), std::move(emitter), Options()) {}

bool BundleSet::has_any() { return !paths_.empty() || !all()->empty(); }

bool BundleSet::is_first_report(const std::string& what) {
  const MutexLock lock(mutex_);
  return reported_.insert(what).second;
}

void BundleSet::emit_corruption(const Bundle& bundle, const Error& error) {
  const std::string what = bundle.describe() + ": " + error.message;
  if (emitter_ && is_first_report(what)) emitter_.emit(Event::Kind::BundleRejected, "bundle", what);
}

Status BundleSet::check_scope(const Bundle& bundle) const {
  const std::string& name_space = bundle.header().name_space;
  if (options_.scope.admits(name_space)) return {};
  return make_error(Code::Denied, bundle.describe() + ": namespace '" + name_space +
                                      "' is not allowed: trust.namespaces allows " + options_.scope.text() + " only");
}

void BundleSet::open_files(List& list) {
  for (const std::string& path : paths_) {
    auto bundle = open_bundle(path, policy_);
    Status usable = bundle ? check_scope(**bundle) : Status(bundle.error());
    if (usable && options_.epochs != nullptr) {
      const BundleHeader& header = (*bundle)->header();
      usable = options_.epochs->admit(header.name_space, header.epoch, header.signature.has_value());
      if (!usable) usable = make_error(usable.error().code, path + ": " + usable.error().message);
    }
    if (usable) {
      list.push_back(std::move(*bundle));
    } else {
      reject(usable.error().message);
    }
  }
}

void BundleSet::reject(std::string reason) {
  emitter_.emit(Event::Kind::BundleRejected, "bundle", reason);
  rejected_.push_back(std::move(reason));
}

void BundleSet::open_embedded(List& list) {
  for (EmbeddedBundle& found : embedded_bundles()) {
    const void* const where = found.bytes.data();
    if (std::find(embedded_.begin(), embedded_.end(), where) != embedded_.end()) continue;
    // No policy: it is as trusted as the program that contains it.
    auto bundle = Bundle::open(bundle_in_memory(std::move(found.bytes), std::move(found.object)), nullptr);
    // A used one stays loaded, so no other bundle can have its address.
    if (add_trusted(std::move(bundle), list)) embedded_.push_back(where);
  }
}

void BundleSet::open_program_bundles(const std::vector<std::string>& paths, List& list) {
  for (std::size_t i = program_bundles_; i < paths.size(); ++i) {
    auto source = open_program_bundle(paths[i]);
    if (source) {
      add_trusted(Bundle::open(std::move(*source), nullptr), list);
    } else {
      add_trusted(std::move(source).error(), list);
    }
  }
}

bool BundleSet::add_trusted(Result<std::unique_ptr<Bundle>> bundle, List& list) {
  const Status usable = bundle ? check_scope(**bundle) : Status(bundle.error());
  if (usable) {
    list.push_back(std::move(*bundle));
  } else if (reported_.insert(usable.error().message).second) {
    reject(usable.error().message);
  }
  return usable.has_value();
}

std::shared_ptr<const BundleSet::List> BundleSet::all() {
  const std::uint64_t objects = loaded_object_count();
  const MutexLock lock(mutex_);
  if (list_ != nullptr && objects == objects_ && program_bundle_count() == program_bundles_) return list_;
  List list = list_ != nullptr ? *list_ : List();
  if (list_ == nullptr) open_files(list);
  open_embedded(list);
  const std::vector<std::string> paths = program_bundles();
  open_program_bundles(paths, list);
  list_ = std::make_shared<const List>(std::move(list));
  objects_ = objects;
  program_bundles_ = paths.size();
  return list_;
}

Result<std::optional<Hit>> BundleSet::get_within(const NamespaceScope& scope, const ArtifactKey& key) {
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (!scope.admits(bundle->header().name_space)) continue;
    auto hit = bundle->get(key, {});
    if (!hit) {
      emit_corruption(*bundle, hit.error());
    } else if (*hit) {
      return hit;
    }
  }
  return std::optional<Hit>();
}

std::vector<Hit> BundleSet::get_all(const ArtifactKey& key) {
  std::vector<Hit> hits;
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    auto hit = bundle->get(key, {});
    if (!hit) emit_corruption(*bundle, hit.error());
    if (hit && *hit) hits.push_back(std::move(**hit));
  }
  return hits;
}

Result<std::vector<DependencySet>> BundleSet::dependency_sets_within(const NamespaceScope& scope,
                                                                     const RequestKey& request, std::size_t limit) {
  std::vector<DependencySet> dependency_sets;
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (dependency_sets.size() >= limit) break;
    if (!scope.admits(bundle->header().name_space)) continue;
    auto found = bundle->dependency_sets(request, limit - dependency_sets.size(), {});
    if (!found) {
      emit_corruption(*bundle, found.error());
      continue;
    }
    dependency_sets.insert(dependency_sets.end(), std::move_iterator(found->begin()), std::move_iterator(found->end()));
  }
  return dependency_sets;
}

Status BundleSet::put(const ArtifactKey&, const Artifact&, const RequestContext&) {
  return make_error(Code::Denied, "bundles are read-only");
}
Status BundleSet::add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) {
  return make_error(Code::Denied, "bundles are read-only");
}

std::string BundleSet::describe() const {
  const MutexLock lock(mutex_);
  if (list_ == nullptr) return "bundles";
  const std::string text =
      join_strings(*list_, [](const std::shared_ptr<Bundle>& bundle) { return bundle->describe(); });
  return text.empty() ? "no usable bundle" : text;
}

std::optional<BundleSet::BundleHit> BundleSet::find(const Unit& unit, const Target& target, std::uint64_t flow,
                                                    const Bytes* rejected) {
  std::string have;
  const NamespaceScope scope = scope_of(unit);
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (!scope.admits(bundle->header().name_space)) continue;
    auto match = bundle->find(unit.key(), target, rejected);
    if (match && *match) return BundleHit{std::move(**match), bundle->describe()};
    if (match) {
      (void)append_targets(*bundle, unit, target, have);
    } else {
      emit_corruption(*bundle, match.error());
    }
  }
  // Reported once: a lookup that leads to a compile queries the bundles twice.
  if (emitter_ && !have.empty() && rejected == nullptr && is_first_report(unit.key().hex() + have + target.name())) {
    Event event = make_event(Event::Kind::BundleIncompatible, unit, target, flow);
    event.origin = to_string(Origin::Bundle);
    event.message = have + ": no code that is compatible with " + target.name();
    emitter_.emit(event);
  }
  return std::nullopt;
}

std::string BundleSet::explain_miss(const Unit& unit, const Target& target) {
  std::string text;
  bool has_target = false;  // with bundle.match = exact, the code can be by another compiler
  const NamespaceScope scope = scope_of(unit);
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (!scope.admits(bundle->header().name_space)) continue;
    has_target = append_targets(*bundle, unit, target, text) || has_target;
  }
  const bool has_architecture = target.form != Form::OpenClBinary && target.form != Form::External;
  if (!text.empty() && !has_target && has_architecture) {
    text += "; add " + target.name() + " with 'kiln bundle create --arch " + target.name() + "'";
  }
  if (text.empty()) text = explain_other_unit(unit, scope);
  const MutexLock lock(mutex_);
  for (const std::string& each : rejected_) text += (text.empty() ? "not used: " : "; not used: ") + each;
  return text;
}

std::string BundleSet::explain_other_unit(const Unit& unit, const NamespaceScope& scope) {
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (!scope.admits(bundle->header().name_space)) continue;
    const Result<BundleDescription> description = bundle->description();
    if (!description) continue;
    const auto& artifacts = description->artifacts;
    const auto has_name = [&](const BundleDescription::Artifact& artifact) { return artifact.unit == unit.name(); };
    if (std::none_of(artifacts.begin(), artifacts.end(), has_name)) continue;
    return bundle->describe() + ": its unit with this name " + kDifferentUnit +
           "; 'kiln bundle header' writes its units for the program";
  }
  return {};
}

bool BundleSet::append_targets(Bundle& bundle, const Unit& unit, const Target& target, std::string& have) {
  const auto targets = bundle.targets(unit.key());
  if (!targets) {
    emit_corruption(bundle, targets.error());
    return false;
  }
  if (targets->empty()) return false;
  have.append(have.empty() ? "" : "; ")
      .append(bundle.describe() + " has it for " + join_strings(*targets, &Target::name));
  return std::find(targets->begin(), targets->end(), target) != targets->end();
}

void BundleSet::emit_other_compilers(const Recipe& recipe, const RequestContext& context) {
  if (!emitter_) return;
  const RequestKey request = recipe.request_key();
  const NamespaceScope scope = scope_of(recipe.unit);
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (!scope.admits(bundle->header().name_space)) continue;
    const auto match = bundle->find(recipe.unit.key(), recipe.target);
    if (!match || !*match || (*match)->request == request) continue;
    Event event = make_event(Event::Kind::BundleIncompatible, recipe.unit, recipe.target, context.task_id);
    event.origin = to_string(Origin::Bundle);
    event.message = bundle->describe() + " has it for " + (*match)->artifact.target.name() + " by " +
                    (*match)->artifact.metadata.compiler + "; the compiler here is " + recipe.compiler.name + " " +
                    recipe.compiler.version + ", and bundle.match = exact requires the same compiler and target";
    emitter_.emit(event);
  }
}

}  // namespace kiln
