// What the road as shipped adds to a compile: the search, the claim, the worker process that watches, the closure and
// the entry. The digests of the toolkit's files, which the first compile on a machine learns, are kept between rounds:
// each round has an empty cache but for that memory.
#include <filesystem>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "base/error.hpp"
#include "bench/benchmarks.hpp"
#include "bench/scratch.hpp"
#include "bench/units.hpp"
#include "compile/nvrtc_library.hpp"
#include "session/toolbox.hpp"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

SessionOptions options_for(const std::string& cache) {
  return {.settings = {{"cache.dir", cache}}, .locked = {"cache.dir"}, .on_event = {}};
}

// Bare NVRTC in this process, which has used it before.
Result<double> bare(const NvrtcLibrary& nvrtc, const Unit& unit) {
  std::vector<std::string> options{"--gpu-architecture=" + std::string(kArchitecture)};
  options.insert(options.end(), unit.options().begin(), unit.options().end());
  for (const IncludeRoot& root : unit.include_roots()) options.push_back("-I" + root.path);
  if (nvrtc.version >= CudaVersion{12, 9}) options.emplace_back("--no-cache");
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  const std::int64_t start = now_ns();
  NvrtcProgram* program = nullptr;
  std::size_t size = 0;
  std::string cubin;
  int result = nvrtc.create(&program, unit.source().c_str(), unit.name().c_str(), 0, nullptr, nullptr);
  for (std::size_t i = 0; result == 0 && i < unit.entries().size(); ++i) {
    result = nvrtc.add_name(program, unit.entries()[i].c_str());
  }
  if (result == 0) result = nvrtc.compile(program, static_cast<int>(texts.size()), texts.data());
  if (result == 0) result = nvrtc.cubin_size(program, &size);
  cubin.resize(size);
  if (result == 0) result = nvrtc.cubin(program, cubin.data());
  nvrtc.destroy(&program);
  if (result != 0) return failure(Code::CompileFailed, std::string("bare NVRTC: ") + nvrtc.error_string(result));
  return static_cast<double>(now_ns() - start) / 1e6;
}

class Road {
 public:
  explicit Road(const Unit& unit) : unit_(unit) {}

  Result<double> compile() {
    const std::string cache = scratch_ / std::to_string(round_++);
    if (round_ > 1) {
      fs::create_directories(cache + "/v1");
      fs::copy_file(scratch_ / "0/v1/digests", cache + "/v1/digests");
    }
    bool compiled = false;
    SessionOptions options = options_for(cache);
    options.on_event = [&](const Event& event) { compiled |= event.kind == Event::Kind::Published; };
    const std::int64_t start = now_ns();
    auto session = Session::open(options);
    if (!session) return std::move(session).error();
    const auto artifact = session->artifact(unit_, Target{kArchitecture, Form::Cubin});
    const double time = static_cast<double>(now_ns() - start) / 1e6;
    if (!artifact) return artifact.error();
    if (!compiled) return failure(Code::Internal, "it was not compiled and stored: nothing was measured");
    return time;
  }

 private:
  const Scratch scratch_;
  const Unit unit_;
  int round_ = 0;
};

}  // namespace

Result<Outcomes> cold_compile() {
  const auto roots = toolkit_include_roots();
  if (!roots) return roots.error();
  const Unit unit = large_unit(*roots);
  const Scratch scratch;
  const Observer nobody;
  Toolbox toolbox(Config::load(options_for(scratch / "cache"), nobody), nobody);
  const auto recipe = toolbox.recipe(unit, Target{kArchitecture, Form::Cubin});
  if (!recipe) return recipe.error();
  const auto nvrtc = NvrtcLibrary::open(recipe->compiler.path);
  if (!nvrtc) return nvrtc.error();

  Road road(unit);
  Plan plan;
  plan.name = "cold_compile";
  plan.unit = "ms";
  plan.limit = 1.05;
  plan.ours = [&] { return road.compile(); };
  plan.theirs = [&] { return bare(**nvrtc, unit); };
  plan.warm_up = 2;
  plan.least_rounds = 8;
  plan.most_rounds = 16;
  plan.most_seconds = 90;
  auto outcome = compare(plan);
  if (!outcome) return std::move(outcome).error();
  return Outcomes{std::move(*outcome)};
}

}  // namespace kiln::bench
