// SPDX-License-Identifier: Apache-2.0
// The corpus of the audit: programs with one planted fault each, which is found and nothing else, and clean programs,
// in which nothing is found. Each states how it runs: on PoCL, on the driver double, or as a trace written by hand.
#include <cstdio>
#include <fstream>
#include <regex>
#include <set>
#include <thread>

#include "analysis/audit_fixture.hpp"

namespace kiln::test {

using audit::Report;

AuditedPrograms AuditPipeline::planted_on_pocl() {
  return {
      on_pocl("waits between stages", Fault::WaitBetweenStages, "HIGH sync_between_launches"),
      on_pocl("a hidden copy to the host", Fault::HiddenCopy, "HIGH copy_feeds_device_work"),
      on_pocl("a step that the host computes", Fault::HostStep, "BLOCKING host_step"),
      on_pocl("values that are read one by one", Fault::SmallReads, "MEDIUM repeated_small_reads"),
      on_pocl("a launch for each group", Fault::LaunchPerGroup, "HIGH many_tiny_launches"),
      on_pocl("memory allocated in a loop", Fault::AllocationInLoop, "MEDIUM allocation_in_loop"),
      on_pocl("a tiny fixed block", Fault::TinyBlock, "LOW small_fixed_block"),
      on_pocl("a caller waits for a compile", Fault::BlockingCompile, "MEDIUM blocking_compile"),
      on_pocl("a fallback that is not reported", Fault::SilentFallback, "BLOCKING silent_fallback"),
      on_pocl("a decision in the middle", Fault::DecideAgain, "MEDIUM repeated_decision"),
      on_pocl("results copied without a purpose", Fault::UnmarkedResult, "LOW unmarked_host_copy"),
      on_pocl("an output that doubles in steps", Fault::ResizedOutput, "MEDIUM output_resized"),
      on_pocl("a buffer for each row", Fault::BufferPerRow, "MEDIUM many_small_allocations"),
      on_pocl("bins that the host makes", Fault::BinsOfHost, "HIGH work_binned_by_host"),
      on_pocl("two streams in turn", Fault::StreamsInTurn, "MEDIUM streams_never_overlap"),
  };
}

AuditedPrograms AuditPipeline::planted_on_double() {
  return {
      on_double("a wrapper waits for the default stream", {CudaFault::WaitForDefaultStream}, "HIGH null_stream_sync"),
      on_double("a pool trimmed in a loop", {CudaFault::TrimInLoop}, "HIGH trim_in_loop"),
      on_double("plain memory for a pool", {CudaFault::PlainMemory}, "MEDIUM memory_not_pooled"),
      on_double("pageable memory for double buffering", {CudaFault::PageableCopies}, "MEDIUM pageable_copy"),
      on_double("helpers on the default stream", {CudaFault::DefaultStreamHelpers},
                "HIGH default_stream_between_streams"),
      on_double("small blocks with 48 KiB each", {CudaFault::SmallBlockWithSharedMemory},
                "LOW shared_memory_limits_blocks"),
      on_double("fp64 where the plan asks for fp32", {CudaFault::NeedlessFp64}, "MEDIUM needless_fp64"),
  };
}

AuditedPrograms AuditPipeline::planted() {
  AuditedPrograms all = planted_on_pocl();
  for (AuditedProgram& each : planted_by_hand()) all.push_back(std::move(each));
  if (toolkit_nvrtc().empty()) return all;
  for (AuditedProgram& each : planted_on_double()) all.push_back(std::move(each));
  return all;
}

namespace {

Buffer uploaded_rows(const Stream& stream) { return stream.copy_of(some_rows()).value(); }

// The passes of a sort: a loop over a small fixed set.
void radix_passes(runtime::Runtime runtime, const runtime::DispatchRequest& request) {
  const runtime::Dispatch dispatch = runtime::Dispatch::begin(runtime, kPipeline, request).value();
  const Stream stream = runtime.session().stream(kiln::Backend::OpenCl).value();
  const Buffer rows = uploaded_rows(stream);
  for (int pass = 0; pass < 8; ++pass) Pipeline::launch(runtime.session(), stream, "touch", 64, 0, rows);
}

// Two streams that both have work before the host waits for one.
void overlapping_streams(runtime::Runtime runtime, const runtime::DispatchRequest& request) {
  const runtime::Dispatch dispatch = runtime::Dispatch::begin(runtime, kPipeline, request).value();
  Session& session = runtime.session();
  const Stream streams[] = {session.stream(kiln::Backend::OpenCl).value(),
                            session.stream(kiln::Backend::OpenCl).value()};
  const Buffer rows[] = {uploaded_rows(streams[0]), uploaded_rows(streams[1])};
  for (int turn = 0; turn < 6; ++turn) {
    Pipeline::launch(session, streams[turn % 2], "touch", some_rows().size(), 0, rows[turn % 2]);
  }
  for (const Stream& stream : streams) stream.synchronize().value();
}

// A workflow in chunks: it decides again between two of them.
void chunked_workflow(runtime::Runtime runtime, const runtime::DispatchRequest& request) {
  runtime::Workflow workflow = runtime::Workflow::begin(runtime, "chunks", {&kPipeline}, request).value();
  for (int chunk = 0; chunk < 3; ++chunk) {
    if (chunk > 0) workflow.next_chunk(request).value();
    (void)runtime::run(runtime, kPipeline, request, some_rows(), Faults{}).value();
  }
}

// Two threads that run the operation at the same time.
void two_threads(const runtime::Runtime& runtime, const runtime::DispatchRequest& request) {
  const auto run_once = [&] {
    runtime::Runtime mine = runtime;
    (void)runtime::run(mine, kPipeline, request, some_rows(), Faults{}).value();
  };
  std::thread other(run_once);
  run_once();
  other.join();
}

// All units are requested before the first call, and ready when it comes.
void warm_start(runtime::Runtime runtime, const runtime::DispatchRequest& request) {
  runtime.request(runtime::Backend::OpenCl, kPipelineNeeds);
  for (int run = 0; run < 2; ++run) (void)runtime::run(runtime, kPipeline, request, some_rows(), Faults{}).value();
}

}  // namespace

AuditedPrograms AuditPipeline::clean_programs() {
  const auto with_request = [](auto program) {
    return [program](runtime::Runtime runtime) { program(std::move(runtime), many_rows()); };
  };
  AuditedPrograms all = {
      clean_on_pocl("the pipeline", [](runtime::Runtime runtime) { run(std::move(runtime), {}); }),
      clean_on_pocl("passes of a radix sort", with_request(radix_passes)),
      clean_on_pocl("two streams that overlap", with_request(overlapping_streams)),
      clean_on_pocl("a workflow in chunks", with_request(chunked_workflow)),
      clean_on_pocl("two threads", with_request(two_threads)),
      clean_on_pocl("units requested before the first call", with_request(warm_start)),
  };
  for (AuditedProgram& each : clean_by_hand()) all.push_back(std::move(each));
  if (toolkit_nvrtc().empty()) return all;
  all.push_back(on_double("three launches with a pool", {}, ""));
  all.push_back(on_double("double buffering with pinned memory", {CudaFault::PinnedCopies}, ""));
  all.push_back(on_double("48 KiB per block, with the suggested block", {CudaFault::LargeBlockWithSharedMemory}, ""));
  return all;
}

namespace {

void print(const AuditedProgram& each) { std::printf("  %-56s %-14s %s\n", each.what, each.how, each.found.c_str()); }

TEST_F(AuditPipeline, EachPlantedFaultIsFoundAlone) {
  const AuditedPrograms all = planted();
  std::size_t found = 0;
  std::size_t besides = 0;
  for (const AuditedProgram& each : all) {
    const std::vector<std::string> in = found_in(each.report());
    const auto same = static_cast<std::size_t>(std::count(in.begin(), in.end(), each.found));
    EXPECT_EQ(in, std::vector<std::string>({each.found})) << each.what;
    found += same != 0 ? 1 : 0;
    besides += in.size() - same;
    print(each);
  }
  std::printf("injected %zu, found %zu, unexpected %zu\n", all.size(), found, besides);
  EXPECT_GE(all.size(), 30U);
}

TEST_F(AuditPipeline, CleanProgramsHaveNoFindings) {
  const AuditedPrograms all = clean_programs();
  std::size_t wrong = 0;
  for (const AuditedProgram& each : all) {
    const audit::Report report = each.report();
    const std::vector<std::string> in = found_in(report);
    EXPECT_EQ(in, std::vector<std::string>()) << each.what;
    EXPECT_FALSE(report.lacks_evidence()) << each.what;
    wrong += in.size();
    print(each);
  }
  std::printf("clean programs %zu, false findings %zu\n", all.size(), wrong);
  EXPECT_GE(all.size(), 20U);
}

// The programs on the driver double are counted here without running.
TEST_F(AuditPipeline, EveryRuleHasAPlantedFaultAndARowInTheDocumentation) {
  std::set<std::string> faults;
  for (const AuditedPrograms& programs : {planted_on_pocl(), planted_on_double(), planted_by_hand()}) {
    for (const AuditedProgram& each : programs) faults.insert(each.found);
  }
  std::set<std::string> rules;
  std::set<std::string> described;
  for (const audit::Rule* rule : audit::all_rules()) {
    rules.insert(std::string(to_string(rule->severity)) + ' ' + rule->name);
    described.insert(std::string(rule->name) + ' ' + std::to_string(static_cast<int>(rule->step)) + ' ' +
                     to_string(rule->severity) + (rule->structural ? " yes" : " no"));
  }
  EXPECT_EQ(faults, rules);
  std::ifstream page(KILN_SOURCE_DIR "/docs/_generated/audit-rules.md");
  ASSERT_TRUE(page.is_open());
  const std::regex row(R"(\| `(\w+)` \| (\d) \| (\w+) \| .* \| (yes|no) \|)");
  std::set<std::string> documented;
  for (std::string line; std::getline(page, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, row)) {
      documented.insert(parts[1].str() + ' ' + parts[2].str() + ' ' + parts[3].str() + ' ' + parts[4].str());
    }
  }
  EXPECT_EQ(documented, described);
}

}  // namespace
}  // namespace kiln::test
