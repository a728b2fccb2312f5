// The operations and the inputs of rewrite rules.
#include <kiln/runtime.hpp>
struct Points {
  std::uint64_t rows() const;
};
struct Polygons {};
using Within = kiln::Result<bool>(kiln::runtime::Dispatch&, const Points&, const Polygons&);
kiln::Result<bool> on_cpu(kiln::runtime::Dispatch&, const Points&, const Polygons&);
constexpr auto operation_named(const char* name) {
  using namespace kiln::runtime;
  return operation<Within>(
      name, PrecisionClass::Predicate,
      Implementation<Within>{{Backend::Cpu, Robustness::Exact, Precision::Fp64, Determinism::Deterministic}, &on_cpu});
}
constexpr auto kSjoin = operation_named("sjoin");
constexpr auto kBoxJoin = operation_named("box join");
constexpr auto kWithin = operation_named("within");
constexpr auto kBoxWithin = operation_named("box within");
bool polygons_are_rectangles(const Points& points, const Polygons& polygons);
extern kiln::runtime::Runtime runtime;
extern const Points points;
extern const Polygons polygons;
@block@
