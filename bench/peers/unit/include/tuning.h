// What the unit takes from a header of its own. The frame edits kScale to see who notices.
#pragma once

constexpr float kScale = 1.5f;
constexpr int kTile = 32;

__device__ __forceinline__ float scaled(float value) { return kScale * value; }
