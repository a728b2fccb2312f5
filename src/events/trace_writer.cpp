// SPDX-License-Identifier: Apache-2.0
#include "events/trace_writer.hpp"

#include <errno.h>  // program_invocation_short_name
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "base/files/replace_file.hpp"
#include "base/process/system_info.hpp"
#include "events/trace_json.hpp"

namespace kiln {
namespace {

// A compiler log can be a megabyte; a trace viewer shows a tooltip.
constexpr std::size_t kMaxMessageLength = 2000;

}  // namespace

void TraceWriter::on_event(const Event& event) {
  TraceRecord record;
  record.emitted_at = clock_.steady();
  record.thread = static_cast<int>(syscall(SYS_gettid));  // not cached per thread: a forked child has another id
  record.event = event;
  if (record.event.message.size() > kMaxMessageLength) {
    record.event.message.resize(kMaxMessageLength);
    record.event.message.shrink_to_fit();
  }
  const MutexLock lock(mutex_);
  if (records_.size() >= options_.max_events) {
    ++dropped_;
    return;
  }
  if (const auto [at, fresh] = threads_.try_emplace(record.thread); fresh) at->second = thread_name();
  record.id = records_.size() + 1;
  records_.push_back(std::move(record));
}

std::string TraceWriter::json() const {
  std::vector<TraceRecord> records;
  ThreadNames threads;
  std::size_t dropped = 0;
  {
    const MutexLock lock(mutex_);
    records = records_;
    threads = threads_;
    dropped = dropped_;
  }
  const TraceProcess process{getpid(), program_invocation_short_name, dropped, current_command_line(),
                             format_utc(clock_.wall())};
  return trace_json(process, layout_trace(records, threads));
}

Status TraceWriter::write(const std::string& path) const { return replace_file(path, json(), Durability::Unsynced); }

}  // namespace kiln
