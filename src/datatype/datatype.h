// placeholder until the datatype room is in
#pragma once
#include <cstdint>
namespace starling::datatype {
struct Datatype;
}
