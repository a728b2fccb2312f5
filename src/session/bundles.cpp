#include "session/bundles.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "base/words.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/embedded.hpp"

namespace kiln {
namespace {

Result<std::unique_ptr<Bundle>> open_bundle(const std::string& path, const TrustPolicy& policy) {
  auto source = open_bundle_source(path);
  if (!source) return std::move(source).error();
  return Bundle::open(std::move(*source), &policy);
}

}  // namespace

Bundles::Bundles(std::vector<std::string> paths, TrustPolicy policy, Observer observer)
    : paths_(std::move(paths)), policy_(std::move(policy)), observer_(std::move(observer)) {}

bool Bundles::any() { return !paths_.empty() || !all()->empty(); }

bool Bundles::is_news(const std::string& what) {
  const MutexLock lock(mutex_);
  return told_.insert(what).second;
}

void Bundles::tell_of_damage(const Bundle& bundle, const Error& error) {
  const std::string what = bundle.describe() + ": " + error.message;
  if (observer_ && is_news(what)) observer_.tell(Event::Kind::BundleRefused, "bundle", what);
}

void Bundles::open_files(List& list) {
  for (const std::string& path : paths_) {
    auto bundle = open_bundle(path, policy_);
    if (bundle) {
      list.push_back(std::move(*bundle));
    } else {
      observer_.tell(Event::Kind::BundleRefused, "bundle", bundle.error().message);
    }
  }
}

void Bundles::open_embedded(List& list) {
  for (EmbeddedBundle& found : embedded_bundles()) {
    const void* const where = found.bytes.data();
    if (std::find(embedded_.begin(), embedded_.end(), where) != embedded_.end()) continue;
    // As trusted as the program that it is a part of: no policy.
    auto bundle = Bundle::open(bundle_in_memory(std::move(found.bytes), std::move(found.object)), nullptr);
    if (bundle) {
      embedded_.push_back(where);  // it stays loaded, and so nothing else will lie there
      list.push_back(std::move(*bundle));
    } else if (told_.insert(bundle.error().message).second) {
      observer_.tell(Event::Kind::BundleRefused, "bundle", bundle.error().message);
    }
  }
}

std::shared_ptr<const Bundles::List> Bundles::all() {
  const std::uint64_t objects = loaded_objects();
  const MutexLock lock(mutex_);
  if (list_ != nullptr && objects == objects_) return list_;
  List list = list_ != nullptr ? *list_ : List();
  if (list_ == nullptr) open_files(list);
  open_embedded(list);
  objects_ = objects;
  list_ = std::make_shared<const List>(std::move(list));
  return list_;
}

Result<std::optional<Hit>> Bundles::get(const Key& key) {
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    auto hit = bundle->get(key);
    if (!hit) {
      tell_of_damage(*bundle, hit.error());
    } else if (*hit) {
      return hit;
    }
  }
  return std::optional<Hit>();
}

Result<std::vector<Closure>> Bundles::closures(const RequestKey& request, std::size_t limit) {
  std::vector<Closure> closures;
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    if (closures.size() >= limit) break;
    auto found = bundle->closures(request, limit - closures.size());
    if (!found) {
      tell_of_damage(*bundle, found.error());
      continue;
    }
    closures.insert(closures.end(), std::move_iterator(found->begin()), std::move_iterator(found->end()));
  }
  return closures;
}

Status Bundles::put(const Key&, const Artifact&) { return failure(Code::Refused, "bundles are only read"); }
Status Bundles::add_closure(const RequestKey&, const Closure&) {
  return failure(Code::Refused, "bundles are only read");
}

std::string Bundles::describe() const {
  const MutexLock lock(mutex_);
  if (list_ == nullptr) return "bundles";
  const std::string text = joined(*list_, [](const std::shared_ptr<Bundle>& bundle) { return bundle->describe(); });
  return text.empty() ? "no bundle that can be used" : text;
}

std::optional<Bundles::Found> Bundles::find(const Unit& unit, const Target& target, std::uint64_t flow,
                                            const Bytes* refused) {
  std::string have;
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    auto pinned = bundle->find(unit.key(), target, refused);
    if (pinned && *pinned) return Found{std::move(**pinned), bundle->describe()};
    const auto targets = pinned ? bundle->targets(unit.key()) : Result<std::vector<Target>>(pinned.error());
    if (!targets) {
      tell_of_damage(*bundle, targets.error());
    } else if (!targets->empty()) {
      have.append(have.empty() ? "" : "; ")
          .append(bundle->describe() + " has it for " + joined(*targets, &Target::name));
    }
  }
  // Once: whoever goes on to a compile asks here twice.
  if (observer_ && !have.empty() && refused == nullptr && is_news(unit.key().hex() + have + target.name())) {
    Event event = event_of(Event::Kind::BundleUnfit, unit, target, flow);
    event.origin = to_string(Origin::Bundle);
    event.message = have + ": nothing that fits " + target.name();
    observer_.tell(event);
  }
  return std::nullopt;
}

void Bundles::tell_of_other_compilers(const Recipe& recipe) {
  if (!observer_) return;
  const RequestKey request = recipe.request_key();
  for (const auto list = all(); const std::shared_ptr<Bundle>& bundle : *list) {
    const auto pinned = bundle->find(recipe.unit.key(), recipe.target);
    if (!pinned || !*pinned || (*pinned)->request == request) continue;
    Event event = event_of(Event::Kind::BundleUnfit, recipe.unit, recipe.target, recipe.flow);
    event.origin = to_string(Origin::Bundle);
    event.message = bundle->describe() + " has it for " + (*pinned)->artifact.target.name() + " by " +
                    (*pinned)->artifact.about.compiler + "; here is " + recipe.compiler.name + " " +
                    recipe.compiler.version +
                    ", and bundle.match = exact takes no other compiler's and no other target's";
    observer_.tell(event);
  }
}

}  // namespace kiln
