// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/runtime/calibration.hpp>
#include <kiln/runtime/decision.hpp>
#include <kiln/runtime/events.hpp>
#include <kiln/runtime/memory.hpp>
#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>
#include <kiln/runtime/runtime.hpp>
