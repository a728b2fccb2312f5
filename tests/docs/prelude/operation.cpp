// The functions of an operation, declared before the operation.
#include <vector>
#include <kiln/runtime.hpp>
using namespace kiln::runtime;
using kiln::Residency;
using Mask = std::vector<bool>;
using Points = std::vector<double>;
using Polygons = std::vector<double>;
kiln::Result<Mask> within_on_cpu(kiln::runtime::Dispatch&, const Points&, const Polygons&);
kiln::Result<Mask> within_on_opencl(kiln::runtime::Dispatch&, const Points&, const Polygons&);
extern const kiln::Requirements within_requirements;
extern kiln::Session session;
extern const Points points;
extern const Polygons polygons;
@block@
