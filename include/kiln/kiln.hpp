// SPDX-License-Identifier: Apache-2.0
#pragma once

// The headers that every program can use. Include what a program needs beyond them by name: <kiln/stream.hpp> (streams
// and memory for programs that have none), <kiln/cccl.hpp>, and the typed handles and adaptors of <kiln/cuda.hpp>,
// <kiln/opencl.hpp> and <kiln/rmm.hpp>.

#include <kiln/artifact.hpp>
#include <kiln/backend.hpp>
#include <kiln/bytes.hpp>
#include <kiln/device_info.hpp>
#include <kiln/event.hpp>
#include <kiln/explanation.hpp>
#include <kiln/external_cache.hpp>
#include <kiln/kernel.hpp>
#include <kiln/key.hpp>
#include <kiln/launch.hpp>
#include <kiln/operation_context.hpp>
#include <kiln/requirements.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>
#include <kiln/status.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>
#include <kiln/version.hpp>
#include <kiln/wait.hpp>
