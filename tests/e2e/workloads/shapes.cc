// SPDX-License-Identifier: Apache-2.0
// C++ names: namespaces, templates, operators, an anonymous namespace.

#include <cstddef>

#include "workload.h"

namespace geometry {
namespace {

NOINLINE void Grind() { Work(1000000); }

}  // namespace

template <typename T, std::size_t kSize>
class Polygon {
 public:
  NOINLINE T Area(T scale) const {
    Grind();
    return scale * static_cast<T>(kSize);
  }
  NOINLINE T operator()(T scale) const { return Area(scale) + 1; }
};

}  // namespace geometry

int main() {
  LimitLife();
  SayReady();
  const geometry::Polygon<long, 3> triangle;
  for (;;) KEEP_FRAME(static_cast<unsigned long>(triangle(2)));
}
