// SPDX-License-Identifier: Apache-2.0
// Streams and events. Work runs at the next synchronization that reaches it, so that a missing one is detected.
#include <limits>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

constexpr std::uint64_t kAll = std::numeric_limits<std::uint64_t>::max();

/// Checks whether a stream can be waited for or queried: not while it captures, nor if that would disturb another
/// capture.
DriverResult may_wait(Model& model, StreamState& stream) {
  if (stream.capture) {
    model.lose(*stream.capture);
    return DriverResult::CaptureUnsupported;
  }
  if (stream.legacy) {
    const DriverResult legacy = model.legacy_call(stream.context);
    if (legacy != DriverResult::Success) return legacy;
  }
  return model.unsafe_call();
}

template <class Body>
DriverResult with_event(const char* entry, Event event, Body body) {
  return enter(entry, [&](Model& model) {
    EventState* state = model.events.find(event);
    return state != nullptr ? body(model, *state) : model.reject(event);
  });
}

/// Returns whether the work before an event is done.
bool reached(Model& model, const EventState& event) {
  const StreamState* stream = model.streams.find(event.stream);
  return stream == nullptr || stream->work.empty() || stream->work.front().sequence > event.sequence;
}

DriverResult may_wait(Model& model, const EventState& event) {
  return event.captured ? DriverResult::CapturedEvent : model.unsafe_call();
}

DriverResult create_stream(Stream* out, unsigned flags) {
  return enter_context("cuStreamCreate", [&](Model& model, Context context) {
    if (out == nullptr || flags > cuda::kStreamNonBlocking) return DriverResult::InvalidValue;
    StreamState state;
    state.context = context;
    state.blocking = flags == 0;
    *out = model.streams.add(++model.serial, std::move(state));
    return DriverResult::Success;
  });
}

}  // namespace

DriverResult Model::resolve(Stream given, Stream& stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(given);
  if (number > 2) {
    stream = given;
    const StreamState* state = streams.find(stream);
    return state == nullptr ? reject(stream) : at(state->context).broken;
  }
  Context context = nullptr;
  const DriverResult result = current(context);
  if (result != DriverResult::Success) return result;
  stream = at(context).legacy;
  if (number == 2) {
    Stream& own = at(context).per_thread[std::this_thread::get_id()];
    if (own == nullptr) {
      StreamState state;
      state.context = context;
      state.internal = true;
      own = streams.add(++serial, std::move(state));
    }
    stream = own;
  }
  return DriverResult::Success;
}

DriverResult Model::submit(Stream stream, Work work) {
  StreamState& state = *streams.find(stream);
  if (state.capture) {
    if (state.capture->status != CaptureStatus::Active) return DriverResult::CaptureInvalidated;
    state.capture->nodes.push_back(std::move(work));
    return DriverResult::Success;
  }
  if (state.legacy) {
    const DriverResult legacy = legacy_call(state.context);
    if (legacy != DriverResult::Success) return legacy;
  }
  state.work.push_back({++sequence, std::move(work)});
  return DriverResult::Success;
}

void Model::run_one(Stream stream, Operation operation) {
  StreamState& state = *streams.find(stream);
  const Context context = state.context;
  // The legacy stream and blocking streams wait for each other.
  if (state.legacy) {
    std::vector<Stream> others;
    streams.for_each([&](Stream other, StreamState& s) {
      if (s.context == context && s.blocking && !s.legacy) others.push_back(other);
    });
    for (const Stream other : others) run(other, operation.sequence);
  } else if (state.blocking) {
    run(at(context).legacy, operation.sequence);
  }
  const DriverResult result = operation.work(*this);
  if (result != DriverResult::Success && at(context).broken == DriverResult::Success) at(context).broken = result;
}

void Model::run(Stream stream, std::uint64_t until) {
  for (;;) {
    StreamState* state = streams.find(stream);
    if (state == nullptr || state->work.empty() || state->work.front().sequence > until) return;
    Operation operation = std::move(state->work.front());
    state->work.pop_front();
    run_one(stream, std::move(operation));
  }
}

DriverResult Model::run_context(Context context) {
  std::vector<Stream> all;
  streams.for_each([&](Stream stream, StreamState& state) {
    if (state.context == context) all.push_back(stream);
  });
  for (const Stream stream : all) run(stream, kAll);
  return at(context).broken;
}

extern "C" {

DriverResult cuStreamCreate(Stream* stream, unsigned flags) { return create_stream(stream, flags); }

DriverResult cuStreamCreateWithPriority(Stream* stream, unsigned flags, int) { return create_stream(stream, flags); }

DriverResult cuStreamDestroy_v2(Stream given) {
  return enter_stream("cuStreamDestroy", given, [&](Model& model, Stream stream, StreamState& state) {
    if (reinterpret_cast<std::uintptr_t>(given) <= 2) return DriverResult::InvalidHandle;
    // Its work continues after the destruction, but no caller can wait for it, so it runs here.
    if (state.capture) model.lose(*state.capture);
    model.run(stream, kAll);
    model.streams.remove(stream);
    return DriverResult::Success;
  });
}

DriverResult cuStreamSynchronize(Stream given) {
  return enter_stream("cuStreamSynchronize", given, [&](Model& model, Stream stream, StreamState& state) {
    const DriverResult may = may_wait(model, state);
    if (may != DriverResult::Success) return may;
    // Waiting for the legacy stream waits for the blocking streams too.
    if (state.legacy) model.submit(stream, [](Model&) { return DriverResult::Success; });
    model.run(stream, kAll);
    return model.at(state.context).broken;
  });
}

// Each query runs one operation, so that a program that polls terminates.
DriverResult cuStreamQuery(Stream given) {
  return enter_stream("cuStreamQuery", given, [&](Model& model, Stream stream, StreamState& state) {
    const DriverResult may = may_wait(model, state);
    if (may != DriverResult::Success) return may;
    if (state.work.empty()) return model.at(state.context).broken;
    model.run(stream, state.work.front().sequence);
    return DriverResult::NotReady;
  });
}

DriverResult cuStreamGetCtx(Stream given, Context* context) {
  return enter_stream("cuStreamGetCtx", given, [&](Model&, Stream, StreamState& state) {
    if (context == nullptr) return DriverResult::InvalidValue;
    *context = state.context;
    return DriverResult::Success;
  });
}

DriverResult cuStreamGetFlags(Stream given, unsigned* flags) {
  return enter_stream("cuStreamGetFlags", given, [&](Model&, Stream, StreamState& state) {
    if (flags == nullptr) return DriverResult::InvalidValue;
    *flags = state.blocking ? 0 : cuda::kStreamNonBlocking;
    return DriverResult::Success;
  });
}

DriverResult cuStreamWaitEvent(Stream given, Event event, unsigned) {
  return enter_stream("cuStreamWaitEvent", given, [&](Model& model, Stream stream, StreamState&) {
    const EventState* state = model.events.find(event);
    if (state == nullptr) return model.reject(event);
    if (state->captured) return DriverResult::CaptureIsolation;
    const Stream other = state->stream;
    const std::uint64_t until = state->sequence;
    if (other == nullptr) return DriverResult::Success;
    return model.submit(stream, [other, until](Model& m) {
      m.run(other, until);
      return DriverResult::Success;
    });
  });
}

DriverResult cuCtxSynchronize() {
  return enter_context("cuCtxSynchronize", [&](Model& model, Context context) {
    const DriverResult may = model.unsafe_call();
    if (may != DriverResult::Success) return may;
    bool recording = false;
    model.streams.for_each([&](Stream, StreamState& stream) {
      if (stream.context != context || !stream.capture) return;
      model.lose(*stream.capture);
      recording = true;
    });
    return recording ? DriverResult::CaptureUnsupported : model.run_context(context);
  });
}

DriverResult cuEventCreate(Event* event, unsigned) {
  return enter_context("cuEventCreate", [&](Model& model, Context context) {
    if (event == nullptr) return DriverResult::InvalidValue;
    EventState state;
    state.context = context;
    *event = model.events.add(++model.serial, state);
    return DriverResult::Success;
  });
}

DriverResult cuEventDestroy_v2(Event event) {
  return with_event("cuEventDestroy", event, [&](Model& model, EventState&) {
    model.events.remove(event);
    return DriverResult::Success;
  });
}

DriverResult cuEventRecord(Event event, Stream given) {
  return enter_stream("cuEventRecord", given, [&](Model& model, Stream stream, StreamState& state) {
    EventState* found = model.events.find(event);
    if (found == nullptr) return model.reject(event);
    if (found->context != state.context) return DriverResult::InvalidHandle;
    const DriverResult result = model.submit(stream, [](Model&) { return DriverResult::Success; });
    if (result != DriverResult::Success) return result;
    found->stream = stream;
    found->sequence = model.sequence;
    found->captured = state.capture.has_value();
    return DriverResult::Success;
  });
}

DriverResult cuEventSynchronize(Event event) {
  return with_event("cuEventSynchronize", event, [&](Model& model, EventState& state) {
    const DriverResult may = may_wait(model, state);
    if (may != DriverResult::Success) return may;
    model.run(state.stream, state.sequence);
    return model.at(state.context).broken;
  });
}

DriverResult cuEventQuery(Event event) {
  return with_event("cuEventQuery", event, [&](Model& model, EventState& state) {
    const DriverResult may = may_wait(model, state);
    if (may != DriverResult::Success) return may;
    if (reached(model, state)) return model.at(state.context).broken;
    model.run(state.stream, model.streams.find(state.stream)->work.front().sequence);
    return DriverResult::NotReady;
  });
}

DriverResult cuEventElapsedTime_v2(float* milliseconds, Event first, Event second) {
  return enter("cuEventElapsedTime", [&](Model& model) {
    if (milliseconds == nullptr) return DriverResult::InvalidValue;
    for (const Event event : {first, second}) {
      const EventState* state = model.events.find(event);
      if (state == nullptr) return model.reject(event);
      if (state->stream == nullptr) return DriverResult::InvalidHandle;
      if (!reached(model, *state)) return DriverResult::NotReady;
    }
    *milliseconds = 0.001F;  // nothing takes time in the fake driver
    return DriverResult::Success;
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
