// What a hit in a remote store costs, beside the bare GETs of the same two bodies from the same nginx, and beside
// compiling the artifact.
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bench/benchmarks.hpp"
#include "bench/one_worker.hpp"
#include "bench/scratch.hpp"
#include "bench/units.hpp"
#include "http/curl_library.hpp"
#include "http/http_depot.hpp"
#include "remote/action_result.hpp"
#include "remote/judgement.hpp"
#include "remote/remote_store.hpp"
#include "support/nginx_depots.hpp"

namespace kiln::bench {
namespace {

// The promise: so much of what the two GETs take, and the verification; so much of the compile.
constexpr double kShareOfGets = 1.3;
constexpr double kShareOfCompile = 0.01;
constexpr std::chrono::seconds kLimit{10};

/// The small unit twice, the second time with double precision: about the size that is asked for, 64 KiB.
Unit ten_kernels() {
  constexpr char kAgain[] =
      "#define soften soften_d\n#define saxpy saxpy_d\n#define transpose transpose_d\n#define gravity gravity_d\n"
      "#define matmul matmul_d\n#define blur blur_d\n#define float double\n";
  Unit unit = Unit::cuda("bench_remote.cu", std::string(kSmallSource) + kAgain + kSmallSource);
  for (const std::string name : {"saxpy", "transpose", "gravity", "matmul", "blur"}) {
    unit = unit.entry(name).entry(name + "_d");
  }
  return unit;
}

/// libcurl alone: one handle with its connection, set up once.
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

  /// The body; empty where something went wrong.
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

/// A store with one entry on an nginx of its own, and all that a bare client needs to know of it.
class Shelf {
 public:
  Shelf(const test::NginxOptions& wants, const Artifact& artifact)
      : nginx_(wants), options_(test::options_for(nginx_, wants)), artifact_(artifact) {}

  Status fill() {
    auto depot = open_http_depot(options_);
    if (!depot) return std::move(depot).error();
    SecretKey secret = SecretKey::generate();
    voice_ = secret.public_key();
    auto policy = std::make_shared<TrustPolicy>();
    policy->trust(voice_, "bench");
    auto signer = Signer::ci(std::move(secret), "bench", 1);
    if (!signer) return std::move(signer).error();
    RemoteStore::Parts parts;
    parts.depot = std::move(*depot);
    parts.policy = policy;
    parts.signer = std::make_shared<const Signer>(std::move(*signer));
    store_ = std::make_unique<RemoteStore>(parts);
    if (Status put = store_->put(key_, artifact_); !put) return put;
    const auto action = parts.depot->read(Depot::Shelf::Action, key_.digest, 1 << 16, kLimit);
    if (!action) return action.error();
    const auto result = ActionResult::decode(as_bytes((*action)->view()));
    if (!result) return result.error();
    auto stated = SignedStatement::decode(result->said, entry_subject(key_));
    if (!stated) return std::move(stated).error();
    stated_ = std::move(*stated);
    return {};
  }

  bool hit() const {
    const auto hit = store_->get(key_);
    return hit && *hit && (*hit)->artifact.bytes.size() == artifact_.bytes.size();
  }
  /// What a client of a few lines does, in the only order that is safe: nothing is fetched that nobody signed.
  struct Bare {
    double gets = 0;  ///< microseconds
    double verification = 0;
    bool good = false;
  };
  Bare get_bare(BareGets& bare) const {
    std::int64_t times[5];
    times[0] = now_ns();
    const bool action = !bare.get(options_.url + "/ac/" + key_.hex()).empty();
    times[1] = now_ns();
    const bool believed = verifies(voice_, *stated_.signature, stated_.statement);
    times[2] = now_ns();
    const std::string& content = bare.get(options_.url + "/cas/" + stated_.statement.digest.hex());
    times[3] = now_ns();
    const bool whole = sha256(content) == stated_.statement.digest;
    times[4] = now_ns();
    const auto between = [&](int from, int to) { return static_cast<double>(times[to] - times[from]) / 1000.0; };
    return {between(0, 1) + between(2, 3), between(1, 2) + between(3, 4), action && believed && whole};
  }
  const HttpOptions& options() const { return options_; }

 private:
  test::Nginx nginx_;
  const HttpOptions options_;
  const Artifact artifact_;
  const Key key_{sha256("bench key of a remote hit")};
  PublicKey voice_;
  std::unique_ptr<RemoteStore> store_;
  SignedStatement stated_;
};

/// Once each time: a median of single calls is what a busy machine disturbs least.
Plan::Side side_of(const char* what, std::function<bool()> call) {
  return [what, call = std::move(call)]() -> Result<double> {
    const std::int64_t start = now_ns();
    const bool good = call();
    const double time = static_cast<double>(now_ns() - start) / 1000.0;
    if (!good) return failure(Code::Internal, std::string(what) + " did not go well");
    return time;
  };
}

Result<Outcome> measure_gets(const std::string& name, const Shelf& shelf, const CurlLibrary& curl) {
  BareGets bare(curl, shelf.options());
  std::vector<double> verifications;
  const std::vector<Plan::Side> sides{side_of("a remote hit", [&] { return shelf.hit(); }), [&]() -> Result<double> {
                                        const Shelf::Bare times = shelf.get_bare(bare);
                                        if (!times.good) return failure(Code::Internal, "a bare GET did not go well");
                                        verifications.push_back(times.verification);
                                        return times.gets;
                                      }};
  for (const Plan::Side& side : sides) {
    if (auto once = side(); !once) return std::move(once).error();
  }
  constexpr std::size_t kRounds = 3000;
  const auto times = take_turns(sides, kRounds);
  if (!times) return times.error();
  Plan plan;
  plan.name = name;
  plan.limit = kShareOfGets + median(verifications) / median((*times)[1]);
  std::fprintf(stderr, "kiln-bench: %s: SHA-256 and Ed25519 took %.0f us\n", name.c_str(), median(verifications));
  return outcome_of(plan, (*times)[0], (*times)[1]);
}

/// Against a worker that lives and has compiled it before: the least that a compile costs.
Result<Outcome> measure_compile(const std::string& name, const Shelf& shelf, WorkerCompiler& compiler,
                                const Recipe& recipe) {
  Plan plan;
  plan.name = name;
  plan.limit = kShareOfCompile;
  plan.warm_up = 1;
  plan.ours = side_of("a remote hit", [&] { return shelf.hit(); });
  plan.theirs = side_of("a compile", [&] { return compiler.compile(recipe).ok(); });
  return compare(plan);
}

}  // namespace

Result<Outcomes> remote_hit() {
  if (!test::Nginx::available()) return failure(Code::Unavailable, "nginx is not installed: run tools/setup.sh");
  const auto curl = CurlLibrary::open();
  if (!curl) return curl.error();
  const Scratch scratch;
  use_own_folders(scratch);
  OneWorker worker(scratch.path());
  const auto identity = worker.compiler.identity();
  if (!identity) return identity.error();
  const Recipe recipe{ten_kernels(), Target{kArchitecture, Form::Cubin}, *identity, scratch.path()};
  const auto first = worker.compiler.compile(recipe);
  if (!first) return first.error();
  std::fprintf(stderr, "kiln-bench: ten kernels without headers: a cubin of %zu bytes\n", first->artifact.bytes.size());

  Outcomes outcomes;
  const std::pair<const char*, test::NginxOptions> servers[] = {{"remote_hit_64k", {}},
                                                                {"remote_hit_64k_tls", {.tls = true, .http2 = true}}};
  for (const auto& [name, wants] : servers) {
    Shelf shelf(wants, first->artifact);
    if (Status filled = shelf.fill(); !filled) return std::move(filled).error();
    Status added = add(outcomes, measure_gets(name, shelf, **curl));
    if (added) added = add(outcomes, measure_compile(std::string(name) + "_compile", shelf, worker.compiler, recipe));
    if (!added) return std::move(added).error();
  }
  return outcomes;
}

}  // namespace kiln::bench
