// SPDX-License-Identifier: Apache-2.0
// Stream capture, the calls that are forbidden during it, and the resulting graphs.
#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

/// Returns whether a capture forbids the calling thread potentially unsafe calls.
bool forbids(const Capture& capture, CaptureMode mode) {
  if (capture.owner == std::this_thread::get_id()) return capture.mode != CaptureMode::Relaxed;
  return mode == CaptureMode::Global && capture.mode == CaptureMode::Global;
}

DriverResult status_of(Model& model, StreamState& stream, CaptureStatus* status, unsigned long long* id) {
  if (status == nullptr) return DriverResult::InvalidValue;
  if (stream.legacy) {
    bool recording = false;
    model.streams.for_each([&](Stream, StreamState& other) {
      recording = recording || (other.context == stream.context && other.blocking && other.capture.has_value());
    });
    // The query alone invalidates no capture.
    if (recording) return DriverResult::CaptureImplicit;
  }
  *status = stream.capture ? stream.capture->status : CaptureStatus::None;
  if (id != nullptr && stream.capture) *id = stream.capture->id;
  return DriverResult::Success;
}

DriverResult begin_capture(Stream given, CaptureMode mode) {
  return enter_stream("cuStreamBeginCapture", given, [&](Model& model, Stream, StreamState& stream) {
    if (stream.legacy) return DriverResult::CaptureUnsupported;
    if (mode < CaptureMode::Global || mode > CaptureMode::Relaxed) return DriverResult::InvalidValue;
    if (stream.capture) return DriverResult::IllegalState;
    stream.capture.emplace();
    stream.capture->mode = mode;
    stream.capture->owner = std::this_thread::get_id();
    stream.capture->id = ++model.serial;
    return DriverResult::Success;
  });
}

DriverResult instantiate(GraphExec* exec, Graph graph) {
  return enter("cuGraphInstantiate", [&](Model& model) {
    const GraphState* state = model.graphs.find(graph);
    if (state == nullptr) return model.reject(graph);
    if (exec == nullptr) return DriverResult::InvalidValue;
    *exec = model.graph_execs.add(++model.serial, *state);
    return DriverResult::Success;
  });
}

}  // namespace

void Model::lose(Capture& capture) {
  if (capture.status == CaptureStatus::Active) ++lost_captures;
  capture.status = CaptureStatus::Invalidated;
}

DriverResult Model::unsafe_call() {
  const CaptureMode mode = this_thread(*this).mode;
  if (mode == CaptureMode::Relaxed) return DriverResult::Success;
  DriverResult result = DriverResult::Success;
  streams.for_each([&](Stream, StreamState& stream) {
    if (!stream.capture || !forbids(*stream.capture, mode)) return;
    lose(*stream.capture);
    result = DriverResult::CaptureUnsupported;
  });
  return result;
}

DriverResult Model::legacy_call(Context context) {
  DriverResult result = DriverResult::Success;
  streams.for_each([&](Stream, StreamState& stream) {
    if (stream.context != context || !stream.blocking || !stream.capture) return;
    lose(*stream.capture);
    result = DriverResult::CaptureImplicit;
  });
  return result;
}

extern "C" {

DriverResult cuThreadExchangeStreamCaptureMode(CaptureMode* mode) {
  return enter("cuThreadExchangeStreamCaptureMode", [&](Model& model) {
    if (mode == nullptr || *mode < CaptureMode::Global || *mode > CaptureMode::Relaxed) {
      return DriverResult::InvalidValue;
    }
    CaptureMode& own = this_thread(model).mode;
    if (own == CaptureMode::Global && *mode != CaptureMode::Global) ++model.relaxed_threads;
    if (own != CaptureMode::Global && *mode == CaptureMode::Global) --model.relaxed_threads;
    std::swap(own, *mode);
    return DriverResult::Success;
  });
}

DriverResult cuStreamIsCapturing(Stream given, CaptureStatus* status) {
  return enter_stream("cuStreamIsCapturing", given, [&](Model& model, Stream, StreamState& stream) {
    return status_of(model, stream, status, nullptr);
  });
}

DriverResult cuStreamGetCaptureInfo_v2(Stream given, CaptureStatus* status, unsigned long long* id, Graph* graph,
                                       const void** dependencies, std::size_t* count) {
  return enter_stream("cuStreamGetCaptureInfo", given, [&](Model& model, Stream, StreamState& stream) {
    if (graph != nullptr) *graph = nullptr;
    if (dependencies != nullptr) *dependencies = nullptr;
    if (count != nullptr) *count = 0;
    return status_of(model, stream, status, id);
  });
}

DriverResult cuStreamGetCaptureInfo_v3(Stream given, CaptureStatus* status, unsigned long long* id, Graph* graph,
                                       const void** dependencies, const void** edges, std::size_t* count) {
  if (edges != nullptr) *edges = nullptr;
  return cuStreamGetCaptureInfo_v2(given, status, id, graph, dependencies, count);
}

DriverResult cuStreamBeginCapture_v2(Stream given, CaptureMode mode) { return begin_capture(given, mode); }

DriverResult cuStreamEndCapture(Stream given, Graph* graph) {
  return enter_stream("cuStreamEndCapture", given, [&](Model& model, Stream, StreamState& stream) {
    if (graph == nullptr) return DriverResult::InvalidValue;
    *graph = nullptr;
    if (!stream.capture) return DriverResult::IllegalState;
    if (stream.capture->mode != CaptureMode::Relaxed && stream.capture->owner != std::this_thread::get_id()) {
      return DriverResult::CaptureWrongThread;
    }
    Capture capture = std::move(*stream.capture);
    stream.capture.reset();
    if (capture.status != CaptureStatus::Active) return DriverResult::CaptureInvalidated;
    *graph = model.graphs.add(++model.serial, {std::move(capture.nodes)});
    return DriverResult::Success;
  });
}

DriverResult cuGraphGetNodes(Graph graph, void** nodes, std::size_t* count) {
  return enter("cuGraphGetNodes", [&](Model& model) {
    const GraphState* state = model.graphs.find(graph);
    if (state == nullptr) return model.reject(graph);
    if (nodes != nullptr) return DriverResult::NotSupported;  // only the number of nodes can be queried
    if (count == nullptr) return DriverResult::InvalidValue;
    *count = state->nodes.size();
    return DriverResult::Success;
  });
}

DriverResult cuGraphDestroy(Graph graph) {
  return enter("cuGraphDestroy",
               [&](Model& model) { return model.graphs.remove(graph) ? DriverResult::Success : model.reject(graph); });
}

DriverResult cuGraphInstantiateWithFlags(GraphExec* exec, Graph graph, unsigned long long) {
  return instantiate(exec, graph);
}

DriverResult cuGraphInstantiate_v2(GraphExec* exec, Graph graph, void*, char*, std::size_t) {
  return instantiate(exec, graph);
}

DriverResult cuGraphExecDestroy(GraphExec exec) {
  return enter("cuGraphExecDestroy", [&](Model& model) {
    return model.graph_execs.remove(exec) ? DriverResult::Success : model.reject(exec);
  });
}

DriverResult cuGraphLaunch(GraphExec exec, Stream given) {
  return enter("cuGraphLaunch", [&](Model& model) {
    const GraphState* state = model.graph_execs.find(exec);
    if (state == nullptr) return model.reject(exec);
    Stream stream = nullptr;
    DriverResult result = model.resolve(given, stream);
    for (const Work& work : state->nodes) {
      if (result == DriverResult::Success) result = model.submit(stream, work);
    }
    return result;
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
