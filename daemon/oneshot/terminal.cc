// SPDX-License-Identifier: Apache-2.0
#include "daemon/oneshot/terminal.h"

#include <sys/ioctl.h>

namespace profd {

size_t TerminalColumns(int fd) {
  winsize size = {};
  constexpr size_t kUsual = 80;
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0) return kUsual;
  return size.ws_col == 0 ? kUsual : size.ws_col;
}

}  // namespace profd
