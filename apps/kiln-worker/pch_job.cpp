// SPDX-License-Identifier: Apache-2.0
#include "pch_job.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "backends/cuda/bundled_headers.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "interpose.hpp"

namespace kiln {
namespace {

// CUB's headers need 150 to 340 MB, depending on the version of NVRTC, whose default is 256 MB. Memory that is not used
// costs nothing but a share of the process's limit.
constexpr std::uint64_t kInitialHeap = std::uint64_t{512} << 20;
constexpr std::uint64_t kHeapStep = std::uint64_t{64} << 20;

constexpr const char* kNoHeap = "this NVRTC has no precompiled headers, which need version 12.8 or newer";
constexpr const char* kNotPlaced = "the memory of this NVRTC cannot be placed at the address that all workers use";
constexpr const char* kTemplateWarnings =
    "the compiler reports warnings for templates in them, and where these are in a log depends on the unit";

constexpr const char* kUnknownOrder =
    "the compiler does not show which of its warnings are for them (an option may suppress #warning)";

// A file that is older can have no other content with the same stamp: no file system has coarser times.
constexpr std::chrono::seconds kMinAge{2};

struct OpenFile {
  Fd file;
  FileStamp stamp;
};

std::optional<OpenFile> open_file(const std::string& path) {
  OpenFile opened{Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), {}};
  struct stat status;
  if (!opened.file || fstat(opened.file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  opened.stamp = FileStamp::of(status);
  if (opened.stamp.size == 0) return std::nullopt;
  return opened;
}

// Maps the file instead of reading it: it is in the page cache, and the compiler is about to read all of it.
std::optional<std::uint64_t> checksum_of(const OpenFile& opened) {
  const std::size_t size = opened.stamp.size;
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, opened.file.get(), 0);
  if (start == MAP_FAILED) return std::nullopt;
  const std::uint64_t checksum = xxh3({static_cast<const std::uint8_t*>(start), size});
  munmap(start, size);
  return checksum;
}

PchResult rejected(std::string reason) { return {PchResult::Outcome::Rejected, std::move(reason)}; }

bool took_it(const PchResult& report) {
  return report.outcome == PchResult::Outcome::Created || report.outcome == PchResult::Outcome::Used;
}

}  // namespace

PchHeap::PchHeap(NvrtcCompiler& nvrtc, std::uint64_t memory_limit)
    : nvrtc_(&nvrtc), memory_limit_(memory_limit), size_(nvrtc.pch_heap_size()) {
  const std::uint64_t wanted = std::min(kInitialHeap, memory_limit / 4);
  // The variable sets NVRTC's own default. Workers have it only in tests.
  if (exists() && wanted > size_ && getenv("NVRTC_PCH_HEAP_SIZE") == nullptr) size_ = nvrtc.set_pch_heap_size(wanted);
  reserve_pch_heap(size_);
}

bool PchHeap::fit(std::uint64_t required) {
  if (required <= size_) return true;
  const std::uint64_t wanted = (required + required / 8 + kHeapStep) / kHeapStep * kHeapStep;
  if (!exists() || wanted > memory_limit_ / 2) return false;
  size_ = nvrtc_->set_pch_heap_size(wanted);
  reserve_pch_heap(size_);
  return required <= size_;
}

bool PchHeap::is_intact(const PchRequest& order) {
  const auto opened = open_file(order.path);
  if (!opened || opened->stamp.size != order.size) return false;
  const auto known = intact_.find(order.checksum);
  if (known != intact_.end() && known->second == opened->stamp) return true;
  // Before the file is read: a change during or after it has a later time.
  const bool is_young = opened->stamp.is_newer_than(kMinAge, system_clock().wall());
  if (checksum_of(*opened) != order.checksum) return false;
  if (!is_young) intact_[order.checksum] = opened->stamp;
  return true;
}

Result<CompileResult> PchJob::run(const Compile& compile, const HeaderLog& header_log, PchResult& report) {
  Result<CompileResult> compiled = make_error(Code::CompileFailed, "not compiled");
  if (!heap_.exists()) {
    report = rejected(kNoHeap);
  } else if (order_.mode == PchRequest::Mode::Use && !heap_.is_intact(order_)) {
    report = rejected("the file is corrupt");
  } else if (order_.mode == PchRequest::Mode::Create || heap_.fit(order_.size)) {
    // A file that is too large for this worker's memory limit can serve others, so it is not rejected.
    create_or_use(compile, compiled, report);
  }
  if (compiled && took_it(report)) check_log(*compiled, header_log, report);
  if (compiled && took_it(report)) return compiled;
  if (!compiled && is_attempt_ && order_.mode == PchRequest::Mode::Create && is_missing_header(compiled.error()))
    return compiled;
  // A precompiled header that is not used leaves a gap in the log: NVRTC adds a remark on how to suppress warnings to
  // the warning about it, and prints the remark only once. Without machine code, only headers were compiled.
  if (compiled && compiled->artifact.metadata.log.empty() && compiled->artifact.bytes.size() != 0) return compiled;
  (void)recorder_.take();
  PchResult none;
  return compile({}, none);
}

void PchJob::create_or_use(const Compile& compile, Result<CompileResult>& compiled, PchResult& report) {
  compiled = compile(order_, report);
  if (compiled && report.heap_required != 0) {
    if (heap_.fit(report.heap_required)) {
      (void)recorder_.take();
      compiled = compile(order_, report);
    } else {
      report.reason += ", more than half of the memory limit of a compile (KILN_WORKER_MEMORY)";
    }
  }
  if (!compiled) {
    // The precompiled header may be the cause of the failure, or it may have been removed by now.
    report = rejected("the compile failed with it: " + compiled.error().message);
    const std::string_view line = first_line(compiled.error().log);
    if (!line.empty()) report.reason.append(" (").append(line).append(")");
  } else if (!is_pch_heap_reserved()) {
    report = {PchResult::Outcome::Unavailable, kNotPlaced};
  } else if (report.outcome == PchResult::Outcome::Created) {
    complete(report);
  }
}

// Completes the report with the written precompiled header on disk.
void PchJob::complete(PchResult& report) const {
  auto before = recorder_.take_until_output();
  const auto written = open_file(order_.path);
  const auto checksum = written ? checksum_of(*written) : std::nullopt;
  if (!before || !checksum) {
    report = rejected("the compiler's output cannot be read");
    return;
  }
  report.size = written->stamp.size;
  report.checksum = *checksum;
  report.observations = std::move(*before);
}

// NVRTC instantiates the templates that headers use when it creates a precompiled header, otherwise after the unit. The
// log of a unit with its own warnings is therefore that of a compile without a precompiled header only if the headers'
// log has no warnings of such templates.
void PchJob::check_log(const CompileResult& compiled, const HeaderLog& header_log, PchResult& report) const {
  const bool is_use = order_.mode == PchRequest::Mode::Use;
  const std::string& headers = is_use ? order_.log : report.log;
  if (is_use) report.log_checked = order_.log_checked;
  if (headers.empty() || report.log_checked || compiled.artifact.metadata.log.size() <= headers.size()) return;
  const std::optional<std::string> plain = header_log ? header_log() : std::nullopt;
  report.log_checked = plain == headers;
  if (report.log_checked) return;
  report = rejected(plain ? kTemplateWarnings : kUnknownOrder);
  report.permanent = plain.has_value();
}

}  // namespace kiln
