// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/event_categories.hpp"

#include <utility>

#include <kiln/runtime/events.hpp>

#include "analysis/report/jit_events.hpp"

namespace kiln::report {
namespace {

// The name prefix of all threads that kiln creates; docs/internals/trace-format.md.
constexpr const char* kOwnThreads = "kiln-";

constexpr std::pair<EventType, EventCategory> kExtensions[] = {
    {runtime::events::kDecided, EventCategory::Work},
    {runtime::events::kFellBack, EventCategory::Problem},
    {runtime::events::kDispatched, EventCategory::Work},
    {runtime::events::kStageFinished, EventCategory::Work},
    {runtime::events::kMaterialized, EventCategory::Copy},
    {runtime::events::kRewritten, EventCategory::Work},
    {runtime::events::kMemoryTierSelected, EventCategory::Memory},
    {runtime::events::kAllocationRetried, EventCategory::Problem},
    {runtime::events::kMemoryTrimmed, EventCategory::Memory},
    {kCacheFilled, EventCategory::Find},
    {kCachePublished, EventCategory::Copy},
    {kEntrySkipped, EventCategory::Find},
};

EventCategory category_of_extension(const Event& event) {
  for (const auto& [type, category] : kExtensions) {
    if (event.is(type)) return category;
  }
  return EventCategory::Other;
}

}  // namespace

const char* to_string(EventCategory mark) {
  constexpr const char* kNames[] = {"request", "wait",   "find", "compile", "load", "launch",
                                    "copy",    "memory", "work", "trouble", "other"};
  return kNames[static_cast<unsigned>(mark)];
}

EventCategory category_of(const Event& event) {
  switch (event.kind) {
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
    case Event::Kind::Copied: return EventCategory::Copy;
    case Event::Kind::Allocated: return EventCategory::Memory;
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
    case Event::Kind::LeaseLost: return EventCategory::Problem;
    case Event::Kind::Extension: return category_of_extension(event);
    default: return EventCategory::Other;
  }
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

}  // namespace kiln::report
