// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kiln/requirements.hpp>
#include <kiln/result.hpp>

#include "support/servers/nginx.hpp"
#include "trust/keys.hpp"

namespace kiln::bench {

/// Returns the paths of the compilers that kiln finds on this machine, as arguments for `kiln-bench-workload bare`.
Result<std::vector<std::string>> bare_compilers();

/// The artifacts of some units for sm_80 from a filled cache, in the form that other machines use: a signed bundle, and
/// a remote store on its own nginx. The caller removes the directory that holds everything.
class ArtifactSources {
 public:
  /// Compiles nothing: `cache` contains all artifacts.
  static Result<std::unique_ptr<ArtifactSources>> make(const Units& units, const std::string& cache,
                                                       const std::string& directory);

  std::string bundle() const { return directory_ + "/app.kiln"; }
  std::string trust() const { return directory_ + "/trust.toml"; }
  std::string remote() const { return nginx_.url(); }
  /// Files with NUL-terminated paths: the entries of the units in the cache, and every path that any of their
  /// dependency sets names, each once, whether the file must exist or not.
  std::string entries() const { return directory_ + "/entries"; }
  std::string looked_at() const { return directory_ + "/looked_at"; }

 private:
  explicit ArtifactSources(std::string directory) : directory_(std::move(directory)) {}
  Status fill(const Units& units, const std::string& cache);

  const std::string directory_;
  test::Nginx nginx_;
};

}  // namespace kiln::bench
