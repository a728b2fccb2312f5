// Keys of pairs: those that were chosen, and what they stand for.
extern "C" __global__ void gather_keys(unsigned count, const unsigned* indices, const unsigned long long* keys,
                                       unsigned long long* gathered) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) gathered[i] = keys[indices[i]];
}

// The point's row and the polygon's of each, one behind the other.
extern "C" __global__ void pairs_of_keys(unsigned count, const unsigned long long* keys, int bits, int* pairs) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  pairs[2 * static_cast<size_t>(i)] = static_cast<int>(keys[i] >> bits);
  pairs[2 * static_cast<size_t>(i) + 1] = static_cast<int>(keys[i] & ((1ULL << bits) - 1));
}
