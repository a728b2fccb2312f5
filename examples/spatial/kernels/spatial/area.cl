// The area of each row: the areas of its shells minus those of its holes. Coordinates are taken relative to the first
// vertex of their ring in double precision; products and sums are computed in REAL, with compensated sums. Before this
// text, REAL is defined as float or double, and AREA as the name of the kernel. examples/spatial/README.md has the error bounds.
__kernel __attribute__((reqd_work_group_size(ROWS, 1, 1)))
void AREA(int rows, __global const uint* valid, __global const uint* shells, __global const int* rings,
          __global const int* offsets, __global const double* x, __global const double* y, __global double* areas) {
  const size_t end = end_of_items(rows);
  for (size_t row = first_item(rows); row < end; row += ROWS) {
    double area = is_valid(valid, (int)row) ? 0 : NAN;
    for (int ring = rings[row]; ring < rings[row + 1]; ++ring) {
      const int first = offsets[ring];
      REAL sum = 0;
      REAL lost = 0;
      REAL before_x = 0;
      REAL before_y = 0;
      for (int i = first + 1; i < offsets[ring + 1]; ++i) {
        const REAL here_x = (REAL)(x[i] - x[first]);
        const REAL here_y = (REAL)(y[i] - y[first]);
        const REAL term = before_x * here_y - here_x * before_y;
        const REAL next = sum + term;
        const REAL part = next - sum;
        lost += (sum - (next - part)) + (term - part);
        sum = next;
        before_x = here_x;
        before_y = here_y;
      }
      const double of_ring = fabs((double)sum + (double)lost) / 2;
      area += is_valid(shells, ring) ? of_ring : -of_ring;
    }
    areas[row] = area;
  }
}
