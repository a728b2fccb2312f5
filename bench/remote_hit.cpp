// SPDX-License-Identifier: Apache-2.0
// The cost of a hit in a remote store, against bare GETs of the same two objects from the same nginx, against bare GETs
// with the entry as it was stored before entries were packed, and against compiling the artifact.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <zstd.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/support/one_worker.hpp"
#include "bench/support/scratch.hpp"
#include "bench/support/units.hpp"
#include "cache/entry_format.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/http/curl_library.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/packed_entry.hpp"
#include "remote/remote_store.hpp"
#include "support/servers/nginx_object_stores.hpp"

namespace kiln::bench {
namespace {

// The promise: this multiple of the time of the two GETs plus the verification and unpacking, this multiple of two GETs
// of the same bytes without packing, and this fraction of the compile.
constexpr double kShareOfGets = 1.3;
constexpr double kShareOfUnpackedGets = 2;
constexpr double kShareOfCompile = 0.01;
constexpr std::chrono::seconds kLimit{10};

/// The small unit twice, the second time with double precision: about 64 KiB.
Unit ten_kernels() {
  constexpr char kAgain[] =
      "#define soften soften_d\n#define saxpy saxpy_d\n#define transpose transpose_d\n#define gravity gravity_d\n"
      "#define matmul matmul_d\n#define blur blur_d\n#define float double\n";
  Unit unit = Unit::cuda("bench_remote.cu", std::string(kSmallSource) + kAgain + kSmallSource);
  for (const std::string name : {"saxpy", "transpose", "gravity", "matmul", "blur"}) {
    unit = unit.with_entry(name).with_entry(name + "_d");
  }
  return unit;
}

/// Uses libcurl alone: one handle with its connection, set up once.
class BareGets {
 public:
  BareGets(const CurlLibrary& curl, const HttpOptions& options) : curl_(curl), handle_(curl.easy_init()) {
    (void)curl_.easy_setopt(handle_, CURLOPT_WRITEFUNCTION, &BareGets::take);
    (void)curl_.easy_setopt(handle_, CURLOPT_WRITEDATA, static_cast<void*>(&body_));
    (void)curl_.easy_setopt(handle_, CURLOPT_NOSIGNAL, 1L);
    (void)curl_.easy_setopt(handle_, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_2TLS});
    if (!options.ca_file.empty()) (void)curl_.easy_setopt(handle_, CURLOPT_CAINFO, options.ca_file.c_str());
  }
  ~BareGets() { curl_.easy_cleanup(handle_); }
  BareGets(const BareGets&) = delete;
  BareGets& operator=(const BareGets&) = delete;

  /// Returns the object; empty on failure.
  const std::string& get(const std::string& url) {
    body_ = std::string();
    (void)curl_.easy_setopt(handle_, CURLOPT_URL, url.c_str());
    if (curl_.easy_perform(handle_) != CURLE_OK) body_.clear();
    return body_;
  }

 private:
  static std::size_t take(char* data, std::size_t, std::size_t size, void* body) {
    static_cast<std::string*>(body)->append(data, size);
    return size;
  }

  const CurlLibrary& curl_;
  CURL* const handle_;
  std::string body_;
};

/// A store with one entry on its own nginx, and the data that a bare client needs.
class PchCache {
 public:
  PchCache(const test::NginxOptions& wants, const Artifact& artifact)
      : nginx_(wants), options_(test::options_for(nginx_, wants)), artifact_(artifact) {}

  Status fill() {
    auto object_store = open_http_object_store(options_);
    if (!object_store) return std::move(object_store).error();
    SecretKey secret = SecretKey::generate();
    voice_ = secret.public_key();
    auto policy = std::make_shared<TrustPolicy>();
    policy->add_key(voice_, "bench");
    auto signer = Signer::ci(std::move(secret), "bench", 1);
    if (!signer) return std::move(signer).error();
    RemoteStore::Params params;
    params.object_store = std::move(*object_store);
    params.policy = policy;
    params.signer = std::make_shared<const Signer>(std::move(*signer));
    store_ = std::make_unique<RemoteStore>(params);
    if (Status put = store_->put(key_, artifact_, {}); !put) return put;
    const auto action =
        params.object_store->read(ObjectStore::Bucket::ActionCache, action_name("bench", key_), 1 << 16, kLimit);
    if (!action) return action.error();
    const auto result = ActionResult::decode(as_bytes((*action)->view()));
    if (!result) return result.error();
    auto stated = SignedStatement::decode(result->stdout_raw, entry_subject(key_));
    if (!stated) return std::move(stated).error();
    stated_ = std::move(*stated);
    const std::string entry = encode_entry_header(key_, artifact_) + std::string(artifact_.bytes.view());
    unpacked_ = sha256(entry);
    size_ = entry.size();
    return params.object_store->write(ObjectStore::Bucket::Cas, unpacked_, {entry}, kLimit);
  }

  bool hit() const {
    const auto hit = store_->get(key_, {});
    return hit && *hit && (*hit)->artifact.bytes.size() == artifact_.bytes.size();
  }
  /// The work of a minimal client, in the only safe order: it fetches nothing that is not signed.
  struct Bare {
    double gets = 0;    ///< microseconds
    double checks = 0;  ///< signature, digest and zstd
    bool good = false;
  };
  Bare get_bare(BareGets& bare) const {
    std::int64_t times[5];
    times[0] = now_ns();
    const bool action = !bare.get(options_.url + "/ac/" + action_name("bench", key_).hex()).empty();
    times[1] = now_ns();
    const bool trusted = verify_signature(voice_, *stated_.signature, stated_.statement);
    times[2] = now_ns();
    const std::string& content = bare.get(options_.url + "/cas/" + stated_.statement.digest.hex());
    times[3] = now_ns();
    const bool whole = sha256(content) == stated_.statement.digest && unpack(content);
    times[4] = now_ns();
    const auto between = [&](int from, int to) { return static_cast<double>(times[to] - times[from]) / 1000.0; };
    return {between(0, 1) + between(2, 3), between(1, 2) + between(3, 4), action && trusted && whole};
  }
  /// The two GETs of a client of a store that does not pack.
  bool get_unpacked(BareGets& bare) const {
    return !bare.get(options_.url + "/ac/" + action_name("bench", key_).hex()).empty() &&
           bare.get(options_.url + "/cas/" + unpacked_.hex()).size() == size_;
  }
  const HttpOptions& options() const { return options_; }

 private:
  bool unpack(std::string_view content) const {
    const std::unique_ptr<char[]> memory(new char[size_]);
    content.remove_prefix(kPackedHeaderBytes);
    return ZSTD_decompress(memory.get(), size_, content.data(), content.size()) == size_;
  }

  test::Nginx nginx_;
  const HttpOptions options_;
  const Artifact artifact_;
  const ArtifactKey key_{sha256("bench key of a remote hit")};
  PublicKey voice_;
  std::unique_ptr<RemoteStore> store_;
  SignedStatement stated_;
  Digest unpacked_{};
  std::size_t size_ = 0;
};

/// Runs the call once per round: a median of single calls is least affected by other load.
Plan::Side side_of(const char* what, std::function<bool()> call) {
  return [what, call = std::move(call)]() -> Result<double> {
    const std::int64_t start = now_ns();
    const bool good = call();
    const double time = static_cast<double>(now_ns() - start) / 1000.0;
    if (!good) return make_error(Code::Internal, std::string(what) + " failed");
    return time;
  };
}

Status measure_gets(const std::string& name, const PchCache& pch_cache, const CurlLibrary& curl, Outcomes& outcomes) {
  BareGets bare(curl, pch_cache.options());
  std::vector<double> checks;
  const std::vector<Plan::Side> sides{side_of("a remote hit", [&] { return pch_cache.hit(); }),
                                      [&]() -> Result<double> {
                                        const PchCache::Bare times = pch_cache.get_bare(bare);
                                        if (!times.good) return make_error(Code::Internal, "a bare GET failed");
                                        checks.push_back(times.checks);
                                        return times.gets;
                                      },
                                      side_of("a bare GET", [&] { return pch_cache.get_unpacked(bare); })};
  for (const Plan::Side& side : sides) {
    if (auto once = side(); !once) return std::move(once).error();
  }
  constexpr std::size_t kRounds = 3000;
  const auto times = take_turns(sides, kRounds);
  if (!times) return times.error();
  Plan plan;
  plan.name = name;
  plan.limit = kShareOfGets + median(checks) / median((*times)[1]);
  std::fprintf(stderr, "kiln-bench: %s: Ed25519, SHA-256 and zstd took %.0f us\n", name.c_str(), median(checks));
  outcomes.push_back(outcome_of(plan, (*times)[0], (*times)[1]));
  plan.name = name + "_unpacked";
  plan.limit = kShareOfUnpackedGets;
  outcomes.push_back(outcome_of(plan, (*times)[0], (*times)[2]));
  return {};
}

/// Compares with a running worker that has compiled the unit before: the minimum cost of a compile.
Result<Outcome> measure_compile(const std::string& name, const PchCache& pch_cache, WorkerCompiler& compiler,
                                const Recipe& recipe) {
  Plan plan;
  plan.name = name;
  plan.limit = kShareOfCompile;
  plan.warm_up = 1;
  plan.ours = side_of("a remote hit", [&] { return pch_cache.hit(); });
  plan.theirs = side_of("a compile", [&] { return compiler.compile(recipe, {}).has_value(); });
  return compare(plan);
}

}  // namespace

Result<Outcomes> remote_hit() {
  if (!test::Nginx::available()) return make_error(Code::Unavailable, "nginx is not installed: run tools/setup.sh");
  const auto curl = CurlLibrary::open();
  if (!curl) return curl.error();
  const Scratch scratch;
  use_own_directories(scratch);
  OneWorker worker(scratch.path());
  const auto identity = worker.compiler.identity({});
  if (!identity) return identity.error();
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();

  Outcomes outcomes;
  for (const auto& [size, unit] : {std::pair("64k", ten_kernels()), std::pair("190k", large_unit(*roots))}) {
    const Recipe recipe{unit, Target{kArchitecture, Form::Cubin}, *identity, scratch.path()};
    const auto first = worker.compiler.compile(recipe, {});
    if (!first) return first.error();
    std::fprintf(stderr, "kiln-bench: %s: a cubin of %zu bytes\n", unit.name().c_str(), first->artifact.bytes.size());
    const std::pair<const char*, test::NginxOptions> servers[] = {{"", {}}, {"_tls", {.tls = true, .http2 = true}}};
    for (const auto& [suffix, wants] : servers) {
      const std::string name = std::string("remote_hit_") + size + suffix;
      PchCache pch_cache(wants, first->artifact);
      if (Status filled = pch_cache.fill(); !filled) return std::move(filled).error();
      Status added = measure_gets(name, pch_cache, **curl, outcomes);
      if (added) added = add(outcomes, measure_compile(name + "_compile", pch_cache, worker.compiler, recipe));
      if (!added) return std::move(added).error();
    }
  }
  return outcomes;
}

}  // namespace kiln::bench
