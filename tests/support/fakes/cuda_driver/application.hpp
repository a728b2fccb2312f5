// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "backends/cuda/cuda_driver_abi.hpp"

namespace kiln::test {

using ModulePointer = struct ModuleHandle*;
using EventPointer = struct EventHandle*;
using GraphPointer = struct GraphHandle*;
using GraphExecPointer = struct GraphExecHandle*;

/// Driver functions that kiln never calls but a host program does, by their names without `cu`.
struct ApplicationFunctions {
  using Result = cuda::DriverResult;

  Result (*CtxCreate)(cuda::Context* context, unsigned flags, cuda::DeviceNumber device) = nullptr;
  Result (*CtxDestroy)(cuda::Context context) = nullptr;
  Result (*CtxSynchronize)() = nullptr;
  Result (*StreamQuery)(cuda::Stream stream) = nullptr;
  Result (*StreamWaitEvent)(cuda::Stream stream, EventPointer event, unsigned flags) = nullptr;
  Result (*StreamBeginCapture)(cuda::Stream stream, cuda::CaptureMode mode) = nullptr;
  Result (*StreamEndCapture)(cuda::Stream stream, GraphPointer* graph) = nullptr;
  Result (*GraphGetNodes)(GraphPointer graph, void** nodes, std::size_t* count) = nullptr;
  Result (*GraphInstantiate)(GraphExecPointer* exec, GraphPointer graph, unsigned long long flags) = nullptr;
  Result (*GraphLaunch)(GraphExecPointer exec, cuda::Stream stream) = nullptr;
  Result (*GraphExecDestroy)(GraphExecPointer exec) = nullptr;
  Result (*GraphDestroy)(GraphPointer graph) = nullptr;
  Result (*EventCreate)(EventPointer* event, unsigned flags) = nullptr;
  Result (*EventRecord)(EventPointer event, cuda::Stream stream) = nullptr;
  Result (*EventSynchronize)(EventPointer event) = nullptr;
  Result (*EventQuery)(EventPointer event) = nullptr;
  Result (*EventDestroy)(EventPointer event) = nullptr;
  Result (*MemAlloc)(cuda::DevicePointer* memory, std::size_t bytes) = nullptr;
  Result (*MemFree)(cuda::DevicePointer memory) = nullptr;
  Result (*MemsetD8)(cuda::DevicePointer memory, unsigned char value, std::size_t bytes) = nullptr;
  Result (*MemGetInfo)(std::size_t* available, std::size_t* total) = nullptr;
  Result (*MemHostRegister)(void* memory, std::size_t bytes, unsigned flags) = nullptr;
  Result (*MemHostUnregister)(void* memory) = nullptr;
  Result (*ModuleLoadData)(ModulePointer* module, const void* code) = nullptr;
  Result (*ModuleUnload)(ModulePointer module) = nullptr;
  Result (*ModuleGetFunction)(cuda::Function* function, ModulePointer module, const char* name) = nullptr;
  Result (*FuncGetAttribute)(int* value, cuda::FunctionAttribute which, cuda::Function function) = nullptr;
};

template <class Visit>
void for_each_function(ApplicationFunctions& f, Visit visit) {
  visit(f.CtxCreate, "cuCtxCreate", 3020);
  visit(f.CtxDestroy, "cuCtxDestroy", 4000);
  visit(f.CtxSynchronize, "cuCtxSynchronize", 2000);
  visit(f.StreamQuery, "cuStreamQuery", 2000);
  visit(f.StreamWaitEvent, "cuStreamWaitEvent", 3020);
  visit(f.StreamBeginCapture, "cuStreamBeginCapture", 10010);
  visit(f.StreamEndCapture, "cuStreamEndCapture", 10000);
  visit(f.GraphGetNodes, "cuGraphGetNodes", 10000);
  visit(f.GraphInstantiate, "cuGraphInstantiate", 12000);
  visit(f.GraphLaunch, "cuGraphLaunch", 10000);
  visit(f.GraphExecDestroy, "cuGraphExecDestroy", 10000);
  visit(f.GraphDestroy, "cuGraphDestroy", 10000);
  visit(f.EventCreate, "cuEventCreate", 2000);
  visit(f.EventRecord, "cuEventRecord", 2000);
  visit(f.EventSynchronize, "cuEventSynchronize", 2000);
  visit(f.EventQuery, "cuEventQuery", 2000);
  visit(f.EventDestroy, "cuEventDestroy", 4000);
  visit(f.MemAlloc, "cuMemAlloc", 3020);
  visit(f.MemFree, "cuMemFree", 3020);
  visit(f.MemsetD8, "cuMemsetD8", 3020);
  visit(f.MemGetInfo, "cuMemGetInfo", 3020);
  visit(f.MemHostRegister, "cuMemHostRegister", 6050);
  visit(f.MemHostUnregister, "cuMemHostUnregister", 4000);
  visit(f.ModuleLoadData, "cuModuleLoadData", 2000);
  visit(f.ModuleUnload, "cuModuleUnload", 2000);
  visit(f.ModuleGetFunction, "cuModuleGetFunction", 2000);
  visit(f.FuncGetAttribute, "cuFuncGetAttribute", 2020);
}

}  // namespace kiln::test
