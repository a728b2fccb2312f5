// Coordinate transformations: affine maps, and projections of an ellipsoid. Longitudes and latitudes are in degrees, x
// before y; everything else is in meters. Coordinates of null rows are transformed as well: that is cheaper than a
// test, and no caller reads them. NaN stays NaN, so empty points stay empty; coordinates without an image become NaN.
#include "rows.cuh"

namespace {

constexpr double kPi = 3.14159265358979323846;

__device__ double radians(double degrees) { return degrees * (kPi / 180); }
__device__ double degrees(double radians) { return radians * (180 / kPi); }

// Wraps a longitude to -180 … 180.
__device__ double wrapped(double longitude) {
  const double turns = floor((longitude + 180) / 360);
  return longitude - 360 * turns;
}

// Returns the difference of longitudes, the shorter way around.
__device__ double from_meridian(double longitude, double meridian) { return wrapped(longitude - meridian); }

}  // namespace

// An ellipsoid of revolution: its semi-major axis and its flattening.
struct Ellipsoid {
  double axis;
  double flattening;
  __device__ double eccentricity_squared() const { return flattening * (2 - flattening); }
};

// A row-major matrix: x' = xx x + xy y + x0.
struct Affine {
  double xx;
  double xy;
  double yx;
  double yy;
  double x0;
  double y0;
  __device__ Point operator()(Point p) const {
    return {fma(xx, p.x, fma(xy, p.y, x0)), fma(yx, p.x, fma(yy, p.y, y0))};
  }
};

namespace {

// Returns the tangent of the conformal latitude (Karney, Transverse Mercator with an accuracy of a few nanometers,
// 2011, equations 7 to 9).
__device__ double conformal_tangent(double tangent, double eccentricity) {
  const double sine = tangent / hypot(1.0, tangent);
  const double sigma = sinh(eccentricity * atanh(eccentricity * sine));
  return tangent * hypot(1.0, sigma) - sigma * hypot(1.0, tangent);
}

// Computes the inverse with Newton's method, which doubles the digits per step: three steps suffice for any ellipsoid
// like the earth.
__device__ double tangent_of_conformal(double conformal, double eccentricity) {
  const double rest = 1 - eccentricity * eccentricity;
  double tangent = conformal / rest;
#pragma unroll 1
  for (int step = 0; step < 5; ++step) {
    const double seen = conformal_tangent(tangent, eccentricity);
    const double slope = rest * hypot(1.0, seen) * hypot(1.0, tangent) / (1 + rest * tangent * tangent);
    const double change = (conformal - seen) / slope;
    tangent += change;
    if (!(fabs(change) > 1e-16 * fabs(tangent))) break;
  }
  return tangent;
}

}  // namespace

// The Mercator projection on the ellipsoid, with a scale at the equator. With a flattening of 0 it is that of web maps.
// The poles have no image.
struct Mercator {
  Ellipsoid ellipsoid;
  double meridian;
  double scale;

  struct Prepared {
    double radius;
    double eccentricity;
  };
  __device__ Prepared prepare() const { return {ellipsoid.axis * scale, sqrt(ellipsoid.eccentricity_squared())}; }
  __device__ Point forward(const Prepared& prepared, Point p) const {
    if (!(fabs(p.y) < 90)) return {not_a_number(), not_a_number()};
    const double conformal = conformal_tangent(tan(radians(p.y)), prepared.eccentricity);
    return {prepared.radius * radians(from_meridian(p.x, meridian)), prepared.radius * asinh(conformal)};
  }
  __device__ Point backward(const Prepared& prepared, Point p) const {
    const double tangent = tangent_of_conformal(sinh(p.y / prepared.radius), prepared.eccentricity);
    return {wrapped(meridian + degrees(p.x / prepared.radius)), degrees(atan(tangent))};
  }
};

// The Gauss-Krüger projection, which includes UTM, by its series in the third flattening n up to n^6 (Karney 2011,
// equations 35 and 36), accurate to nanometers within 35 degrees of the meridian.
struct TransverseMercator {
  Ellipsoid ellipsoid;
  double meridian;
  double scale;
  double false_easting;
  double false_northing;

  struct Prepared {
    double radius;
    double eccentricity;
    double alpha[6];
    double beta[6];
  };

  __device__ Prepared prepare() const {
    const double n = ellipsoid.flattening / (2 - ellipsoid.flattening);
    const double n2 = n * n;
    const double n3 = n2 * n;
    const double n4 = n2 * n2;
    const double n5 = n4 * n;
    const double n6 = n3 * n3;
    Prepared result;
    result.radius = scale * ellipsoid.axis / (1 + n) * (1 + n2 / 4 + n4 / 64 + n6 / 256);
    result.eccentricity = sqrt(ellipsoid.eccentricity_squared());
    result.alpha[0] = n / 2 - n2 * 2 / 3 + n3 * 5 / 16 + n4 * 41 / 180 - n5 * 127 / 288 + n6 * 7891 / 37800;
    result.alpha[1] = n2 * 13 / 48 - n3 * 3 / 5 + n4 * 557 / 1440 + n5 * 281 / 630 - n6 * 1983433 / 1935360;
    result.alpha[2] = n3 * 61 / 240 - n4 * 103 / 140 + n5 * 15061 / 26880 + n6 * 167603 / 181440;
    result.alpha[3] = n4 * 49561 / 161280 - n5 * 179 / 168 + n6 * 6601661 / 7257600;
    result.alpha[4] = n5 * 34729 / 80640 - n6 * 3418889 / 1995840;
    result.alpha[5] = n6 * 212378941 / 319334400;
    result.beta[0] = n / 2 - n2 * 2 / 3 + n3 * 37 / 96 - n4 / 360 - n5 * 81 / 512 + n6 * 96199 / 604800;
    result.beta[1] = n2 / 48 + n3 / 15 - n4 * 437 / 1440 + n5 * 46 / 105 - n6 * 1118711 / 3870720;
    result.beta[2] = n3 * 17 / 480 - n4 * 37 / 840 - n5 * 209 / 4480 + n6 * 5569 / 90720;
    result.beta[3] = n4 * 4397 / 161280 - n5 * 11 / 504 - n6 * 830251 / 7257600;
    result.beta[4] = n5 * 4583 / 161280 - n6 * 108847 / 3991680;
    result.beta[5] = n6 * 20648693 / 638668800;
    return result;
  }

  // Returns the sums of cos 2kξ sinh 2kη and of sin 2kξ cosh 2kη, each with its coefficient. The functions of the
  // multiples are derived from those of the first, which takes four function calls instead of twenty-four.
  __device__ static Point series(const double (&coefficients)[6], double xi, double eta) {
    double sine1;
    double cosine1;
    sincos(2 * xi, &sine1, &cosine1);
    const Point trigonometric1 = {cosine1, sine1};
    const Point hyperbolic1 = {cosh(2 * eta), sinh(2 * eta)};
    Point trigonometric = trigonometric1;
    Point hyperbolic = hyperbolic1;
    Point sum = {0, 0};
    for (const double coefficient : coefficients) {
      sum.x += coefficient * trigonometric.x * hyperbolic.y;
      sum.y += coefficient * trigonometric.y * hyperbolic.x;
      trigonometric = {dot(trigonometric, {trigonometric1.x, -trigonometric1.y}),
                       dot(trigonometric, {trigonometric1.y, trigonometric1.x})};
      hyperbolic = {dot(hyperbolic, hyperbolic1), dot(hyperbolic, {hyperbolic1.y, hyperbolic1.x})};
    }
    return sum;
  }

  __device__ Point forward(const Prepared& prepared, Point p) const {
    const double longitude = from_meridian(p.x, meridian);
    // Beyond a quarter of a turn, the series belong to another sheet.
    if (!(fabs(p.y) <= 90 && fabs(longitude) < 90)) return {not_a_number(), not_a_number()};
    const double conformal = conformal_tangent(tan(radians(p.y)), prepared.eccentricity);
    double sine;
    double cosine;
    sincos(radians(longitude), &sine, &cosine);
    const double xi = atan2(conformal, cosine);
    const double eta = asinh(sine / hypot(conformal, cosine));
    const Point sum = series(prepared.alpha, xi, eta);
    return {false_easting + prepared.radius * (eta + sum.x), false_northing + prepared.radius * (xi + sum.y)};
  }

  __device__ Point backward(const Prepared& prepared, Point p) const {
    const double xi = (p.y - false_northing) / prepared.radius;
    const double eta = (p.x - false_easting) / prepared.radius;
    const Point sum = series(prepared.beta, xi, eta);
    const double x = eta - sum.x;
    const double y = xi - sum.y;
    const double conformal = sin(y) / hypot(sinh(x), cos(y));
    const double tangent = tangent_of_conformal(conformal, prepared.eccentricity);
    return {wrapped(meridian + degrees(atan2(sinh(x), cos(y)))), degrees(atan(tangent))};
  }
};

// The Albers conic projection with two standard parallels on the ellipsoid, which preserves areas. The parallels must
// not be opposite to each other.
struct ConicEqualArea {
  Ellipsoid ellipsoid;
  double meridian;
  double latitude;  // latitude of the origin
  double first_parallel;
  double second_parallel;

  struct Prepared {
    double eccentricity;
    double cone;
    double constant;
    double origin;  // radius at the origin
  };

  // Returns twice the area between the equator and a latitude, per radian and squared axis.
  __device__ double zone(double sine, double e) const {
    if (e < 1e-9) return 2 * sine;
    const double es = e * sine;
    return (1 - e * e) * (sine / (1 - es * es) + atanh(es) / e);
  }
  __device__ double parallel_radius(double latitude_in_degrees, double e) const {
    const double sine = sin(radians(latitude_in_degrees));
    return cos(radians(latitude_in_degrees)) / sqrt(1 - e * e * sine * sine);
  }
  __device__ double radius(double q, const Prepared& prepared) const {
    return ellipsoid.axis * sqrt(larger(0.0, prepared.constant - prepared.cone * q)) / prepared.cone;
  }

  __device__ Prepared prepare() const {
    Prepared result;
    result.eccentricity = sqrt(ellipsoid.eccentricity_squared());
    const double e = result.eccentricity;
    const double m1 = parallel_radius(first_parallel, e);
    const double m2 = parallel_radius(second_parallel, e);
    const double q1 = zone(sin(radians(first_parallel)), e);
    const double q2 = zone(sin(radians(second_parallel)), e);
    result.cone = first_parallel == second_parallel ? sin(radians(first_parallel)) : (m1 * m1 - m2 * m2) / (q2 - q1);
    result.constant = m1 * m1 + result.cone * q1;
    result.origin = radius(zone(sin(radians(latitude)), e), result);
    return result;
  }

  __device__ Point forward(const Prepared& prepared, Point p) const {
    if (!(fabs(p.y) <= 90)) return {not_a_number(), not_a_number()};
    const double rho = radius(zone(sin(radians(p.y)), prepared.eccentricity), prepared);
    double sine;
    double cosine;
    sincos(prepared.cone * radians(from_meridian(p.x, meridian)), &sine, &cosine);
    return {rho * sine, prepared.origin - rho * cosine};
  }

  __device__ Point backward(const Prepared& prepared, Point p) const {
    const double sign = prepared.cone < 0 ? -1 : 1;
    const double x = sign * p.x;
    const double y = sign * (prepared.origin - p.y);
    const double rho = hypot(x, y);
    const double e = prepared.eccentricity;
    const double share = rho * prepared.cone / ellipsoid.axis;
    const double q = (prepared.constant - share * share) / prepared.cone;
    double phi = asin(clamped(q / 2, -1.0, 1.0));
    // Newton's method on the zone's area. At the poles its slope is 0, and the initial guess is the result.
    for (int step = 0; step < 8 && fabs(phi) < kPi / 2 - 1e-12; ++step) {
      const double sine = sin(phi);
      const double rest = 1 - e * e * sine * sine;
      const double change = (q - zone(sine, e)) * rest * rest / (2 * (1 - e * e) * cos(phi));
      phi = clamped(phi + change, -kPi / 2, kPi / 2);
      if (!(fabs(change) > 1e-15)) break;
    }
    return {wrapped(meridian + degrees(atan2(x, y) / prepared.cone)), degrees(phi)};
  }
};

// Applies one map to every coordinate of a column. Input and output can be the same memory.
extern "C" __global__ void affine_of_column(Coordinates at, int count, Affine map, double* xs, double* ys) {
  for (int i = first_row(); i < count; i += row_step()) {
    const Point p = map(at[i]);
    xs[i] = p.x;
    ys[i] = p.y;
  }
}

// Applies a separate map to each row, such as a rotation around its centroid. One warp per row.
extern "C" __global__ void affine_of_rows(Lines lines, const Affine* maps, double* xs, double* ys) {
  for (int row = first_warp(); row < lines.rows; row += warp_step()) {
    if (lines.state(row) != State::Present) continue;
    const Range range = lines.coordinates(row);
    const Affine map = maps[row];
    for (int i = range.first + lane(); i < range.last; i += 32) {
      const Point p = map(lines.at[i]);
      xs[i] = p.x;
      ys[i] = p.y;
    }
  }
}

// Projects longitudes and latitudes. Each thread prepares once for all of its coordinates.
template <class Projection>
__global__ void project(Coordinates at, int count, Projection projection, double* xs, double* ys) {
  const typename Projection::Prepared prepared = projection.prepare();
  for (int i = first_row(); i < count; i += row_step()) {
    const Point p = projection.forward(prepared, at[i]);
    xs[i] = p.x;
    ys[i] = p.y;
  }
}

// Converts projected coordinates back to longitudes and latitudes.
template <class Projection>
__global__ void unproject(Coordinates at, int count, Projection projection, double* xs, double* ys) {
  const typename Projection::Prepared prepared = projection.prepare();
  for (int i = first_row(); i < count; i += row_step()) {
    const Point p = projection.backward(prepared, at[i]);
    xs[i] = p.x;
    ys[i] = p.y;
  }
}
