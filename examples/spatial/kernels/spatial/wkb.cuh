// WKB in little-endian byte order, in two dimensions. Its fields have no alignment, so bytes are written one by one.
#pragma once

#include "columns.cuh"

constexpr unsigned kWkbPoint = 1;
constexpr unsigned kWkbPolygon = 3;
constexpr unsigned kWkbMultiPolygon = 6;
constexpr unsigned kWkbHeader = 9;      // byte order, type, count
constexpr unsigned kWkbPointSize = 21;  // byte order, type, two coordinates

__device__ inline void put_uint(unsigned char* at, unsigned value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<unsigned char>(value >> (8 * i));
}

__device__ inline void put_double(unsigned char* at, double value) {
  const auto bits = static_cast<unsigned long long>(__double_as_longlong(value));
  for (int i = 0; i < 8; ++i) at[i] = static_cast<unsigned char>(bits >> (8 * i));
}

__device__ inline void put_type(unsigned char* at, unsigned type) {
  at[0] = 1;  // little-endian
  put_uint(at + 1, type);
}
