// SPDX-License-Identifier: Apache-2.0
// The bytes of an entry that a host fetches from a remote store, packed, against the same entry as it is on disk.
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/cub_units.hpp"
#include "bench/support/one_worker.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "cache/entry_format.hpp"
#include "remote/packed_entry.hpp"

namespace kiln::bench {
namespace {

// The promise: a host fetches at most half of the bytes.
constexpr double kShareOfEntry = 0.5;

/// The total of several entries before and after packing.
struct Total {
  double entries = 0;
  double packed = 0;

  Status add(const Artifact& artifact) {
    const ArtifactKey key{sha256("bench key of packed bytes")};
    std::string entry = encode_entry_header(key, artifact) + std::string(artifact.bytes.view());
    entries += static_cast<double>(entry.size());
    const auto content = pack_entry(std::move(entry));
    if (!content) return content.error();
    packed += static_cast<double>(content->size());
    return {};
  }
  /// Sizes have no spread.
  Outcome outcome(std::string name) const {
    return {.name = std::move(name),
            .ours = packed,
            .theirs = entries,
            .ratio = packed / entries,
            .n = 1,
            .limit = kShareOfEntry,
            .unit = "bytes",
            .settled = true};
  }
};

}  // namespace

Result<Outcomes> remote_bytes() {
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  const Scratch scratch;
  use_own_directories(scratch);
  OneWorker worker(scratch.path());
  const auto identity = worker.compiler.identity({});
  if (!identity) return identity.error();
  Outcomes outcomes;
  for (const auto& [form, suffix] : {std::pair(Form::Cubin, "cubin"), std::pair(Form::Ptx, "ptx")}) {
    Total host;
    const auto add = [&, form = form](const Unit& unit, Total& total) -> Status {
      const auto made = worker.compiler.compile({unit, Target{kArchitecture, form}, *identity, scratch.path()}, {});
      return made ? total.add(made->artifact) : Status(made.error());
    };
    for (const auto& [size, unit] : {std::pair("28k", small_unit()), std::pair("190k", large_unit(*roots))}) {
      Total one;
      if (Status added = add(unit, one); !added) return std::move(added).error();
      outcomes.push_back(one.outcome(std::string("remote_bytes_") + size + '_' + suffix));
    }
    for (const Unit& unit : cub_units(*roots)) {
      if (Status added = add(unit, host); !added) return std::move(added).error();
    }
    outcomes.push_back(host.outcome(std::string("remote_bytes_host_") + suffix));
  }
  return outcomes;
}

}  // namespace kiln::bench
