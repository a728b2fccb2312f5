// SPDX-License-Identifier: Apache-2.0
// The unit's own header. The harness edits kScale to test which cache detects the change.
#pragma once

constexpr float kScale = 1.5f;
constexpr int kTile = 32;

__device__ __forceinline__ float scaled(float value) { return kScale * value; }
