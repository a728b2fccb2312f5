#pragma once

#include <memory>
#include <string>
#include <vector>

#include <kiln/needs.hpp>
#include <kiln/result.hpp>

#include "support/nginx.hpp"
#include "trust/keys.hpp"

namespace kiln::bench {

/// Where the compilers lie that kiln finds on this machine, as kiln-bench-workload wants them said to use them bare.
Result<std::vector<std::string>> bare_compilers();

/// What a filled cache has of some units for sm_80, put where other machines find it: into a signed bundle, and into a
/// remote store behind an nginx of its own. Everything lies in a folder that somebody else removes.
class Supply {
 public:
  /// Compiles nothing: `cache` has all of it.
  static Result<std::unique_ptr<Supply>> make(const Units& units, const std::string& cache, const std::string& folder);

  std::string bundle() const { return folder_ + "/app.kiln"; }
  std::string trust() const { return folder_ + "/trust.toml"; }
  std::string remote() const { return nginx_.url(); }
  /// Files with NUL-ended paths: the entries of the units in the cache, and every path that any of their closures
  /// names, each once, whether a file is there or must not be.
  std::string entries() const { return folder_ + "/entries"; }
  std::string looked_at() const { return folder_ + "/looked_at"; }

 private:
  explicit Supply(std::string folder) : folder_(std::move(folder)) {}
  Status fill(const Units& units, const std::string& cache);

  const std::string folder_;
  test::Nginx nginx_;
};

}  // namespace kiln::bench
