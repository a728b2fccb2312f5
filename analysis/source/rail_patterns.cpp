// SPDX-License-Identifier: Apache-2.0
#include "analysis/source/rail_patterns.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace kiln::source {
namespace {

constexpr Pattern kCudaPatterns[] = {
    {"cudaMemcpy", Rail::HostRead, Form::ToHost, 0},
    {"cudaMemcpyAsync", Rail::HostRead, Form::ToHost, 0},
    {"cudaMemcpy2D", Rail::HostRead, Form::ToHost, 0},
    {"cudaMemcpy2DAsync", Rail::HostRead, Form::ToHost, 0},
    {"hipMemcpy", Rail::HostRead, Form::ToHost, 0},
    {"hipMemcpyAsync", Rail::HostRead, Form::ToHost, 0},
    {"cudaMemcpyFromSymbol", Rail::HostRead, Form::Call, 0},
    {"cudaMemcpyFromSymbolAsync", Rail::HostRead, Form::Call, 0},
    {"hipMemcpyDtoH", Rail::HostRead, Form::Call, 0},
    {"hipMemcpyDtoHAsync", Rail::HostRead, Form::Call, 0},
    {"cuMemcpyDtoH", Rail::HostRead, Form::Call, 0},
    {"cuMemcpyDtoHAsync", Rail::HostRead, Form::Call, 0},
    {"clEnqueueReadBuffer", Rail::HostRead, Form::Call, 0},
    {"download", Rail::HostRead, Form::Method, kKiln},
    {"item", Rail::HostRead, Form::MethodNoArgs, kTorch},
    {"cpu", Rail::HostRead, Form::MethodNoArgs, kTorch},
    {"to", Rail::HostRead, Form::ToCpu, kTorch},
    {"front_element", Rail::HostRead, Form::Method, kRmm},
    {"back_element", Rail::HostRead, Form::Method, kRmm},
    {"value", Rail::HostRead, Form::OnStream, kRmm},
    {"make_host_vector", Rail::HostRead, Form::Call, kRmm},
    {"make_host_vector_async", Rail::HostRead, Form::Call, kRmm},
    {"make_std_vector", Rail::HostRead, Form::Call, kRmm},
    {"make_std_vector_async", Rail::HostRead, Form::Call, kRmm},
    {"to_arrow_host", Rail::Materialization, Form::Call, kRmm},
    {"materialize", Rail::Materialization, Form::Call, kKiln},
    {"cudaDeviceSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cudaThreadSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cudaStreamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cudaEventSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cuCtxSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cuStreamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cuEventSynchronize", Rail::Synchronization, Form::Call, 0},
    {"hipDeviceSynchronize", Rail::Synchronization, Form::Call, 0},
    {"hipStreamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"hipEventSynchronize", Rail::Synchronization, Form::Call, 0},
    {"clFinish", Rail::Synchronization, Form::Call, 0},
    {"clWaitForEvents", Rail::Synchronization, Form::Call, 0},
    {"synchronize", Rail::Synchronization, Form::Call, kTorch | kRmm | kKiln},
    {"cudaStreamLegacy", Rail::Synchronization, Form::Mention, 0},
    {"cuda_stream_legacy", Rail::Synchronization, Form::Mention, kRmm},
    {"cudaMalloc", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaMallocAsync", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaMallocManaged", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaMallocHost", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaHostAlloc", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaFree", Rail::AllocationInLoop, Form::Call, 0},
    {"cudaMemPoolTrimTo", Rail::AllocationInLoop, Form::Call, 0},
    {"hipMalloc", Rail::AllocationInLoop, Form::Call, 0},
    {"hipFree", Rail::AllocationInLoop, Form::Call, 0},
    {"cuMemAlloc", Rail::AllocationInLoop, Form::Call, 0},
    {"cuMemAllocAsync", Rail::AllocationInLoop, Form::Call, 0},
    {"cuMemFree", Rail::AllocationInLoop, Form::Call, 0},
    {"clCreateBuffer", Rail::AllocationInLoop, Form::Call, 0},
    {"device_vector", Rail::AllocationInLoop, Form::Mention, kThrust},
    {"device_uvector", Rail::AllocationInLoop, Form::Mention, kRmm},
    {"device_buffer", Rail::AllocationInLoop, Form::Mention, kRmm},
    {"copy_of", Rail::AllocationInLoop, Form::Method, kKiln},
};

constexpr Libraries kArrays = kCupy | kTorch | kJax | kCudf;

constexpr Pattern kPythonPatterns[] = {
    {"item", Rail::HostRead, Form::MethodNoArgs, kArrays},
    {"get", Rail::HostRead, Form::MethodNoArgs, kCupy | kPycuda},
    {"cpu", Rail::HostRead, Form::MethodNoArgs, kTorch},
    {"to", Rail::HostRead, Form::ToCpu, kTorch},
    {"tolist", Rail::HostRead, Form::MethodNoArgs, kArrays},
    {"numpy", Rail::HostRead, Form::MethodNoArgs, kTorch | kTensorflow | kWarp},
    {"copy_to_host", Rail::HostRead, Form::Method, kNumba},
    {"memcpy_dtoh", Rail::HostRead, Form::Call, 0},
    {"memcpy_dtoh_async", Rail::HostRead, Form::Call, 0},
    {"cuMemcpyDtoH", Rail::HostRead, Form::Call, 0},
    {"cuMemcpyDtoHAsync", Rail::HostRead, Form::Call, 0},
    {"cudaMemcpy", Rail::HostRead, Form::ToHost, 0},
    {"cudaMemcpyAsync", Rail::HostRead, Form::ToHost, 0},
    {"memcpyDeviceToHost", Rail::HostRead, Form::Mention, 0},
    {"device_get", Rail::HostRead, Form::Call, kJax},
    {"download", Rail::HostRead, Form::Method, kKiln},
    {"asnumpy", Rail::Materialization, Form::Call, 0},
    {"to_pandas", Rail::Materialization, Form::Method, kCudf},
    {"to_arrow", Rail::Materialization, Form::Method, kCudf},
    {"to_numpy", Rail::Materialization, Form::Method, kCudf},
    {"to_pylist", Rail::Materialization, Form::Method, kCudf},
    {"values_host", Rail::Materialization, Form::Member, kCudf},
    {"materialize", Rail::Materialization, Form::Call, kKiln},
    {"synchronize", Rail::Synchronization, Form::Call, kAnyGpu},
    {"sync", Rail::Synchronization, Form::MethodNoArgs, kCudaPython},
    {"block_until_ready", Rail::Synchronization, Form::Method, kJax},
    {"deviceSynchronize", Rail::Synchronization, Form::Call, 0},
    {"streamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cudaDeviceSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cudaStreamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cuCtxSynchronize", Rail::Synchronization, Form::Call, 0},
    {"cuStreamSynchronize", Rail::Synchronization, Form::Call, 0},
    {"null", Rail::Synchronization, Form::Member, kCupy},
    {"cudaMalloc", Rail::AllocationInLoop, Form::Call, 0},
    {"cuMemAlloc", Rail::AllocationInLoop, Form::Call, 0},
    {"mem_alloc", Rail::AllocationInLoop, Form::Call, kPycuda},
    {"to_gpu", Rail::AllocationInLoop, Form::Call, kPycuda},
    {"device_array", Rail::AllocationInLoop, Form::Call, kNumba},
    {"to_device", Rail::AllocationInLoop, Form::Call, kNumba},
    {"DeviceBuffer", Rail::AllocationInLoop, Form::Call, kRmm},
    {"copy_of", Rail::AllocationInLoop, Form::Method, kKiln},
    {"free_all_blocks", Rail::AllocationInLoop, Form::Method, kCupy},
    {"empty_cache", Rail::AllocationInLoop, Form::Method, kTorch},
    {"empty", Rail::AllocationInLoop, Form::Method, kCupy},
    {"zeros", Rail::AllocationInLoop, Form::Method, kCupy},
    {"ones", Rail::AllocationInLoop, Form::Method, kCupy},
    {"full", Rail::AllocationInLoop, Form::Method, kCupy},
    {"empty_like", Rail::AllocationInLoop, Form::Method, kCupy},
    {"zeros_like", Rail::AllocationInLoop, Form::Method, kCupy},
};

constexpr std::pair<const char*, Libraries> kModules[] = {
    {"cupy", kCupy},       {"cupyx", kCupy},     {"torch", kTorch},    {"numba", kNumba},   {"numba_cuda", kNumba},
    {"pycuda", kPycuda},   {"cudf", kCudf},      {"dask_cudf", kCudf}, {"cuml", kCudf},     {"cugraph", kCudf},
    {"cuspatial", kCudf},  {"pylibcudf", kCudf}, {"jax", kJax},        {"triton", kTriton}, {"tensorflow", kTensorflow},
    {"cuda", kCudaPython}, {"kiln", kKiln},      {"rmm", kRmm},        {"warp", kWarp},     {"numpy", kNumpy}};

constexpr std::pair<const char*, Libraries> kCudaLibraries[] = {
    {"torch/", kTorch}, {"torch::", kTorch}, {"ATen", kTorch}, {"rmm", kRmm},
    {"cudf", kRmm},     {"thrust", kThrust}, {"kiln/", kKiln}, {"kiln::", kKiln}};

// A source in the C family that contains none of them has no hit.
constexpr const char* kCudaWords[] = {"cuda",    "hip", "cuMem",     "cuCtx",    "cuStream", "cuLaunch",
                                      "cuEvent", "<<<", "clEnqueue", "clFinish", "clWait",   "clCreate"};

bool contains(const Structure& source, TokenRange range, std::initializer_list<const char*> parts) {
  for (std::size_t i = range.first; i < std::min(range.end, range.first + kMaxExpression); ++i) {
    for (const char* part : parts) {
      if (source.tokens[i].text.find(part) != std::string_view::npos) return true;
    }
  }
  return false;
}

Libraries library_of(std::string_view module) {
  for (const auto& [name, library] : kModules) {
    if (module == name) return library;
  }
  return 0;
}

// Reads `import a.b as c, d` or `from a.b import c as d, e`.
void add_import(const Structure& source, TokenRange line, Imports& to) {
  const bool from = source.is(line.first, "from");
  Libraries library = from ? library_of(source.tokens[line.first + 1].text) : 0;
  std::size_t at = line.first + 1;
  if (from) {
    while (at < line.end && !source.is(at, "import")) ++at;
    // numba itself compiles for the CPU, too: only its cuda counts.
    if (library == kNumba && !source.has_word(line, "cuda")) library = 0;
    ++at;
  }
  to.libraries |= library;
  for (const TokenRange& part : source.split({std::min(at, line.end), line.end})) {
    std::size_t first = part.first + (source.is(part.first, "(") ? 1 : 0);
    if (!source.is_word(first)) continue;
    std::size_t last = part.end - 1;
    while (last > first && !source.is_word(last)) --last;
    const bool renamed = last > first && source.is(last - 1, "as");
    if (!from) to.libraries |= library = library_of(source.tokens[first].text);
    if (library != 0) to.names.emplace_back(source.tokens[renamed ? last : first].text, library);
  }
}

}  // namespace

const char* to_string(Rail rail) {
  switch (rail) {
    case Rail::HostRead: return "host_read";
    case Rail::Materialization: return "materialization";
    case Rail::Synchronization: return "synchronization";
    case Rail::DeviceRangeLoop: return "device_range_loop";
    case Rail::AllocationInLoop: return "allocation_in_loop";
    case Rail::LaunchShape: return "launch_shape";
  }
  return "";
}

const Pattern* find_pattern(Language language, std::string_view word) {
  using Table = std::unordered_map<std::string_view, const Pattern*>;
  static const auto table_of = [](const auto& patterns) {
    Table table;
    for (const Pattern& each : patterns) table.emplace(each.name, &each);
    return table;
  };
  static const Table cuda = table_of(kCudaPatterns);
  static const Table python = table_of(kPythonPatterns);
  const Table& table = language == Language::Cuda ? cuda : python;
  const auto found = table.find(word);
  return found == table.end() ? nullptr : found->second;
}

bool matches(const Structure& source, std::size_t at, const Pattern& pattern) {
  if (pattern.form == Form::Mention) return true;
  // The null stream of CuPy is Stream.null.
  if (pattern.form == Form::Member) {
    return source.is_member(at) && (!source.is(at, "null") || (at > 1 && source.is(at - 2, "Stream")));
  }
  const std::size_t open = source.call_of(at);
  if (open == kNoToken) return false;
  const std::size_t close = source.tokens[open].close;
  const TokenRange inside{open + 1, close == kNoToken ? open + 1 : close};
  switch (pattern.form) {
    case Form::Call: return true;
    case Form::ToHost: return contains(source, inside, {"DeviceToHost"});
    case Form::Method: return source.is_member(at);
    case Form::MethodNoArgs: return source.is_member(at) && close == open + 1;
    case Form::ToCpu: return source.is_member(at) && contains(source, inside, {"\"cpu\"", "'cpu'", "kCPU"});
    case Form::OnStream:
      return source.is_member(at) && inside.end - inside.first <= 3 && contains(source, inside, {"stream"});
    case Form::Member:
    case Form::Mention: break;
  }
  return false;
}

Libraries Imports::of(std::string_view name) const {
  const auto found = std::find_if(names.begin(), names.end(), [&](const auto& each) { return each.first == name; });
  return found == names.end() ? 0 : found->second;
}

Imports imports_of(const Structure& source, std::string_view text) {
  Imports found;
  if (source.language == Language::Cuda) {
    for (const auto& [word, library] : kCudaLibraries) {
      if (text.find(word) != std::string_view::npos) found.libraries |= library;
    }
    return found;
  }
  for (const TokenRange& line : source.statements) {
    if (line.end - line.first < 2 || found.names.size() > 1000) continue;
    if (source.is(line.first, "import") || source.is(line.first, "from")) add_import(source, line, found);
  }
  if ((found.libraries & kCupy) != 0) found.names.emplace_back("xp", kCupy);  // the module that an array belongs to
  return found;
}

bool may_have_rails(Language language, std::string_view text) {
  const auto has = [&](const char* word) { return text.find(word) != std::string_view::npos; };
  if (language == Language::Cuda) {
    return std::any_of(std::begin(kCudaWords), std::end(kCudaWords), has) ||
           std::any_of(std::begin(kCudaLibraries), std::end(kCudaLibraries),
                       [&](const auto& each) { return has(each.first); });
  }
  return std::any_of(std::begin(kModules), std::end(kModules),
                     [&](const auto& each) { return each.second != kNumpy && has(each.first); });
}

std::size_t root_of(const Structure& source, std::size_t at) {
  while (at >= 2 && source.is(at - 1, ".")) {
    if (!source.is_word(at - 2)) return kNoToken;
    at -= 2;
  }
  return at;
}

}  // namespace kiln::source
