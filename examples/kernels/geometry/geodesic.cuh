// Distance metrics. A metric returns the distance between two points. The metrics of the earth take longitudes and
// latitudes in degrees and return meters.
#pragma once

#include "geometry.cuh"

struct Plane {
  __device__ double operator()(Point a, Point b) const { return distance(a, b); }
};

__device__ inline double in_radians(double degrees) { return degrees * (3.14159265358979323846 / 180); }

// Uses half angles, which stay accurate for nearby points, where a cosine would be 1.
struct Sphere {
  double radius;
  __device__ double operator()(Point a, Point b) const {
    const double by_latitude = sin(in_radians(b.y - a.y) / 2);
    const double by_longitude = sin(in_radians(b.x - a.x) / 2);
    const double half =
        by_latitude * by_latitude + cos(in_radians(a.y)) * cos(in_radians(b.y)) * by_longitude * by_longitude;
    return 2 * radius * asin(sqrt(clamped(half, 0.0, 1.0)));
  }
};

// Vincenty's iteration on the ellipsoid. It may not converge for nearly antipodal points; the result is then that of a
// sphere with the mean radius, with an error of at most about 0.6 %.
struct Spheroid {
  double axis;
  double flattening;

  struct Course {
    double sigma;  // angle between the two points on the auxiliary sphere
    double sin_sigma;
    double cos_sigma;
    double cos2_alpha;  // cosine squared of the azimuth at the equator
    double cos_2m;      // cosine of twice the angle from the equator to the midpoint
    bool same_place;    // true if the points are equal or exactly antipodal
  };

  // A reduced latitude, represented by its sine and cosine.
  struct Latitude {
    double sine;
    double cosine;
  };
  __device__ Latitude reduced(double degrees) const {
    const double tangent = (1 - flattening) * tan(in_radians(degrees));
    const double cosine = 1 / sqrt(1 + tangent * tangent);
    return {tangent * cosine, cosine};
  }

  __device__ Course course(Latitude from, Latitude to, double lambda) const {
    double sin_l, cos_l;
    sincos(lambda, &sin_l, &cos_l);
    Course c;
    c.sin_sigma = hypot(to.cosine * sin_l, from.cosine * to.sine - from.sine * to.cosine * cos_l);
    c.cos_sigma = from.sine * to.sine + from.cosine * to.cosine * cos_l;
    c.same_place = c.sin_sigma == 0;
    if (c.same_place) return c;
    c.sigma = atan2(c.sin_sigma, c.cos_sigma);
    const double sin_alpha = from.cosine * to.cosine * sin_l / c.sin_sigma;
    c.cos2_alpha = 1 - sin_alpha * sin_alpha;
    // Along the equator there is no midpoint to measure from, and its terms vanish.
    c.cos_2m = c.cos2_alpha > 0 ? c.cos_sigma - 2 * from.sine * to.sine / c.cos2_alpha : 0;
    return c;
  }

  // Returns the difference between the longitude on the auxiliary sphere and the real one.
  __device__ double longer(const Course& c, double sin_alpha_squared) const {
    const double factor = flattening / 16 * c.cos2_alpha * (4 + flattening * (4 - 3 * c.cos2_alpha));
    const double inner = c.cos_2m + factor * c.cos_sigma * (2 * c.cos_2m * c.cos_2m - 1);
    return (1 - factor) * flattening * sqrt(larger(0.0, sin_alpha_squared)) * (c.sigma + factor * c.sin_sigma * inner);
  }

  __device__ double length(const Course& c) const {
    const double minor = axis * (1 - flattening);
    const double u2 = c.cos2_alpha * (axis * axis - minor * minor) / (minor * minor);
    const double a = 1 + u2 / 16384 * (4096 + u2 * (-768 + u2 * (320 - 175 * u2)));
    const double b = u2 / 1024 * (256 + u2 * (-128 + u2 * (74 - 47 * u2)));
    const double m2 = c.cos_2m * c.cos_2m;
    const double outer =
        c.cos_sigma * (2 * m2 - 1) - b / 6 * c.cos_2m * (4 * c.sin_sigma * c.sin_sigma - 3) * (4 * m2 - 3);
    return minor * a * (c.sigma - b * c.sin_sigma * (c.cos_2m + b / 4 * outer));
  }

  __device__ double operator()(Point a, Point b) const {
    if (!is_number(a.x + a.y + b.x + b.y)) return not_a_number();
    // Reduces the difference of longitudes to at most half a turn. Its sign does not matter.
    const double turn = fabs(remainder(b.x - a.x, 360.0));
    const double wanted = in_radians(turn);
    const Latitude from = reduced(a.y);
    const Latitude to = reduced(b.y);
    double lambda = wanted;
    double sigma = 0;
    for (int step = 0; step < 100; ++step) {
      const Course c = course(from, to, lambda);
      if (c.same_place) return c.cos_sigma > 0 ? 0 : axis * (1 - flattening / 3) * in_radians(180);
      const double next = wanted + longer(c, 1 - c.cos2_alpha);
      // The next iteration would differ by less than a micrometer.
      if (fabs(next - lambda) < 1e-13) return length(c);
      lambda = next;
      sigma = c.sigma;
      if (lambda > 3.14159265358979323846) break;
    }
    return axis * (1 - flattening / 3) * sigma;
  }
};
