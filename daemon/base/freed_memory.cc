#include "daemon/base/freed_memory.h"

#include <malloc.h>

namespace profd {

void ReturnFreedMemory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
#endif
}

}  // namespace profd
