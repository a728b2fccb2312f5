// SPDX-License-Identifier: Apache-2.0
// Exports of Nsight Systems. The tables are written by its documented schema; none is from a real GPU.
#include "analysis/audit/nsight_reader.hpp"

#include <gtest/gtest.h>

#include "analysis/audit/audit.hpp"
#include "support/fixtures/sqlite_file.hpp"

namespace kiln::test {
namespace {

constexpr std::uint64_t kProcess = std::uint64_t{77} << 24;
constexpr std::uint64_t kThread = kProcess | 9;

constexpr const char* kSchema = R"(
create table StringIds (id integer primary key, value text not null);
insert into StringIds values (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), (3, 'cudaMalloc_v3020'),
  (4, 'cudaStreamSynchronize_v3020'), (5, 'cudaFree_v3020'), (10, 'scale(float *)'), (11, 'resample'), (12, 'main');
create table TARGET_INFO_GPU (id integer, name text);
insert into TARGET_INFO_GPU values (0, 'Sample GPU');
create table ThreadNames (nameId integer, priority integer, globalTid integer);
create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, eventClass integer, globalTid integer,
  correlationId integer, nameId integer, returnValue integer);
create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, streamId integer,
  correlationId integer, globalPid integer, demangledName integer, gridX integer, gridY integer, gridZ integer,
  blockX integer, blockY integer, blockZ integer, staticSharedMemory integer, dynamicSharedMemory integer);
create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer, deviceId integer, streamId integer,
  correlationId integer, globalPid integer, bytes integer, copyKind integer, srcKind integer, dstKind integer);
)";

std::string list(std::initializer_list<std::uint64_t> values) {
  std::string text;
  for (const std::uint64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "(" + text + ");";
}
std::string call(std::uint64_t start, int correlation, int name, int result = 0) {
  return "insert into CUPTI_ACTIVITY_KIND_RUNTIME values" +
         list(
             {start, start + 5000, 0, kThread, std::uint64_t(correlation), std::uint64_t(name), std::uint64_t(result)});
}
std::string kernel(std::uint64_t start, int correlation, std::uint64_t stream = 13) {
  return "insert into CUPTI_ACTIVITY_KIND_KERNEL values" +
         list({start, start + 20000, 0, stream, std::uint64_t(correlation), kProcess, 10, 4, 3, 2, 32, 8, 1, 512, 256});
}
std::string copy(std::uint64_t start, int correlation, int kind, int source, int destination) {
  return "insert into CUPTI_ACTIVITY_KIND_MEMCPY values" +
         list({start, start + 9000, 0, 13, std::uint64_t(correlation), kProcess, 4096, std::uint64_t(kind),
               std::uint64_t(source), std::uint64_t(destination)});
}

audit::Trace trace_of(const std::string& statements) {
  return audit::parse_trace(sqlite_bytes(kSchema + statements)).value();
}
std::string reason(const std::string& bytes) {
  const auto trace = audit::parse_trace(bytes);
  return trace.has_value() ? "read" : trace.error().message;
}

class NsightReader : public testing::Test {
 protected:
  void SetUp() override {
    if (sqlite_bytes("create table t (x);").empty()) GTEST_SKIP() << "libsqlite3.so.0 is missing";
  }
};

TEST_F(NsightReader, JoinsALaunchWithItsKernel) {
  const audit::Trace trace = trace_of(call(1'000'000, 42, 1) + kernel(1'020'000, 42) +
                                      "insert into ThreadNames values (12, 0, " + std::to_string(kThread) + ");");
  EXPECT_EQ(trace.format, audit::TraceFormat::Nsight);
  ASSERT_EQ(trace.events.size(), 1U);
  const audit::RecordedEvent& launch = trace.events.front();
  EXPECT_EQ(launch.event.kind, Event::Kind::Launched);
  EXPECT_EQ(launch.event.message, "scale(float *)");
  EXPECT_EQ(launch.thread, 9U);
  EXPECT_EQ(launch.event.stream, 13U);
  EXPECT_EQ(launch.event.grid_blocks, 24U);
  EXPECT_EQ(launch.event.block_threads, 256U);
  EXPECT_EQ(launch.event.shared_bytes, 768U);
  EXPECT_EQ(launch.event.target, "Sample GPU");
  EXPECT_NEAR(launch.event.ms, 0.005, 1e-9);
  EXPECT_NEAR(launch.device_start_ms, 0.02, 1e-9);
  EXPECT_NEAR(launch.device_end_ms, 0.04, 1e-9);
  EXPECT_EQ(trace.threads.at(9), "main");
  EXPECT_TRUE(trace.not_recorded.empty());
}

TEST_F(NsightReader, CopiesHaveDirectionAndKindOfMemory) {
  std::string statements;
  const int kinds[][3] = {{1, 0, 2}, {2, 2, 1}, {8, 2, 2}, {9, 0, 0}, {11, 4, 4}};
  for (int i = 0; i < 5; ++i) {
    statements += call(i * 100'000, i + 1, 2) + copy(i * 100'000 + 10, i + 1, kinds[i][0], kinds[i][1], kinds[i][2]);
  }
  const audit::Trace trace = trace_of(statements);
  ASSERT_EQ(trace.events.size(), 4U) << "a copy within the host is ignored";
  EXPECT_EQ(trace.events[0].event.message, "to the device");
  EXPECT_EQ(trace.events[0].event.pinned, std::optional(false));
  EXPECT_EQ(trace.events[1].event.message, "from the device");
  EXPECT_EQ(trace.events[1].event.pinned, std::optional(true));
  EXPECT_EQ(trace.events[2].event.message, "on the device");
  EXPECT_EQ(trace.events[3].event.message, "to the device") << "a migration of managed memory";
  EXPECT_EQ(trace.events[3].event.pinned, std::nullopt);
}

TEST_F(NsightReader, WaitsAllocationsAndFailedCalls) {
  const audit::Trace trace = trace_of(
      call(0, 1, 3) + call(100'000, 2, 1) + kernel(110'000, 2, 14) + call(200'000, 3, 4) + call(300'000, 4, 1, 700) +
      call(400'000, 5, 5) +
      "create table CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (streamId integer, correlationId integer, globalPid integer, "
      "syncType integer); insert into CUPTI_ACTIVITY_KIND_SYNCHRONIZATION values (15, 3, " +
      std::to_string(kProcess) +
      ", 3);"
      "create table CUDA_GPU_MEMORY_USAGE_EVENTS (correlationId integer, globalPid integer, bytes integer, "
      "memKind integer, memoryOperationType integer); insert into CUDA_GPU_MEMORY_USAGE_EVENTS values (1, " +
      std::to_string(kProcess) + ", 4096, 2, 0);");
  ASSERT_EQ(trace.events.size(), 4U) << "a call that failed did nothing";
  EXPECT_EQ(trace.events[0].event.kind, Event::Kind::Allocated);
  EXPECT_EQ(trace.events[0].event.bytes, 4096U);
  EXPECT_EQ(trace.events[0].event.stream, 14U);
  EXPECT_EQ(trace.events[2].event.kind, Event::Kind::Synchronized);
  EXPECT_EQ(trace.events[2].event.stream, 15U) << "the export names the stream";
  EXPECT_EQ(trace.events[3].event.message, "released");
}

TEST_F(NsightReader, PushPopRangesAreOperations) {
  const std::string thread = std::to_string(kThread);
  const audit::Trace trace = trace_of(
      "create table NVTX_EVENTS (start integer, end integer, eventType integer, text text, textId integer, "
      "globalTid integer); insert into NVTX_EVENTS values (0, 500000, 59, null, 11, " +
      thread + "), (100000, 200000, 59, 'inner', null, " + thread + "), (0, 900000, 60, 'start and end', null, " +
      thread + "), (600000, 700000, 59, 'aten::add, seq = 7', null, " + thread + "), (0, null, 34, 'mark', null, " +
      thread + ");" + call(50'000, 1, 1) + kernel(60'000, 1) + call(150'000, 2, 1) + kernel(160'000, 2) +
      call(650'000, 3, 1) + kernel(660'000, 3));
  ASSERT_EQ(trace.events.size(), 3U);
  EXPECT_EQ(trace.events[0].event.context.operation, "resample");
  EXPECT_EQ(trace.events[0].event.context.stage, "");
  EXPECT_EQ(trace.events[1].event.context.operation, "resample");
  EXPECT_EQ(trace.events[1].event.context.stage, "inner");
  EXPECT_EQ(trace.events[1].event.context.dispatch, 1U);
  EXPECT_EQ(trace.events[2].event.context.dispatch, 0U) << "an operator of a framework";
  EXPECT_EQ(trace.events[2].event.context.stage, "aten::add");
}

TEST_F(NsightReader, ProcessesWithEqualCorrelationIdsAreKeptApart) {
  const std::string other = std::to_string((std::uint64_t{78} << 24) | 10);
  const audit::Trace trace = trace_of("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (0, 5, 0, " + other +
                                      ", 1, 1, 0);" + call(10'000, 1, 1) + kernel(20'000, 1));
  ASSERT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.events[0].thread, 10U);
  EXPECT_EQ(trace.events[0].event.message, "unknown kernel");
  EXPECT_EQ(trace.events[1].event.message, "scale(float *)");
}

TEST_F(NsightReader, ColumnsAndTablesCanBeMissing) {
  const audit::Trace early =
      audit::parse_trace(
          sqlite_bytes(
              "create table StringIds (id integer, value text); insert into StringIds values (1, 'cudaLaunchKernel');"
              "create table CUPTI_ACTIVITY_KIND_RUNTIME (start int, end int, globalTid int, correlationId int, nameId "
              "int);"
              "insert into CUPTI_ACTIVITY_KIND_RUNTIME values (0, 5, " +
              std::to_string(kThread) +
              ", 4, 1); create table CUPTI_ACTIVITY_KIND_KERNEL (start int, end int, streamId int, correlationId int);"
              "insert into CUPTI_ACTIVITY_KIND_KERNEL values (9, 19, 13, 4);"))
          .value();
  ASSERT_EQ(early.events.size(), 1U) << "activities without a process are joined by correlation id alone";
  EXPECT_EQ(early.events[0].event.grid_blocks, 0U) << "unknown";
  const audit::Trace device =
      audit::parse_trace(sqlite_bytes("create table CUPTI_ACTIVITY_KIND_KERNEL (start int, end int);")).value();
  EXPECT_EQ(
      device.not_recorded,
      (std::vector<std::string>{"the table StringIds", "the column streamId of the table CUPTI_ACTIVITY_KIND_KERNEL",
                                "the column correlationId of the table CUPTI_ACTIVITY_KIND_KERNEL",
                                "the column demangledName of the table CUPTI_ACTIVITY_KIND_KERNEL",
                                "calls of the CUDA API", "memory allocations", "kernels", "copies"}));
  EXPECT_EQ(reason(sqlite_bytes("create table songs (title text);")),
            "it is a database, but not an export of Nsight Systems; export the report again: nsys export --type=sqlite "
            "REPORT");
}

TEST_F(NsightReader, WithoutANecessaryColumnAnAuditIsInconclusive) {
  const std::string work = call(0, 1, 1) + kernel(10'000, 1) + call(50'000, 2, 2) + copy(60'000, 2, 2, 2, 0);
  EXPECT_TRUE(audit::run_audit(trace_of(work)).clean());
  for (const char* const statement :
       {"drop table StringIds;", "alter table CUPTI_ACTIVITY_KIND_RUNTIME drop nameId;",
        "alter table CUPTI_ACTIVITY_KIND_MEMCPY drop copyKind;", "update CUPTI_ACTIVITY_KIND_MEMCPY set copyKind = 0;",
        "update CUPTI_ACTIVITY_KIND_RUNTIME set nameId = 99;"}) {
    EXPECT_EQ(audit::run_audit(trace_of(work + statement)).verdict(), audit::Verdict::Inconclusive) << statement;
  }
}

TEST_F(NsightReader, ViewsAndVirtualTablesAreNotRead) {
  const std::string endless =
      "with recursive n(x) as (select 1 union all select x + 1 from n) select x as start, x as end from n";
  EXPECT_EQ(reason(sqlite_bytes("create view CUPTI_ACTIVITY_KIND_KERNEL as " + endless + ";")),
            "it is a database, but not an export of Nsight Systems; export the report again: nsys export --type=sqlite "
            "REPORT");
  const std::string made = sqlite_bytes(std::string(kSchema) +
                                        "drop table CUPTI_ACTIVITY_KIND_MEMCPY; "
                                        "create view CUPTI_ACTIVITY_KIND_MEMCPY as " +
                                        endless + ";");
  EXPECT_EQ(reason(made), "read");
}

TEST_F(NsightReader, WorkIsLimitedByTheSizeOfTheFile) {
  // Without a primary key, each of the 20,000 names is searched in all rows: 400 million steps.
  const std::string bytes = sqlite_bytes(
      "create table StringIds (id integer, value text); create table CUPTI_ACTIVITY_KIND_KERNEL (demangledName int);"
      "with recursive n(x) as (select 1 union all select x + 1 from n limit 20000) "
      "insert into StringIds select x, 'a' from n;"
      "insert into CUPTI_ACTIVITY_KIND_KERNEL select id from StringIds;");
  EXPECT_NE(reason(bytes).find("more work"), std::string::npos) << reason(bytes);
}

TEST_F(NsightReader, ComputedColumnsAreRefused) {
  // One step of SQLite makes 900 kB of each of these rows.
  const std::string computed = sqlite_bytes(
      "create table NVTX_EVENTS (start integer, end integer, text text as (printf('%.*c', 900000, 'x')));"
      "with recursive n(x) as (select 1 union all select x + 1 from n limit 100000) "
      "insert into NVTX_EVENTS (start, end) select x, x + 1 from n;");
  EXPECT_EQ(reason(computed).find("its table NVTX_EVENTS has a computed column"), 0U) << reason(computed);
}

TEST_F(NsightReader, AFileInWalModeIsRefusedWithTheNextStep) {
  std::string bytes = sqlite_bytes(kSchema);
  bytes[18] = bytes[19] = 2;
  EXPECT_NE(reason(bytes).find("; convert it: sqlite3"), std::string::npos) << reason(bytes);
}

TEST_F(NsightReader, DamagedNamesAreRejected) {
  std::string bytes = sqlite_bytes(kSchema + call(0, 1, 1) + kernel(10, 1));
  ASSERT_EQ(reason(bytes), "read");
  // The first byte of the second page, which has the rows of StringIds.
  const std::size_t page = static_cast<unsigned char>(bytes[16]) << 8 | static_cast<unsigned char>(bytes[17]);
  ASSERT_EQ(bytes.at(page), 13);
  bytes[page] = 1;
  EXPECT_EQ(reason(bytes).find("it is not a valid database ("), 0U) << reason(bytes);
}

TEST_F(NsightReader, DamagedFilesAreRejectedOrRead) {
  std::string bytes = sqlite_bytes(kSchema + call(0, 1, 1) + kernel(10, 1) + copy(20, 2, 1, 0, 2));
  EXPECT_EQ(reason(bytes), "read");
  EXPECT_NE(reason("SQLite format 3" + std::string(1, '\0') + "and nothing else"), "read");
  EXPECT_NE(reason(bytes.substr(0, bytes.size() / 2)), "read");
  for (std::size_t at = 16; at < bytes.size(); at += 97) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    if (const auto trace = audit::parse_trace(damaged); trace.has_value()) (void)audit::run_audit(*trace);
  }
}

}  // namespace
}  // namespace kiln::test
