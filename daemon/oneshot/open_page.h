// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ksym/base/result.h"

namespace profd {

// Shows a file with xdg-open, as the user who called sudo(8) if that is how
// root came to be: a browser refuses root, and has its windows there. Waits for
// a second whether that fails; a program that goes on is left alone. Call when
// no other thread is needed any more. kNotFound: there is no xdg-open.
ksym::Status OpenPage(const std::string& path);

// Makes a page that leads a browser on to an address, and gives its path: where
// the address has a secret it must be in no list of processes. Only the user
// that OpenPage() would open it as may read it. The caller removes it.
ksym::Result<std::string> WritePageLeadingTo(const std::string& address);

}  // namespace profd
