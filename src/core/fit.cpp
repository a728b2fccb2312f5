#include "core/fit.hpp"

#include <charconv>
#include <initializer_list>

namespace kiln {
namespace {

/// `sm_90a`: the number 90 and the variant `a`; zero where there is none.
struct Capability {
  unsigned number = 0;
  char variant = 0;

  unsigned major() const { return number / 10; }
};

std::optional<Capability> capability_of(std::string_view architecture) {
  if (!architecture.starts_with("sm_")) return std::nullopt;
  architecture.remove_prefix(3);
  Capability capability;
  if (architecture.ends_with('a') || architecture.ends_with('f')) {
    capability.variant = architecture.back();
    architecture.remove_suffix(1);
  }
  const char* const end = architecture.data() + architecture.size();
  const auto [stop, error] = std::from_chars(architecture.data(), end, capability.number);
  if (error != std::errc() || stop != end || architecture.size() > 4) return std::nullopt;
  return capability;
}

bool is_one_of(unsigned number, std::initializer_list<unsigned> numbers) {
  for (const unsigned each : numbers) {
    if (each == number) return true;
  }
  return false;
}

/// Parts whose machine code runs on nothing else, and which run nobody else's. NVIDIA's programming guide (CUDA 12.9,
/// section 6.1.2) has compatibility between minor revisions for desktop parts alone, and none with or among Tegra's;
/// 8.8, of which it says nothing, is taken by nvlink 13.0 exactly, too.
bool stands_alone(unsigned number) { return is_one_of(number, {53, 62, 72, 87, 88, 101, 110}); }

/// A family, by the number of its first member: the programming guide's table of family-specific compatibility, as of
/// CUDA 13.4. Whom it does not name is a family by itself, until the guide says more.
unsigned family_of(unsigned number) {
  if (is_one_of(number, {103, 107})) return 100;
  if (number == 121) return 120;
  return number;
}

/// Whether a device takes this machine code.
bool runs(const Capability& made, unsigned device) {
  if (made.number == device) return true;
  if (made.variant == 'a' || made.number > device) return false;
  if (made.variant == 'f') return family_of(made.number) == family_of(device);
  return made.major() == device / 10 && !stands_alone(made.number) && !stands_alone(device);
}

/// Whether a driver translates this PTX for a device.
bool is_translated(const Capability& made, unsigned device) {
  if (made.number == device) return true;
  if (made.variant == 'a' || made.number > device) return false;
  return made.variant != 'f' || family_of(made.number) == family_of(device);
}

// Above whatever nearness gives: any machine code comes before any PTX, which costs a translation.
constexpr unsigned kEqual = 1U << 17;
constexpr unsigned kMachineCode = 1U << 16;

/// The nearer the number the better; of one number what could use more of the device.
unsigned nearness(const Capability& made) {
  return made.number * 4 + (made.variant == 'a' ? 2 : made.variant == 'f' ? 1 : 0);
}

}  // namespace

std::optional<unsigned> fit(const Target& made, const Target& wanted) {
  if (made == wanted) return kEqual;
  if (wanted.form != Form::Cubin && wanted.form != Form::Cccl) return std::nullopt;
  const std::optional<Capability> from = capability_of(made.architecture);
  // What a device runs is a matter of its number: `sm_90a` asks for a device of 9.0, as `sm_90` does.
  const std::optional<Capability> device = capability_of(wanted.architecture);
  if (!from || !device) return std::nullopt;
  if (made.form == wanted.form) {
    if (!runs(*from, device->number)) return std::nullopt;
    return kMachineCode + nearness(*from);
  }
  if (made.form != Form::Ptx || wanted.form != Form::Cubin) return std::nullopt;
  if (!is_translated(*from, device->number)) return std::nullopt;
  return nearness(*from);
}

}  // namespace kiln
