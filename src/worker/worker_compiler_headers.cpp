// The part of WorkerCompiler that has the headers installed that NVRTC bundles.
#include <algorithm>

#include "backends/cccl/cccl_compiler.hpp"
#include "base/error.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln {

Result<CompilerIdentity> WorkerCompiler::identity(const RequestContext& context) {
  Result<CompilerIdentity> identity = inner_->identity(context);
  if (!identity || options_.bundled == nullptr) return identity;
  for (IncludeRoot& root : options_.bundled->roots(*identity)) identity->roots.push_back(std::move(root));
  return identity;
}

Result<CompileResult> WorkerCompiler::compile(const Recipe& recipe, const RequestContext& context) {
  if (recipe.unit.kind() == "cccl" && options_.bundled != nullptr) {
    // Without a toolkit, its headers are the bundled ones.
    const auto uses = [&](const IncludeRoot& root) { return options_.bundled->contains(root.path); };
    const bool uses_bundled = std::any_of(recipe.compiler.roots.begin(), recipe.compiler.roots.end(), uses);
    const Status installed = uses_bundled ? install_headers(recipe, context) : Status();
    if (!installed) return installed.error();
  }
  if (recipe.unit.kind() != "cuda" || !has_bundled_headers(recipe.compiler)) return compile_with_roots(recipe, context);
  // A unit that compiles without the bundled headers must not find any of them.
  Recipe bare = recipe;
  bare.compiler.roots.clear();
  Result<CompileResult> compiled = compile_with_roots(bare, context);
  if (compiled || !is_missing_header(compiled.error())) return compiled;
  if (const Status installed = install_headers(recipe, context); !installed) {
    Error error = std::move(compiled).error();
    error.message += ": a header is missing, and " + installed.error().message;
    return error;
  }
  return compile_with_roots(recipe, context);
}

Status WorkerCompiler::install_headers(const Recipe& recipe, const RequestContext& context) {
  if (options_.bundled == nullptr || recipe.compiler.roots.empty()) {
    return make_error(Code::Unavailable,
                      "the headers that NVRTC " + recipe.compiler.version +
                          " bundles are installed next to the cache, which is disabled; enable it (KILN_DISABLE, "
                          "KILN_CACHE_DIR) or add an include root that has the header");
  }
  const std::string worker = options_.pool != nullptr ? options_.pool->program() : std::string();
  const auto nvrtc = recipe.unit.kind() == "cccl" ? CcclCompiler::nvrtc_of(recipe.compiler) : recipe.compiler.path;
  if (!nvrtc) return nvrtc.error();
  return options_.bundled->install(recipe.compiler.roots.back().path, *nvrtc, worker, options_.sandbox.enabled,
                                   context);
}

}  // namespace kiln
