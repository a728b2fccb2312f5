#include "observe/trace.hpp"

#include <errno.h>  // program_invocation_short_name
#include <unistd.h>

#include <utility>

#include "base/machine.hpp"
#include "base/replace_file.hpp"
#include "observe/trace_json.hpp"

namespace kiln {
namespace {

// A compiler's log can be a megabyte; a trace shows a tooltip.
constexpr std::size_t kLongestMessage = 2000;

}  // namespace

void TraceWriter::tell(const Event& event) {
  TraceRecord record;
  record.told = clock_.steady();
  record.thread = gettid();  // not remembered per thread: a forked child has another
  record.event = event;
  if (record.event.message.size() > kLongestMessage) {
    record.event.message.resize(kLongestMessage);
    record.event.message.shrink_to_fit();
  }
  const MutexLock lock(mutex_);
  if (records_.size() >= options_.most_events) {
    ++dropped_;
    return;
  }
  if (const auto [at, fresh] = threads_.try_emplace(record.thread); fresh) at->second = thread_name();
  record.id = records_.size() + 1;
  records_.push_back(std::move(record));
}

std::size_t TraceWriter::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
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
  const TraceProcess process{getpid(), program_invocation_short_name, dropped, own_command(), utc_text(clock_.wall())};
  return trace_json(process, lay_out(records, threads));
}

Status TraceWriter::write(const std::string& path) const { return replace_file(path, json(), Durability::Unsynced); }

}  // namespace kiln
