#include <kiln/event.hpp>

#include "observe/observer.hpp"

namespace kiln {

const char* to_string(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::Hit: return "hit";
    case Event::Kind::Miss: return "miss";
    case Event::Kind::Waited: return "waited";
    case Event::Kind::Compiled: return "compiled";
    case Event::Kind::CompileFailed: return "compile_failed";
    case Event::Kind::Published: return "published";
    case Event::Kind::NotPublished: return "not_published";
    case Event::Kind::EntryDropped: return "entry_dropped";
    case Event::Kind::CacheUnavailable: return "cache_unavailable";
    case Event::Kind::ClaimUnavailable: return "claim_unavailable";
    case Event::Kind::WorkerUnavailable: return "worker_unavailable";
    case Event::Kind::Evicted: return "evicted";
    case Event::Kind::Configuration: return "configuration";
    case Event::Kind::Requested: return "requested";
    case Event::Kind::Cancelled: return "cancelled";
    case Event::Kind::HotCompile: return "hot_compile";
    case Event::Kind::Undeclared: return "undeclared";
    case Event::Kind::Loaded: return "loaded";
    case Event::Kind::LoadRefused: return "load_refused";
    case Event::Kind::Launched: return "launched";
    case Event::Kind::Copied: return "copied";
    case Event::Kind::Synchronised: return "synchronised";
    case Event::Kind::Allocated: return "allocated";
    case Event::Kind::NoDevice: return "no_device";
    case Event::Kind::WorkerLost: return "worker_lost";
    case Event::Kind::SetAside: return "set_aside";
    case Event::Kind::HeadersKept: return "headers_kept";
    case Event::Kind::HeadersUsed: return "headers_used";
    case Event::Kind::HeadersDropped: return "headers_dropped";
    case Event::Kind::HeadersUnavailable: return "headers_unavailable";
    case Event::Kind::CalledWarm: return "called_warm";
    case Event::Kind::CalledOneShot: return "called_one_shot";
    case Event::Kind::BundleRefused: return "bundle_refused";
    case Event::Kind::BundleUnfit: return "bundle_unfit";
    case Event::Kind::RecordUnavailable: return "record_unavailable";
    case Event::Kind::RemoteRefused: return "remote_refused";
    case Event::Kind::RemoteUnavailable: return "remote_unavailable";
    case Event::Kind::RemoteBack: return "remote_back";
    case Event::Kind::Uploaded: return "uploaded";
    case Event::Kind::UploadDropped: return "upload_dropped";
    case Event::Kind::LeaseWaited: return "lease_waited";
    case Event::Kind::Hedged: return "hedged";
    case Event::Kind::LeaseLost: return "lease_lost";
    case Event::Kind::Decided: return "decided";
    case Event::Kind::FellBack: return "fell_back";
    case Event::Kind::Dispatched: return "dispatched";
    case Event::Kind::StageRan: return "stage_ran";
    case Event::Kind::Materialised: return "materialised";
    case Event::Kind::Rewritten: return "rewritten";
    case Event::Kind::MemorySet: return "memory_set";
    case Event::Kind::MemoryRetried: return "memory_retried";
    case Event::Kind::MemoryTrimmed: return "memory_trimmed";
  }
  return "unknown";
}

Event event_of(Event::Kind kind, const Unit& unit, const Target& target, std::uint64_t flow) {
  Event event;
  event.kind = kind;
  event.unit = unit.label();
  event.target = target.name();
  event.flow = flow;
  return event;
}

}  // namespace kiln
