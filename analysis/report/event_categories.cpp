#include "analysis/report/event_categories.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace kiln::report {
namespace {

// The name prefix of all threads that kiln creates; docs/trace.md.
constexpr const char* kOwnThreads = "kiln-";

}  // namespace

const char* to_string(EventCategory mark) {
  constexpr const char* kNames[kMarks] = {"request", "wait",   "find", "compile", "load", "launch",
                                          "copy",    "memory", "work", "trouble", "other"};
  return kNames[static_cast<unsigned>(mark)];
}

const char* display_name(EventCategory mark) {
  constexpr const char* kWords[kMarks] = {"request", "wait",   "hit or miss", "compile", "load", "launch",
                                          "copy",    "memory", "operation",   "problem", "other"};
  return kWords[static_cast<unsigned>(mark)];
}

EventCategory category_of(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::Requested: return EventCategory::Request;
    case Event::Kind::BlockingCompile:
    case Event::Kind::ClaimWaited:
    case Event::Kind::LeaseWaited:
    case Event::Kind::Synchronized: return EventCategory::Wait;
    case Event::Kind::Hit:
    case Event::Kind::Miss: return EventCategory::Find;
    case Event::Kind::Compiled: return EventCategory::Compile;
    case Event::Kind::Loaded: return EventCategory::Load;
    case Event::Kind::Launched:
    case Event::Kind::CalledCompiled: return EventCategory::Launch;
    case Event::Kind::Copied:
    case Event::Kind::Materialized: return EventCategory::Copy;
    case Event::Kind::Allocated:
    case Event::Kind::MemoryTierSelected:
    case Event::Kind::MemoryTrimmed: return EventCategory::Memory;
    case Event::Kind::Decided:
    case Event::Kind::Dispatched:
    case Event::Kind::StageFinished:
    case Event::Kind::Rewritten: return EventCategory::Work;
    case Event::Kind::CompileFailed:
    case Event::Kind::NotPublished:
    case Event::Kind::EntryDropped:
    case Event::Kind::CacheUnavailable:
    case Event::Kind::ClaimUnavailable:
    case Event::Kind::WorkerUnavailable:
    case Event::Kind::ConfigWarning:
    case Event::Kind::Undeclared:
    case Event::Kind::LoadRejected:
    case Event::Kind::NoDevice:
    case Event::Kind::WorkerLost:
    case Event::Kind::Quarantined:
    case Event::Kind::PchDropped:
    case Event::Kind::PchUnavailable:
    case Event::Kind::CalledFallback:
    case Event::Kind::BundleRejected:
    case Event::Kind::BundleIncompatible:
    case Event::Kind::RecordUnavailable:
    case Event::Kind::RemoteRejected:
    case Event::Kind::RemoteUnavailable:
    case Event::Kind::UploadDropped:
    case Event::Kind::Hedged:
    case Event::Kind::LeaseLost:
    case Event::Kind::FellBack:
    case Event::Kind::AllocationRetried: return EventCategory::Problem;
    default: return EventCategory::Other;
  }
}

std::string display_name(Event::Kind kind) {
  std::string text = to_string(kind);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string thread_name(const audit::Trace& trace, std::uint64_t thread) {
  if (const auto known = trace.threads.find(thread); known != trace.threads.end() && !known->second.empty()) {
    return known->second;
  }
  if (thread == trace.pid && !trace.process.empty()) return trace.process;
  return "thread " + std::to_string(thread);
}

bool is_background(const audit::Trace& trace, std::uint64_t thread) {
  const auto known = trace.threads.find(thread);
  return known != trace.threads.end() && known->second.rfind(kOwnThreads, 0) == 0;
}

std::string subject_of(const Event& event) {
  if (!event.unit.empty() || event.context.operation.empty()) return event.unit;
  return event.context.stage.empty() ? event.context.operation : event.context.operation + ", " + event.context.stage;
}

double length_of(const audit::RecordedEvent& event) {
  return event.event.ms > 0 ? event.event.ms : event.end_ms - event.start_ms;
}

std::string format_duration(double ms) {
  char text[48];
  if (ms >= 120'000) {
    const auto seconds = static_cast<long long>(std::llround(ms / 1000));
    std::snprintf(text, sizeof text, "%lld min %02lld s", seconds / 60, seconds % 60);
  } else if (ms >= 1000) {
    std::snprintf(text, sizeof text, ms >= 10'000 ? "%.1f s" : "%.2f s", ms / 1000);
  } else if (ms >= 0.1) {
    std::snprintf(text, sizeof text, ms >= 100 ? "%.0f ms" : ms >= 10 ? "%.1f ms" : "%.2f ms", ms);
  } else {
    std::snprintf(text, sizeof text, ms >= 0.01 ? "%.0f µs" : ms > 0 ? "%.1f µs" : "0 µs", ms * 1000);
  }
  return text;
}

}  // namespace kiln::report
