// SPDX-License-Identifier: Apache-2.0
#include <kiln/event.hpp>

#include "events/event_emitter.hpp"

namespace kiln {

const char* to_string(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::Hit: return "hit";
    case Event::Kind::Miss: return "miss";
    case Event::Kind::ClaimWaited: return "claim_waited";
    case Event::Kind::Compiled: return "compiled";
    case Event::Kind::CompileFailed: return "compile_failed";
    case Event::Kind::Published: return "published";
    case Event::Kind::NotPublished: return "not_published";
    case Event::Kind::EntryDropped: return "entry_dropped";
    case Event::Kind::CacheUnavailable: return "cache_unavailable";
    case Event::Kind::ClaimUnavailable: return "claim_unavailable";
    case Event::Kind::WorkerUnavailable: return "worker_unavailable";
    case Event::Kind::Evicted: return "evicted";
    case Event::Kind::ConfigWarning: return "config_warning";
    case Event::Kind::Requested: return "requested";
    case Event::Kind::Cancelled: return "cancelled";
    case Event::Kind::BlockingCompile: return "blocking_compile";
    case Event::Kind::Undeclared: return "undeclared";
    case Event::Kind::Loaded: return "loaded";
    case Event::Kind::LoadRejected: return "load_rejected";
    case Event::Kind::Launched: return "launched";
    case Event::Kind::Copied: return "copied";
    case Event::Kind::Synchronized: return "synchronized";
    case Event::Kind::Allocated: return "allocated";
    case Event::Kind::NoDevice: return "no_device";
    case Event::Kind::WorkerLost: return "worker_lost";
    case Event::Kind::Quarantined: return "quarantined";
    case Event::Kind::PchCreated: return "pch_created";
    case Event::Kind::PchUsed: return "pch_used";
    case Event::Kind::PchDropped: return "pch_dropped";
    case Event::Kind::PchUnavailable: return "pch_unavailable";
    case Event::Kind::CalledCompiled: return "called_compiled";
    case Event::Kind::CalledFallback: return "called_fallback";
    case Event::Kind::LibraryChecked: return "library_checked";
    case Event::Kind::HeadersInstalled: return "headers_installed";
    case Event::Kind::BundleRejected: return "bundle_rejected";
    case Event::Kind::BundleIncompatible: return "bundle_incompatible";
    case Event::Kind::RecordUnavailable: return "record_unavailable";
    case Event::Kind::RemoteRejected: return "remote_rejected";
    case Event::Kind::RemoteUnavailable: return "remote_unavailable";
    case Event::Kind::RemoteRecovered: return "remote_recovered";
    case Event::Kind::Uploaded: return "uploaded";
    case Event::Kind::UploadDropped: return "upload_dropped";
    case Event::Kind::LeaseWaited: return "lease_waited";
    case Event::Kind::Hedged: return "hedged";
    case Event::Kind::LeaseLost: return "lease_lost";
    case Event::Kind::Extension: return "extension";
  }
  return "unknown";
}

const char* event_name(const Event& event) {
  const bool named = event.kind == Event::Kind::Extension && !event.name.empty();
  return named ? event.name.c_str() : to_string(event.kind);
}

Event make_event(Event::Kind kind, const Unit& unit, const Target& target, std::uint64_t flow) {
  Event event;
  event.kind = kind;
  event.unit = unit.label();
  event.target = target.name();
  event.task_id = flow;
  return event;
}

}  // namespace kiln
