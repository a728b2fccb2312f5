// Points as WKB. A null row has no bytes; an empty point has NaN for both coordinates.
#include "wkb.cuh"

extern "C" __global__ void wkb_point_sizes(int rows, const unsigned* valid, unsigned* sizes) {
  const int row = first_row();
  if (row < rows) sizes[row] = Validity{valid}[row] ? kWkbPointSize : 0;
}

extern "C" __global__ void wkb_points(int rows, const unsigned* valid, const double* x, const double* y,
                                      const unsigned* offsets, unsigned char* bytes) {
  const int row = first_row();
  if (row >= rows || !Validity{valid}[row]) return;
  unsigned char* const at = bytes + offsets[row];
  put_type(at, kWkbPoint);
  put_double(at + 5, x[row]);
  put_double(at + 13, y[row]);
}
