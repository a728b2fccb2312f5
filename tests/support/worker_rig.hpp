#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "compile/worker_pool.hpp"
#include "support/event_log.hpp"
#include "support/header_units.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// NVRTC in workers that belong to one test: with slots of its own, so that no other test's workers are in its way.
class WorkerRig : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    pool_options_.slots_folder = folder_.path("slots");
    pool_options_.most = 2;
  }
  /// From here on the options are as they are.
  void open(WorkerCompiler::Options options = {}) {
    pool_ = std::make_unique<WorkerPool>(pool_options_);
    options.pool = pool_.get();
    compiler_ = std::make_unique<WorkerCompiler>(std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), digests_), digests_,
                                                 options, log_.observer());
  }
  Recipe recipe(Unit unit) {
    Recipe made = recipe_for(*compiler_, std::move(unit), Target::sm(80));
    made.working_directory = folder_.path();
    return made;
  }
  Result<Compiled> compile(const Unit& unit) { return compiler_->compile(recipe(unit)); }
  /// What the same compiler gives in this process.
  std::string reference(const Unit& unit) {
    const auto compiled = bare_.compile(recipe(unit));
    return compiled ? std::string(compiled->artifact.bytes.view()) : "no reference: " + compiled.error().message;
  }
  static std::string bytes(const Result<Compiled>& compiled) {
    return compiled ? std::string(compiled->artifact.bytes.view()) : "nothing: " + compiled.error().message;
  }
  static double ms_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  }

  const TemporaryDirectory folder_;
  EventLog log_;
  FileDigests digests_{std::string()};
  NvrtcCompiler bare_{toolkit_nvrtc(), digests_};
  WorkerPool::Options pool_options_;
  std::unique_ptr<WorkerPool> pool_;
  std::unique_ptr<WorkerCompiler> compiler_;
};

}  // namespace kiln::test
