#include "bench/workloads/supply.hpp"

#include <fcntl.h>

#include <set>
#include <utility>

#include <kiln/cccl.hpp>

#include "base/error.hpp"
#include "base/files.hpp"
#include "bundle/bundle_writer.hpp"
#include "http/http_depot.hpp"
#include "remote/remote_store.hpp"
#include "session/toolbox.hpp"
#include "store/cache_directory.hpp"
#include "support/nginx_depots.hpp"
#include "trust/signer.hpp"

namespace kiln::bench {
namespace {

constexpr char kNameSpace[] = "bench";

Toolbox toolbox_on(const std::string& cache) {
  SessionOptions options;
  options.settings = {{"cache.dir", cache}, {"compile", "never"}};
  options.locked = {"cache.dir", "compile"};
  return Toolbox(Config::load(options, Observer()), Observer());
}

/// A remote store that one may write to.
Result<std::unique_ptr<RemoteStore>> open_shelf(const test::Nginx& nginx, SecretKey key) {
  auto depot = open_http_depot(test::options_for(nginx));
  if (!depot) return std::move(depot).error();
  auto policy = std::make_shared<TrustPolicy>();
  policy->trust(key.public_key(), kNameSpace);
  auto signer = Signer::ci(std::move(key), kNameSpace, 1);
  if (!signer) return std::move(signer).error();
  RemoteStore::Parts parts;
  parts.depot = std::move(*depot);
  parts.policy = std::move(policy);
  parts.signer = std::make_shared<const Signer>(std::move(*signer));
  return std::make_unique<RemoteStore>(std::move(parts));
}

}  // namespace

Result<std::vector<std::string>> bare_compilers() {
  const Observer nobody;
  Toolbox toolbox(Config::load({.settings = {{"disable", "true"}}, .locked = {"disable"}}, nobody), nobody);
  const auto recipe = toolbox.recipe(cccl::founding().front(), Target::sm(80));
  if (!recipe) return recipe.error();
  const auto cuda = toolbox.recipe(Unit::cuda("none.cu", ""), Target::sm(80));
  if (!cuda) return cuda.error();
  const CompilerIdentity& found = recipe->compiler;
  std::vector<std::string> said{cuda->compiler.path, found.path, found.roots[0].path, found.roots[1].path};
  said.insert(said.end(), found.libraries.begin(), found.libraries.end());
  return said;
}

Result<std::unique_ptr<Supply>> Supply::make(const Units& units, const std::string& cache, const std::string& folder) {
  if (!test::Nginx::available()) return failure(Code::Unavailable, "nginx is not installed: run tools/setup.sh");
  std::unique_ptr<Supply> supply(new Supply(folder));
  if (Status filled = supply->fill(units, cache); !filled) return std::move(filled).error();
  return supply;
}

Status Supply::fill(const Units& units, const std::string& cache) {
  Toolbox toolbox = toolbox_on(cache);
  SecretKey key = SecretKey::generate();
  const std::string believed =
      "[[key]]\npublic = \"" + key.public_key().text() + "\"\nnamespaces = [\"" + std::string(kNameSpace) + "\"]\n";
  BundleWriter writer({.name_space = kNameSpace, .epoch = 1});
  std::vector<Answer> answers;
  std::string entries;
  std::set<std::string> looked_at;
  for (const Unit& unit : units) {
    const auto recipe = toolbox.recipe(unit, Target::sm(80));
    if (!recipe) return recipe.error();
    auto answer = toolbox.get(unit, Target::sm(80));
    if (!answer) return std::move(answer).error();
    const CompilerIdentity& compiler = recipe->compiler;
    BundleMember member{unit.kind(), unit.key(),    answer->artifact, answer->request,
                        answer->key, compiler.name, compiler.version, compiler.digest};
    member.artifact.about.unit = unit.name();
    if (auto added = writer.add(std::move(member)); !added) return std::move(added).error();
    entries += cache + "/v1/" + ShardedName("entries", answer->key.digest).str() + '\0';
    for (const Closure::Item& item : answer->artifact.closure->items) {
      looked_at.insert(recipe->places().path_of(item.root, item.name));
    }
    answers.push_back(std::move(*answer));
  }
  std::string paths;
  for (const std::string& path : looked_at) paths += path + '\0';
  const auto image = writer.finish(&key);
  if (!image) return image.error();
  const std::pair<std::string, std::string> files[] = {
      {bundle(), image->whole()}, {trust(), believed}, {this->entries(), entries}, {this->looked_at(), paths}};
  for (const auto& [name, text] : files) {
    if (Status put = publish_file(AT_FDCWD, name + ".tmp", name, {text}, Durability::Unsynced, 0600); !put) return put;
  }
  const auto shelf = open_shelf(nginx_, std::move(key));
  if (!shelf) return shelf.error();
  for (const Answer& answer : answers) {
    if (Status put = (*shelf)->put(answer.key, answer.artifact); !put) return put;
    if (answer.artifact.closure->empty()) continue;
    if (Status put = (*shelf)->add_closure(answer.request, *answer.artifact.closure); !put) return put;
  }
  return {};
}

}  // namespace kiln::bench
