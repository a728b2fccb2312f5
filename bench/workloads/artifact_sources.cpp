// SPDX-License-Identifier: Apache-2.0
#include "bench/workloads/artifact_sources.hpp"

#include <fcntl.h>

#include <set>
#include <utility>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "bundle/bundle_writer.hpp"
#include "cache/cache_directory.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/remote_store.hpp"
#include "session/access.hpp"
#include "support/servers/nginx_object_stores.hpp"
#include "trust/signer.hpp"

namespace kiln::bench {
namespace {

constexpr char kNameSpace[] = "bench";

Result<Session> session_on(const std::string& cache) {
  SessionOptions options;
  options.settings = {{"cache.dir", cache}, {"compile", "never"}};
  options.locked = {"cache.dir", "compile"};
  return Session::open(std::move(options));
}

/// Opens a remote store with write access.
Result<std::unique_ptr<RemoteStore>> open_pch_cache(const test::Nginx& nginx, SecretKey key) {
  auto object_store = open_http_object_store(test::options_for(nginx));
  if (!object_store) return std::move(object_store).error();
  auto policy = std::make_shared<TrustPolicy>();
  policy->add_key(key.public_key(), kNameSpace);
  auto signer = Signer::ci(std::move(key), kNameSpace, 1);
  if (!signer) return std::move(signer).error();
  RemoteStore::Params params;
  params.object_store = std::move(*object_store);
  params.policy = std::move(policy);
  params.signer = std::make_shared<const Signer>(std::move(*signer));
  return std::make_unique<RemoteStore>(std::move(params));
}

}  // namespace

Result<std::vector<std::string>> bare_compilers() {
  const EventEmitter no_events;
  Components components(Config::load({.settings = {{"disable", "true"}}, .locked = {"disable"}}, no_events), no_events);
  const auto recipe = components.recipe(cccl::predefined_specs().front(), Target::sm(80), {});
  if (!recipe) return recipe.error();
  const auto cuda = components.recipe(Unit::cuda("none.cu", ""), Target::sm(80), {});
  if (!cuda) return cuda.error();
  const CompilerIdentity& found = recipe->compiler;
  std::vector<std::string> said{cuda->compiler.path, found.path, found.roots[0].path, found.roots[1].path};
  said.insert(said.end(), found.libraries.begin(), found.libraries.end());
  return said;
}

Result<std::unique_ptr<ArtifactSources>> ArtifactSources::make(const Units& units, const std::string& cache,
                                                               const std::string& directory) {
  if (!test::Nginx::available()) return make_error(Code::Unavailable, "nginx is not installed: run tools/setup.sh");
  std::unique_ptr<ArtifactSources> supply(new ArtifactSources(directory));
  if (Status filled = supply->fill(units, cache); !filled) return std::move(filled).error();
  return supply;
}

Status ArtifactSources::fill(const Units& units, const std::string& cache) {
  Result<Session> session = session_on(cache);
  if (!session) return std::move(session).error();
  SecretKey key = SecretKey::generate();
  const std::string trusted =
      "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"" + std::string(kNameSpace) + "\"]\n";
  BundleWriter writer({.name_space = kNameSpace, .epoch = 1});
  std::vector<ResolvedArtifact> answers;
  std::string entries;
  std::set<std::string> looked_at;
  for (const Unit& unit : units) {
    const auto recipe = detail::SessionAccess::components(*session).recipe(unit, Target::sm(80), {});
    if (!recipe) return recipe.error();
    auto answer = session->resolve(unit, Target::sm(80));
    if (!answer) return std::move(answer).error();
    const CompilerIdentity& compiler = recipe->compiler;
    BundleMember member{unit.kind(), unit.key(),    answer->artifact, answer->request,
                        answer->key, compiler.name, compiler.version, compiler.digest};
    member.artifact.metadata.unit = unit.name();
    if (auto added = writer.add(std::move(member)); !added) return std::move(added).error();
    entries += cache + "/v1/" + ShardedName("entries", answer->key.digest).str() + '\0';
    for (const DependencySet::Dependency& item : answer->artifact.dependency_set->items) {
      looked_at.insert(recipe->path_roots().path_of(item.root, item.name));
    }
    answers.push_back(std::move(*answer));
  }
  std::string paths;
  for (const std::string& path : looked_at) paths += path + '\0';
  const auto image = writer.finish(&key);
  if (!image) return image.error();
  const std::pair<std::string, std::string> files[] = {
      {bundle(), image->to_file()}, {trust(), trusted}, {this->entries(), entries}, {this->looked_at(), paths}};
  for (const auto& [name, text] : files) {
    if (Status put = publish_file(AT_FDCWD, name + ".tmp", name, {text}, Durability::Unsynced, 0600); !put) return put;
  }
  const auto pch_cache = open_pch_cache(nginx_, std::move(key));
  if (!pch_cache) return pch_cache.error();
  for (const ResolvedArtifact& answer : answers) {
    if (Status put = (*pch_cache)->put(answer.key, answer.artifact, {}); !put) return put;
    if (answer.artifact.dependency_set->empty()) continue;
    if (Status put = (*pch_cache)->add_dependency_set(answer.request, *answer.artifact.dependency_set, {}); !put)
      return put;
  }
  return {};
}

}  // namespace kiln::bench
