// What is left to do behind a scan of CCCL's, of one element more than there are values: its last sum is that of all.
extern "C" __global__ void scan_total(unsigned count, const unsigned* offsets, unsigned* total) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *total = offsets[count];
}
