// SPDX-License-Identifier: Apache-2.0
// The part of WorkerCompiler that has the headers installed that NVRTC bundles.
#include <algorithm>

#include "backends/cccl/cccl_compiler.hpp"
#include "base/error.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln {
namespace {

// Maximum number of entries. A dropped entry costs a failed attempt to create a precompiled header.
constexpr std::size_t kMaxMissingHeaders = 1024;

// Returns the error of a unit that does not compile without headers that were not installed. It is not a result of the
// compile: the next request tries again.
Error without_headers(const Error& compile, const Error& install) {
  std::string message = compile.message + ": a header is missing, and " + install.message;
  if (install.code != Code::Cancelled) message += "; to compile without them, add an include root that has the header";
  return make_error(install.code == Code::Cancelled ? Code::Cancelled : Code::Unavailable, std::move(message),
                    compile.log);
}

}  // namespace

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
    if (!uses_bundled) return compile_with_roots(recipe, context);
    const Status installed = install_headers(recipe, context);
    return installed ? compile_with_bundled(recipe, context) : installed.error();
  }
  if (recipe.unit.kind() != "cuda" || !has_bundled_headers(recipe.compiler)) return compile_with_roots(recipe, context);
  // A unit that compiles without the bundled headers must not find any of them.
  Recipe bare = recipe;
  bare.compiler.roots.clear();
  Result<CompileResult> compiled = compile_with_roots(bare, context);
  if (compiled || !is_missing_header(compiled.error())) return compiled;
  if (options_.bundled == nullptr || recipe.compiler.roots.empty()) {
    Error error = std::move(compiled).error();
    error.message += ": a header is missing, and the headers that NVRTC " + recipe.compiler.version +
                     " bundles are installed next to the cache, which is disabled; enable it (KILN_DISABLE, "
                     "KILN_CACHE_DIR) or add an include root that has the header";
    return error;
  }
  const Status installed = install_headers(recipe, context);
  return installed ? compile_with_bundled(recipe, context) : without_headers(compiled.error(), installed.error());
}

Result<CompileResult> WorkerCompiler::compile_with_bundled(const Recipe& recipe, const RequestContext& context) {
  Result<CompileResult> compiled = compile_with_roots(recipe, context);
  if (compiled || !is_missing_header(compiled.error())) return compiled;
  const auto intact = options_.bundled->is_installed(recipe.compiler.roots.back().path, true);
  if (intact && *intact) return compiled;
  const Status installed = install_headers(recipe, context);
  return installed ? compile_with_roots(recipe, context) : without_headers(compiled.error(), installed.error());
}

bool WorkerCompiler::may_need_bundled(const Recipe& recipe) const {
  return recipe.unit.kind() == "cuda" && recipe.compiler.roots.empty() && options_.bundled != nullptr &&
         !options_.bundled->roots(recipe.compiler).empty();
}

bool WorkerCompiler::had_missing_header(const Digest& headers) {
  const MutexLock lock(mutex_);
  return missing_headers_.contains(headers);
}

void WorkerCompiler::remember_missing_header(const Digest& headers, const Result<CompileResult>& compiled) {
  const bool is_missing = !compiled && is_missing_header(compiled.error());
  const MutexLock lock(mutex_);
  if (!is_missing) {
    missing_headers_.erase(headers);
    return;
  }
  if (missing_headers_.size() >= kMaxMissingHeaders) missing_headers_.clear();
  missing_headers_.insert(headers);
}

Status WorkerCompiler::install_headers(const Recipe& recipe, const RequestContext& context) {
  const auto nvrtc = recipe.unit.kind() == "cccl" ? CcclCompiler::nvrtc_of(recipe.compiler) : recipe.compiler.path;
  if (!nvrtc) return nvrtc.error();
  HeaderInstaller installer;
  if (options_.pool != nullptr) {
    installer.worker = options_.pool->program();
    installer.memory_limit = options_.pool->memory_limit();
  }
  installer.environment = worker_environment(recipe);
  installer.sandboxed = options_.sandbox.enabled;
  installer.readable = options_.sandbox.readable;
  return options_.bundled->install(recipe.compiler.roots.back().path, *nvrtc, installer, context);
}

}  // namespace kiln
