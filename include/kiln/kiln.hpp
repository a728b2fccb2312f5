#pragma once

#include <kiln/artifact.hpp>
#include <kiln/bytes.hpp>
#include <kiln/cccl.hpp>
#include <kiln/device_info.hpp>
#include <kiln/event.hpp>
#include <kiln/kernel.hpp>
#include <kiln/key.hpp>
#include <kiln/launch.hpp>
#include <kiln/needs.hpp>
#include <kiln/result.hpp>
#include <kiln/session.hpp>
#include <kiln/status.hpp>
#include <kiln/target.hpp>
#include <kiln/unit.hpp>
#include <kiln/version.hpp>
#include <kiln/work.hpp>
